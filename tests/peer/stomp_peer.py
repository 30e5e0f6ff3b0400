"""A scripted STOMP broker: does what brokers do, until a rule of the test says otherwise."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from peer_faces import PATIENCE, Face

__all__ = ["ARTEMIS", "CLASSIC", "Received", "StompPeer", "drop", "ignore", "refuse", "start"]

ARTEMIS = "ActiveMQ-Artemis/2.56.0 ActiveMQ Artemis Messaging Engine"
CLASSIC = "ActiveMQ/6.3.1"


class Received(NamedTuple):
    """A frame of the client."""

    command: str
    headers: dict[str, str]
    body: bytes

    def __str__(self) -> str:
        shown = {name: self.headers[name] for name in ("id", "transaction", "destination") if name in self.headers}
        return " ".join((self.command, *shown.values()))


Rule = Callable[["StompPeer", Received], bool]
"""Told of each frame; True if it did all that is to be done."""


class StompPeer:
    """A broker for one connection at a time.

    Args:
        server: the ``server`` header.
        rule: what is different from a broker that takes everything.
        messages: what a queue holds; delivered at SUBSCRIBE, again if it was given back.
        heart_beat: the header of CONNECTED.
        version: of CONNECTED.
    """

    def __init__(
        self,
        server: str = ARTEMIS,
        rule: Rule = lambda peer, frame: False,
        messages: Sequence[str] = (),
        heart_beat: str = "0,10000",
        version: str = "1.2",
    ) -> None:
        self._server, self._rule, self._heart_beat, self._version = server, rule, heart_beat, version
        self.queue = {str(number): body for number, body in enumerate(messages)}
        self.frames: list[Received] = []
        self.beats = 0
        self.ended = 0
        """How many connections have ended."""
        self.errors: list[BaseException] = []
        self._pending: dict[str, tuple[str, str]] = {}
        self._changed = threading.Condition()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._socket: socket.socket | None = None
        self._stopped = False
        self._paused = False
        self._waiting: list[Received] = []
        self._returned: set[str] = set()
        """What the queue has again after an UNSUBSCRIBE: Classic flags this."""
        self.secret = ""
        """The beginning of the names of subscriptions of the client. Tests write and see the rest of the names."""
        self._thread = threading.Thread(target=self._run, name="stomp-peer", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"stomp://127.0.0.1:{self._listening.getsockname()[1]}"

    # -- for tests ----------------------------------------------------------------------------------------------

    def all(self, command: str) -> list[Received]:
        """Return the frames of a command so far."""
        return [frame for frame in self.frames if frame.command == command]

    def wait(self, command: str, count: int = 1) -> list[Received]:
        """Wait until so many frames of a command arrived."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: len(self.all(command)) >= count or self.errors, PATIENCE)
        assert arrived, f"{len(self.all(command))} {command} frames instead of {count}: {self.log()}"
        self.check()
        return self.all(command)

    def wait_beats(self, count: int) -> None:
        """Wait for heart-beats."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.beats >= count, PATIENCE), f"{self.beats} heart-beats"

    def wait_end(self) -> None:
        """Wait until a connection has ended, and all that came on it was read."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.ended, PATIENCE), "the connection has not ended"

    def log(self, *commands: str) -> list[str]:
        """Return the frames in short, those of some commands or all."""
        return [str(frame) for frame in self.frames if not commands or frame.command in commands]

    def send(self, command: str, body: bytes = b"", **headers: str) -> None:
        """Write a frame; ``_`` in a header name stands for ``-``."""
        lines = "".join(f"{name.replace('_', '-')}:{value}\n" for name, value in headers.items())
        self.write(f"{command}\n{lines}\n".encode() + body + b"\0")

    def write(self, data: bytes) -> None:
        """Write bytes."""
        secret = self.secret.encode()  # it may itself begin with an s
        data = re.sub(rb"\nsubscription:(?!%b)s" % re.escape(secret), b"\nsubscription:%bs" % secret, data, count=1)
        assert self._socket is not None  # a frame came in
        with contextlib.suppress(OSError):
            self._socket.sendall(data)

    def pause(self) -> None:
        """Read and record frames, and answer none."""
        with self._changed:
            self._paused = True

    def resume(self) -> None:
        """Answer all that waits, in order."""
        with self._changed:
            self._paused = False
            waiting, self._waiting = self._waiting, []
            for frame in waiting:
                self._respond(frame)

    def drop(self) -> None:
        """Cut the connection."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def give_back(self) -> None:
        """What was delivered is the queue's again, as when a connection is lost."""
        self._pending.clear()

    def deliver(self, subscription: str, number: str, body: str, **headers: str) -> None:
        """Write a MESSAGE frame."""
        self._pending[f"{subscription},{number}"] = (subscription, number)
        if number in self._returned and self._server == CLASSIC:
            headers = {"redelivered": "true"} | headers
        if self._server == CLASSIC:  # which writes these lines into each message
            headers = {"expires": "0", "priority": "4", "timestamp": "0"} | headers
        self.send(
            "MESSAGE",
            body.encode(),
            subscription=subscription,
            message_id=f"{subscription},{number}",
            destination="q",
            persistent="true",
            ack=f"{subscription},{number}",
            **headers,
        )

    def error(self, frame: Received, message: str, *, named: bool = True, ends: bool = True) -> None:
        """Refuse a frame, as Artemis does unless told otherwise."""
        receipt = {"receipt_id": frame.headers["receipt"]} if named and "receipt" in frame.headers else {}
        self.send("ERROR", message=message, **receipt)
        if ends:
            self.drop()

    def answer(self, frame: Received) -> None:
        """Do what a broker does."""
        handler = getattr(self, f"_on_{frame.command.lower()}", None)
        if handler is not None:
            handler(frame)
        if "receipt" in frame.headers:
            self.send("RECEIPT", receipt_id=frame.headers["receipt"])
        if frame.command == "DISCONNECT":
            self.drop()

    # -- a broker -----------------------------------------------------------------------------------------------

    def _on_connect(self, frame: Received) -> None:
        self.send("CONNECTED", version=self._version, server=self._server, heart_beat=self._heart_beat)

    def _on_subscribe(self, frame: Received) -> None:
        held = {number for _, number in self._pending.values()}
        for number, body in [*self.queue.items()]:
            if number not in held:
                self.deliver(frame.headers["id"], number, body)

    def _on_unsubscribe(self, frame: Received) -> None:
        for key in [key for key, (lane, _) in self._pending.items() if lane == frame.headers["id"]]:
            self._returned.add(self._pending.pop(key)[1])

    def _on_ack(self, frame: Received) -> None:
        if "transaction" not in frame.headers:  # what a COMMIT would do is of no interest here
            _, number = self._pending.pop(frame.headers["id"], (None, None))
            self.queue.pop(str(number), None)

    # -- the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopped:
            try:
                self._socket, _ = self._listening.accept()
            except OSError:
                return
            try:
                if not self._stopped:  # otherwise stop() may have cut the connection before this one
                    self._serve(self._socket)
            except BaseException as error:
                self.errors.append(error)
            self._socket.close()
            with self._changed:
                self.ended += 1
                self._changed.notify_all()

    def _serve(self, connection: socket.socket) -> None:
        buffer = b""
        while True:
            try:
                data = connection.recv(65536)
            except OSError:
                return
            if not data:
                return
            buffer += data
            while (found := _next(buffer)) is not None:
                frame, buffer = found
                self._handle(frame)
            if buffer.strip(b"\n") == b"" and buffer:
                with self._changed:
                    self.beats += len(buffer)
                    self._changed.notify_all()
                buffer = b""

    def _handle(self, frame: Received) -> None:
        if frame.command in ("SUBSCRIBE", "UNSUBSCRIBE"):
            self.secret, _, number = frame.headers["id"].rpartition("s")
            frame.headers["id"] = f"s{number}"
        with self._changed:
            self.frames.append(frame)
            if self._paused:
                self._waiting.append(frame)
            else:
                self._respond(frame)
            self._changed.notify_all()

    def _respond(self, frame: Received) -> None:
        if not self._rule(self, frame):
            self.answer(frame)

    def stop(self) -> None:
        """Stop listening and cut the connection."""
        self._stopped = True
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.drop()
        self._thread.join(PATIENCE)

    def check(self) -> None:
        """Raise what went wrong in the thread."""
        if self.errors:
            raise self.errors[0]


def _next(buffer: bytes) -> tuple[Received, bytes] | None:
    """Return the first frame and what follows it."""
    head, found, rest = buffer.lstrip(b"\n").partition(b"\n\n")
    if not found:
        return None
    command, *lines = head.decode().split("\n")
    pairs = [line.split(":", 1) for line in lines]
    headers = {name: value.replace("\\c", ":") for name, value in reversed(pairs)}
    size = int(headers["content-length"]) if "content-length" in headers else rest.find(b"\0")
    if size < 0 or len(rest) <= size:
        return None
    return Received(command, headers, rest[:size]), rest[size + 1 :]


# -- for tests -------------------------------------------------------------------------------------------------


def start(face: Face, *arguments: Any, **script: Any) -> StompPeer:
    """Start a scripted broker, which ends with the test."""
    peer = StompPeer(*arguments, **script)
    face._peers.append(peer)
    return peer


def refuse(command: str, message: str, *, named: bool = True, ends: bool = True, after: int = 0) -> Any:
    """Return a rule: answer the frames of a command, but for the first ``after``, with an error."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command != command or len(peer.all(command)) <= after:
            return False
        peer.error(frame, message, named=named, ends=ends)
        return True

    return rule


def drop(command: str) -> Any:
    """Return a rule: cut the line instead of answering."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == command:
            peer.drop()
        return frame.command == command

    return rule


def ignore(*commands: str) -> Any:
    """Return a rule: never answer these."""
    return lambda peer, frame: frame.command in commands
