"""Embedded brokers with destinations, settings and configuration files of the caller's own."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pyjmsack import AckMode, ConnectionFactory
from pyjmsack.broker import EmbeddedActiveMQ, EmbeddedArtemis
from pyjmsack.broker.wanted import Wanted, with_activemq_wishes, with_artemis_wishes

ETC = resources.files("pyjmsack.broker").joinpath("etc")
BROKER_XML = ETC.joinpath("artemis", "broker.xml").read_bytes()
ACTIVEMQ_XML = ETC.joinpath("activemq", "activemq.xml").read_bytes()
CORE = "{urn:activemq:core}"
HOSTILE = "a\"/><x>&'b"


def settings_of(xml: bytes, match: str) -> Mapping[str, str | None]:
    found = [one for one in ElementTree.fromstring(xml).iter(f"{CORE}address-setting") if one.get("match") == match]
    assert len(found) == 1
    return {one.tag.removeprefix(CORE): one.text for one in found[0]}


def test_without_wishes_the_files_are_the_packages_own() -> None:
    assert with_artemis_wishes(BROKER_XML, Wanted()) == BROKER_XML
    assert with_activemq_wishes(ACTIVEMQ_XML, Wanted()) == ACTIVEMQ_XML


def test_a_match_that_the_broker_has_keeps_its_other_settings() -> None:
    xml = with_artemis_wishes(BROKER_XML, Wanted(settings={"#": {"max_delivery_attempts": 3, "default-ring-size": 5}}))
    settings = settings_of(xml, "#")
    assert (settings["max-delivery-attempts"], settings["default-ring-size"]) == ("3", "5")
    assert settings["dead-letter-address"] == "DLQ"


def test_a_name_stays_a_name_in_the_file() -> None:
    wanted = Wanted(queues=(HOSTILE,), topics=("t", HOSTILE), settings={HOSTILE: {"expiry-address": HOSTILE}})
    xml = with_artemis_wishes(BROKER_XML, wanted)
    root = ElementTree.fromstring(xml)
    assert [one.get("name") for one in root.iter(f"{CORE}address")] == ["DLQ", "ExpiryQueue", HOSTILE, "t"]
    assert settings_of(xml, HOSTILE) == {"expiry-address": HOSTILE}
    classic = ElementTree.fromstring(with_activemq_wishes(ACTIVEMQ_XML, wanted))
    names = [one.get("physicalName") for one in classic.iter() if one.get("physicalName")]
    assert names == [HOSTILE, "t", HOSTILE]


@pytest.mark.parametrize(
    "wrong",
    [
        {"queues": [""]},
        {"queues": [" a"]},
        {"topics": ["${user.home}"]},
        {"topics": ["a\n"]},
        {"settings": {"a": {"x><y": 1}}},
        {"settings": {"a": {"expiry-address": "${user.home}"}}},
    ],
)
def test_a_name_that_no_broker_takes_is_refused_before_one_starts(wrong: dict[str, Any]) -> None:
    given = {"queues": (), "topics": (), "settings": None, "configuration": None, **wrong}
    with pytest.raises(ValueError, match=r"not the name of|expected a value of"):
        Wanted.of(**given)


def test_a_file_of_ones_own_must_listen_where_the_broker_is_asked_and_comes_alone(tmp_path: Path) -> None:
    file = tmp_path / "broker.xml"
    file.write_bytes(BROKER_XML.replace(b"${pyjmsack.stomp.port}", b"61613"))
    with pytest.raises(ValueError, match=r"pyjmsack\.stomp\.port"):
        EmbeddedArtemis(configuration=file)
    file.write_bytes(BROKER_XML)
    with pytest.raises(ValueError, match="into that file"):
        EmbeddedArtemis(configuration=file, queues=["a"])
    with pytest.raises(OSError, match=r"none\.xml"):
        EmbeddedArtemis(configuration=tmp_path / "none.xml")


def reject_until_it_is_gone(url: str, queue: str) -> int:
    """Give the only message of a queue back until it comes no more; return how often it came."""
    with (
        ConnectionFactory(url).create_connection() as connection,
        connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE) as session,
    ):
        connection.start()
        session.create_producer(session.create_queue(queue)).send("x")
        consumer = session.create_consumer(session.create_queue(queue))
        times = 0
        while message := consumer.receive(timeout=5 if times < 2 else 1):
            times += 1
            message.modify(delivery_failed=True)
        return times


def test_artemis_starts_with_the_wanted_queues_and_counts_as_its_settings_say() -> None:
    settings = {"#": {"auto-create-queues": False, "auto-create-addresses": False}, "few": {"max-delivery-attempts": 2}}
    with EmbeddedArtemis(queues=["few"], topics=["news"], address_settings=settings) as broker:
        assert reject_until_it_is_gone(broker.amqp_url, "few") == 2


def test_classic_starts_with_a_file_of_ones_own_and_with_wanted_queues(tmp_path: Path) -> None:
    wanted = Wanted(queues=("first",), topics=("news",), settings={"first": {"queuePrefetch": 1}})
    file = tmp_path / "activemq.xml"
    file.write_bytes(with_activemq_wishes(ACTIVEMQ_XML, wanted))
    with EmbeddedActiveMQ(configuration=file) as broker:
        with (
            ConnectionFactory(broker.amqp_url).create_connection() as connection,
            connection.create_session() as session,
        ):
            session.create_producer(session.create_queue("first")).send("x")
        assert (broker.data_dir / "etc" / "activemq.xml").read_bytes() == file.read_bytes()
