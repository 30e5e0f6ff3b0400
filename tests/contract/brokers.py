"""The brokers and protocols that the contract is tested on: one list, and one table of how the brokers differ.

A test that cannot hold on a broker says so with a mark, and the mark names the fact in ``docs/broker-facts.md``::

    @not_on("classic", "10: no limit of deliveries")

A module that has nothing to tell about brokers runs on Artemis alone, to save time::

    pytestmark = only_on("artemis", "how messages are made is not the broker's concern")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from pyjmsack.broker import EmbeddedActiveMQ, EmbeddedArtemis

__all__ = ["FACTORIES", "TARGETS", "Embedded", "Target", "Ways", "not_on", "only_on", "parameters"]

Embedded = EmbeddedArtemis | EmbeddedActiveMQ


@dataclass(frozen=True)
class Ways:
    """What a broker does in its own way. Numbers are sections of ``docs/broker-facts.md``."""

    product: str
    dead_letters: str
    """The queue of what was rejected or is poisonous (10)."""
    expired: str
    """The queue of what expired (13)."""
    by_priority: bool
    """Whether a higher priority comes first (6)."""
    one_order: bool
    """Whether persistent and non-persistent messages of one queue keep one order (6)."""
    keeps_counts: bool
    """Whether a message handed back as failed is still counted when its consumer has ended (10)."""

    def counted(self, *counts: int) -> list[int]:
        """Return the delivery counts with which another consumer gets what was handed back."""
        return [count if self.keeps_counts else 1 for count in counts]


_CLASSIC = Ways("ActiveMQ", "ActiveMQ.DLQ", "ActiveMQ.DLQ", by_priority=False, one_order=False, keeps_counts=False)
WAYS = {
    "artemis": Ways(
        "apache-activemq-artemis", "DLQ", "ExpiryQueue", by_priority=True, one_order=True, keeps_counts=True
    ),
    "classic-5": _CLASSIC,
    "classic-6": _CLASSIC,
}

_LIMITED = '-Dbrokerconfig.addressSettings."limited.#".'
FACTORIES: dict[str, Callable[[], Embedded]] = {
    # queues named "limited.*" take two messages and refuse the next
    "artemis": partial(
        EmbeddedArtemis, jvm_options=[f"{_LIMITED}addressFullMessagePolicy=FAIL", f"{_LIMITED}maxSizeMessages=2"]
    ),
    "classic-5": partial(EmbeddedActiveMQ, version="5.18.3"),
    "classic-6": partial(EmbeddedActiveMQ, version="6.3.1"),
}
"""How each broker is started."""


@dataclass(frozen=True)
class Target:
    """A protocol at a broker."""

    protocol: str
    broker: str

    @property
    def ways(self) -> Ways:
        """What this broker does in its own way."""
        return WAYS[self.broker]

    def __str__(self) -> str:
        return f"{self.protocol}-{self.broker}"

    def runs_on(self, face: str) -> bool:
        """Whether scenarios run on this face: to save time, each Classic has one, as both faces have the same core."""
        return face != {"classic-5": "aio", "classic-6": "sync"}.get(self.broker)

    def named(self, name: str) -> bool:
        """Whether a mark means this target by a protocol, a broker, a kind of broker, or all of it."""
        return name in (self.protocol, self.broker, self.broker.partition("-")[0], str(self))


TARGETS = [Target("amqp", broker) for broker in FACTORIES]
"""What the contract is tested on."""


def not_on(name: str, fact: str) -> pytest.MarkDecorator:
    """Skip a test on the targets of that name: see :meth:`Target.named`. ``fact`` says why it cannot hold there."""
    return pytest.mark.not_on(name, fact)


def only_on(name: str, reason: str) -> pytest.MarkDecorator:
    """Make a test, or a module's, for the targets of that name only."""
    assert reason
    return pytest.mark.only_on(name)


def parameters(item: pytest.Metafunc) -> list[object]:
    """Return the targets for one test function: fewer by its ``only_on`` marks, skipped by its ``not_on`` marks."""
    definition = item.definition
    wanted = [mark.args[0] for mark in definition.iter_markers("only_on")]
    found: list[object] = []
    for target in TARGETS:
        if wanted and not any(target.named(name) for name in wanted):
            continue
        facts = [mark.args[1] for mark in definition.iter_markers("not_on") if target.named(mark.args[0])]
        skip = [pytest.mark.skip(reason=f"broker facts, {fact}") for fact in facts[:1]]
        found.append(pytest.param(target, id=str(target), marks=skip))
    return found
