"""The brokers and protocols that the contract is tested on: one list, and one table of how the brokers differ.

A test that cannot hold on a broker says so with a mark, and the mark names the fact in ``docs/broker-facts.md``::

    @not_on("classic", "10: no limit of deliveries")

A module that has nothing to tell about brokers runs on Artemis alone, to save time::

    pytestmark = only_on("artemis", "how messages are made is not the broker's concern")

A test in which neither broker nor protocol can make a difference says so, and runs once with each face::

    @alike("modes are numbers of the session")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import ANY

import pytest

from pyjmsack.broker import EmbeddedActiveMQ, EmbeddedArtemis

__all__ = ["CELLS", "FACTORIES", "TARGETS", "Embedded", "Target", "Ways", "alike", "not_on", "only_on", "wanted"]

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
    flags_all: bool = False
    """Whether all that had been sent to a consumer comes flagged as redelivered when that has ended (STOMP)."""
    remembers: bool = False
    """Whether a connection keeps the counts of what its closed consumers had, as the broker tells none (STOMP)."""

    def counted(self, *counts: int, here: bool = False) -> list[Any]:
        """Return the delivery counts with which another consumer, of this connection or not, gets what came back."""
        if here and self.remembers:
            return [*counts]
        if self.flags_all:  # how much had been sent ahead, nobody can know
            return [ANY if count == 1 else 2 for count in counts]
        return [count if self.keeps_counts else 1 for count in counts]


_CLASSIC = Ways("ActiveMQ", "ActiveMQ.DLQ", "ActiveMQ.DLQ", by_priority=False, one_order=False, keeps_counts=False)
WAYS = {
    "artemis": Ways(
        "apache-activemq-artemis", "DLQ", "ExpiryQueue", by_priority=True, one_order=True, keeps_counts=True
    ),
    "classic-5": _CLASSIC,
    "classic-6": _CLASSIC,
}
STOMP_WAYS = {
    "artemis": replace(WAYS["artemis"], product="ActiveMQ-Artemis", keeps_counts=False, remembers=True),
    "classic-5": replace(_CLASSIC, flags_all=True),
    "classic-6": replace(_CLASSIC, flags_all=True),
}

_SINGLE = '-Dbrokerconfig.addressSettings."single.#".'
_SLOW = '-Dbrokerconfig.addressSettings."slow.#".slowConsumer'
_LIMITED = '-Dbrokerconfig.addressSettings."limited.#".'
FACTORIES: dict[str, Callable[[], Embedded]] = {
    # queues named "limited.*" take two messages and refuse the next; a consumer of "slow.*" that takes less than ten
    # messages a second is put out with its connection; "single.*" take one consumer
    "artemis": partial(
        EmbeddedArtemis,
        jvm_options=[
            f"{_LIMITED}addressFullMessagePolicy=FAIL",
            f"{_LIMITED}maxSizeMessages=2",
            f"{_SINGLE}defaultMaxConsumers=1",
            f"{_SLOW}Policy=KILL",
            f"{_SLOW}Threshold=10",
            f"{_SLOW}CheckPeriod=1",
        ],
    ),
    "classic-5": partial(EmbeddedActiveMQ, version="5.18.3"),
    "classic-6": partial(EmbeddedActiveMQ, version="6.3.1"),
    # for tests that cut connections: after ten cuts Artemis would give up what it had sent ahead on all of them
    "patient": partial(EmbeddedArtemis, address_settings={"#": {"max-delivery-attempts": -1}}),
    "secured": partial(EmbeddedArtemis, users={"alice": "wonderland"}),
}
"""How each broker is started."""


@dataclass(frozen=True)
class Target:
    """A protocol at a broker."""

    protocol: str
    broker: str

    @property
    def ways(self) -> Ways:
        """What this broker does in its own way over this protocol."""
        return (STOMP_WAYS if self.protocol == "stomp" else WAYS)[self.broker]

    def __str__(self) -> str:
        return f"{self.protocol}-{self.broker}"

    def runs_on(self, face: str) -> bool:
        """Whether the full tier has this face here: to save time, each Classic has one (tests/tiers.py)."""
        return face != {"classic-5": "aio", "classic-6": "sync"}.get(self.broker)

    def named(self, name: str) -> bool:
        """Whether a mark means this target: ``stomp``, ``classic``, ``classic-5``, ``stomp-classic`` and so on."""
        kind = self.broker.partition("-")[0]
        return name in (self.protocol, self.broker, kind, str(self), f"{self.protocol}-{kind}")


TARGETS = [Target(protocol, broker) for protocol in ("amqp", "stomp") for broker in WAYS]
"""What the contract is tested on."""


CELLS = {"amqp-artemis": "sync", "stomp-artemis": "aio"}
"""On Artemis, the face that runs all rows of a test over each protocol (tests/tiers.py)."""


def not_on(name: str, fact: str) -> pytest.MarkDecorator:
    """Skip a test on the targets of that name: see :meth:`Target.named`. ``fact`` says why it cannot hold there."""
    return pytest.mark.not_on(name, fact)


def only_on(name: str, reason: str) -> pytest.MarkDecorator:
    """Make a test, or a module's, for the targets of that name only; with several marks, of all those names."""
    assert reason
    return pytest.mark.only_on(name)


def alike(reason: str) -> pytest.MarkDecorator:
    """Run a test, or a module's, once with each face, on Artemis."""
    assert reason
    return pytest.mark.alike(reason)


def wanted(item: pytest.Item, target: Target, face: str | None) -> bool:
    """Whether a test runs on the target: its ``only_on`` marks name it. If its ``not_on`` marks do, it is skipped."""
    if item.get_closest_marker("alike") and (str(target) not in CELLS or face not in (None, CELLS[str(target)])):
        return False
    only = [mark.args[0] for mark in item.iter_markers("only_on")]
    if not all(target.named(name) for name in only):
        return False
    facts = [mark.args[1] for mark in item.iter_markers("not_on") if target.named(mark.args[0])]
    if facts:
        item.add_marker(pytest.mark.skip(reason=f"broker facts, {facts[0]}"))
    return True
