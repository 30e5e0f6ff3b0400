"""Names and values that would damage a broker, or for which it would end the connection, are not sent (S67, S160)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pyjmsack.errors import InvalidDestinationException, MessageFormatException
from pyjmsack.message import TextMessage
from pyjmsack.spi.spellings import (
    LONGEST_STORED,
    LONGEST_TEXT,
    check_orders,
    check_storable,
    check_target,
    check_texts,
)

CLASSIC: Any = SimpleNamespace(broker="classic-6")


@pytest.mark.parametrize(
    ("character", "size"), [("a", 1), ("\0", 2), ("\u00e4", 2), ("\u20ac", 3), ("\ud800", 3), ("\U0001f600", 6)]
)
def test_a_name_is_counted_in_the_bytes_that_the_store_writes(character: str, size: int) -> None:
    fits = character * (LONGEST_STORED // size)
    check_storable("the destination", fits, CLASSIC)
    with pytest.raises(InvalidDestinationException, match=r"the destination .* at least 65,\d\d\d bytes") as raised:
        check_storable("the destination", fits + character * 2, CLASSIC)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("broker", ["artemis", "unknown", None])
def test_other_brokers_take_names_of_any_length(broker: str | None) -> None:
    metadata: Any = broker and SimpleNamespace(broker=broker)
    check_storable("the destination", "a" * 100_000, metadata)


@pytest.mark.parametrize(("character", "size"), [("a", 1), ("\u00e4", 2), ("\U00010400", 6)])
def test_a_property_whose_name_ends_the_connection_to_classic_is_refused(character: str, size: int) -> None:
    """S160: one message costs itself alone."""
    message = TextMessage("x")
    message.properties[character * (LONGEST_TEXT // size)] = 1
    check_texts(message, CLASSIC)
    message.properties[character * (LONGEST_TEXT // size + 1)] = 1
    with pytest.raises(MessageFormatException, match=r"the name of the property .* at least 65,\d\d\d bytes") as raised:
        check_texts(message, CLASSIC)
    assert len(str(raised.value)) < 500
    artemis: Any = SimpleNamespace(broker="artemis")
    check_texts(message, artemis)


@pytest.mark.parametrize(("character", "size"), [("a", 1), ("\0", 2), ("\u00e4", 2), ("\U00010400", 6)])
@pytest.mark.parametrize(
    ("field", "name"), [("correlation_id", "correlation id"), ("type", "type"), ("_group_id", "group id")]
)
def test_a_header_that_classic_calls_rejected_and_keeps_is_refused(
    field: str, name: str, character: str, size: int
) -> None:
    """S160: import, copy and move stopped for ever at such a message of another broker or client."""
    message = TextMessage("x")
    setattr(message, field, character * (LONGEST_TEXT // size))
    check_texts(message, CLASSIC)
    setattr(message, field, character * (LONGEST_TEXT // size + 1))
    with pytest.raises(MessageFormatException, match=rf"the {name} .* has at least 65,\d\d\d bytes.* 65,535") as raised:
        check_texts(message, CLASSIC)
    assert len(str(raised.value)) < 500
    artemis: Any = SimpleNamespace(broker="artemis")
    check_texts(message, artemis)


STOMP: Any = SimpleNamespace(broker="classic-6", protocol="STOMP 1.2")
NUMBERS = ("AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT", "AMQ_SCHEDULED_TIME")
CRONS = ["* * * * *", " 0  0 1 1 0 ", "*/5 ? * * *", "1-5,7 * * * *", "0-30/5 23 31 12 6", "*,1 * * * *"]
NO_CRONS = [
    "", "x", "* * * *", "* * * * * *", "* * * * 7", "* * 0 * *", "* * * 13 *", "60 * * * *", "* 24 * * *",
    "5-1 * * * *", "* * * * MON", "1/5 * * * *", "*/0 * * * *", "-1 * * * *", "1, * * * *", "\uff11 * * * *", 5, None,
    "* " * 5000,
]  # fmt: skip


def ordered(name: str, value: Any) -> TextMessage:
    message = TextMessage("x")
    message.properties[name] = value
    return message


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "value", ["x", "", " 7", "0x7", -5, 1.5, True, None, "9223372036854775808", "9" * 5000, "\uff17"]
)
def test_a_time_that_a_broker_cannot_read_over_stomp_is_not_sent_s160(name: str, value: Any) -> None:
    """Classic ended the connection, and with ``failover:`` each further one."""
    with pytest.raises(MessageFormatException, match=f"property '{name}' .* expected a number from 0 to") as raised:
        check_orders(ordered(name, value), STOMP)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [0, 5, "7", "+7", (1 << 31) - 1])
def test_a_time_that_a_broker_reads_is_sent(name: str, value: Any) -> None:
    check_orders(ordered(name, value), STOMP)
    check_orders(ordered(name, "x"), SimpleNamespace(broker="classic-6", protocol="AMQP 1.0"))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", CRONS)
def test_a_cron_expression_is_sent(value: str) -> None:
    check_orders(ordered("AMQ_SCHEDULED_CRON", value), STOMP)


@pytest.mark.parametrize("value", NO_CRONS, ids=lambda value: repr(value)[:20])
def test_what_is_no_cron_expression_is_not_sent_over_stomp_s160(value: Any) -> None:
    with pytest.raises(MessageFormatException, match=r"expected five fields .* with .*[0-9]-[0-9]") as raised:
        check_orders(ordered("AMQ_SCHEDULED_CRON", value), STOMP)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("name", ["_AMQ_BRIDGE_DUP", "_AMQ_ROUTE_TO", "_AMQ_ROUTING_TYPE", "_AMQ_SCALEDOWN_TO"])
def test_a_property_of_artemis_itself_is_not_sent_to_it_over_stomp_s160(name: str) -> None:
    artemis: Any = SimpleNamespace(broker="artemis", protocol="STOMP 1.2")
    with pytest.raises(MessageFormatException, match=f"property '{name}' .* leave it out"):
        check_orders(ordered(name, "x"), artemis)
    check_orders(ordered(name, "x"), STOMP)


@pytest.mark.parametrize(
    "value", ["x", "", " 7", "5.0", 5.0, True, None, "9223372036854775808", "-9223372036854775809", "9" * 5000]
)
def test_a_time_of_arrival_that_artemis_cannot_convert_to_amqp_is_not_sent_over_stomp_s160(value: Any) -> None:
    """One such message took the credit of a receiver over AMQP for ever, and a listener stopped."""
    artemis: Any = SimpleNamespace(broker="artemis", protocol="STOMP 1.2")
    with pytest.raises(
        MessageFormatException, match=r"'_AMQ_INGRESS_TIMESTAMP' .* could not convert .* expected"
    ) as raised:
        check_orders(ordered("_AMQ_INGRESS_TIMESTAMP", value), artemis)
    assert len(str(raised.value)) < 500
    check_orders(ordered("_AMQ_INGRESS_TIMESTAMP", value), STOMP)
    check_orders(ordered("_AMQ_INGRESS_TIMESTAMP", value), SimpleNamespace(broker="artemis", protocol="AMQP 1.0"))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, -1, 1764403200000, "1764403200000", "-9223372036854775808"])
def test_a_time_of_arrival_that_artemis_noted_is_sent_on_over_stomp(value: Any) -> None:
    artemis: Any = SimpleNamespace(broker="artemis", protocol="STOMP 1.2")
    check_orders(ordered("_AMQ_INGRESS_TIMESTAMP", value), artemis)


@pytest.mark.parametrize(
    "name", ["#", "*", "a.#", "#.a", "a.*.b", "a.#::q", "::#::q", "a::#::q", "::a.#", "queue://#", "/queue/a.#"]
)
def test_artemis_gets_no_message_for_a_pattern_s67(name: str) -> None:
    with pytest.raises(InvalidDestinationException, match="wildcards for consumers"):
        check_target("artemis", name)
    check_target("classic-6", name)  # sends to each queue that matches
    check_target("unknown", name)


@pytest.mark.parametrize("name", ["a", "a#", "a.#b", "*a", "a::#b", "##", "a::#", "topic::client.orders.*"])
def test_other_names_are_left_to_the_broker_s67(name: str) -> None:
    """Artemis itself refuses some of them, unless wildcards are switched off there."""
    check_target("artemis", name)


def test_the_error_shows_the_beginning_of_a_long_name_s67() -> None:
    with pytest.raises(InvalidDestinationException) as raised:
        check_target("artemis", "a" * 1_000_000 + ".#")
    assert len(str(raised.value)) < 400
