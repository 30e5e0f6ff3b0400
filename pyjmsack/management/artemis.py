"""The manager's requests to ActiveMQ Artemis. They are management messages to ``activemq.management``, and the replies
come over the same connection.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from pyjmsack import (
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    Message,
    TextMessage,
)
from pyjmsack.json_text import read_json
from pyjmsack.management.filters import core_filter
from pyjmsack.management.model import (
    BrokerStatus,
    ConnectionStatus,
    ConsumerStatus,
    ManagementDeniedError,
    QueueStatus,
    Request,
    Steps,
    T,
    shown,
    unknown_queue,
)

__all__ = ["ADDRESS", "Artemis", "answer_of", "forbidden", "removal_message", "request_message"]

ADDRESS = "activemq.management"
"""The address whose messages the broker itself reads and answers."""

_TEMPORARY = "pyjmsack.temporary."
"""The beginning of the names of temporary destinations over STOMP. Artemis treats such destinations like ordinary
ones."""
_PAGE = 500
"""The largest number of rows in one answer. A longer list needs several requests."""
_MAX_ROWS = 200_000
_MOST_CHARACTERS = 67_108_864
"""The largest number of characters in the rows of all answers to one question."""
_MOST_VALUES = 3_000_000
"""The largest number of values in one answer. A page has some ten thousand, and more if there are long selectors."""
_ATTEMPTS = 20
_STUMBLED = "is null"
"""A part of the text of a NullPointerException. Artemis 2.56 answers with this text if a queue is deleted while the
broker lists the queues."""
_FLUSH = 500
"""The number of messages that the broker removes or moves in one of its transactions."""
_ALL = json.dumps({"field": "", "operation": "", "value": ""})


def request_message(request: Request) -> Message:
    """Return the management message for a request."""
    message = TextMessage(json.dumps(list(request.arguments)))
    message.properties["_AMQ_ResourceName"] = request.resource
    if request.operation is not None:
        message.properties["_AMQ_OperationName"] = request.operation
    else:
        (attribute,) = request.attributes
        message.properties["_AMQ_Attribute"] = attribute
    return message


def removal_message(replies: Message) -> Message | None:
    """Return the message that deletes the queue of the replies, or ``None`` if the broker deletes the queue itself.

    Over STOMP this queue is an ordinary one for the broker. A broker whose settings keep ordinary queues would keep one
    more queue for each manager. The message asks for no reply, because nobody would receive the reply.

    Args:
        replies: a request that was sent, whose ``reply_to`` is the queue.
    """
    queue = replies.reply_to
    if queue is None or not queue.name.startswith(_TEMPORARY):
        return None
    return request_message(Request("broker", "destroyQueue", (queue.name, True, True)))


def answer_of(request: Request, reply: Message) -> Any:
    """Return the value in the broker's reply.

    Raises:
        InvalidSelectorException: the broker cannot read the selector.
        InvalidDestinationException: there is no such queue.
        ManagementDeniedError: the user may not manage the broker.
        JMSException: the broker refuses for another reason.
    """
    body = reply.body
    value = read_json(body, _MOST_VALUES)[0] if isinstance(body, str) and body else None
    if str(reply.properties.get("_AMQ_OperationSucceeded")).lower() == "true":
        return read_json(str(value), _MOST_VALUES) if request.lists else value
    reason = str(value)
    text = shown(reason)
    asked = f"{request.operation or request.attributes[0]} of {request.resource}"
    if "AMQ229020" in reason:
        raise InvalidSelectorException(f"the broker cannot read the selector: {text}")
    if "AMQ229213" in reason or "AMQ229032" in reason:
        raise forbidden(text)
    if "AMQ229049" in reason or "AMQ229067" in reason or "AMQ229017" in reason:
        raise InvalidDestinationException(f"{asked}: {text}")
    raise JMSException(f"{asked}: the broker answered {text}")


def forbidden(reason: object) -> ManagementDeniedError:
    """Return the error for a user who may not manage the broker. The error names the missing permissions, and the work
    that the user may still do.
    """
    return ManagementDeniedError(
        f"this user may not manage the broker ({reason}); in broker.xml a role of the user needs the permissions manage"
        f" and send for {ADDRESS}, and createNonDurableQueue for the replies; the user may browse, send and"
        " receive without these permissions"
    )


class Artemis:
    """The methods of :class:`pyjmsack.management.Manager` for Artemis, as generators that yield requests and get the
    answers.
    """

    def broker(self) -> Steps[BrokerStatus]:
        """Ask for the name and the version of the broker."""
        name = yield Request("broker", attributes=("Name",))
        version = yield Request("broker", attributes=("Version",))
        return BrokerStatus("artemis", str(name), str(version))

    def queues(self, pattern: str) -> Steps[list[QueueStatus]]:
        """Ask for the queues whose names fit the pattern."""
        rows = yield from _rows("listQueues", _ALL, lambda row: fnmatchcase(row["name"], pattern), _queue)
        return sorted(rows, key=lambda each: each.name)

    def queue(self, name: str) -> Steps[QueueStatus]:
        """Ask for one queue."""
        wanted = json.dumps({"field": "name", "operation": "EQUALS", "value": name})
        rows = yield from _rows("listQueues", wanted, lambda row: row["name"] == name, _queue)
        for row in rows:
            return row
        known = yield Request("broker", attributes=("QueueNames",))
        raise unknown_queue(name, known)

    def oldest(self, name: str) -> Steps[float | None]:
        """Ask how many seconds ago the first message came to the queue."""
        yield from self.queue(name)
        if not (yield Request(f"queue.{name}", attributes=("FirstMessageTimestamp",))):
            # there is no message, or its time stamp is 0, from which the broker would compute an age since 1970
            return None
        age = yield Request(f"queue.{name}", attributes=("FirstMessageAge",))
        return None if age is None else age / 1000

    def consumers(self, queue: str | None) -> Steps[list[ConsumerStatus]]:
        """Ask for the consumers of one queue, or of all queues."""
        return (yield from _rows("listConsumers", _ALL, lambda row: queue in (None, row.get("queue")), _consumer))

    def connections(self) -> Steps[list[ConnectionStatus]]:
        """Ask for all connections."""
        return (yield from _rows("listConnections", _ALL, lambda row: True, _connection))

    def count(self, queue: str, selector: str | None) -> Steps[int]:
        """Let the broker count the messages of a queue."""
        yield from self.queue(queue)
        arguments = () if selector is None else (core_filter(selector),)
        return int((yield Request(f"queue.{queue}", "countMessages", arguments)))

    def purge(self, queue: str, selector: str | None) -> Steps[int]:
        """Let the broker remove messages from a queue."""
        yield from self.queue(queue)
        filter_text = None if selector is None else core_filter(selector)
        return int((yield Request(f"queue.{queue}", "removeMessages", (_FLUSH, filter_text))))

    def move(self, source: str, target: str, selector: str | None, limit: int | None) -> Steps[int]:
        """Let the broker move messages to another queue."""
        yield from self.queue(source)
        yield from self.queue(target)
        filter_text = None if selector is None else core_filter(selector)
        arguments = (_FLUSH, filter_text, target, False, -1 if limit is None else limit)
        return int((yield Request(f"queue.{source}", "moveMessages", arguments)))

    def retry(self, queue: str, selector: str | None) -> Steps[int]:
        """Let the broker send each message back to the queue that the message came from.

        The number in the broker's answer includes letters that stay because their queue does not exist any more.
        Therefore this method counts the letters before and after the request.
        """
        before = yield from self.count(queue, selector)
        arguments = () if selector is None else (core_filter(selector),)
        tried = int((yield Request(f"queue.{queue}", "retryMessages", arguments)))
        after = yield from self.count(queue, selector)
        return max(0, min(tried, before - after))

    def pause(self, queue: str) -> Steps[None]:
        """Stop the deliveries of a queue. The pause goes on after a restart of the broker."""
        yield from self.queue(queue)
        yield Request(f"queue.{queue}", "pause", (True,))

    def resume(self, queue: str) -> Steps[None]:
        """Let a paused queue deliver again."""
        yield from self.queue(queue)
        yield Request(f"queue.{queue}", "resume")

    def create_queue(self, name: str) -> Steps[None]:
        """Create a queue that gives each message to one consumer (anycast). An existing queue stays as it is."""
        settings = json.dumps({"name": name, "routing-type": "ANYCAST"})
        yield Request("broker", "createQueue", (settings, True))

    def delete_queue(self, name: str) -> Steps[None]:
        """Delete a queue with its messages, and its address if the address has no other queue."""
        yield from self.queue(name)
        yield Request("broker", "destroyQueue", (name, False, True))


def _rows(
    operation: str, text: str, wanted: Callable[[Mapping[str, Any]], bool], read: Callable[[Mapping[str, Any]], T]
) -> Steps[list[T]]:
    """Ask for all pages of a list, and return the wanted rows of all pages.

    Args:
        operation: the operation of the broker.
        text: the rows that the broker is asked for, as JSON.
        wanted: whether a row is one of the wanted rows.
        read: makes the object for a row. The rest of the row is not kept.

    Raises:
        JMSException: there are more rows or longer texts than the limit, or an answer has more rows than a page.
    """
    found: list[T] = []
    characters = 0
    for page in range(1, _MAX_ROWS // _PAGE + 1):
        answer = yield from _asked_again(Request("broker", operation, (text, page, _PAGE), lists=True))
        rows = answer["data"]
        if len(rows) > _PAGE:
            raise JMSException(f"{operation}: the broker answered with {len(rows):,} rows instead of {_PAGE}")
        for row in filter(wanted, rows):
            found.append(read(row))
            characters += sum(len(value) for value in vars(found[-1]).values() if isinstance(value, str))
        if characters > _MOST_CHARACTERS:
            raise JMSException(
                f"{operation}: the names and selectors have more than {_MOST_CHARACTERS:,} characters;"
                " pyjmsack reads no more"
            )
        if len(rows) < _PAGE:
            return found
    raise JMSException(f"{operation}: the broker has more than {_MAX_ROWS:,} rows; pyjmsack reads no more")


def _asked_again(request: Request) -> Steps[Any]:
    """Send a request, and send it again if Artemis failed because a queue was deleted while Artemis listed the queues.

    Raises:
        JMSException: the broker refuses the request, or failed each time.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return (yield request)
        except JMSException as error:
            if _STUMBLED not in str(error):
                raise
    return (yield request)


def _true(value: object) -> bool:
    return str(value).lower() == "true"


def _held(count: int) -> int | None:
    """Return the number of messages that consumers hold, or ``None`` if the broker's count is wrong.

    Artemis subtracts a message that it could not convert for a consumer, although it never added the message.
    """
    return None if count < 0 else count


def _queue(row: Mapping[str, Any]) -> QueueStatus:
    delivering = int(row["deliveringCount"])
    return QueueStatus(
        name=str(row["name"]),
        messages=int(row["messageCount"]) - min(delivering, 0),  # the broker's sum includes the wrong count
        delivering=_held(delivering),
        consumers=int(row["consumerCount"]),
        added=int(row["messagesAdded"]),
        acknowledged=int(row["messagesAcked"]),
        expired=int(row["messagesExpired"]),
        killed=int(row["messagesKilled"]),
        scheduled=int(row["scheduledCount"]),
        paused=_true(row["paused"]),
        address=str(row["address"]),
        durable=_true(row["durable"]),
        temporary=_true(row["temporary"]) or str(row["name"]).startswith(_TEMPORARY),
        multicast=row.get("routingType") == "MULTICAST",
    )


def _consumer(row: Mapping[str, Any]) -> ConsumerStatus:
    return ConsumerStatus(
        queue=str(row.get("queue", "")),
        connection=str(row.get("connection") or row.get("session") or ""),
        client_id=str(row.get("clientID") or ""),
        selector=str(row.get("filter") or ""),
        address=str(row.get("remoteAddress") or ""),
        delivering=_held(int(row.get("messagesInTransit") or 0)),
        acknowledged=int(row.get("messagesAcknowledged") or 0),
    )


def _connection(row: Mapping[str, Any]) -> ConnectionStatus:
    return ConnectionStatus(
        id=str(row.get("connectionID", "")),
        client_id=str(row.get("clientID") or ""),
        address=str(row.get("remoteAddress") or ""),
        user=str(row.get("users") or ""),
        protocol=str(row.get("protocol") or ""),
        sessions=int(row.get("sessionCount") or 0),
    )
