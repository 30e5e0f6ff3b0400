"""Bad input: an error of the right kind, whose text says what to write instead, before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from contract.brokers import alike
from contract.harness import Jms
from pyjmsack import (
    InvalidDestinationException,
    InvalidURLException,
    JMSException,
    MessageFormatException,
    UnsupportedFeatureException,
)

pytestmark = alike("bad input is refused before anything is sent")

URLS = [
    ("tcp://localhost:61616", InvalidURLException, r"tcp://.*amqp://"),
    ("ssl://localhost:61617", InvalidURLException, r"ssl://.*amqps://"),
    ("nio://localhost:61616", InvalidURLException, r"nio://.*amqp://"),
    ("mqtt://localhost:1883", InvalidURLException, r"mqtt://.*amqp://"),
    ("aqmp://localhost", InvalidURLException, r"aqmp.*amqp"),
    ("localhost:5672", InvalidURLException, r"scheme"),
    ("", InvalidURLException, r"scheme"),
    ("amqp://", InvalidURLException, r"host"),
    ("amqp://localhost:port", InvalidURLException, r"port"),
    ("amqp://localhost:0", InvalidURLException, r"port"),
    ("amqp://localhost/path", InvalidURLException, r"path"),
    ("amqp://user:secret@localhost", InvalidURLException, r"jms\.username"),
    ("amqp://localhost?jms.prefetchPolicy.queuPrefetch=1", InvalidURLException, r"jms\.prefetchPolicy\.queuePrefetch"),
    ("amqp://localhost?sendTimeout=1", InvalidURLException, r"jms\.sendTimeout"),
    ("amqp://localhost?jms.clientId=x", InvalidURLException, r"jms\.clientID"),
    ("amqp://localhost?jms.sendTimeout=soon", InvalidURLException, r"jms\.sendTimeout.*soon"),
    ("amqp://localhost?jms.forceSyncSend=perhaps", InvalidURLException, r"jms\.forceSyncSend.*perhaps"),
    ("amqp://localhost?jms.clientID=a&jms.clientID=b", InvalidURLException, r"jms\.clientID"),
    ("amqp://localhost?transport.keyAlias=mine", UnsupportedFeatureException, r"transport\.keyAlias"),
]  # fmt: skip


@pytest.mark.parametrize(("url", "kind", "text"), URLS, ids=[url or "empty" for url, _, _ in URLS])
async def test_a_wrong_url_is_refused_by_the_factory_with_the_right_spelling(
    jms: Jms, url: str, kind: type[JMSException], text: str
) -> None:
    """Catalogue 88."""
    with pytest.raises(kind, match=f"(?s){text}") as raised:
        jms.face.factory(url)
    assert "secret" not in str(raised.value)


async def test_a_wrong_url_is_a_value_error_too(jms: Jms) -> None:
    """A caller may catch the built-in."""
    with pytest.raises(ValueError, match="tcp"):
        jms.factory("tcp://localhost:61616")


async def test_every_unknown_option_is_named_at_once(jms: Jms) -> None:
    """Catalogue 88."""
    with pytest.raises(InvalidURLException, match=r"(?s)jms\.sendTimeot.*jms\.sendTimeout.*jms\.prefetch"):
        jms.factory(options={"jms.sendTimeot": 1, "jms.prefetch": 2})


@pytest.mark.parametrize("call", ["create_producer", "create_consumer"])
@pytest.mark.parametrize("destination", ["a name", 1])
async def test_a_name_is_not_a_destination(jms: Jms, call: str, destination: Any) -> None:
    """S67: the text shows how to make one."""
    session = await jms.session()
    with pytest.raises(InvalidDestinationException, match="create_queue"):
        await getattr(session, call)(destination)


async def test_no_destination_is_no_consumer(jms: Jms) -> None:
    """S67."""
    session = await jms.session()
    missing: Any = None
    with pytest.raises(InvalidDestinationException):
        await session.create_consumer(missing)


@pytest.mark.parametrize("timeout", [-1, "1", float("nan")])
async def test_a_timeout_that_is_none_is_refused(jms: Jms, timeout: Any) -> None:
    """Units: seconds, a timedelta, or None."""
    consumer = await jms.consumer()
    with pytest.raises((ValueError, TypeError, JMSException)):
        await consumer.receive(timeout=timeout)


@pytest.mark.parametrize("how", [{"priority": "4"}, {"priority": True}, {"delivery_mode": "2"}, {"time_to_live": "1"}])
async def test_arguments_of_send_of_another_type_are_refused(jms: Jms, how: dict[str, Any]) -> None:
    """S152."""
    producer = await (await jms.session()).create_producer(jms.queue)
    with pytest.raises(JMSException):
        await producer.send("a", **how)
    await jms.left()


@pytest.mark.parametrize("text", [1, b"bytes", ["list"]])
async def test_a_text_message_takes_only_text(jms: Jms, text: Any) -> None:
    """S170."""
    session = await jms.session()
    with pytest.raises(MessageFormatException):
        session.create_text_message(text)
