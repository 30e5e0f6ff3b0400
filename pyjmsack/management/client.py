"""The blocking manager."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, TypeVar

from pyjmsack import Connection, ConnectionFactory, JMSException, Queue
from pyjmsack.management._asking import TIMEOUT, Verbs, explained, understood, verbs_of
from pyjmsack.management.artemis import ADDRESS, answer_of, request_message
from pyjmsack.management.classic import Classic
from pyjmsack.management.jolokia import Jolokia
from pyjmsack.management.model import (
    BrokerStatus,
    ConnectionStatus,
    ConsumerStatus,
    QueueStatus,
    Request,
    Steps,
)

__all__ = ["Manager"]

T = TypeVar("T")


class Manager:
    """Asks a broker about its queues and changes them.

    ActiveMQ Artemis is asked by management messages over a connection of the factory, in either protocol. ActiveMQ
    Classic is asked through Jolokia. Every method raises :class:`ManagementDeniedError` if the user may not
    manage, :class:`UnknownQueueError` if there is no such queue, :class:`pyjmsack.RequestTimedOutException` if no
    answer comes in time, and :class:`pyjmsack.UnsupportedFeatureException` if this broker cannot do it.

    Args:
        factory: makes the connection; not used with ``jolokia``.
        jolokia: URL of Jolokia, for ActiveMQ Classic: ``http://NAME:PASSWORD@HOST:8161/api/jolokia``.
        timeout: seconds to wait for each answer.

    Raises:
        UnsupportedFeatureException: the broker is ActiveMQ Classic, and ``jolokia`` is missing.
        JMSException: the broker cannot be reached, or refuses the login.
    """

    def __init__(self, factory: ConnectionFactory, *, jolokia: str | None = None, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._opened = ExitStack()
        self._verbs: Verbs
        if jolokia is not None:
            self._verbs, self._ask = Classic(), Jolokia(jolokia, timeout).ask
            return
        with ExitStack() as opened:
            connection = opened.enter_context(factory.create_connection())
            self._verbs = verbs_of(connection.metadata.broker)
            self._ask = self._asks_by_messages(connection, opened)
            self._opened = opened.pop_all()

    def _asks_by_messages(self, connection: Connection, opened: ExitStack) -> Any:
        # the request under way raises the error that this listener would get
        connection.exception_listener = lambda error: None
        connection.start()
        try:
            session = opened.enter_context(connection.create_session())
            requestor = opened.enter_context(session.create_requestor(Queue(ADDRESS)))
        except JMSException as error:
            raise explained(error) from error

        def ask(request: Request) -> Any:
            try:
                reply = requestor.request(request_message(request), self._timeout)
            except JMSException as error:
                raise explained(error) from error
            return answer_of(request, reply)

        return ask

    def _run(self, steps: Steps[T]) -> T:
        try:
            request = next(steps)
            while True:
                with understood():
                    try:
                        answer = self._ask(request)
                    except JMSException as error:
                        request = steps.throw(error)
                    else:
                        request = steps.send(answer)
        except StopIteration as end:
            value: T = end.value
            return value

    def broker(self) -> BrokerStatus:
        """Return name, kind and version of the broker."""
        return self._run(self._verbs.broker())

    def queues(self, pattern: str = "*") -> list[QueueStatus]:
        """Return the queues whose names fit a pattern, by name.

        Args:
            pattern: as a shell has it: ``*`` any text, ``?`` one character, ``[ab]`` one of these.
        """
        return self._run(self._verbs.queues(pattern))

    def queue(self, name: str) -> QueueStatus:
        """Return one queue."""
        return self._run(self._verbs.queue(name))

    def oldest(self, queue: str) -> float | None:
        """Return the age of the first message in the queue, in seconds; ``None`` if the queue is empty."""
        return self._run(self._verbs.oldest(queue))

    def consumers(self, queue: str | None = None) -> list[ConsumerStatus]:
        """Return the consumers of one queue, or of all."""
        return self._run(self._verbs.consumers(queue))

    def connections(self) -> list[ConnectionStatus]:
        """Return the connections of all clients."""
        return self._run(self._verbs.connections())

    def count(self, queue: str, selector: str | None = None) -> int:
        """Return the number of messages in the queue that the selector fits."""
        return self._run(self._verbs.count(queue, selector))

    def purge(self, queue: str, selector: str | None = None) -> int:
        """Destroy the messages of the queue that a selector fits, and return their number.

        Messages that consumers hold stay.
        """
        return self._run(self._verbs.purge(queue, selector))

    def move(self, source: str, target: str, selector: str | None = None, *, limit: int | None = None) -> int:
        """Let the broker move messages to another queue, which must exist. Return their number.

        Each message is moved in a transaction of the broker, so that a crash loses none and doubles none.
        """
        return self._run(self._verbs.move(source, target, selector, limit))

    def retry(self, queue: str, selector: str | None = None) -> int:
        """Let the broker send dead letters back to the queue that each came from. Return their number."""
        return self._run(self._verbs.retry(queue, selector))

    def pause(self, queue: str) -> None:
        """Let the queue deliver nothing until :meth:`resume`; it still takes messages."""
        self._run(self._verbs.pause(queue))

    def resume(self, queue: str) -> None:
        """Let a paused queue deliver again."""
        self._run(self._verbs.resume(queue))

    def create_queue(self, name: str) -> None:
        """Create a queue. An existing queue stays as it is."""
        self._run(self._verbs.create_queue(name))

    def delete_queue(self, name: str) -> None:
        """Delete a queue with its messages, for ever. A queue that still has consumers is refused."""
        self._run(self._verbs.delete_queue(name))

    def close(self) -> None:
        """Close the connection. A second call has no effect."""
        self._opened.close()

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} of {type(self._verbs).__name__}>"
