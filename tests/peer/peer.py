"""A scripted AMQP 1.0 broker on loopback: proton's engine as the server, in a thread of its own.

A :class:`Script` says what the broker is like; :class:`Peer` runs it, records every frame of the client and does things
on command. What a transfer is answered with is a function of one argument, such as :func:`accepted`::

    peer = Peer(Script(on_transfer=in_turn(accepted, rejected("amqp:resource-limit-exceeded"))))
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import re
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import proton
from peer_faces import PATIENCE
from peer_frames import SASL_HEADER, Frame, FrameReader, plain, sasl_frame
from polling import eventually
from proton import Array, Collector, Condition, Connection, Delivery, Event, Link, Terminus, Transport, symbol
from scramp import ScramException, ScramMechanism

__all__ = [
    "PATIENCE",
    "Answer",
    "Peer",
    "Script",
    "Transfer",
    "accepted",
    "declared",
    "dropped",
    "in_turn",
    "modified",
    "rejected",
    "released",
    "settled",
    "text",
    "unanswered",
]

DECLARED, TRANSACTIONAL = 0x33, 0x34
_BEGIN = re.compile(rb"(\x00S\x11\xc0.{5,6}(?:p\x7f\xff\xff\xff){2})p\x7f\xff\xff\xff", re.DOTALL)
"""A Begin frame of proton, up to and with its handle-max."""
ALL_CAPABILITIES = ("ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS")


class Transfer:
    """A message of the client."""

    def __init__(self, link: PeerLink, delivery: Delivery, payload: bytes) -> None:
        self.link = link
        self.delivery = delivery
        self.payload = payload
        self.presettled = delivery.settled
        self.answered = False
        self.message = proton.Message()
        self.message.decode(payload)

    @property
    def body(self) -> Any:
        """The body; of a coordinator's message ``(0x31, ...)`` or ``(0x32, [txn_id, fail])``."""
        return plain(self.message.body)

    def answer(self, state: int | None, *, settle: bool = True) -> None:
        """Tell the client the outcome."""
        self.answered = True
        if state is not None:
            self.delivery.update(state)
        if settle:
            self.delivery.settle()


Answer = Callable[[Transfer], None]


def accepted(transfer: Transfer) -> None:
    """Accept; in a transaction the outcome goes inside the transactional state, as brokers do."""
    transfer.answer(Delivery.ACCEPTED)


def released(transfer: Transfer) -> None:
    """Hand it back."""
    transfer.answer(Delivery.RELEASED)


def modified(transfer: Transfer) -> None:
    """Hand it back, as failed."""
    transfer.delivery.local.failed = True
    transfer.answer(Delivery.MODIFIED)


def settled(transfer: Transfer) -> None:
    """Settle without saying what became of it."""
    transfer.answer(None)


def unanswered(transfer: Transfer) -> None:
    """Say nothing."""


def dropped(transfer: Transfer) -> None:
    """Cut the socket."""
    transfer.link.connection.drop()


def rejected(name: str, description: str | None = None) -> Answer:
    """Reject with a condition."""

    def reject(transfer: Transfer) -> None:
        transfer.delivery.local.condition = Condition(name, description)
        transfer.answer(Delivery.REJECTED)

    return reject


_txn_numbers = count(1)


def declared(transfer: Transfer) -> None:
    """Begin a transaction."""
    transfer.delivery.local.data = [b"txn-%d" % next(_txn_numbers)]
    transfer.answer(DECLARED)


def in_turn(*answers: Answer) -> Answer:
    """Give the first answer to the first transfer, and so on; the last one repeats."""
    waiting = deque(answers)

    def answer(transfer: Transfer) -> None:
        (waiting.popleft() if len(waiting) > 1 else waiting[0])(transfer)

    return answer


def text(body: Any, **fields: Any) -> bytes:
    """Encode a message."""
    return bytes(proton.Message(body, durable=True, **fields).encode())


@dataclass
class Script:
    """What the broker is like. The defaults make one that works."""

    mechanisms: Sequence[str] = ("ANONYMOUS", "PLAIN")
    sasl_layer: bool = True
    """Whether the client begins with SASL."""
    sasl_outcome: int | None = 0
    passwords: Mapping[str, str] = field(default_factory=dict)
    """By user, for SCRAM."""
    forged: Callable[[str], str] = str
    """What becomes of the messages of SCRAM before they are sent."""
    greeting: bytes | None = None
    """Bytes to write, instead of speaking AMQP, when the client has written something."""
    capabilities: Sequence[str] = ALL_CAPABILITIES
    properties: Mapping[str, object] = field(default_factory=lambda: {"product": "scripted-peer", "version": "7.1"})
    idle_timeout: float | None = None
    max_frame_size: int | None = None
    channel_max: int | None = None
    handle_max: int | None = None
    max_message_size: int | None = None
    silent: set[str] = field(default_factory=set)
    """Stages at which nothing is said: sasl, open, begin, attach, drain, detach, end, close, heartbeat."""
    refuse_open: Condition | None = None
    fatal_attach: Callable[[Link], Condition | None] = lambda link: None
    """Why the connection is closed in place of an answer."""
    refuse_begin: Callable[[int], Condition | None] = lambda number: None
    refuse_attach: Callable[[Link], Condition | None] = lambda link: None
    dynamic_name: Callable[[int], str | None] = lambda number: f"dynamic-{number}"
    ignores: Collection[str] = ()
    """The wishes of a consumer that the answer to its attach leaves out: filter, mode."""
    after_attach: Callable[[PeerLink], Any] = lambda link: None
    """Done with a link that was attached, in the same burst."""
    credit: int = 1000
    on_transfer: Answer = accepted
    on_declare: Answer = declared
    on_discharge: Answer = accepted
    messages: Sequence[bytes] = ()
    """What consumers get, as their credit allows, first come first served."""
    keeps_subscriptions: bool = False
    """Delete no subscription, as Artemis does in silence while another connection has a consumer."""
    presettled: bool = False
    """Send settled whatever the client asks for; if it asks for settled it gets settled anyway."""


def _scram_server(mechanism: str, passwords: Mapping[str, str]) -> Any:
    scram = ScramMechanism(mechanism)
    known = {user: scram.make_auth_info(password) for user, password in passwords.items()}
    return scram.make_server(known.__getitem__)


class PeerLink:
    """The broker's end of a link."""

    def __init__(self, connection: PeerConnection, link: Link) -> None:
        self.connection = connection
        self.link = link
        self.queue: deque[bytes] = deque()
        self._tags = count()

    @property
    def name(self) -> str:
        """The address that the client wants."""
        terminus = self.link.remote_source if self.link.is_sender else self.link.remote_target
        return str(terminus.address)

    def pump(self) -> None:
        """Send what credit allows; then, if the client drains, give the rest back."""
        shared = self.connection.peer.messages
        while self.link.credit > 0 and (self.queue or shared):
            self._send(self.queue.popleft() if self.queue else shared.popleft())
        if self.link.drain_mode and "drain" not in self.connection.script.silent:
            self.link.drained()

    def _send(self, payload: bytes) -> None:
        delivery = self.link.delivery(f"t{next(self._tags)}")
        self.link.stream(payload)
        wants_settled = self.link.remote_snd_settle_mode == Link.SND_SETTLED
        self.link.advance()  # the delivery is not kept: proton answers no drain while Python holds the last one
        if wants_settled or self.connection.script.presettled:
            delivery.settle()

    def close(self, condition: Condition | None) -> None:
        """Close the link from this side."""
        self.link.condition = condition
        self.link.close()


class PeerConnection(asyncio.Protocol):
    """One connection of the client. Everything runs on the peer's thread."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.script = peer.script
        self.number = next(peer.numbers)
        self.alive = True
        self.links: dict[str, PeerLink] = {}
        self._begun = 0
        self._deleted: set[str] = set()
        self._socket: Any = None
        self._reader = FrameReader(self.number)
        self._held: deque[Frame] = deque()
        self._sasl_done = False
        self._connection = Connection()
        self._collector = Collector()
        self._connection.collect(self._collector)
        self._transport = Transport(Transport.SERVER)
        self._transport.bind(self._connection)
        self._transport.idle_timeout = self.script.idle_timeout or 0
        if self.script.max_frame_size is not None:
            self._transport.max_frame_size = self.script.max_frame_size
        if self.script.channel_max is not None:
            self._transport.channel_max = self.script.channel_max
        self._timer: asyncio.TimerHandle | None = None
        self.lost = False

    # -- asyncio.Protocol ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = transport
        self.peer.connections.append(self)
        if self.peer.stopped:
            self.drop()
        self.peer.changed()

    def connection_lost(self, exc: Exception | None) -> None:
        self.alive = False
        self.lost = True
        if self._timer is not None:
            self._timer.cancel()
        self.peer.changed()

    def data_received(self, data: bytes) -> None:
        with self.peer.guarded():
            self.peer.bytes_received += len(data)
            if self.script.greeting is not None:
                self._socket.write(self.script.greeting)
            elif "sasl" not in self.script.silent:
                for frame in self._reader.feed(data):
                    self.peer.record(frame)
                    self._held.append(frame)
                if not self.peer.paused:
                    self.go_on()
        self.peer.changed()

    def go_on(self) -> None:
        """Handle the frames that wait."""
        while self._held:
            self._on_frame(self._held.popleft())

    def _on_frame(self, frame: Frame) -> None:
        if not self.alive:
            return
        if self._sasl_done:
            self._push(frame.raw)
            self._process()
            if self._timer is None:
                self._tick()
        elif frame.name == "header" and not self.script.sasl_layer:
            assert frame.payload != SASL_HEADER, frame
            self._sasl_done = True
            self._push(frame.raw)
            self._process()
        elif frame.name == "header":
            assert frame.payload == SASL_HEADER, frame
            names = [symbol(name) for name in self.script.mechanisms]
            offer = Array(proton.UNDESCRIBED, proton.Data.SYMBOL, *names) if len(names) > 1 else names[0]
            self._socket.write(SASL_HEADER + sasl_frame(0x40, [offer]))
        elif frame.name == "sasl-init" and str(frame["mechanism"]).startswith("SCRAM-"):
            self._scram = _scram_server(str(frame["mechanism"]), self.script.passwords)
            self._scram.set_client_first(frame["initial-response"].decode())
            self._challenge(self._scram.get_server_first())
        elif frame.name == "sasl-response" and frame["response"]:
            with suppress(ScramException):  # it says in its last message that the proof is wrong
                self._scram.set_client_final(frame["response"].decode())
            self._challenge(self._scram.get_server_final())
        elif frame.name in ("sasl-init", "sasl-response") and self.script.sasl_outcome is not None:
            self._sasl_done = self.script.sasl_outcome == 0
            self._socket.write(sasl_frame(0x44, [proton.ubyte(self.script.sasl_outcome)]))

    def _push(self, data: bytes) -> None:
        while data and (room := self._transport.capacity()) > 0:
            self._transport.push(data[:room])
            data = data[room:]

    def _challenge(self, text: str) -> None:
        self._socket.write(sasl_frame(0x42, [self.script.forged(text).encode()]))

    def _tick(self) -> None:
        if self.alive and "heartbeat" not in self.script.silent:
            loop = asyncio.get_running_loop()
            deadline = self._transport.tick(loop.time())
            self._write()
            self._timer = loop.call_at(deadline, self._tick) if deadline else None

    def _process(self) -> None:
        while (event := self._collector.peek()) is not None:
            handler = _HANDLERS.get(event.type)
            if handler is not None and self.alive:
                handler(self, event)
            self._collector.pop()
        self._write()

    def _write(self) -> None:
        while self.alive and (size := self._transport.pending()) > 0:
            data = bytes(self._transport.peek(size))
            self._socket.write(self._with_handle_max(data))
            self._transport.pop(len(data))
        if self._transport.pending() < 0:
            self._socket.close()

    def _with_handle_max(self, data: bytes) -> bytes:
        """Give the Begin frames the handle-max of the script, because proton has no such option."""
        if self.script.handle_max is None:
            return data
        return _BEGIN.sub(lambda found: found[1] + b"p" + self.script.handle_max.to_bytes(4, "big"), data)

    def flush(self) -> None:
        """Write what a command produced."""
        self._process()

    def drop(self) -> None:
        """Cut the socket, as a dying host does."""
        self.alive = False
        self._socket.abort()

    def call_later(self, delay: float, action: Callable[[], Any]) -> None:
        """Do something a little later, and write what it produces."""

        def act() -> None:
            if self.alive:
                action()
                self.flush()

        asyncio.get_running_loop().call_later(delay, act)

    def write_raw(self, data: bytes) -> None:
        """Write bytes past the engine."""
        self._socket.write(data)

    def close(self, condition: Condition | None) -> None:
        """Close the connection from this side."""
        self._connection.condition = condition
        self._connection.close()

    # -- events -------------------------------------------------------------------------------------------------

    def _on_open(self, event: Event) -> None:
        if "open" in self.script.silent:
            return
        connection = self._connection
        connection.container = "scripted-peer"
        connection.offered_capabilities = [symbol(name) for name in self.script.capabilities]
        connection.properties = {symbol(k): v for k, v in self.script.properties.items()}
        if self.script.refuse_open is not None:
            connection.properties = {symbol("amqp:connection-establishment-failed"): True}
            connection.open()
            self.close(self.script.refuse_open)
        else:
            connection.open()

    def _on_begin(self, event: Event) -> None:
        number, self._begun = self._begun, self._begun + 1
        if "begin" in self.script.silent:
            return
        event.session.open()
        condition = self.script.refuse_begin(number)
        if condition is not None:
            event.session.condition = condition
            event.session.close()

    def _on_attach(self, event: Event) -> None:
        link: Link = event.link
        if "attach" in self.script.silent:
            return
        fatal = self.script.fatal_attach(link)
        if fatal is not None:
            self.close(fatal)
            return
        condition = self.script.refuse_attach(link)
        if self._by_name(link) and link.name in self._deleted:
            condition = Condition("amqp:not-found", "no such subscription")
        if condition is not None:
            link.source.type = link.target.type = Terminus.UNSPECIFIED  # an attach without the node (2.6.3)
            link.open()
            link.condition = condition
            link.close()
            return
        link.source.copy(link.remote_source)
        if "filter" in self.script.ignores:
            link.source.filter.clear()
        if "mode" in self.script.ignores:
            link.source.distribution_mode = Terminus.DIST_MODE_MOVE
        link.target.copy(link.remote_target)
        if link.remote_target.dynamic:
            link.target.address = self.script.dynamic_name(next(self.peer.dynamic_numbers))
        if self._by_name(link):
            link.source.type, link.source.address = Terminus.SOURCE, f"stored.{link.name}"
        link.snd_settle_mode = link.remote_snd_settle_mode
        if self.script.max_message_size is not None:
            proton._endpoints.pn_link_set_max_message_size(link._impl, self.script.max_message_size)
        link.open()
        wrapped = self.links[link.name] = PeerLink(self, link)
        self._kind(link).append(wrapped)
        if link.is_receiver and self.script.credit:
            link.flow(self.script.credit)
        self.script.after_attach(wrapped)

    def _kind(self, link: Link) -> list[PeerLink]:
        if link.is_sender:
            return self.peer.consumers
        return self.peer.coordinators if link.remote_target.type == Terminus.COORDINATOR else self.peer.producers

    def _on_flow(self, event: Event) -> None:
        if event.link.is_sender and event.link.name in self.links:
            self.links[event.link.name].pump()

    def _on_delivery(self, event: Event) -> None:
        delivery: Delivery = event.delivery
        wrapped = self.links.get(event.link.name)
        if wrapped is None:
            return
        if event.link.is_sender:
            if delivery.settled:
                delivery.settle()
        elif delivery.aborted:
            delivery.settle()
        elif delivery.readable and not delivery.partial:
            payload = event.link.recv(delivery.pending) or b""
            event.link.advance()
            self._on_transfer(Transfer(wrapped, delivery, bytes(payload)))

    def _on_transfer(self, transfer: Transfer) -> None:
        if transfer.link in self.peer.coordinators:
            declares = transfer.body[0] == 0x31
            (self.peer.declares if declares else self.peer.discharges).append(transfer)
            (self.script.on_declare if declares else self.script.on_discharge)(transfer)
        else:
            self.peer.transfers.append(transfer)
            if transfer.presettled:
                transfer.delivery.settle()
            else:
                self.script.on_transfer(transfer)

    def _on_detach(self, event: Event) -> None:
        if "detach" not in self.script.silent:
            event.link.detach()

    @staticmethod
    def _by_name(link: Link) -> bool:
        """Whether the client looks for a subscription by its name alone."""
        return bool(link.is_sender and link.remote_source.type == Terminus.UNSPECIFIED)

    def _on_link_close(self, event: Event) -> None:
        if self._by_name(event.link) and not self.script.keeps_subscriptions:
            self._deleted.add(event.link.name)
        if "detach" not in self.script.silent:
            event.link.close()

    def _on_end(self, event: Event) -> None:
        if "end" not in self.script.silent:
            event.session.close()

    def _on_close(self, event: Event) -> None:
        if "close" not in self.script.silent:
            self._connection.close()


_HANDLERS: dict[Any, Callable[[PeerConnection, Event], None]] = {
    Event.CONNECTION_REMOTE_OPEN: PeerConnection._on_open,
    Event.SESSION_REMOTE_OPEN: PeerConnection._on_begin,
    Event.LINK_REMOTE_OPEN: PeerConnection._on_attach,
    Event.LINK_FLOW: PeerConnection._on_flow,
    Event.DELIVERY: PeerConnection._on_delivery,
    Event.LINK_REMOTE_CLOSE: PeerConnection._on_link_close,
    Event.LINK_REMOTE_DETACH: PeerConnection._on_detach,
    Event.SESSION_REMOTE_CLOSE: PeerConnection._on_end,
    Event.CONNECTION_REMOTE_CLOSE: PeerConnection._on_close,
}


class _Guard:
    """Keeps what goes wrong in the peer for the test to see."""

    def __init__(self, errors: list[BaseException]) -> None:
        self._errors = errors

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None:
            self._errors.append(error)
        return True


class Peer:
    """A running scripted broker; close it with :meth:`stop`.

    The lists are filled in the order of the wire; read them after a ``wait``.
    """

    connection_type: Callable[[Any], PeerConnection] = PeerConnection

    def __init__(self, script: Script | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        self.script = script or Script()
        self.connections: list[PeerConnection] = []
        self.numbers = count()
        self.dynamic_numbers = count(1)
        self.frames: list[Frame] = []
        self.transfers: list[Transfer] = []
        self.declares: list[Transfer] = []
        self.discharges: list[Transfer] = []
        self.consumers: list[PeerLink] = []
        self.producers: list[PeerLink] = []
        self.coordinators: list[PeerLink] = []
        self.messages = deque(self.script.messages)
        self.errors: list[BaseException] = []
        self.bytes_received = 0
        self.stopped = False
        self.paused = False
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripted-peer", daemon=True)
        self._thread.start()
        # not asyncio's server: one that is closed while it accepts leaves the new socket open
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._accepting: set[asyncio.Task[Any]] = set()
        self._loop.call_soon_threadsafe(self._loop.add_reader, self._listener, self._accept)
        self.scheme, self.host = ("amqp", "127.0.0.1") if tls is None else ("amqps", "localhost")

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self.scheme}://{self.host}:{self.port}"

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except OSError:  # it is gone already
            return
        opening = self._loop.connect_accepted_socket(lambda: type(self).connection_type(self), accepted, ssl=self._tls)
        task = self._loop.create_task(opening)
        self._accepting.add(task)
        task.add_done_callback(self._accepted)

    def _accepted(self, task: asyncio.Task[Any]) -> None:
        self._accepting.discard(task)
        task.exception()  # a failed handshake is the client's affair

    def _close_listener(self) -> None:
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def _await(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)

    def guarded(self) -> _Guard:
        """Return a context that keeps errors for the test."""
        return _Guard(self.errors)

    def record(self, frame: Frame) -> None:
        """Log a frame."""
        self.frames.append(frame)

    def changed(self) -> None:
        """Wake who waits."""
        with self._changed:
            self._changed.notify_all()

    # -- waiting ------------------------------------------------------------------------------------------------

    def wait(self, condition: Callable[[], Any], what: str = "") -> None:
        """Wait until something the client sent makes the condition true."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.errors or condition(), PATIENCE):
                raise AssertionError(f"not within {PATIENCE:g} s: {what}; frames so far: {self.names()}")
        self.check()

    def wait_frames(self, name: str, number: int = 1) -> list[Frame]:
        """Wait for that many frames of a kind and return all there are."""
        self.wait(lambda: len(self.all(name)) >= number, f"{number} {name}")
        return self.all(name)

    def wait_transfers(self, number: int) -> list[Transfer]:
        """Wait for that many messages of the client."""
        self.wait(lambda: len(self.transfers) >= number, f"{number} transfers, there are {len(self.transfers)}")
        return list(self.transfers)

    def wait_closed(self) -> None:
        """Wait until every connection is gone."""
        self.wait(lambda: not any(c.alive for c in self.connections), "connections closed")

    def check(self) -> None:
        """Raise what went wrong in this thread."""
        if self.errors:
            raise AssertionError("the peer failed") from self.errors[0]

    def all(self, name: str) -> list[Frame]:
        """Return the frames of a kind, without those of coordinator links."""
        return [frame for frame in self.frames if frame.name == name and not frame.coordinator]

    def names(self) -> list[str]:
        """Return the names of all frames, coordinator links' with an ``x-`` in front."""
        return [("x-" if frame.coordinator else "") + frame.name for frame in self.frames]

    # -- acting -------------------------------------------------------------------------------------------------

    def do(self, action: Callable[[], Any]) -> Any:
        """Run something on the peer's thread, and write what it produces."""
        done: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def run() -> None:
            try:
                done.set_result(action())
                for connection in self.connections:
                    if connection.alive:
                        connection.flush()
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result(PATIENCE)

    def pause(self) -> None:
        """Read and record frames, and answer none, as a broker whose process stands still; heart-beats go on."""
        self.paused = True

    def resume(self) -> None:
        """Answer all that waits, in order."""

        def act() -> None:
            self.paused = False
            with self.guarded():
                for connection in self.connections:
                    connection.go_on()

        self.do(act)

    def grant(self, credit: int, producer: int = 0) -> None:
        """Give a producer credit."""
        self.do(lambda: self.producers[producer].link.flow(credit))

    def deliver(self, *payloads: bytes, consumer: int = 0) -> None:
        """Give a consumer messages, as its credit allows."""

        def act() -> None:
            link = self.consumers[consumer]
            link.queue.extend(payloads)
            link.pump()

        self.do(act)

    def answer(self, number: int, answer: Answer) -> None:
        """Answer a transfer that was left unanswered."""
        self.do(lambda: answer(self.transfers[number]))

    def close_link(self, link: PeerLink, name: str | None = None, description: str | None = None) -> None:
        """Close a link."""
        self.do(lambda: link.close(Condition(name, description) if name else None))

    def end_session(self, link: PeerLink, name: str, description: str | None = None) -> None:
        """End the session of a link."""

        def act() -> None:
            link.link.session.condition = Condition(name, description)
            link.link.session.close()

        self.do(act)

    def close_connection(self, name: str, description: str | None = None) -> None:
        """Close the newest connection."""
        self.do(lambda: self.connections[-1].close(Condition(name, description)))

    def drop(self) -> None:
        """Cut every socket."""
        self.do(lambda: [c.drop() for c in self.connections if c.alive])

    def stop_listening(self) -> None:
        """Accept no more connections."""
        self.do(self._close_listener)

    def stop(self) -> None:
        """Stop listening, cut every socket, end the thread."""
        self._await(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    async def _end(self) -> None:
        self.stopped = True
        if self._listener.fileno() >= 0:
            self._close_listener()
        for connection in self.connections:
            if connection.alive:
                connection.drop()
        # sockets that are being accepted, or cut, at this moment
        await eventually(lambda: not self._accepting and all(connection.lost for connection in self.connections))
