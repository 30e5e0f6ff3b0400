"""Explains who acknowledges a message and when, and which messages are delivered again after a crash.

``pyjmsack explain`` prints these facts. The tests kill consumers, and compare the messages that the broker still has
with :meth:`Explanation.comes_again`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyjmsack.core.batching import ack_threshold
from pyjmsack.destination import Destination
from pyjmsack.spi.features import Level, features
from pyjmsack.types import AckMode
from pyjmsack.uri import BrokerUrl, parse_destination_options, parse_url

__all__ = ["Explanation", "Fact", "explain"]


@dataclass(frozen=True)
class Fact:
    """One statement, with its subject and the rules behind it."""

    about: str
    text: str
    rules: str


@dataclass(frozen=True)
class Explanation:
    """The facts for one consumer with one URL, mode and destination."""

    mode: AckMode
    protocol: str
    broker: str
    destination: str
    prefetch: int
    """The number of messages that the broker may send ahead."""
    batch: int
    """The number of messages that the client acknowledges together by itself. 1 means that the client acknowledges each
    message alone."""
    facts: Sequence[Fact]

    def comes_again(self, total: int, received: int, acknowledged: Collection[int] = ()) -> list[int]:
        """Return which messages are delivered again if the consumer is killed.

        The consumer is killed when it has received some of the messages, and its acknowledgements so far have reached
        the broker.

        Args:
            total: the number of messages in the queue. The messages are numbered from 0.
            received: how many of them the consumer has received.
            acknowledged: in CLIENT and individual mode the numbers of the messages whose ``acknowledge()`` was called,
                in transacted mode the numbers of the messages of committed transactions. Other modes ignore this
                argument.

        Returns:
            The numbers of the messages that are delivered again.
        """
        if self.mode.presettled:
            return [*range(min(total, max(received, self.prefetch)), total)]
        if self.mode.individual:
            return [number for number in range(total) if number not in acknowledged]
        if self.mode in (AckMode.CLIENT_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED):
            return [*range(max(acknowledged, default=-1) + 1, total)]
        return [*range(received - received % self.batch, total)]


_WHO: Final = {
    AckMode.AUTO_ACKNOWLEDGE: (
        "the client, by itself: before receive() returns a message, after a listener returned",
        "S16, S17",
    ),
    AckMode.DUPS_OK_ACKNOWLEDGE: (
        "the client, by itself, at a moment that it chooses; duplicates are possible",
        "S24, S45, S46",
    ),
    AckMode.CLIENT_ACKNOWLEDGE: (
        "your program: message.acknowledge() covers every message that the session delivered so far",
        "S25, S26",
    ),
    AckMode.SESSION_TRANSACTED: (
        "your program: commit() covers every message received since the last commit, together with what was sent",
        "S75, S78",
    ),
    AckMode.INDIVIDUAL_ACKNOWLEDGE: (
        "your program: message.acknowledge(), accept(), release(), reject() or modify() for this one message",
        "S34, S35, S38",
    ),
    AckMode.NO_ACKNOWLEDGE: ("nobody: the broker forgets a message when it sends it", "S36"),
}
_CRASH: Final = {
    AckMode.AUTO_ACKNOWLEDGE: (
        "receive(): the last message that receive() returned does not come again, and all later messages do; "
        "listener: the message that the listener was working on comes again",
        "S16, S17",
    ),
    AckMode.DUPS_OK_ACKNOWLEDGE: (
        "every message that is not acknowledged yet comes again, even if you have processed it",
        "S47",
    ),
    AckMode.CLIENT_ACKNOWLEDGE: ("every message since the last acknowledge() comes again", "S30"),
    AckMode.SESSION_TRANSACTED: (
        "nothing of the open transaction has happened: its messages come again, its sends never appear",
        "S75, S84",
    ),
    AckMode.INDIVIDUAL_ACKNOWLEDGE: ("every message without an outcome comes again", "S35"),
    AckMode.NO_ACKNOWLEDGE: ("every message that the broker had sent is lost, prefetched ones included", "S36"),
}
_COUNTED: Final = "comes again, with a higher delivery count"
_FAILED_LISTENER: Final = {
    AckMode.AUTO_ACKNOWLEDGE: (_COUNTED, "S18"),
    AckMode.DUPS_OK_ACKNOWLEDGE: (_COUNTED, "S18"),
    AckMode.CLIENT_ACKNOWLEDGE: (
        "nothing happens to the message: it stays unacknowledged, and the next acknowledge() covers it",
        "S20",
    ),
    AckMode.SESSION_TRANSACTED: (
        "nothing happens to the message: it stays in the transaction, and the next commit() covers it",
        "S20",
    ),
    AckMode.INDIVIDUAL_ACKNOWLEDGE: (_COUNTED, "S21"),
    AckMode.NO_ACKNOWLEDGE: ("the message is gone", "S36"),
}
_UNDONE: Final = {
    AckMode.CLIENT_ACKNOWLEDGE: ("the session is recovered: its messages come again, counted", "S20, S32"),
    AckMode.SESSION_TRANSACTED: ("the transaction is rolled back: its messages come again, counted", "S20, S80"),
}


def explain(
    url: str,
    mode: int,
    destination: Destination,
    broker: str = "unknown",
    *,
    options: Mapping[str, object] | None = None,
) -> Explanation:
    """Explain the facts for a consumer. No connection is opened.

    Args:
        url: a broker URL with its options.
        mode: the acknowledge mode of the session.
        destination: the queue or topic of the consumer. The options behind its name are used, too.
        broker: ``artemis``, ``classic-5``, ``classic-6`` or ``unknown``, as ``connection.metadata.broker`` has it.
        options: more URL options, as for :class:`pyjmsack.ConnectionFactory`.

    Raises:
        JMSException: there is no such mode.
        InvalidURLException: the URL is wrong.
        IllegalStateException: the options of the URL contradict each other (S10).
        KeyError: there is no such broker.
    """
    return _explain(parse_url(url, options), _canonical(AckMode.resolve(mode, None)), destination, broker)


def _explain(url: BrokerUrl, mode: AckMode, destination: Destination, broker: str) -> Explanation:
    protocols = sorted({member.protocol for member in url.members or (url,)})
    given = parse_destination_options(destination).prefetch
    prefetch = url.connection.prefetch_policy.for_destination(destination, given)
    batch = ack_threshold(mode, destination, prefetch, url.connection.optimize_acknowledge)
    facts = [Fact("who acknowledges", *_WHO[mode])]
    if batch > 1:
        facts.append(_batching(batch, url))
    facts.append(Fact("after a crash", *_CRASH[mode]))
    facts.append(Fact("a listener raises", *_failed_listener(mode, url)))
    facts.append(_prefetching(prefetch))
    if "amqp" in protocols and broker in ("artemis", "unknown") and prefetch > 1:
        facts.append(_mixed_up(url))
    if mode is AckMode.SESSION_TRANSACTED:
        facts += [fact for protocol in protocols for fact in _guarantee(protocol, broker)]
    return Explanation(mode, " or ".join(protocols), broker, destination.name, prefetch, batch, facts)


def _canonical(mode: AckMode) -> AckMode:
    if mode.individual:
        return AckMode.INDIVIDUAL_ACKNOWLEDGE
    return AckMode.NO_ACKNOWLEDGE if mode.presettled else mode


def _batching(batch: int, url: BrokerUrl) -> Fact:
    timeout = url.connection.optimize_acknowledge_time_out
    late = "" if timeout is None else f", or {timeout:g} s after the first of them"
    text = f"the client sends acknowledgements together: after {batch} messages were consumed{late}, and at the close"
    return Fact("batches", text, "S40, S41, S44, S46")


def _failed_listener(mode: AckMode, url: BrokerUrl) -> tuple[str, str]:
    if url.connection.rollback_on_listener_error and mode in _UNDONE:
        return _UNDONE[mode]
    return _FAILED_LISTENER[mode]


def _prefetching(prefetch: int) -> Fact:
    if prefetch == 0:
        text = "none: the client asks for each message; a message_listener needs consumer.allowPullListener=true"
        return Fact("prefetch", text, "S9, S50")
    text = f"the broker sends up to {prefetch} messages ahead; other consumers cannot get these messages"
    return Fact("prefetch", text, "S49, S51, S59")


def _mixed_up(url: BrokerUrl) -> Fact:
    policies = {member.amqp.single_credit for member in url.members or (url,)}
    if policies == {"always"}:
        text = "no danger: the client asks for one message at a time (amqp.singleCredit=always)"
    else:
        text = (
            "if another client of the same queue loses its connection, Artemis may mix up the messages that it sends "
            "ahead, and a message can be lost; amqp.singleCredit=always prevents that, and is slower"
        )
    return Fact("mix-ups at Artemis", text, "S51, S53")


def _guarantee(protocol: str, broker: str) -> list[Fact]:
    support = features(protocol, broker)["transacted-receive"]
    if support.level is Level.NATIVE:
        return []
    text = f"{support.note}; a crash between the commit and the ACKs means duplicates, never loss"
    return [Fact("not atomic", text, "S88")]
