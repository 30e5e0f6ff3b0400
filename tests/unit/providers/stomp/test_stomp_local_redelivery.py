"""Messages that a STOMP client delivers again by itself."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from pyjmsack.providers.stomp.dialect import dialect_of
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.providers.stomp.memory import DeliveryCounts
from pyjmsack.providers.stomp.redelivery import LocalRedelivery


class Message(SimpleNamespace):
    """A message of which this client counts the deliveries."""

    @property
    def redelivery_count(self) -> int:
        return self.counted


def test_a_message_that_never_succeeds_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """S110: a program that asked for its bad message again and again used a processor for ever, without a word."""
    nobody: Any = None
    redelivery = LocalRedelivery(nobody, nobody, nobody, "orders")
    message: Any = Message(counted=0, redeliveries=0)
    with caplog.at_level(logging.WARNING):
        for _ in range(99):
            redelivery.count(message, 1)
        assert caplog.messages == []
        for _ in range(200):
            redelivery.count(message, 1)
    (said,) = caplog.messages
    assert said.startswith("a message of orders failed 100 times")
    assert "jms.redeliveryPolicy.maxRedeliveries" in said


@pytest.mark.parametrize(("flag", "known"), [(b"", 0), (b"redelivered:true\n", None)], ids=["first", "redelivered"])
def test_a_delivery_for_an_ended_subscription_is_no_delivery(flag: bytes, known: int | None) -> None:
    """S110: the broker marked the next delivery as redelivered, which counted towards the limit of redeliveries."""
    counts = DeliveryCounts()

    def arrived(flag: bytes) -> StompInbound:
        return StompInbound(b"\nmessage-id:ID:1\n" + flag, b"", dialect_of("classic-6"), None)

    counts.passed_over(arrived(flag))
    assert counts.of(arrived(b"redelivered:true\n")) == known
