"""Messages that a STOMP client delivers again by itself."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

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
