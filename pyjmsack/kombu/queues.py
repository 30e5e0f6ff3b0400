"""The queues of kombu at a broker of JMS.

A queue of kombu consists of two parts: the JMS queue of its name, to which the exchange without a name sends, and a
subscription for each of its bindings to an exchange. A durable queue has durable subscriptions, which its consumers in
all processes share. The subscriptions of an exclusive queue, or of a queue that deletes itself, belong to the
connection that bound the queue. They are open from the binding on, so that messages wait there for a consumer.

============================ ========================================== ==============================================
broker                       durable queue with a binding               all other queues
============================ ========================================== ==============================================
Artemis, AMQP                shared durable subscription                topic consumer
Classic                      queue of a virtual topic                   topic consumer
Artemis, STOMP; others       none: the sender sends a copy to each      topic consumer
                             queue that its own connection bound
============================ ========================================== ==============================================

All coroutines here run on the loop of the connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from kombu.exceptions import ChannelError

from pyjmsack import Message, Queue, Topic
from pyjmsack.aio import MessageConsumer, Session
from pyjmsack.kombu.copies import Copies
from pyjmsack.kombu.names import ExchangeKind, escaped, queue_name, subscription_name, topic_name, topic_pattern
from pyjmsack.kombu.receiving import Binding, Source, settle
from pyjmsack.kombu.refused import OF_THE_MESSAGE, reason
from pyjmsack.loggers import get_logger

__all__ = ["COUNTED", "Queues"]

log = get_logger("pyjmsack.kombu")

_AHEAD: Final = 100
"""The prefetch of a subscription that belongs to one connection. The prefetch takes no message from another consumer,
because nobody else could get these messages."""
COUNTED: Final = 10_000
"""The largest number of messages of a queue that are counted, because the count browses each of them."""
Name = tuple[str, str]


@dataclass
class _Declared:
    """A queue of kombu, as this connection declared it."""

    temporary: bool = False
    bindings: dict[Name, Binding] = field(default_factory=dict)
    subscriptions: dict[Name, MessageConsumer] = field(default_factory=dict)
    """The open consumers for the bindings, if the queue is temporary."""
    copies: Copies | None = None
    """The object that recognises the copies of a message that several bindings cover. ``None`` until the first message
    needs the object.
    """


class Queues:
    """The queues that a connection has declared.

    Args:
        session: a session of the connection.
        metadata: the metadata of the connection, which name the broker.
    """

    def __init__(self, session: Session, metadata: Any) -> None:
        self._session = session
        self._declared: dict[str, _Declared] = {}
        self.is_artemis: bool = metadata.broker == "artemis"
        self._is_classic: bool = metadata.broker.startswith("classic-")
        self._shares = self.is_artemis and metadata.protocol.startswith("AMQP")

    @property
    def routes_locally(self) -> bool:
        """Whether the sender of a message to an exchange has to send the message to each durable queue itself. The
        sender has to do this if the broker cannot keep the messages of an exchange for durable queues.
        """
        return not self._shares and not self._is_classic

    def declare(self, queue: str, *, temporary: bool) -> None:
        """Remember whether a queue is temporary. The broker makes the queue at its first message or consumer. Any
        thread may call this method.
        """
        self._declared.setdefault(queue, _Declared()).temporary = temporary

    def is_temporary(self, queue: str) -> bool:
        """Whether a queue ends with its last consumer."""
        return queue in self._declared and self._declared[queue].temporary

    def topic(self, kind: ExchangeKind, exchange: str, routing_key: str) -> Topic:
        """Return the topic to which an exchange sends messages with this routing key."""
        return Topic(self._prefix + topic_name(kind, exchange, routing_key))

    def durable_queues(self, exchange: str, routing_key: str) -> list[str]:
        """Return the durable queues of this connection to which the exchange sends messages with this routing key."""
        return [
            name
            for name, declared in [*self._declared.items()]
            if not declared.temporary
            and any(binding.matches(exchange, routing_key) for binding in [*declared.bindings.values()])
        ]

    @property
    def _prefix(self) -> str:
        return "VirtualTopic." if self._is_classic else ""

    # -- bindings -----------------------------------------------------------------------------------------------

    async def bind(self, queue: str, binding: Binding) -> None:
        """Bind a queue to an exchange. From now on the messages of the exchange wait in the queue.

        Raises:
            ChannelError: this broker cannot make such a binding.
            JMSException: the broker refused the subscription.
        """
        declared = self._declared.setdefault(queue, _Declared())
        if binding.name in declared.bindings:
            return
        if declared.temporary:
            topic = f"{self._address(binding)}?consumer.prefetchSize={_AHEAD}"
            declared.subscriptions[binding.name] = await self._session.create_consumer(Topic(topic))
        elif not self.routes_locally:
            await (await self._shared(queue, binding, 0)).close()
        declared.bindings[binding.name] = binding

    def _address(self, binding: Binding) -> str:
        """Return the name of the topic that a binding subscribes to. The name may have wildcards."""
        if binding.kind is not ExchangeKind.TOPIC:
            return self._prefix + topic_name(binding.kind, binding.exchange, binding.routing_key)
        wildcard = ">" if self._is_classic else "#"
        return self._prefix + topic_pattern(binding.exchange, binding.routing_key, any_sequence=wildcard)

    async def _shared(self, queue: str, binding: Binding, prefetch: int) -> MessageConsumer:
        """Open a consumer for the messages that a durable queue gets by a binding."""
        address, options = self._address(binding), f"?consumer.prefetchSize={prefetch}"
        if not self._is_classic:
            name = subscription_name(queue, address)
            return await self._session.create_shared_durable_consumer(Topic(address + options), name)
        if "*" in address or ">" in address:
            raise ChannelError(
                f"queue {queue!r} cannot be bound to the topic exchange {binding.exchange!r} with"
                f" {binding.routing_key!r}: ActiveMQ Classic keeps no messages for a binding with wildcards; bind the"
                " queue with plain keys, make it exclusive, or use Artemis"
            )
        consumer_queue = f"Consumer.{escaped(queue, one_word=True)}.{address}"
        return await self._session.create_consumer(Queue(consumer_queue + options))

    async def unbind(self, queue: str, name: Name) -> None:
        """End a binding. The messages that wait in its subscription go into the queue. After an error the binding still
        exists, so that the caller can try again.
        """
        declared = self._declared.get(queue)
        binding = declared.bindings.get(name) if declared is not None else None
        if declared is None or binding is None:
            return
        others = [one for one in declared.bindings.values() if one.exchange == binding.exchange and one is not binding]
        if (consumer := declared.subscriptions.get(name)) is not None:
            await self._kept(queue, consumer, binding, others)
            await consumer.close()
            del declared.subscriptions[name]
        elif not self.routes_locally:
            shared = await self._end(queue, binding, others)
            # otherwise the queue would get the moved messages again, as copies from the subscriptions of these bindings
            for one in shared:
                await self._emptied(queue, one, [])
        declared.bindings.pop(name, None)

    async def _end(self, queue: str, binding: Binding, others: list[Binding]) -> list[Binding]:
        """End the subscription that a durable queue has for a binding. The messages in the subscription go into the
        queue. Return each of the ``others`` that covers one of these messages.
        """
        shared = await self._emptied(queue, binding, others)
        if not self._is_classic:
            await self._session.unsubscribe(subscription_name(queue, self._address(binding)))
        return shared

    async def _emptied(self, queue: str, binding: Binding, others: list[Binding]) -> list[Binding]:
        consumer = await self._shared(queue, binding, _AHEAD)
        try:
            return await self._kept(queue, consumer, binding, others)
        finally:
            await consumer.close()

    async def _kept(
        self, queue: str, consumer: MessageConsumer, binding: Binding, others: list[Binding]
    ) -> list[Binding]:
        """Move all messages of a consumer into the queue. Return each of the ``others`` that covers one of these
        messages.
        """
        found = dict[Name, Binding]()
        while (message := await consumer.receive(0)) is not None:
            try:
                covering = await self._moved(queue, message, binding, others)
            except OF_THE_MESSAGE as error:  # a bad message must not stop the others
                log.error("a message of an exchange becomes a dead letter: %s", reason(error))
                message.reject()
                continue
            except BaseException:  # so that the message is in the subscription at the next try
                settle(message.release)
                raise
            message.accept()
            found.update({one.name: one for one in covering})
        return [*found.values()]

    async def _moved(self, queue: str, message: Message, binding: Binding, others: list[Binding]) -> list[Binding]:
        """Send a message of a binding to the queue. Return each of the ``others`` that covers the message."""
        copies, key = self._copies(queue), binding.key_of(message)
        covering = [one for one in others if one.matches(one.exchange, key)]
        # a temporary queue has its only consumer in this process, so takes() knows which copies it had before
        if not covering or copies.is_durable or await copies.takes(message, binding.name, ()):
            await copies.pass_on(message)
        return covering

    async def _removed(self, consumer: MessageConsumer) -> int:
        """Remove all messages of a consumer. Return their number."""
        count = 0
        while (message := await consumer.receive(0)) is not None:
            message.accept()
            count += 1
        return count

    def _copies(self, queue: str) -> Copies:
        declared = self._declared.setdefault(queue, _Declared())
        if declared.copies is None:
            durable = not declared.temporary and self._shares
            declared.copies = Copies(self._session, Queue(queue_name(queue)), durable=durable)
        return declared.copies

    # -- consuming ----------------------------------------------------------------------------------------------

    def sources(self, queue: str) -> list[Source]:
        """Return the sources of a queue: its JMS queue, and the subscriptions of its bindings."""
        declared = self._declared.get(queue) or _Declared()
        found = [Source(self._opener(queue), single=declared.temporary)]
        for name, binding in [*declared.bindings.items()]:
            consumer = declared.subscriptions.get(name)
            wanted = self._sieve(queue, declared, binding)
            if consumer is not None or not self.routes_locally:
                found.append(Source(self._opener(queue, binding), wanted, consumer, single=False))
        return found

    def _opener(self, queue: str, binding: Binding | None = None) -> Callable[[int], Any]:
        if binding is not None:
            return lambda prefetch: self._shared(queue, binding, prefetch)
        name = queue_name(queue)
        return lambda prefetch: self._session.create_consumer(Queue(f"{name}?consumer.prefetchSize={prefetch}"))

    def _sieve(self, queue: str, declared: _Declared, binding: Binding) -> Callable[[Message], Awaitable[bool]] | None:
        """Return a function that tells whether the queue takes a message that came by this binding. Return ``None`` if
        the queue takes every message.

        If several bindings of the queue cover a message, the queue may get a copy by each of these bindings; see
        :class:`Copies`.
        """
        if binding.kind is not ExchangeKind.TOPIC:
            return None

        async def wanted(message: Message) -> bool:
            key = binding.key_of(message)
            if not binding.matches(binding.exchange, key):
                return False
            others = [
                name
                for name, one in [*declared.bindings.items()]
                if name != binding.name and one.matches(binding.exchange, key)
            ]
            if others:
                return await self._copies(queue).takes(message, binding.name, others)
            return self._copies(queue).is_new(message, binding.name)

        return wanted

    async def get(self, queue: str, take: Callable[[Message], object]) -> None:
        """Call ``take`` with a message that the broker has in a queue now, if there is one."""
        copies, before = self._copies(queue), -1
        while copies.passed_on != before:  # a message that was passed on is now in the first source, so look again
            before = copies.passed_on
            for source in self.sources(queue):
                consumer = source.consumer or await source.open_consumer(0)
                try:
                    while (message := await consumer.receive(0)) is not None:
                        if await source.takes(message):
                            take(message)  # before anything else is awaited, because this task may be cancelled there
                            return
                finally:
                    if source.consumer is None:
                        await consumer.close()

    async def size(self, queue: str) -> int:
        """Return how many messages wait in a queue, counted up to :data:`COUNTED`.

        Messages in the subscription of a binding count only if the subscription belongs to this connection, because no
        connection can look into the subscription of another connection.

        Raises:
            UnsupportedFeatureException: this broker has no browser over this protocol.
        """
        count = 0
        async with self._session.create_browser(Queue(queue_name(queue))) as browser:
            async for _ in browser:
                count += 1
                if count >= COUNTED:
                    break
        declared = self._declared.get(queue) or _Declared()
        return count + sum(consumer.stats.buffered for consumer in declared.subscriptions.values())

    async def purge(self, queue: str) -> int:
        """Remove the messages of a queue that no consumer holds. Return their number."""
        count = 0
        for source in self.sources(queue):
            consumer = source.consumer or await source.open_consumer(_AHEAD)
            try:
                count += await self._removed(consumer)
            finally:
                if source.consumer is None:
                    await consumer.close()
        return count

    async def delete(self, queue: str) -> int:
        """Remove a queue with its messages. Return the number of messages."""
        count = await self.purge(queue)
        declared = self._declared.get(queue) or _Declared()
        for name, binding in [*declared.bindings.items()]:
            if name not in declared.subscriptions and not self.routes_locally:
                await self._end(queue, binding, [])
            declared.bindings.pop(name, None)
        count += await self.purge(queue)  # remove the messages that came meanwhile
        await self.forget(queue)
        return count

    async def forget(self, queue: str) -> None:
        """Forget a queue, and end the subscriptions that only this connection has."""
        declared = self._declared.pop(queue, None)
        for consumer in [] if declared is None else declared.subscriptions.values():
            await consumer.close()
