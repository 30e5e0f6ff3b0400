"""The manager's requests to ActiveMQ Classic. They read and call the beans of the broker, which are Java objects for
management (JMX), through Jolokia.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from pyjmsack import JMSException, UnsupportedFeatureException
from pyjmsack.management.model import (
    BrokerStatus,
    ConnectionStatus,
    ConsumerStatus,
    QueueStatus,
    Request,
    Steps,
    unknown_queue,
)

__all__ = ["Classic"]

_BROKER = "org.apache.activemq:type=Broker,brokerName=*"
_QUEUES = f"{_BROKER},destinationType=Queue,destinationName=*"
_CONSUMERS = f"{_QUEUES},endpoint=Consumer,*"
_CONNECTIONS = f"{_BROKER},connector=clientConnectors,connectorName=*,connectionViewType=remoteAddress,connectionName=*"
_STATUS = (
    "Name",
    "QueueSize",
    "InFlightCount",
    "ConsumerCount",
    "EnqueueCount",
    "DequeueCount",
    "ExpiredCount",
    "Paused",
)
_TEXT = "java.lang.String"


class Classic:
    """The methods of :class:`pyjmsack.management.Manager` for Classic, as generators that yield requests to Jolokia and
    get the answers.
    """

    def broker(self) -> Steps[BrokerStatus]:
        """Ask for the name and the version of the broker."""
        beans = yield Request(_BROKER, attributes=("BrokerName", "BrokerVersion"))
        for values in beans.values():
            return BrokerStatus("classic", values["BrokerName"], values["BrokerVersion"])
        raise JMSException(
            "Jolokia shows no ActiveMQ broker; give the URL of the broker's own console, "
            "and turn JMX on in the broker (useJmx)"
        )

    def queues(self, pattern: str) -> Steps[list[QueueStatus]]:
        """Ask for the queues whose names fit the pattern."""
        beans = yield Request(_QUEUES, attributes=_STATUS)
        found = (_queue(values) for values in beans.values() if fnmatchcase(values["Name"], pattern))
        return sorted(found, key=lambda each: each.name)

    def queue(self, name: str) -> Steps[QueueStatus]:
        """Ask for one queue."""
        known = yield from self.queues("*")
        for each in known:
            if each.name == name:
                return each
        raise unknown_queue(name, [each.name for each in known])

    def oldest(self, name: str) -> Steps[float | None]:
        """Raise an error, because the management of this broker does not know the age of a message.

        Raises:
            UnsupportedFeatureException: always.
        """
        yield from self.queue(name)
        raise UnsupportedFeatureException("ActiveMQ Classic does not tell the age of messages; browse the queue")

    def consumers(self, queue: str | None) -> Steps[list[ConsumerStatus]]:
        """Ask for the consumers of one queue, or of all queues."""
        wanted = ("ClientId", "DestinationName", "Selector", "MessageCountAwaitingAcknowledge", "DequeueCounter")
        beans = yield Request(_CONSUMERS, attributes=(*wanted, "PrefetchSize", "ConnectionId"))
        found = (_consumer(values) for values in beans.values())
        return [each for each in found if queue is None or each.queue == queue]

    def connections(self) -> Steps[list[ConnectionStatus]]:
        """Ask for all connections."""
        beans = yield Request(_CONNECTIONS, attributes=("ClientId", "RemoteAddress", "UserName"))
        return [_connection(bean, values) for bean, values in beans.items()]

    def count(self, queue: str, selector: str | None) -> Steps[int]:
        """Ask how many messages a queue has. This broker cannot count only the messages that fit a selector.

        Raises:
            UnsupportedFeatureException: there is a selector.
        """
        status = yield from self.queue(queue)
        if selector is not None:
            raise UnsupportedFeatureException(
                "ActiveMQ Classic cannot count the messages that fit a selector; browse the queue"
            )
        return status.messages

    def purge(self, queue: str, selector: str | None) -> Steps[int]:
        """Let the broker remove messages from a queue."""
        bean = yield from _bean(queue)
        if selector is not None:
            return int((yield Request(bean, f"removeMatchingMessages({_TEXT})", (selector,))))
        before = yield from self.queue(queue)
        yield Request(bean, "purge()")
        return before.messages - (yield from self.queue(queue)).messages

    def move(self, source: str, target: str, selector: str | None, limit: int | None) -> Steps[int]:
        """Let the broker move messages to another queue."""
        bean = yield from _bean(source)
        yield from self.queue(target)
        chosen = selector or ""
        if limit is None:
            return int((yield Request(bean, f"moveMatchingMessagesTo({_TEXT},{_TEXT})", (chosen, target))))
        operation = f"moveMatchingMessagesTo({_TEXT},{_TEXT},int)"
        return int((yield Request(bean, operation, (chosen, target, limit))))

    def retry(self, queue: str, selector: str | None) -> Steps[int]:
        """Raise an error, because the retry of this broker would lose messages.

        The operation ``retryMessages`` of this broker sends a dead letter of a topic to the topic. The subscription
        that had the message then drops the letter as a second copy, and the letter is lost.

        Raises:
            UnsupportedFeatureException: always.
        """
        yield from self.queue(queue)
        raise UnsupportedFeatureException(
            "ActiveMQ Classic loses the dead letters of a topic's subscribers when it retries; `pyjmsack dlq retry`"
            " sends letters back itself"
        )

    def pause(self, queue: str) -> Steps[None]:
        """Stop the deliveries of a queue. A restart of the broker ends the pause."""
        yield Request((yield from _bean(queue)), "pause()")

    def resume(self, queue: str) -> Steps[None]:
        """Let a paused queue deliver again."""
        yield Request((yield from _bean(queue)), "resume()")

    def create_queue(self, name: str) -> Steps[None]:
        """Create a queue. An existing queue stays as it is."""
        beans = yield Request(_BROKER, attributes=("BrokerName",))
        for bean in beans:
            yield Request(bean, f"addQueue({_TEXT})", (name,))

    def delete_queue(self, name: str) -> Steps[None]:
        """Delete a queue with its messages."""
        yield from self.queue(name)
        beans = yield Request(_BROKER, attributes=("BrokerName",))
        for bean in beans:
            yield Request(bean, f"removeQueue({_TEXT})", (name,))


def _bean(queue: str) -> Steps[str]:
    """Return the name of a queue's bean. The bean is found by its attribute ``Name``, because some characters of a
    queue's name are replaced in the name of its bean.

    Raises:
        UnknownQueueError: there is no such queue.
    """
    beans = yield Request(_QUEUES, attributes=("Name",))
    for bean, values in beans.items():
        if values["Name"] == queue:
            return str(bean)
    raise unknown_queue(queue, _names(beans))


def _names(beans: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    return (values["Name"] for values in beans.values())


def _queue(values: Mapping[str, Any]) -> QueueStatus:
    paused = values.get("Paused")
    return QueueStatus(
        name=values["Name"],
        messages=int(values["QueueSize"]),
        delivering=int(values["InFlightCount"]),
        consumers=int(values["ConsumerCount"]),
        added=int(values["EnqueueCount"]),
        acknowledged=int(values["DequeueCount"]),
        expired=int(values["ExpiredCount"]),
        paused=None if paused is None else bool(paused),
        address=values["Name"],
    )


def _consumer(values: Mapping[str, Any]) -> ConsumerStatus:
    return ConsumerStatus(
        queue=str(values.get("DestinationName") or ""),
        connection=str(values.get("ConnectionId") or ""),
        client_id=str(values.get("ClientId") or ""),
        selector=str(values.get("Selector") or ""),
        address="",
        delivering=int(values.get("MessageCountAwaitingAcknowledge") or 0),
        acknowledged=int(values["DequeueCounter"]) if "DequeueCounter" in values else None,
        prefetch=int(values["PrefetchSize"]) if "PrefetchSize" in values else None,
    )


def _connection(bean: str, values: Mapping[str, Any]) -> ConnectionStatus:
    parts = (part.partition("=") for part in bean.partition(":")[2].split(","))
    keys = {key: value for key, _, value in parts}
    return ConnectionStatus(
        id=keys.get("connectionName", ""),
        client_id=str(values.get("ClientId") or ""),
        address=str(values.get("RemoteAddress") or "").removeprefix("tcp://"),
        user=str(values.get("UserName") or ""),
        protocol=keys.get("connectorName", ""),
    )
