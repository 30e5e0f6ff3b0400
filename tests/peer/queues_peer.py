"""A scripted peer with real queues: what a consumer does not accept goes back, and transactions take effect together.

It counts how often each message was accepted and stored, so that a test can compare the counts with its own.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import count
from typing import Any

import proton
from peer import Peer, PeerConnection, PeerLink, Script
from peer_frames import plain
from proton import Condition, Delivery, Event, Link, Terminus

__all__ = ["QueuesPeer"]

DECLARED, TRANSACTIONAL = 0x33, 0x34


class _Transaction:
    def __init__(self, link: Link) -> None:
        self.link = link
        self.sent: list[tuple[str, str, bytes]] = []
        self.accepted: list[tuple[str, str, bytes]] = []


class _Source(PeerLink):
    """The broker's end of a consumer."""

    def __init__(self, connection: _Connection, link: Link) -> None:
        super().__init__(connection, link)
        self.queues = connection.queues
        self.delivered: dict[str, tuple[str, bytes]] = {}
        self.queues.sources.append(self)

    def pump(self) -> None:
        """Send what credit allows, and answer a drain."""
        waiting = self.queues.waiting[self.name]
        while self.link.credit > 0 and waiting:
            name, payload = waiting.popleft()
            tag = f"t{next(self._tags)}"
            self.link.delivery(tag)
            self.link.stream(payload)
            self.link.advance()
            self.delivered[tag] = name, payload
        if self.link.drain_mode:
            self.link.drained()
        self.connection._write()

    def settled(self, delivery: Delivery) -> None:
        """Take the client's outcome for a message."""
        tag = str(delivery.tag)
        if tag not in self.delivered:
            return
        name, payload = self.delivered.pop(tag)
        state = delivery.remote_state
        if state == TRANSACTIONAL:
            transaction = self.queues.transactions[bytes(plain(delivery.remote.data)[0])]
            transaction.accepted.append((self.name, name, payload))
        elif state == Delivery.ACCEPTED:
            self.queues.accepted[name] += 1
        else:
            self.queues.give_back(self.name, [(name, payload)])
        delivery.settle()

    def over(self) -> None:
        """Give back what has no outcome, because the link ended."""
        self.queues.sources.remove(self)
        self.queues.give_back(self.name, list(self.delivered.values()))


class _Connection(PeerConnection):
    """One connection of the client."""

    def __init__(self, queues: QueuesPeer) -> None:
        super().__init__(queues)
        self.queues = queues
        self.sources: dict[Link, _Source] = {}
        self._parts: dict[tuple[str, str], bytes] = {}

    def _process(self) -> None:
        while (event := self._collector.peek()) is not None:
            handler = _HANDLERS.get(event.type)
            if handler is not None and self.alive:
                handler(self, event)
            self._collector.pop()
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end(lambda link: True)

    def _end(self, ends: Any) -> None:
        """Give back and roll back what depends on links that end."""
        for link in [link for link in self.sources if ends(link)]:
            self.sources.pop(link).over()
        for number in [n for n, transaction in self.queues.transactions.items() if ends(transaction.link)]:
            self.queues.discharge(number, fail=True)

    def _on_session(self, event: Event) -> None:
        event.session.incoming_capacity = self.queues.window
        self._on_begin(event)

    def _on_link(self, event: Event) -> None:
        self._on_attach(event)
        if event.link.is_sender:
            self.sources[event.link] = _Source(self, event.link)

    def _on_credit(self, event: Event) -> None:
        if event.link in self.sources:
            self.sources[event.link].pump()

    def _on_message(self, event: Event) -> None:
        link, delivery = event.link, event.delivery
        if link.is_sender:
            if delivery.settled and link in self.sources:
                self.sources[link].settled(delivery)
            return
        place = link.name, str(delivery.tag)
        if delivery.aborted:
            self._parts.pop(place, None)
            delivery.settle()
        elif delivery.readable:
            self._parts[place] = self._parts.get(place, b"") + bytes(link.recv(delivery.pending) or b"")
            if not delivery.partial:
                payload = self._parts.pop(place)
                link.advance()
                link.flow(1)
                self._answer(link, delivery, payload)

    def _answer(self, link: Link, delivery: Delivery, payload: bytes) -> None:
        message = proton.Message()
        message.decode(payload)
        queues = self.queues
        if link.remote_target.type != Terminus.COORDINATOR:
            sent = str(link.remote_target.address), str(message.properties["name"]), payload
            if delivery.remote_state == TRANSACTIONAL:
                queues.transactions[bytes(plain(delivery.remote.data)[0])].sent.append(sent)
            else:
                queues.store(*sent)
            delivery.update(Delivery.ACCEPTED)
        elif (request := plain(message.body))[0] == 0x31:
            number = b"txn-%d" % next(queues.transaction_numbers)
            queues.transactions[number] = _Transaction(link)
            delivery.local.data = [number]
            delivery.update(DECLARED)
        else:
            number, fail = bytes(request[1][0]), request[1][1]
            refused = not fail and next(queues.commits) % 5 == 4
            queues.discharge(number, fail=fail or refused)
            if refused:
                delivery.local.condition = Condition("amqp:transaction:rollback")
            delivery.update(Delivery.REJECTED if refused else Delivery.ACCEPTED)
        delivery.settle()

    def _on_link_end(self, event: Event) -> None:
        self._end(lambda link: link == event.link)
        self._on_link_close(event)

    def _on_session_end(self, event: Event) -> None:
        self._end(lambda link: link.session == event.session)
        self._on_end(event)


_HANDLERS: dict[Any, Any] = {
    Event.CONNECTION_REMOTE_OPEN: PeerConnection._on_open,
    Event.SESSION_REMOTE_OPEN: _Connection._on_session,
    Event.LINK_REMOTE_OPEN: _Connection._on_link,
    Event.LINK_FLOW: _Connection._on_credit,
    Event.DELIVERY: _Connection._on_message,
    Event.LINK_REMOTE_CLOSE: _Connection._on_link_end,
    Event.SESSION_REMOTE_CLOSE: _Connection._on_session_end,
    Event.CONNECTION_REMOTE_CLOSE: PeerConnection._on_close,
}


class QueuesPeer(Peer):
    """The broker. Every fifth commit is refused.

    Args:
        frame_size: the size of the largest frame that it takes, so that larger messages come in several.
        frames: how many frames it takes at a time.
    """

    connection_type = _Connection

    def __init__(self, *, frame_size: int = 4096, frames: int = 5) -> None:
        self.window = frame_size * frames
        self.waiting: dict[str, deque[tuple[str, bytes]]] = {}
        self.accepted: Counter[str] = Counter()
        self.stored: Counter[str] = Counter()
        self.transactions: dict[bytes, _Transaction] = {}
        self.sources: list[_Source] = []
        self.transaction_numbers, self.commits = count(1), count(1)
        super().__init__(Script(credit=100, max_frame_size=frame_size))

    def fill(self, queue: str, names: list[str], size: int) -> None:
        """Put messages into a queue before it is used; every second one has so many bytes, the others few."""
        messages = [
            (name, bytes(proton.Message(bytes(size if index % 2 else 10), properties={"name": name}).encode()))
            for index, name in enumerate(names)
        ]
        self.waiting[queue] = deque(messages)

    def store(self, queue: str, name: str, payload: bytes) -> None:
        """Put a message of the client at the end of a queue."""
        self.stored[name] += 1
        self.waiting.setdefault(queue, deque()).append((name, payload))

    def give_back(self, queue: str, messages: list[tuple[str, bytes]]) -> None:
        """Put messages at the head of a queue, for the next consumer."""
        self.waiting.setdefault(queue, deque()).extendleft(reversed(messages))
        for source in [*self.sources]:
            if source.name == queue:
                source.pump()

    def discharge(self, number: bytes, *, fail: bool) -> None:
        """Commit or roll back."""
        transaction = self.transactions.pop(number)
        for queue, name, payload in transaction.accepted:
            if fail:
                self.give_back(queue, [(name, payload)])
            else:
                self.accepted[name] += 1
        for sent in [] if fail else transaction.sent:
            self.store(*sent)
