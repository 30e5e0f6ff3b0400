"""Request and reply: one temporary queue for the replies, any number of requests at a time."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from pyjmsack.core.connection import Connection
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.producer import Producer
from pyjmsack.core.runtime import taken
from pyjmsack.core.send_window import Done, Send
from pyjmsack.core.session import Session
from pyjmsack.core.steps import Deadline, Steps, give_up
from pyjmsack.destination import Destination, TemporaryQueue
from pyjmsack.errors import (
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
    MessageFormatException,
    RequestTimedOutException,
)
from pyjmsack.loggers import get_logger
from pyjmsack.message import Message, to_message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Inbound
from pyjmsack.types import AckMode, Outcome

__all__ = ["Request", "Requestor", "reply_to"]

log = get_logger("pyjmsack")


def reply_to(request: Message, reply: object) -> tuple[Message, Destination]:
    """Return the reply as a message, and the destination to send it to. The reply gets the correlation id of the
    request. If the request has none, the reply gets the message id of the request as its correlation id.

    Raises:
        InvalidDestinationException: the request asks for no reply.
    """
    where = request.reply_to
    if where is None:
        raise InvalidDestinationException(f"{request!r} asks for no reply, because its reply_to is None")
    message = to_message(reply)
    message.correlation_id = request.correlation_id or request.message_id
    return message, where


GIVEN_UP = 10_000
"""The largest number of correlation ids that one requestor remembers. These are the ids of requests that were given
up."""
REPLIES = 100
"""The largest number of replies to one request that are kept for its caller. The caller takes the first reply that can
be decoded."""
_ONLY_IN_MESSAGE_IDS = "ID:AMQP_NO_PREFIX:"
"""The library puts this prefix before a received message id that had no prefix on the wire, but never before a received
correlation id (S159)."""


class Request:
    """A request under way. The correlation id of the reply may be the message id of the request, or the correlation id
    that the caller gave to the request.
    """

    def __init__(self, message_id: str, correlation_id: str | None) -> None:
        self.replies: deque[Inbound] = deque()
        """The replies, undecoded. The waiting caller decodes the replies. The loop does not, because decoding a large
        reply takes time."""
        self.arrival: Completion[None] = Completion()
        self.error: BaseException | None = None
        self.over = False
        self.correlation_id = correlation_id
        ids = (message_id, message_id.removeprefix(_ONLY_IN_MESSAGE_IDS), correlation_id)
        self.ids = [*{each: None for each in ids if each is not None}]

    def answered(self, reply: Inbound) -> None:
        """Remember a reply, and wake the caller."""
        self.replies.append(reply)
        self.arrival.succeed()

    def fail(self, error: BaseException) -> None:
        """Let the caller get an error, because no reply will come."""
        self.error = self.error or error
        self.arrival.succeed()


class Requestor:
    """The core of one requestor. A requestor has a session of its own, because the mode and the listeners of another
    session must not affect it.
    """

    def __init__(self, connection: Connection) -> None:
        self.closed = False
        self.reply_to: TemporaryQueue
        self._session: Session
        self._connection = connection
        self._producer: Producer
        self._consumer: Consumer
        self._requests: dict[str, Request] = {}
        """The requests under way, by each id that a reply may have."""
        self._given_up: OrderedDict[str, None] = OrderedDict()
        """Correlation ids of requests that were given up. A new request may not have such an id, because a late reply
        could be taken for the reply to the new request. The oldest ids are forgotten, because otherwise a service that
        never answers would fill the memory."""

    @classmethod
    def open(
        cls, connection: Connection, owner: Session, destination: Destination, run: Callable[[Steps[None]], Any]
    ) -> Steps[Requestor]:
        """Open one more session on the connection, and in this session a temporary queue for the replies, a producer
        and a consumer."""
        owner.check_open()
        if destination is None:
            raise InvalidDestinationException("a requestor needs a destination (S67)")
        requestor = cls(connection)
        try:
            requestor._session = session = yield from connection.create_session(AckMode.AUTO_ACKNOWLEDGE, None)
            requestor._producer = yield from session.create_producer(destination)
            requestor._producer.correlates = True
            requestor.reply_to = yield from session.create_temporary(TemporaryQueue, run)
            requestor._consumer = yield from session.create_consumer(requestor.reply_to, None, pulls=False)
            requestor._consumer.on_arrival = requestor._look
            requestor._consumer.inbox.wanted = requestor._is_wanted
            return requestor
        except JMSException:
            yield from requestor.close()
            raise
        except BaseException:
            give_up(requestor.close())
            raise

    @property
    def destination(self) -> Destination:
        """The destination of the requests."""
        destination = self._producer.info.destination
        assert destination is not None  # see open()
        return destination

    def send(self, message: object, *how: Any) -> Request:
        """Send a request, without waiting. If the caller set no correlation id, the request travels with its message id
        as its correlation id too. A broker may give the request a new message id for clients of another protocol, and a
        service that answers with this id could not be matched. Nearly all services prefer the correlation id.

        Raises:
            IllegalStateException: the requestor is closed, the connection is stopped, or another request that is under
                way or was given up has the same correlation id.
            JMSException: as for :meth:`pyjmsack.MessageProducer.send`.
        """
        self._check()
        message = to_message(message)
        message.reply_to = self.reply_to
        own = message.correlation_id
        if own is not None and (own in self._requests or own in self._given_up):
            raise IllegalStateException(
                f"correlation id {own!r} was used before; use a new one, because a late reply could be taken for the"
                " reply to this request"
            )
        request: Request

        def sent(error: BaseException | None) -> None:
            if error is not None:
                request.fail(error)

        stamped, outbound = self._prepare(sent, message, *how)
        assert stamped.message_id is not None  # the producer of a requestor always makes message ids
        request = Request(stamped.message_id, own)
        try:
            for each in request.ids:
                self._requests[each] = request
            self._producer.submit(outbound, awaited=True)
            if not self._fail_if_lost():  # if the link was lost meanwhile, only this call notices the loss
                # a reply may have been left in the inbox. It is taken on the loop, because a signal handler might end
                # this thread's look while the reply to another request is in no table
                self._connection.channel.submit(self._look)
        except BaseException:  # Ctrl-C
            self._forget(request)
            raise
        return request

    def _prepare(self, sent: Done, message: Message, *how: Any) -> tuple[Message, Send]:
        """Encode a request. Afterwards the message has no other correlation id than before, because the caller may use
        it for the next request, which needs another one."""
        own, stamped = message._correlation_id, message
        try:
            stamped, outbound = self._producer.prepare(sent, message, None, *how)
        finally:
            message._correlation_id = own
            if own is None and stamped._correlation_id == stamped._message_id:
                stamped._correlation_id = None  # a transformer may return the same message each time
        return stamped, outbound

    def _check(self) -> None:
        if self.closed:
            raise IllegalStateException("the requestor is closed")
        self._session.check_open()
        if not self._connection.channel.started:
            raise IllegalStateException("the connection is stopped, so no reply would arrive; call start() first")

    def wait(self, request: Request, timeout: float | None) -> Steps[Message]:
        """Return the reply.

        Raises:
            RequestTimedOutException: no reply came within ``timeout`` seconds. A later reply is dropped.
            JMSException: the request could not be sent, or the replies cannot arrive any more.
        """
        deadline = Deadline(timeout)
        message: Message | None = None
        try:
            while (message := self._reply(request, deadline)) is None:
                if request.error is not None:
                    raise request.error.fresh() if isinstance(request.error, JMSException) else request.error
                arrival = request.arrival
                if not arrival.done and not (yield arrival, deadline.remaining()) and not arrival.done:
                    raise RequestTimedOutException(f"no reply from {self.destination} within {timeout:g} s")
            return message
        finally:
            self._forget(request, answered=message is not None)

    def _forget(self, request: Request, *, answered: bool = False) -> None:
        for each in request.ids:
            self._requests.pop(each, None)
        if not answered and request.error is None and request.correlation_id is not None:
            self._given_up[request.correlation_id] = None
            if len(self._given_up) > GIVEN_UP:
                self._given_up.popitem(last=False)
        request.over = True
        self._drop(request)

    def _reply(self, request: Request, deadline: Deadline) -> Message | None:
        """Acknowledge and return the first reply that can be handed out. Return ``None`` if there is no such reply yet.
        This runs in the caller's thread or task.

        Raises:
            RequestTimedOutException: the time is over, and all replies so far were refused.
        """
        request.arrival = Completion()  # before the look, so that a reply that comes later completes this completion
        while request.replies:
            # removed only after this call, so that ``_drop`` finds the reply if Ctrl-C ends the call
            message = self._consumer.taking.admit(request.replies[0])
            request.replies.popleft()
            if message is not None:
                return message
            if deadline.expired:  # a stranger may send such replies without end
                raise RequestTimedOutException(
                    f"no usable reply from {self.destination} in time; the log says why replies were refused"
                )
        return None

    def _drop(self, request: Request) -> None:
        """Acknowledge the replies without looking at them, because nobody waits for them any more."""
        for reply in taken(request.replies):  # the loop and the caller may both be here
            self._consumer.unsettled.settle(reply, Outcome.ACCEPTED)

    def _look(self) -> None:
        """Give each reply, undecoded, to the caller that waits for it. This method runs on the loop. A caller that
        closes the requestor runs it too, and takes no reply then.
        """
        if self._fail_if_lost():
            return
        consumer = self._consumer
        while (inbound := consumer.taking.take_undecoded()) is not None:
            try:
                correlation_id = inbound.correlation_id
            except MessageFormatException:
                consumer.taking.admit(inbound)  # this refuses the reply, because it cannot be decoded
                continue
            request = self._requests.get(correlation_id or "")
            if request is None or len(request.replies) >= REPLIES:
                log.debug(
                    "a reply with correlation id %r is dropped: it came too late, answers no request, or is one of too"
                    " many",
                    correlation_id,
                )
                consumer.unsettled.settle(inbound, Outcome.ACCEPTED)
                continue
            request.answered(inbound)
            if request.over:
                self._drop(request)

    def _fail_if_lost(self) -> bool:
        """Return whether no reply can arrive any more. In this case the requests under way get the error."""
        consumer = self._consumer
        if not consumer.closed and consumer.error is None:
            return False
        self._fail(consumer.error or IllegalStateException("the requestor is closed"))
        return True

    def _is_wanted(self, inbound: Inbound) -> bool:
        """Return whether a request waits for this reply. Others are dropped, and are not decoded before. One decoded
        reply for each request is enough, because a decoded message may take a hundred times its bytes."""
        try:
            request = self._requests.get(inbound.correlation_id or "")
        except MessageFormatException:
            return False
        return request is not None and not any(isinstance(reply.read, Message) for reply in request.replies)

    def _fail(self, error: BaseException) -> None:
        for request in [*self._requests.values()]:
            request.fail(error)

    def close(self) -> Steps[None]:
        """End the requests under way, and delete the queue for the replies. A second call has no effect."""
        if self.closed:
            return
        self.closed = True
        self._fail(IllegalStateException("the requestor is closed"))
        if not hasattr(self, "_session"):
            return
        try:
            yield from self._session.close()
        except BaseException:  # the caller gave up: the queue is deleted after its consumer, without waiting
            give_up(self._delete_queue())
            raise
        yield from self._delete_queue()

    def _delete_queue(self) -> Steps[None]:
        if hasattr(self, "reply_to") and self._connection.channel.usable:
            yield from self._connection.temporaries.delete(self.reply_to)
