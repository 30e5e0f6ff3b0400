"""The delivery counts of large messages, which Artemis does not count over AMQP (S110)."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.amqp.counts import LargeCounts
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.spi.envelope import NotOneMessageError
from pyjmsack.types import Outcome

LARGE, SMALL = 100_000, 100
ID = b"\x00\x53\x73\xc0\x04\x01\xa1\x01a"
"""The properties of a message with an id."""


def data(text: bytes) -> bytes:
    """Return a body of bytes."""
    return b"\x00\x53\x75\xb0" + len(text).to_bytes(4, "big") + text


def arrives(counts: LargeCounts, size: int = LARGE, queue: Hashable = "q", properties: bytes = ID) -> AmqpInbound:
    """Return a message without a delivery count in its header."""
    inbound = AmqpInbound(properties + data(b"x" * size))
    inbound.queue = queue
    counts.recall(inbound)
    return inbound


@pytest.mark.parametrize("outcome", [Outcome.MODIFIED_FAILED, Outcome.MODIFIED_FAILED_UNDELIVERABLE])
def test_each_failed_delivery_of_a_large_message_counts(outcome: Outcome) -> None:
    counts = LargeCounts()
    for count in range(3):
        inbound = arrives(counts)
        assert inbound.redelivery_count == count
        counts.goes_back(inbound, outcome)


def test_a_message_that_goes_back_uncounted_keeps_its_count() -> None:
    counts = LargeCounts()
    counts.failed(arrives(counts))
    counts.goes_back(arrives(counts), Outcome.RELEASED)
    assert arrives(counts).redelivery_count == 1
    assert arrives(counts).redelivery_count == 0, "the count left with the message"


def test_the_copies_of_a_message_in_two_subscriptions_are_counted_apart() -> None:
    """The failure of one subscriber counted for the other."""
    counts = LargeCounts()
    counts.failed(arrives(counts, queue=("t", "a")))
    assert arrives(counts, queue=("t", "b")).redelivery_count == 0
    assert arrives(counts, queue=("t", "a")).redelivery_count == 1


def test_the_broker_counts_small_messages_itself() -> None:
    counts = LargeCounts()
    counts.failed(arrives(counts, SMALL))
    assert arrives(counts, SMALL).redelivery_count == 0


def test_a_large_message_without_an_id_does_not_inherit_the_failures_of_another_one_s110_s111_s112() -> None:
    """It was refused as delivered too often, although nobody had ever received it."""
    counts = LargeCounts()
    for _ in range(3):
        counts.goes_back(arrives(counts, properties=b""), Outcome.MODIFIED_FAILED)
    assert arrives(counts, properties=b"").redelivery_count == 0


def test_failures_that_may_be_those_of_another_message_without_an_id_let_it_wait_s115() -> None:
    """Without a wait, ten deliveries took 0.1 s, and then the message was a dead letter."""
    counts = LargeCounts()
    found = list[int]()
    for _ in range(4):
        inbound = arrives(counts, properties=b"")
        found.append(inbound.likely_failures)
        counts.goes_back(inbound, Outcome.MODIFIED_FAILED)
    assert found == [0, 1, 2, 2]
    counts.failed(arrives(counts))
    assert arrives(counts).likely_failures == 0, "this one has an id and a count"


def test_a_limited_number_of_messages_is_remembered() -> None:
    counts = LargeCounts()
    messages = [arrives(counts, queue=number) for number in range(10_001)]
    for inbound in messages:
        counts.failed(inbound)
    assert [arrives(counts, queue=number).redelivery_count for number in (0, 1, 10_000)] == [0, 1, 1]


def test_a_large_message_that_keeps_coming_with_the_same_damage_counts_as_one_that_cannot_be_decoded() -> None:
    """S166: the damage is in the broker's own copy then. Artemis closed the connection at its limit of deliveries."""
    counts, body, errors = LargeCounts(), b"\x00\x53\x77\xb1" + LARGE.to_bytes(4, "big") + b"x" * LARGE, []
    for _ in range(3):
        inbound = AmqpInbound(body + b"\x00\x53\x70\x45")
        counts.recall(inbound)
        with pytest.raises(MessageFormatException, match="out of order") as raised:
            inbound.to_message()
        errors.append(raised.type)
        counts.goes_back(inbound, Outcome.MODIFIED_FAILED)
    assert errors == [NotOneMessageError, NotOneMessageError, MessageFormatException]


def damaged(counts: LargeCounts, payload: bytes, outcome: Outcome = Outcome.MODIFIED_FAILED) -> type[BaseException]:
    """Let a damaged message arrive and give it back. Return the type of its error."""
    inbound = AmqpInbound(payload)
    counts.recall(inbound)
    with pytest.raises(MessageFormatException) as raised:
        inbound.to_message()
    counts.goes_back(inbound, outcome)
    return raised.type


def test_a_small_message_that_keeps_coming_with_the_same_damage_counts_as_one_that_cannot_be_decoded_s166() -> None:
    """Only its delivery count changes. Artemis closed the connection at its limit, if an annotation was an array."""
    counts, body = LargeCounts(), b"\x00\x53\x77\xa1\x03bad\x00\x53\x75\xa0\x01x"
    headers = (b"\x00\x53\x70\x45", *(b"\x00\x53\x70\xc0\x07\x05\x41\x40\x40\x40\x52%c" % count for count in (1, 2)))
    errors = [damaged(counts, header + body) for header in headers]
    assert errors == [NotOneMessageError, NotOneMessageError, MessageFormatException]


def test_a_small_damaged_message_that_was_refused_is_known_to_the_next_consumer_of_the_connection_s166() -> None:
    """Artemis gives it to another consumer, which otherwise began to count anew until the broker closed."""
    counts, body = LargeCounts(), b"\x00\x53\x77\xa1\x03bad\x00\x53\x75\xa0\x01x"
    refused = Outcome.MODIFIED_FAILED_UNDELIVERABLE
    outcomes = (Outcome.MODIFIED_FAILED, Outcome.MODIFIED_FAILED, refused, refused, refused)
    errors = [damaged(counts, body, outcome) for outcome in outcomes]
    assert errors == [NotOneMessageError] * 2 + [MessageFormatException] * 3


def test_small_messages_that_come_damaged_in_different_ways_or_empty_are_given_back_each_time_s166() -> None:
    """Artemis has them whole, and sends several empty transfers after a reconnection."""
    counts = LargeCounts()
    for number in range(5):
        assert damaged(counts, b"\x00\x53\x77\x54%c\x00\x53\x70\x45" % number) is NotOneMessageError
        assert damaged(counts, b"") is NotOneMessageError


def test_a_whole_message_without_an_id_does_not_inherit_from_a_damaged_one_s110_s166() -> None:
    """Both have the same size, beginning and end. The damaged one is still not given back for ever."""
    counts, part = LargeCounts(), data(b"x" * 10_000)
    broken = part + b"\x00\x53\x70" + part[3:]
    assert [damaged(counts, broken), damaged(counts, broken)] == [NotOneMessageError] * 2
    whole = AmqpInbound(part + part)
    counts.recall(whole)
    assert (whole.counted, whole.redelivery_count) == (2, 0)
    counts.goes_back(whole, Outcome.RELEASED)
    assert damaged(counts, broken) is MessageFormatException


def test_broken_transfers_that_differ_are_given_back_each_time() -> None:
    """S166: the broker has these messages whole."""
    counts = LargeCounts()
    for number in range(5):
        inbound = AmqpInbound(b"\x00\x53\x77\xb1" + LARGE.to_bytes(4, "big") + b"%d" % number * LARGE)
        inbound.payload += b"\x00\x53\x70\x45"
        counts.recall(inbound)
        with pytest.raises(NotOneMessageError):
            inbound.to_message()
        counts.goes_back(inbound, Outcome.MODIFIED_FAILED)
