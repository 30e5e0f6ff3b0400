"""Restores, at the next broker, everything that was open on the lost connection (S103, S104)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from itertools import pairwise
from time import monotonic
from typing import Any, TypeVar

from pyjmsack.errors import (
    ConnectionLostException,
    InvalidDestinationException,
    JMSException,
    RequestTimedOutException,
    ResourceAllocationException,
)
from pyjmsack.providers.failover.blame import MOST_LOSSES, blamed
from pyjmsack.providers.failover.member import Member
from pyjmsack.providers.failover.resources import Resources
from pyjmsack.spi.completion import Completion, all_answered
from pyjmsack.spi.demands import check_consumer, check_producer, check_session
from pyjmsack.spi.provider import Provider
from pyjmsack.spi.resources import ConnectionMetadata, ConsumerInfo, ProducerInfo, SessionInfo, TemporaryInfo
from pyjmsack.uri import BrokerUrl

__all__ = ["Restoration", "checked"]

PATIENCE = 60.0
"""The number of seconds for which brokers may refuse or end sessions before such a session is closed alone. A broker at
its limit may still count the sessions of a lost connection. Artemis forgets a silent connection after 60 seconds."""

MOST_GROUPS = 8
"""The largest number of groups into which the suspected sessions and links are divided. So a restore that looks for the
guilty one costs a few round trips, even if there are thousands of objects."""

MOST_TOGETHER = 1_000
"""The largest number of sessions and links that are requested in one burst. More would keep the loop busy for a second,
and a loop of ``asyncio`` has other work to do."""

_MAY_PASS = (ConnectionLostException, RequestTimedOutException, ResourceAllocationException)
"""Errors that say nothing about the destination. Another broker, or the same broker later, may accept the link. A
missing permission is not among them. It is Artemis's answer if a queue is gone and the user may not create queues.
"""

Suspect = SessionInfo | ProducerInfo | ConsumerInfo
"""What may be to blame for a lost connection."""
I = TypeVar("I", SessionInfo, ProducerInfo, ConsumerInfo, TemporaryInfo)  # noqa: E741 - as in "info"
R = TypeVar("R")
Create = Callable[[I, Completion[None]], None]


class Restoration:
    """One attempt to restore everything at one broker.

    If a broker lacks a feature that a consumer needs, this counts as a refusal of the consumer. For example, Artemis
    cannot browse a queue over STOMP. A browser must only show the messages, but Artemis would remove them.

    Args:
        strict: whether to refuse a broker whose transactions are not atomic, if there is a transacted session (S88).
        closes_links: whether to close a consumer or producer that the broker refuses, instead of trying another broker
            (S104).
        rename: called with the id and the new name of a temporary destination, before anything is attached to it.
        closed: called with the id of a session or producer that is closed alone, and with the error.
        member: the connection to the broker.
    """

    def __init__(
        self,
        resources: Resources,
        strict: bool,
        closes_links: bool,
        rename: Callable[[int, str], None],
        closed: Callable[[int, BaseException], None],
        member: Member,
    ) -> None:
        self._resources = resources
        self._strict = strict
        self._closed = closed
        self._member = member
        self._closes_links = closes_links
        self._rename = rename
        self._asked: Sequence[int] = ()
        """The ids of the sessions and links that are requested in the present burst. A link is the path of one producer
        or consumer."""

    def steps(self, provider: Provider, metadata: ConnectionMetadata) -> Iterator[Completion[Any]]:
        """Restore everything in the order of S103. All requests leave in one burst. If there are temporary
        destinations, two bursts are needed, because the other requests contain the new names. If one session or link
        may be to blame for losses, there are more bursts (:meth:`_bursts`).

        Raises:
            JMSException: the broker refused something.
        """
        resources = self._resources
        temporaries = [info for info, _ in resources.temporaries.values()]
        for session in resources.sessions.values():
            check_session(metadata, session.info, strict=self._strict)
        yield from self._make_temporaries(provider, temporaries)
        sessions = [session.info for session in resources.sessions.values()]
        producers = [*resources.producers.values()]
        consumers = [record.info for record in resources.consumers.values()]
        sinks = {number: record.attach() for number, record in resources.consumers.items()}
        for number, sink in sinks.items():
            sink.ended = partial(self.ended, number)

        def create(info: ConsumerInfo, done: Completion[None]) -> None:
            provider.create_consumer(info, sinks[info.id], done)

        create_producer = checked(check_producer, metadata, provider.create_producer)
        create_consumer = checked(check_consumer, metadata, create)
        for burst in self._bursts([*sessions, *producers, *consumers]):
            yield from self._open(provider, create_producer, create_consumer, burst)
        self._asked = ()
        for number, record in resources.consumers.items():
            if record.started:
                provider.start_consumer(number)
            if record.pulling:
                provider.pull(number)
        _close_all(provider.close_consumer, consumers, resources.consumers)
        _close_all(provider.close_producer, producers, resources.producers)
        _close_all(provider.close_session, sessions, resources.sessions)
        _close_all(provider.delete_temporary, temporaries, resources.temporaries)

    def _bursts(self, infos: list[Suspect]) -> list[list[Suspect]]:
        """Divide everything into the bursts in which it is requested. The order stays, because a link needs its
        session.

        One burst, or one for each thousand objects, is the rule, because each burst costs a round trip. The guilty
        session or link is looked for only after a loss for which the broker gave a reason, or after the third loss in a
        row: one loss alone is the network's fault. The burst that was lost last is then divided into groups, so that a
        few losses leave only one suspect. If connections go on to be lost, all bursts become smaller, down to one
        object.
        """
        blame = self._resources.blame
        if not blame.reasons and blame.losses < MOST_LOSSES:
            return _cut(infos, MOST_TOGETHER)
        # they follow one another, because a burst is a part of this list, and what was closed since then is missing
        suspects = [info for info in infos if info.id in self._resources.suspects] or infos
        if not suspects:
            return []
        first = infos.index(suspects[0])
        # a network that lets only small bursts through must not keep everything waiting for ever
        most = min(MOST_TOGETHER, len(infos)) // MOST_GROUPS ** min(9, max(0, blame.losses - 3 * MOST_LOSSES))
        groups = _cut(suspects, min(most, -(-len(suspects) // MOST_GROUPS)))
        return [*_cut(infos[:first], most), *groups, *_cut(infos[first + len(suspects) :], most)]

    def _open(
        self,
        provider: Provider,
        create_producer: Create[ProducerInfo],
        create_consumer: Create[ConsumerInfo],
        infos: Sequence[Suspect],
    ) -> Iterator[Completion[Any]]:
        """Request sessions, producers and consumers in one burst. Wait for the answers, and handle everything that
        arrives together with the last answer: an end of the session or of the connection belongs to these requests."""
        if not infos:
            return
        resources = self._resources
        self._asked = [info.id for info in infos]
        sessions = [info for info in infos if isinstance(info, SessionInfo)]
        producers = [info for info in infos if isinstance(info, ProducerInfo)]
        consumers = [info for info in infos if isinstance(info, ConsumerInfo)]
        begun = _ask_all(provider.create_session, sessions)
        attached_producers = _ask_all(create_producer, producers)
        attached_consumers = _ask_all(create_consumer, consumers)
        if self._closes_links:
            self._close_refused(attached_producers, self._close_producer)
            self._close_refused(attached_consumers, self._close_consumer)
        yield from _answers(begun, resources.sessions, self.ended)
        if self._closes_links:
            yield all_answered([done for _, done in (*attached_producers, *attached_consumers)])
        else:
            yield from _answers(attached_producers, resources.producers, self._refused_producer)
            yield from _answers(attached_consumers, resources.consumers, _raise)
        yield self._member.burst_end()

    def _refused_producer(self, number: int, error: BaseException) -> None:
        """Close a producer alone if its temporary destination is gone, because no other broker has this destination
        either. It belonged to another connection, or was deleted. Close it alone too if this client refuses the name
        for this broker, because a stranger may have chosen the name in a ``reply_to``. Any other refusal fails this
        attempt (S104)."""
        destination = self._resources.producers[number].destination
        own = [name for _, name in self._resources.temporaries.values()]
        gone = destination is not None and destination.is_temporary and destination.name not in own
        # errors of the broker have a code
        refused_here = isinstance(error, InvalidDestinationException) and error.error_code is None
        if not refused_here and (not gone or isinstance(error, _MAY_PASS)):
            _raise(number, error)
        self._close_producer(number, error)

    def ended(self, number: int, error: BaseException) -> None:
        """Handle the end of a session, producer or consumer that the broker opened and then ended during this attempt,
        or the refusal of a session.

        A broker that is at a limit answers a Begin frame, and then sends an End frame with the reason. Therefore such
        an end is a refusal, and the next broker is tried (S104). A broker that does so again, before everything was
        restored, does not harm the other objects: the end is final, as after this attempt (S109, S126).

        The refusal of a session counts as its end, because AMQP has no other refusal of a Begin frame. A transacted
        session that is ended before its first transaction has begun is reported as refused.
        """
        resources, broker = self._resources, self._member.url
        if not any(number in table for table in (resources.sessions, resources.producers, resources.consumers)):
            return  # the caller has closed it meanwhile
        is_link = number not in resources.sessions
        first = broker not in resources.ended_at and not (is_link and self._closes_links)
        if not self._is_final(number) or first:
            resources.ended_at.add(broker)
            self._member.refuse(error)
        else:
            self._close(number, error)

    def _is_final(self, number: int) -> bool:
        """Return False for a session that brokers may still accept, because too little time has passed since the first
        refusal of a session."""
        resources = self._resources
        if number not in resources.sessions:
            return True
        now = monotonic()
        if resources.refused_since is None:
            resources.refused_since = now
        return now - resources.refused_since >= PATIENCE

    def failed(self, broker: BrokerUrl, error: BaseException) -> None:
        """Handle the loss of the connection during this attempt: close the session or link that is to blame, if it is
        known (S104).

        A session or link is to blame if two connections in a row were lost while it was requested alone, and the broker
        gave a reason. If the broker gave no reason, it is to blame only after many losses, because a bad network is
        more likely.
        """
        blame = self._resources.blame
        self._resources.suspects = frozenset(self._asked)
        number = self._asked[0] if len(self._asked) == 1 else None
        again = blame.lost(broker, number, error)
        if number is None or not self._is_final(number):
            return
        if (again and blame.reasons >= MOST_LOSSES) or blame.silence_convicts:
            what = "this session" if number in self._resources.sessions else "this link"
            self._close(number, blamed(what, error))
            blame.clear()

    def _make_temporaries(self, provider: Provider, infos: Sequence[TemporaryInfo]) -> Iterator[Completion[Any]]:
        resources = self._resources
        made = _ask_all(provider.create_temporary, infos)
        yield from _answers(made, resources.temporaries, _raise)
        for info, named in made:
            if info.id not in resources.temporaries:
                continue
            name = named.result()
            resources.rename(info, name)
            self._rename(info.id, name)

    def _close_refused(
        self, asked: Sequence[tuple[I, Completion[None]]], close: Callable[[int, BaseException], None]
    ) -> None:
        """Close each refused link at the moment of the refusal. Over STOMP most brokers end the connection after a
        refusal. Therefore the link must be closed before the next attempt, which would request the link again. A link
        that fails because this attempt was given up does not count as refused."""
        attempt = self._resources.interruptions

        def look(number: int, attached: Completion[None]) -> None:
            error = attached.error
            over = isinstance(error, ConnectionLostException) or self._resources.interruptions != attempt
            if error is not None and not over:
                close(number, error)

        for info, attached in asked:
            attached.add_callback(partial(look, info.id))

    def _close(self, number: int, error: BaseException) -> None:
        """Close a session, producer or consumer alone. If the caller has closed it meanwhile, do nothing."""
        if number in self._resources.sessions:
            self._closed(number, error)
        self._close_producer(number, error)
        self._close_consumer(number, error)

    def _close_producer(self, number: int, refusal: BaseException) -> None:
        if number in self._resources.producers:
            self._closed(number, refusal)

    def _close_consumer(self, number: int, refusal: BaseException) -> None:
        if number in self._resources.consumers:
            self._resources.consumers[number].close(refusal)


def _cut(infos: list[Suspect], size: int) -> list[list[Suspect]]:
    """Divide a list into bursts of at most this size, or of one object if the size is 0. The sizes of the bursts differ
    by one at most, because a rest of one object would look as if it had been asked for alone."""
    bursts = -(-len(infos) // max(1, size))
    ends = [len(infos) * number // bursts for number in range(bursts + 1)] if infos else []
    return [infos[start:end] for start, end in pairwise(ends)]


def checked(
    check: Callable[[ConnectionMetadata, I], None], metadata: ConnectionMetadata, create: Create[I]
) -> Create[I]:
    """Return a function that runs ``check``, and calls ``create`` if the check raises nothing."""

    def create_checked(info: I, done: Completion[None]) -> None:
        try:
            check(metadata, info)
        except JMSException as error:
            done.fail(error)
        else:
            create(info, done)

    return create_checked


def _ask_all(create: Callable[[I, Completion[R]], None], infos: Sequence[I]) -> list[tuple[I, Completion[R]]]:
    asked: list[tuple[I, Completion[R]]] = [(info, Completion()) for info in infos]
    for info, done in asked:
        create(info, done)
    return asked


def _answers(
    asked: Sequence[tuple[I, Completion[R]]], wanted: Container[int], refused: Callable[[int, BaseException], None]
) -> Iterator[Completion[None]]:
    """Wait for the answers to all requests of a burst. Call ``refused`` with each refusal as soon as it comes, but not
    if the id is not in ``wanted`` any more, because the object was closed meanwhile."""
    waiting = asked
    while waiting:
        yield all_answered([answered for _, answered in waiting], or_refused=True)
        answers = [(info.id, answered.error) for info, answered in waiting if answered.done]
        waiting = [(info, answered) for info, answered in waiting if not answered.done]
        for number, error in answers:
            if error is not None and number in wanted:
                refused(number, error)
                yield all_answered(())  # no step is taken after this one, if the attempt was given up


def _raise(_: int, error: BaseException) -> None:
    raise error.fresh() if isinstance(error, JMSException) else error


def _close_all(close: Callable[[int, Completion[None]], None], opened: Sequence[I], wanted: Container[int]) -> None:
    """Close each restored object whose id is not in ``wanted`` any more, because the caller has closed it during the
    restore."""
    for info in opened:
        if info.id not in wanted:
            close(info.id, Completion())
