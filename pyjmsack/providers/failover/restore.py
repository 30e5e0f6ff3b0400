"""Opening again, at the next broker, what is open on the connection (S103, S104)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

from pyjmsack.errors import IllegalStateException, JMSException
from pyjmsack.providers.failover.records import ConsumerRecord, SessionRecord
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.provider import Provider
from pyjmsack.spi.resources import ConnectionMetadata, ConsumerInfo, ProducerInfo, SessionInfo, TemporaryInfo

__all__ = ["Resources", "Restoration"]

I = TypeVar("I", SessionInfo, ProducerInfo, ConsumerInfo)  # noqa: E741 - as in "info"


class Resources:
    """What a connection has open, in the order in which it was opened."""

    def __init__(self) -> None:
        self.sessions: dict[int, SessionRecord] = {}
        self.producers: dict[int, ProducerInfo] = {}
        self.consumers: dict[int, ConsumerRecord] = {}
        self.temporaries: dict[int, tuple[TemporaryInfo, str]] = {}
        """With the names that they have at the present broker."""
        self.former_names: dict[str, int] = {}
        self.renamed = False
        """Whether temporary destinations got new names since there was a broker."""
        self.transacted_consumers: dict[int, SessionRecord] = {}
        self._refused: dict[int, BaseException] = {}
        """Producers that a broker refused, and why."""

    def clear(self) -> None:
        """The connection is closed."""
        for table in (self.sessions, self.producers, self.consumers, self.temporaries, self.transacted_consumers):
            table.clear()
        self._refused.clear()
        self.former_names.clear()

    def present_name(self, name: str) -> str:
        """Return the name that a temporary destination has now, by one that it had."""
        number = self.former_names.get(name)
        return self.temporaries[number][1] if number in self.temporaries else name

    def add_consumer(self, record: ConsumerRecord) -> None:
        """A consumer is attached."""
        info = record.info
        record.created = True
        assert record.sink is not None  # it is attached
        record.sink.open()
        self.consumers[info.id] = record
        session = self.sessions.get(info.session_id)
        if session is not None and session.info.transacted:
            self.transacted_consumers[info.id] = session

    def forget_consumer(self, number: int) -> None:
        """A consumer is closed."""
        record = self.consumers.pop(number, None)
        self.transacted_consumers.pop(number, None)
        if record is not None:
            record.sink = None

    def forget_producer(self, number: int) -> None:
        """A producer is closed."""
        self.producers.pop(number, None)
        self._refused.pop(number, None)

    def forget_session(self, number: int) -> None:
        """A session is closed, with its links."""
        self.sessions.pop(number, None)
        for producer in [p for p in self.producers.values() if p.session_id == number]:
            self.forget_producer(producer.id)
        for record in [r for r in self.consumers.values() if r.info.session_id == number]:
            self.forget_consumer(record.info.id)

    def refuse_producer(self, number: int, error: BaseException) -> None:
        """The broker does not take it any more (S104)."""
        self.forget_producer(number)
        self._refused[number] = error

    def why_closed(self, producer_id: int) -> BaseException:
        """Return why a producer cannot send."""
        error = self._refused.get(producer_id)
        if error is None:
            return IllegalStateException("the producer is closed")
        return error.fresh() if isinstance(error, JMSException) else error

    def in_use(self) -> None:
        """All is rebuilt, and what was delivered meanwhile counts."""
        for record in [*self.consumers.values()]:
            if record.sink is not None:
                record.sink.open()

    def interrupted(self) -> None:
        """The broker is gone: no word of it counts any more, and what was being closed is closed."""
        for record in [*self.consumers.values()]:
            record.sink = None
            if record.stopped:
                self.forget_consumer(record.info.id)


class Restoration:
    """One attempt to open everything at one broker.

    Args:
        closes_links: close a consumer or producer that the broker refuses, instead of giving the broker up (S104).
        rename: told the new name of a temporary destination, by its id, before anything is attached to it.
    """

    def __init__(self, resources: Resources, closes_links: bool, rename: Callable[[int, str], None]) -> None:
        self._resources = resources
        self._closes_links = closes_links
        self._rename = rename

    def steps(self, provider: Provider, metadata: ConnectionMetadata) -> Iterator[Completion[Any]]:
        """Rebuild, in the order of S103; each stage is one burst.

        Raises:
            JMSException: the broker refused something.
        """
        resources = self._resources
        yield from self._make_temporaries(provider)
        yield from _all(provider.create_session, [session.info for session in resources.sessions.values()])
        producers = [*resources.producers.values()]
        for number, refusal in (yield from self._attach(provider.create_producer, producers)):
            resources.refuse_producer(number, refusal)
        consumers = [record.attach() for record in resources.consumers.values()]
        for number, refusal in (yield from self._attach(provider.create_consumer, consumers)):
            resources.consumers[number].close(refusal)
        for number, record in resources.consumers.items():
            if record.started:
                provider.start_consumer(number)
            if record.pulling:
                provider.pull(number)

    def _make_temporaries(self, provider: Provider) -> Iterator[Completion[Any]]:
        resources = self._resources
        for number, (info, old_name) in [*resources.temporaries.items()]:
            named: Completion[str] = Completion()
            provider.create_temporary(info, named)
            yield named
            name = named.result()
            resources.temporaries[number] = (info, name)
            resources.former_names[old_name] = number
            resources.renamed = True
            self._rename(number, name)

    def _attach(
        self, create: Callable[[I, Completion[None]], None], infos: Sequence[I]
    ) -> Generator[Completion[None], None, list[tuple[int, BaseException]]]:
        refused = []
        for info, attached in _ask_all(create, infos):
            yield attached
            if attached.error is not None and not self._closes_links:
                attached.result()
            if attached.error is not None:
                refused.append((info.id, attached.error))
        return refused


def _ask_all(create: Callable[[I, Completion[None]], None], infos: Sequence[I]) -> list[tuple[I, Completion[None]]]:
    asked: list[tuple[I, Completion[None]]] = [(info, Completion()) for info in infos]
    for info, done in asked:
        create(info, done)
    return asked


def _all(create: Callable[[I, Completion[None]], None], infos: Sequence[I]) -> Iterator[Completion[None]]:
    """Make all at once, then wait for each."""
    for _, done in _ask_all(create, infos):
        yield done
        done.result()
