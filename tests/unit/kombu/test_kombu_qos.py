"""Which messages one call of kombu acknowledges."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyjmsack.kombu.qos import QoS


def three_messages() -> QoS:
    qos = QoS(SimpleNamespace(connection=None))  # type: ignore[arg-type]
    for tag in "abc":
        delivery: Any = SimpleNamespace(forget=int)
        qos.append(f"message {tag}", tag, delivery)
    return qos


def test_acknowledging_up_to_a_message_takes_those_before_it() -> None:
    assert [*three_messages().up_to("b")] == ["a", "b"]


def test_acknowledging_up_to_an_unknown_message_takes_none() -> None:
    """It acknowledged all messages of the channel, also those that were not processed yet."""
    assert [*three_messages().up_to("another")] == []
