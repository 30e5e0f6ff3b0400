"""What came over the wire, frame by frame, decoded by proton's codec and not by the library under test."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from proton import Data, Described, uint

__all__ = ["SASL_HEADER", "Frame", "FrameReader", "described", "plain", "sasl_frame", "transfer"]

SASL_HEADER = b"AMQP\x03\x01\x00\x00"

_FIELDS: dict[int, tuple[str, str]] = {
    0x10: (
        "open",
        "container-id hostname max-frame-size channel-max idle-time-out outgoing-locales incoming-locales "
        "offered-capabilities desired-capabilities properties",
    ),
    0x11: (
        "begin",
        "remote-channel next-outgoing-id incoming-window outgoing-window handle-max offered-capabilities "
        "desired-capabilities properties",
    ),
    0x12: (
        "attach",
        "name handle role snd-settle-mode rcv-settle-mode source target unsettled incomplete-unsettled "
        "initial-delivery-count max-message-size offered-capabilities desired-capabilities properties",
    ),
    0x13: (
        "flow",
        "next-incoming-id incoming-window next-outgoing-id outgoing-window handle delivery-count link-credit available "
        "drain echo properties",
    ),
    0x14: (
        "transfer",
        "handle delivery-id delivery-tag message-format settled more rcv-settle-mode state resume aborted batchable",
    ),
    0x15: ("disposition", "role first last settled state batchable"),
    0x16: ("detach", "handle closed error"),
    0x17: ("end", "error"),
    0x18: ("close", "error"),
    0x40: ("sasl-mechanisms", "mechanisms"),
    0x41: ("sasl-init", "mechanism initial-response hostname"),
    0x42: ("sasl-challenge", "challenge"),
    0x43: ("sasl-response", "response"),
    0x44: ("sasl-outcome", "code additional-data"),
}
_TERMINUS = "address durable expiry-policy timeout dynamic dynamic-node-properties"
_SOURCE = f"{_TERMINUS} distribution-mode filter default-outcome outcomes capabilities"
_TARGET = f"{_TERMINUS} capabilities"
_TERMINI = {0x28: _SOURCE, 0x29: _TARGET, 0x30: "capabilities"}
_DESCRIBED_STATES = range(0x23, 0x35)


def plain(value: Any) -> Any:
    """Turn proton's values into Python's: states and termini become ``(code, ...)``, arrays lists, binaries bytes."""
    if isinstance(value, Described):
        code = int(value.descriptor) if isinstance(value.descriptor, int) else str(value.descriptor)
        return (code, plain(value.value))
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "elements"):
        return [plain(v) for v in value.elements]
    return value


@dataclass
class Frame:
    """One frame of the client: ``frame["link-credit"]`` is a field, ``None`` if absent."""

    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    payload: bytes = b""
    channel: int = 0
    connection: int = 0
    link: Frame | None = None
    """The client's attach of the link that a flow, transfer or detach is about."""
    raw: bytes = field(default=b"", repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.fields.get(name)

    def terminus(self, name: str) -> dict[str, Any] | None:
        """Return the fields of ``source`` or ``target`` of an attach, ``None`` if it is null."""
        value = self[name]
        if value is None:
            return None
        code, values = value
        return {k: v for k, v in zip(_TERMINI[code].split(), values, strict=False) if v is not None}

    @property
    def coordinator(self) -> bool:
        """Whether it concerns a transaction coordinator link."""
        attach = self if self.name == "attach" else self.link
        return attach is not None and attach["target"] is not None and attach["target"][0] == 0x30

    @property
    def state(self) -> tuple[Any, ...] | None:
        """Return the delivery state: ``(code, fields)``."""
        value: tuple[Any, ...] | None = self["state"]
        return value


def _decode(body: bytes) -> Frame:
    if not body:
        return Frame("empty")
    data = Data()
    used = data.decode(body)
    data.rewind()
    data.next()
    code, values = plain(data.get_object())
    name, names = _FIELDS[code]
    fields = {k: v for k, v in zip(names.split(), values, strict=False) if v is not None}
    return Frame(name, fields, body[used:])


class FrameReader:
    """Cuts a byte stream into protocol headers (frames named ``header``) and frames."""

    def __init__(self, connection: int) -> None:
        self._connection = connection
        self._buffer = b""
        self._links: dict[tuple[int, int], Frame] = {}

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield what is complete."""
        self._buffer += data
        while len(self._buffer) >= 8:
            size, offset, kind, channel = struct.unpack_from(">IBBH", self._buffer)
            if self._buffer.startswith(b"AMQP"):
                size, frame = 8, Frame("header", payload=self._buffer[:8])
            elif len(self._buffer) < size:
                return
            else:
                frame = _decode(self._buffer[offset * 4 : size])
                frame.channel = channel
            assert kind in (0, 1) or frame.name == "header"
            frame.raw, self._buffer = self._buffer[:size], self._buffer[size:]
            frame.connection = self._connection
            self._resolve(frame)
            yield frame

    def _resolve(self, frame: Frame) -> None:
        handle = frame["handle"]
        if handle is not None:
            if frame.name == "attach":
                self._links[frame.channel, handle] = frame
            else:
                frame.link = self._links.get((frame.channel, handle))


def described(code: int, fields: list[Any]) -> bytes:
    """Encode a described list, the form of every performative."""
    data = Data()
    data.put_described()
    data.enter()
    data.put_ulong(code)
    data.put_list()
    data.enter()
    for value in fields:
        data.put_object(value)
    return bytes(data.encode())


def sasl_frame(code: int, fields: list[Any]) -> bytes:
    """Encode one SASL frame."""
    body = described(code, fields)
    return struct.pack(">IBBH", len(body) + 8, 2, 1, 0) + body


def settles(number: int) -> bytes:
    """Return the frame by which the broker settles its own delivery, in the first session of the caller."""
    body = described(0x15, [False, uint(number), uint(number), True])
    return struct.pack(">IBBH", len(body) + 8, 2, 0, 1) + body


def transfer(number: int, payload: bytes, *, more: bool = False, handle: int = 0, settled: bool = False) -> bytes:
    """Return a transfer as no broker sends it, for the first link of the first session of the caller."""
    fields = [uint(handle), uint(number), b"%d" % number, uint(0), settled, more]
    body = described(0x14, fields) + payload
    return struct.pack(">IBBH", len(body) + 8, 2, 0, 1) + body
