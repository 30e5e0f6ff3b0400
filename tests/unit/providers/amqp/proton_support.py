"""Our engine with proton's engine as its peer, in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import proton
from proton import Collector, Delivery, Link, Transport

from pyjmsack.providers.amqp.engine import Connection
from pyjmsack.providers.amqp.engine.events import Event


class ProtonPeer:
    """proton's engine as the broker of our engine, in memory: it echoes attaches and does what it is told."""

    def __init__(self, connection: Connection, *, max_frame_size: int = 32768, channel_max: int = 65535) -> None:
        self.connection = connection
        self.transport = Transport(Transport.SERVER)
        self.transport.max_frame_size = max_frame_size
        self.transport.channel_max = channel_max
        self.peer = proton.Connection()
        self.collector = Collector()
        self.peer.collect(self.collector)
        self.transport.bind(self.peer)
        self.links: dict[str, Link] = {}
        self.received: list[bytes] = []
        self.outcomes: list[tuple[str, int]] = []
        self.answers: deque[Callable[[Delivery], None]] = deque()
        self.events: list[Event] = []
        self.detached = 0
        self._tags = 0
        self.step = 0
        """How many bytes our engine gets at a time; 0 = all there are."""

    def pump(self) -> list[Event]:
        """Carry bytes to and fro until both are silent; return the events of our engine."""
        first = len(self.events)
        while self._to_peer() | self._to_us():
            pass
        return self.events[first:]

    def _to_peer(self) -> bool:
        moved = False
        while data := self.connection.data_to_send():
            moved = True
            while data:
                room = self.transport.capacity()
                assert room > 0, self.transport.condition
                self.transport.push(data[:room])
                data = data[room:]
                self._handle()
        return moved

    def _to_us(self) -> bool:
        moved = False
        while (size := self.transport.pending()) > 0:
            data = bytes(self.transport.peek(size))
            self.transport.pop(len(data))
            step = self.step or len(data)
            for start in range(0, len(data), step):
                self.events.extend(self.connection.receive(data[start : start + step]))
            moved = True
        return moved

    def _handle(self) -> None:
        while (event := self.collector.peek()) is not None:
            kind = event.type.name
            if kind == "PN_CONNECTION_REMOTE_OPEN":
                self.peer.container = "peer"
                self.peer.open()
            elif kind == "PN_CONNECTION_REMOTE_CLOSE":
                self.peer.close()
            elif kind == "PN_SESSION_REMOTE_OPEN":
                event.session.open()
            elif kind == "PN_SESSION_REMOTE_CLOSE":
                event.session.close()
            elif kind == "PN_LINK_REMOTE_OPEN":
                link = event.link
                link.source.copy(link.remote_source)
                link.target.copy(link.remote_target)
                link.open()
                self.links[link.name] = link
            elif kind in ("PN_LINK_REMOTE_CLOSE", "PN_LINK_REMOTE_DETACH"):
                self.detached += 1
                event.link.close() if kind == "PN_LINK_REMOTE_CLOSE" else event.link.detach()
            elif kind == "PN_DELIVERY":
                self._on_delivery(event.link, event.delivery)
            self.collector.pop()

    def _on_delivery(self, link: Link, delivery: Delivery) -> None:
        if link.is_receiver and delivery.readable and not delivery.partial:
            self.received.append(bytes(link.recv(delivery.pending)))
            link.advance()
            if not delivery.settled:
                (self.answers.popleft() if self.answers else accept)(delivery)
            delivery.settle()
        elif link.is_sender and delivery.updated and delivery.remote_state:
            self.outcomes.append((delivery.tag, int(delivery.remote_state)))
            delivery.settle()

    def send(self, name: str, payload: bytes, *, settled: bool = False) -> None:
        """Send a message on a link that we receive on."""
        link = self.links[name]
        self._tags += 1
        delivery = link.delivery(f"t{self._tags}")
        link.stream(payload)
        link.advance()
        if settled:
            delivery.settle()


def accept(delivery: Delivery) -> None:
    """Answer a message."""
    delivery.update(Delivery.ACCEPTED)
