"""Sends and requests from anywhere in the program, and inside the transaction of a listener."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sized
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from pyjmsack.app.answer import how_to_send
from pyjmsack.app.converters import Converter, is_large, reads_on_thread
from pyjmsack.app.joining import CURRENT, Joined, Sends
from pyjmsack.app.link import Link
from pyjmsack.app.listener import destination_of
from pyjmsack.app.steps import Away, Face, Limit, Steps
from pyjmsack.destination import Destination
from pyjmsack.errors import (
    ConnectionLostException,
    IllegalStateException,
    JMSException,
    MessageFormatException,
    RequestTimedOutException,
)
from pyjmsack.loggers import get_logger
from pyjmsack.message import Message
from pyjmsack.types import AckMode

__all__ = ["Sender"]

log = get_logger("pyjmsack.app")
T = TypeVar("T")

SESSIONS: Final = 16
"""The largest number of sends at a time. A further send waits."""
REQUESTORS: Final = 64
"""The largest number of destinations for which a requestor and its queue for replies are kept."""


class _Kept:
    """A requestor and the calls that use the requestor. The sender's table keeps a requestor that works, for further
    calls.

    A call adds itself to ``users`` before it checks that the table still has the requestor. A call that ends removes
    itself, and closes the requestor if no user is left and the table does not have the requestor any more.
    """

    def __init__(self, connection: Any, requestor: Any, user: object, away: Away, away_large: Away) -> None:
        self.connection = connection
        self.requestor = requestor
        self.users = {user}
        self._away = away
        self._away_large = away_large

    def away(self, reply: Message) -> Away:
        """Return the function that makes a step of reading this reply. A large reply is read in another thread, because
        smaller ones must not wait for it."""
        return self._away_large if is_large(reply) else self._away


class _Lent(NamedTuple):
    """A session of the pool, with its connection and its producer. One call at a time uses the session."""

    connection: Any
    session: Any
    producer: Sends


class Sender:
    """Sends bodies. Any thread, or any task of the app's loop, may use a sender at any time.

    If a transacted listener of the same app calls ``send`` or ``send_many``, in its thread or its tasks, the call joins
    the transaction of the listener. Then the messages are sent if the listener returns and the broker commits, and
    otherwise never. A thread that the listener started, and code that runs after the listener, send without a
    transaction.

    In all other places ``send`` returns when the broker has confirmed the message, unless the message is non-persistent
    or the URL asks for sends without confirmation (S61, S62).

    ``send_timeout`` limits each wait for the broker: for a connection, for a new session, for the outcome of a send,
    for a commit, and for the close of a session after an error. When a broker is away or does not answer any more,
    ``send`` and ``send_many`` end at most about two times ``send_timeout`` later; a ``send_many`` with
    ``jms.forceAsyncSend``, three times. ``request`` ends after its ``timeout``; a request that needs a new queue for
    replies takes up to four times ``send_timeout`` longer. At most 16 calls send at a time, and further calls wait for
    their turn before. If the URL has ``jms.sendTimeout``, this option limits the send, and ``jms.requestTimeout`` and
    ``jms.closeTimeout`` of the URL limit the other waits. Calls that join the transaction of a listener have no
    such limits, because they use the connection of the listener.
    """

    def __init__(self, app: object, face: Face, factory: Any, converter: Converter, send_timeout: float) -> None:
        self._app = app
        self._face = face
        self._converter = converter
        self._timeout = send_timeout
        self._pool: deque[_Lent] = deque()
        self._many: deque[_Lent] = deque()
        self._requestors: dict[Destination, _Kept] = {}
        self.link: Link
        self._limit: Limit
        self.use(factory)

    def use(self, factory: Any) -> None:
        """Use this factory from the next start of the app on.

        Args:
            factory: a connection factory of this face.
        """
        self._factory = factory
        self.renew(started=False)

    def renew(self, *, started: bool = True) -> None:
        """Prepare for a start of the app, perhaps on another event loop than before.

        Args:
            started: whether sends are allowed from now on.
        """
        self._started = started
        self._limit = self._face.limit(SESSIONS)
        self.link = Link(self._face, self._factory, "sender", self._serve)

    # -- public -------------------------------------------------------------------------------------------------

    def send(
        self,
        destination: str | Destination,
        body: Any,
        *,
        topic: bool = False,
        properties: Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        reply_to: str | Destination | None = None,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live: float | timedelta | None = None,
        delivery_delay: float | timedelta | None = None,
    ) -> Any:
        """Send a body. In ``pyjmsack.aio`` the call is awaited.

        Args:
            destination: the name of a queue, or of a topic if ``topic`` is set; or a destination object.
            body: a value that the converter turns into a message, or a message object.
            topic: whether ``destination`` is the name of a topic.
            properties: properties to set in the message. ``None`` = none.
            correlation_id: the correlation id to set. ``None``: a ``body`` that is a message keeps its correlation id.
            reply_to: the destination of the answer: the name of a queue, or a destination object. ``None``: a ``body``
                that is a message keeps its ``reply_to``.
            delivery_mode, priority, time_to_live, delivery_delay: as for :meth:`pyjmsack.MessageProducer.send`.

        Raises:
            MessageFormatException: the body cannot be turned into a message, or a property is not allowed.
            ConnectionLostException: the broker is away.
            SendTimedOutException: the broker did not answer in time. The text says whether the message may have been
                stored.
            RequestTimedOutException: the broker did not open a session in time, and the message was not sent.
            IllegalStateException: the app is not started.
            JMSException: the broker refused the message.
        """
        message = self._message(body, properties, correlation_id, reply_to)
        how = how_to_send(delivery_mode, priority, time_to_live, delivery_delay)
        return self._face.run(self._send(destination_of(destination, topic), message, how))

    def send_many(
        self,
        destination: str | Destination,
        bodies: Iterable[Any],
        *,
        topic: bool = False,
        properties: Mapping[str, Any] | None = None,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live: float | timedelta | None = None,
        delivery_delay: float | timedelta | None = None,
    ) -> Any:
        """Send several bodies in one transaction. The broker stores all messages or no message. In ``pyjmsack.aio`` the
        call is awaited.

        Args:
            destination, topic: as for :meth:`send`.
            bodies: bodies as for :meth:`send`. They are read one by one.
            properties: properties to set in each message.
            delivery_mode, priority, time_to_live, delivery_delay: for each message, as for
                :meth:`pyjmsack.MessageProducer.send`.

        Raises:
            TransactionRolledBackException: no message was stored; or, if ``in_doubt`` of the exception is true, nobody
                knows whether the messages were stored, for example because the commit had no answer in time.
            IllegalStateException: the app is not started; or, in ``pyjmsack.aio``, the listener whose transaction the
                call joined has ended before all bodies were sent. The bodies that were sent until then share the fate
                of the message of the listener, and the others were not sent.
            JMSException: as for :meth:`send`. No message was stored.
        """
        messages = (self._message(body, properties, None, None) for body in bodies)
        how = how_to_send(delivery_mode, priority, time_to_live, delivery_delay)
        total = f" of {len(bodies)}" if isinstance(bodies, Sized) else ""
        return self._face.run(self._send_many(destination_of(destination, topic), messages, how, total))

    def request(
        self,
        destination: str | Destination,
        body: Any,
        *,
        timeout: float | timedelta | None = 30,
        wanted: Any = Any,
        topic: bool = False,
        properties: Mapping[str, Any] | None = None,
        priority: int | None = None,
        time_to_live: float | timedelta | None = None,
    ) -> Any:
        """Send a request and return the body of its reply. In ``pyjmsack.aio`` the call is awaited.

        A request is sent at once, and never joins a transaction, because nobody would answer before the commit.

        Args:
            destination, body, topic, properties: as for :meth:`send`.
            timeout: seconds or a ``timedelta`` to wait for the reply; ``None`` waits for ever. The time that reading
                the body of the reply takes is not part of this limit.
            wanted: the type of the reply's body, as the annotation of a listener's parameter.
            priority, time_to_live: as for :meth:`pyjmsack.MessageProducer.send`.

        Raises:
            RequestTimedOutException: no reply came in time, or the broker made no queue for replies in time.
            MessageFormatException: the reply does not fit ``wanted``, or the body cannot be turned into a message.
            JMSException: as for :meth:`send`.
        """
        message = self._message(body, properties, None, None)
        how = how_to_send(None, priority, time_to_live, None)
        return self._face.run(self._request(destination_of(destination, topic), message, timeout, wanted, how))

    def _message(
        self,
        body: Any,
        properties: Mapping[str, Any] | None,
        correlation_id: str | None,
        reply_to: str | Destination | None,
    ) -> Message:
        message = self._converter.to_message(body)
        for name, value in (properties or {}).items():
            message.properties[name] = value
        if correlation_id is not None:
            message.correlation_id = correlation_id
        if reply_to is not None:
            message.reply_to = destination_of(reply_to)
        return message

    # -- steps --------------------------------------------------------------------------------------------------

    def _joined(self) -> Joined | None:
        joined = CURRENT.get()
        if joined is None or joined.over or not joined.works_for(self._app, self._face.here()):
            return None
        return joined

    def _send(self, destination: Destination, message: Message, how: dict[str, Any]) -> Steps[None]:
        joined = self._joined()
        if joined is not None:
            yield partial(joined.producer.send, message, destination, **how)
            return

        def use(lent: _Lent) -> Steps[None]:
            yield partial(lent.producer.send, message, destination, **how)

        yield from self._borrowed(self._pool, AckMode.AUTO_ACKNOWLEDGE, use)

    def _send_many(
        self, destination: Destination, messages: Iterable[Message], how: dict[str, Any], total: str
    ) -> Steps[None]:
        joined = self._joined()
        if joined is not None:
            for sent, message in enumerate(messages):
                # a send that begins before the listener has ended precedes the commit in the lock of the session; a
                # later send would join the transaction of the next message
                if joined.over:
                    raise IllegalStateException(
                        f"the listener ended after {sent}{total} bodies were sent in its transaction; the others were"
                        " not sent: let the listener await send_many"
                    )
                yield partial(joined.producer.send, message, destination, **how)
            return

        def use(lent: _Lent) -> Steps[None]:
            for message in messages:
                yield partial(lent.producer.send, message, destination, **how)
            yield lent.session.commit

        yield from self._borrowed(self._many, AckMode.SESSION_TRANSACTED, use)

    def _request(
        self, destination: Destination, message: Message, timeout: Any, wanted: Any, how: dict[str, Any]
    ) -> Steps[Any]:
        user = object()
        kept = yield from self._requestor(destination, user)
        try:
            reply = yield partial(kept.requestor.request, message, timeout, **how)
        except (RequestTimedOutException, MessageFormatException):  # after these errors the requestor still works
            raise
        except JMSException:
            self._forget(destination, kept)
            raise
        finally:
            yield from self._leave(destination, kept, user)
        read = partial(self._converter.from_message, reply, wanted)
        return (yield kept.away(reply)(read)) if reads_on_thread(self._converter, reply, wanted) else read()

    def _requestor(self, destination: Destination, user: object) -> Steps[_Kept]:
        """Return a requestor for the destination, and add ``user`` to its users."""
        connection = yield from self._connection()
        known = self._requestors.get(destination)
        if known is not None and known.connection is connection:
            known.users.add(user)
            if self._requestors.get(destination) is known:
                return known
            yield from self._leave(destination, known, user)

        def use(lent: _Lent) -> Steps[_Kept]:
            requestor = yield partial(lent.session.create_requestor, destination)
            aways = self._face.away("pyjmsack-app-reply"), self._face.away("pyjmsack-app-large-reply")
            return _Kept(lent.connection, requestor, user, *aways)

        kept = yield from self._borrowed(self._pool, AckMode.AUTO_ACKNOWLEDGE, use)
        # if two calls make a requestor at the same time, the table gets only one of the two requestors; the call that
        # made the other requestor closes it after the reply
        current = self._requestors.get(destination)
        if current is not None and current.connection is not kept.connection:
            self._forget(destination, current)  # this requestor was closed together with its connection
        if len(self._requestors) < REQUESTORS:
            self._requestors.setdefault(destination, kept)
        return kept

    def _forget(self, destination: Destination, kept: _Kept) -> None:
        """Remove a requestor from the table, because a requestor that failed once always fails."""
        if self._requestors.get(destination) is kept:
            self._requestors.pop(destination, None)

    def _leave(self, destination: Destination, kept: _Kept, user: object) -> Steps[None]:
        """End the use of a requestor. The last user closes a requestor that is not in the table."""
        kept.users.discard(user)
        if kept.users or self._requestors.get(destination) is kept:
            return
        try:
            yield kept.requestor.close
        except JMSException as error:  # the caller gets the reply, or the error of the request
            log.debug("closing the requestor for %s: %s", destination.name, error)

    # -- the pool -----------------------------------------------------------------------------------------------

    def _connection(self) -> Steps[Any]:
        link = self.link
        if not self._started or link.stopping:
            raise IllegalStateException("the app is not running: start it, or use it in a `with` block, before sending")
        if link.connection is None:
            yield partial(link.connected.wait, self._timeout)
        connection = link.connection
        if connection is None:
            if link.stopping:
                raise IllegalStateException("the app is stopped; start the app again before sending")
            raise ConnectionLostException(f"there was no broker within {self._timeout:g} s: {link.error}")
        return connection

    def _borrowed(self, pool: deque[_Lent], mode: AckMode, use: Callable[[_Lent], Steps[T]]) -> Steps[T]:
        """Run the steps of ``use`` with a session of the pool, and return their result.

        After an error the session is closed, and a transaction of the session is rolled back.
        """
        yield from self._connection()  # a call that waits for the broker with others must not wait for their time-outs
        caller, limit = object(), self._limit  # the next start makes another limit
        try:
            yield partial(limit.take, caller)
            lent = yield from self._lend(pool, mode)
            try:
                result = yield from use(lent)
            except BaseException:
                yield from self._discard(lent)
                raise
            self._give_back(pool, lent)
            return result
        finally:
            try:  # Python 3.10 lets a handler run before the first step of a ``finally``, unless this is a ``try``
                limit.leave(caller, None)
            finally:
                limit.wake()

    def _lend(self, pool: deque[_Lent], mode: AckMode) -> Steps[_Lent]:
        connection = yield from self._connection()
        while True:
            try:
                lent = pool.pop()
            except IndexError:
                break
            if lent.connection is connection:
                return lent
        session = yield partial(connection.create_session, mode)
        try:
            producer = yield session.create_producer
        except BaseException:
            yield session.close
            raise
        return _Lent(connection, session, producer)

    def _give_back(self, pool: deque[_Lent], lent: _Lent) -> None:
        if self.link.connection is lent.connection:
            pool.append(lent)

    @staticmethod
    def _discard(lent: _Lent) -> Steps[None]:
        try:
            yield lent.session.close
        except Exception:  # the caller gets the error of the send
            return

    # -- life ---------------------------------------------------------------------------------------------------

    def _serve(self, connection: Any) -> Steps[None]:
        link = self.link
        link.tried.set()
        try:
            while True:
                link.wake.clear()
                if link.stopping or link.lost:
                    return
                yield link.wake.wait
        finally:
            self._pool.clear()
            self._many.clear()
            self._requestors.clear()
