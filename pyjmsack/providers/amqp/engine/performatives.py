"""The performatives of AMQP 1.0, which are the commands in its frames, and their types (2.7, 2.8, 3.4, 3.5, 4.5).

Each class is one composite type. The class lists the fields in the order of the specification, each with its type and
its default. The encoder and the decoder work from these lists. Every message needs a Transfer and a Disposition, so
these two also have a faster codec (:mod:`.fastpath`), which leaves unusual frames to this module.
"""

# ruff: noqa: RUF009 - _field and _must return dataclasses.field()
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from struct import Struct
from typing import Any, ClassVar, NamedTuple

from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.amqp.engine.errors import ViolationError
from pyjmsack.providers.amqp.wire import decode_value, has_more_values, skip
from pyjmsack.providers.amqp.wire_encode import encode_binary, encode_string, encode_symbol, encode_value
from pyjmsack.providers.amqp.wire_types import Described, Symbol, UByte, UInt, ULong, UShort

__all__ = [
    "ACCEPTED",
    "DECODE_ERROR",
    "RELEASED",
    "Accepted",
    "Attach",
    "Begin",
    "Close",
    "Composite",
    "Coordinator",
    "Declared",
    "Detach",
    "Disposition",
    "End",
    "Error",
    "Flow",
    "Modified",
    "Open",
    "Received",
    "Rejected",
    "Released",
    "Source",
    "Target",
    "Transactional",
    "Transfer",
    "decode",
    "encode",
]

DECODE_ERROR = "amqp:decode-error"
_MOST_VALUES = 4096
"""The largest number of values in one performative."""
_NULL = b"\x40"
_DESCRIBED = b"\x00\x53"
_LIST32 = Struct(">BII").pack


class _Kind(NamedTuple):
    """A kind of field: its name, and how its values are encoded and read.

    ``write`` encodes a value. ``read`` turns a decoded AMQP value into the value that the engine uses.
    """

    name: str
    write: Callable[[Any], bytes]
    read: Callable[[Any], Any]


class _WrongTypeError(Exception):
    """The value of a field has another type than the specification demands."""


def _wrong(value: Any) -> Any:
    raise _WrongTypeError(type(value).__name__)


def _plain(name: str, wire_type: type, write: Callable[[Any], bytes], python_type: Callable[[Any], Any]) -> _Kind:
    """Return a kind of field whose values all have the same AMQP type."""
    return _Kind(name, write, lambda value: python_type(value) if type(value) is wire_type else _wrong(value))


def _number(wire_type: Any) -> Callable[[int], bytes]:
    return lambda value: encode_value(wire_type(value))


def _write_symbols(names: tuple[str, ...]) -> bytes:
    """Encode several symbols as an array (1.6.24), and a single symbol without an array. A field that is declared
    ``multiple`` may have either form (1.4)."""
    if len(names) == 1:
        return encode_symbol(names[0])
    packed = b"".join(len(name).to_bytes(4, "big") + name.encode("ascii") for name in names)
    return b"\xf0" + (len(packed) + 5).to_bytes(4, "big") + len(names).to_bytes(4, "big") + b"\xb3" + packed


def _read_symbols(value: Any) -> tuple[str, ...]:
    if type(value) is Symbol:
        return (str(value),)
    if isinstance(value, list) and all(type(name) is Symbol for name in value):
        return tuple(map(str, value))
    raise _WrongTypeError(type(value).__name__)


def _write_map(items: Mapping[str, Any]) -> bytes:
    return encode_value({Symbol(key): value for key, value in items.items()})


def _read_map(value: Any) -> dict[str, Any]:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else _wrong(value)


def _write_composite(value: Composite) -> bytes:
    return encode(value)


def _one_of(*names: str) -> Callable[[Any], Any]:
    """Return a function that reads a composite value of one of these classes.

    The classes are given by name, because they are defined further down.
    """

    def read(value: Any) -> Any:
        composite = _compose(value) if isinstance(value, Described) else _wrong(value)
        return composite if type(composite).__name__ in names else _wrong(composite)

    return read


BOOLEAN = _plain("boolean", bool, encode_value, bool)
UBYTE = _plain("ubyte", UByte, _number(UByte), int)
USHORT = _plain("ushort", UShort, _number(UShort), int)
UINT = _plain("uint", UInt, _number(UInt), int)
ULONG = _plain("ulong", ULong, _number(ULong), int)
STRING = _plain("string", str, encode_string, str)
SYMBOL = _plain("symbol", Symbol, encode_symbol, str)
BINARY = _plain("binary", bytes, encode_binary, bytes)
SYMBOLS = _Kind("symbols", _write_symbols, _read_symbols)
MAP = _Kind("map", _write_map, _read_map)
ANY = _Kind("value", encode_value, lambda value: value)
ERROR = _Kind("error", _write_composite, _one_of("Error"))
SOURCE = _Kind("source", _write_composite, _one_of("Source"))
TARGET = _Kind("target", _write_composite, _one_of("Target", "Coordinator"))
_OUTCOMES = ("Accepted", "Rejected", "Released", "Modified", "Declared")
OUTCOME = _Kind("outcome", _write_composite, _one_of(*_OUTCOMES))
STATE = _Kind("delivery state", _write_composite, _one_of(*_OUTCOMES, "Received", "Transactional"))


def _field(kind: _Kind, default: Any = None) -> Any:
    """Return a field of this kind that may be absent."""
    return field(default=default, metadata={"kind": kind})


def _must(kind: _Kind) -> Any:
    """Return a mandatory field of this kind."""
    return field(metadata={"kind": kind})


class Composite:
    """A composite type of AMQP, which is a list with a descriptor. The fields of the list have names."""

    __slots__ = ()
    code: ClassVar[int]
    name: ClassVar[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Error(Composite):
    """The error with which a peer ends or refuses a connection, session, link or message (2.8.14)."""

    code, name = 0x1D, "amqp:error:list"
    condition: str = _must(SYMBOL)
    description: str | None = _field(STRING)
    info: dict[str, Any] | None = _field(MAP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(Composite):
    """The performative Open, which opens the connection (AMQP 1.0 2.7.1)."""

    code, name = 0x10, "amqp:open:list"
    container_id: str = _must(STRING)
    hostname: str | None = _field(STRING)
    max_frame_size: int = _field(UINT, 0xFFFFFFFF)
    channel_max: int = _field(USHORT, 0xFFFF)
    idle_time_out: int | None = _field(UINT)
    outgoing_locales: tuple[str, ...] = _field(SYMBOLS, ())
    incoming_locales: tuple[str, ...] = _field(SYMBOLS, ())
    offered_capabilities: tuple[str, ...] = _field(SYMBOLS, ())
    desired_capabilities: tuple[str, ...] = _field(SYMBOLS, ())
    properties: dict[str, Any] | None = _field(MAP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin(Composite):
    """The performative Begin, which starts a session (AMQP 1.0 2.7.2)."""

    code, name = 0x11, "amqp:begin:list"
    remote_channel: int | None = _field(USHORT)
    next_outgoing_id: int = _must(UINT)
    incoming_window: int = _must(UINT)
    outgoing_window: int = _must(UINT)
    handle_max: int = _field(UINT, 0xFFFFFFFF)
    offered_capabilities: tuple[str, ...] = _field(SYMBOLS, ())
    desired_capabilities: tuple[str, ...] = _field(SYMBOLS, ())
    properties: dict[str, Any] | None = _field(MAP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Composite):
    """The end of a link from which messages come, such as a queue (3.5.3)."""

    code, name = 0x28, "amqp:source:list"
    address: str | None = _field(ANY)
    durable: int = _field(UINT, 0)
    expiry_policy: str = _field(SYMBOL, "session-end")
    timeout: int = _field(UINT, 0)
    dynamic: bool = _field(BOOLEAN, False)
    dynamic_node_properties: dict[str, Any] | None = _field(MAP)
    distribution_mode: str | None = _field(SYMBOL)
    filter: dict[str, Any] | None = _field(MAP)
    default_outcome: Composite | None = _field(OUTCOME)
    outcomes: tuple[str, ...] = _field(SYMBOLS, ())
    capabilities: tuple[str, ...] = _field(SYMBOLS, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Composite):
    """The end of a link to which messages go, such as a queue (3.5.4)."""

    code, name = 0x29, "amqp:target:list"
    address: str | None = _field(ANY)
    durable: int = _field(UINT, 0)
    expiry_policy: str = _field(SYMBOL, "session-end")
    timeout: int = _field(UINT, 0)
    dynamic: bool = _field(BOOLEAN, False)
    dynamic_node_properties: dict[str, Any] | None = _field(MAP)
    capabilities: tuple[str, ...] = _field(SYMBOLS, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator(Composite):
    """The target of a link on which a client begins and ends transactions (4.5.1)."""

    code, name = 0x30, "amqp:coordinator:list"
    capabilities: tuple[str, ...] = _field(SYMBOLS, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach(Composite):
    """The performative Attach, which attaches (opens) a link (2.7.3). ``role`` is True for a receiver."""

    code, name = 0x12, "amqp:attach:list"
    link_name: str = _must(STRING)
    handle: int = _must(UINT)
    role: bool = _must(BOOLEAN)
    snd_settle_mode: int = _field(UBYTE, 2)
    rcv_settle_mode: int = _field(UBYTE, 0)
    source: Source | None = _field(SOURCE)
    target: Target | Coordinator | None = _field(TARGET)
    unsettled: dict[str, Any] | None = _field(ANY)
    incomplete_unsettled: bool = _field(BOOLEAN, False)
    initial_delivery_count: int | None = _field(UINT)
    max_message_size: int | None = _field(ULONG)
    offered_capabilities: tuple[str, ...] = _field(SYMBOLS, ())
    desired_capabilities: tuple[str, ...] = _field(SYMBOLS, ())
    properties: dict[str, Any] | None = _field(MAP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow(Composite):
    """The performative Flow, which tells the peer the credit of a link and the windows of a session (2.7.4)."""

    code, name = 0x13, "amqp:flow:list"
    next_incoming_id: int | None = _field(UINT)
    incoming_window: int = _must(UINT)
    next_outgoing_id: int = _must(UINT)
    outgoing_window: int = _must(UINT)
    handle: int | None = _field(UINT)
    delivery_count: int | None = _field(UINT)
    link_credit: int | None = _field(UINT)
    available: int | None = _field(UINT)
    drain: bool = _field(BOOLEAN, False)
    echo: bool = _field(BOOLEAN, False)
    properties: dict[str, Any] | None = _field(MAP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(Composite):
    """The performative Transfer. A message or a part of a message follows it in the frame (2.7.5)."""

    code, name = 0x14, "amqp:transfer:list"
    handle: int = _must(UINT)
    delivery_id: int | None = _field(UINT)
    delivery_tag: bytes | None = _field(BINARY)
    message_format: int | None = _field(UINT)
    settled: bool = _field(BOOLEAN, False)
    more: bool = _field(BOOLEAN, False)
    rcv_settle_mode: int | None = _field(UBYTE)
    state: Composite | None = _field(STATE)
    resume: bool = _field(BOOLEAN, False)
    aborted: bool = _field(BOOLEAN, False)
    batchable: bool = _field(BOOLEAN, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disposition(Composite):
    """The performative Disposition, which tells the outcome of deliveries (2.7.6).

    ``role`` is True if the receiver of the messages sends the Disposition.
    """

    code, name = 0x15, "amqp:disposition:list"
    role: bool = _must(BOOLEAN)
    first: int = _must(UINT)
    last: int | None = _field(UINT)
    settled: bool = _field(BOOLEAN, False)
    state: Composite | None = _field(STATE)
    batchable: bool = _field(BOOLEAN, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detach(Composite):
    """The performative Detach, which detaches (suspends) or closes a link (2.7.7)."""

    code, name = 0x16, "amqp:detach:list"
    handle: int = _must(UINT)
    closed: bool = _field(BOOLEAN, False)
    error: Error | None = _field(ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class End(Composite):
    """The performative End, which ends a session (2.7.8)."""

    code, name = 0x17, "amqp:end:list"
    error: Error | None = _field(ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(Composite):
    """The performative Close, which closes the connection (2.7.9)."""

    code, name = 0x18, "amqp:close:list"
    error: Error | None = _field(ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received(Composite):
    """The delivery state that says how much of a message has arrived (3.4.1). It is not an outcome."""

    code, name = 0x23, "amqp:received:list"
    section_number: int = _must(UINT)
    section_offset: int = _must(ULONG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted(Composite):
    """The outcome of a message that the receiver processed (3.4.2)."""

    code, name = 0x24, "amqp:accepted:list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(Composite):
    """The outcome of a message that the receiver refused for good (3.4.3)."""

    code, name = 0x25, "amqp:rejected:list"
    error: Error | None = _field(ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(Composite):
    """The outcome of a message that the receiver gives back without counting a failed delivery (3.4.4)."""

    code, name = 0x26, "amqp:released:list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Modified(Composite):
    """The outcome of a message that the receiver gives back. The receiver may change annotations of the message, and
    may count a failed delivery (3.4.5)."""

    code, name = 0x27, "amqp:modified:list"
    delivery_failed: bool = _field(BOOLEAN, False)
    undeliverable_here: bool = _field(BOOLEAN, False)
    message_annotations: dict[str, Any] | None = _field(MAP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared(Composite):
    """The outcome of a request for a new transaction, with the id of the transaction (4.5.5)."""

    code, name = 0x33, "amqp:declared:list"
    txn_id: bytes = _must(BINARY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactional(Composite):
    """A delivery state whose outcome takes effect when the transaction is committed (4.5.8)."""

    code, name = 0x34, "amqp:transactional-state:list"
    txn_id: bytes = _must(BINARY)
    outcome: Composite | None = _field(OUTCOME)


class _Row(NamedTuple):
    """The facts that the codec needs about one field of a composite type."""

    name: str
    kind: _Kind
    default: Any
    mandatory: bool


def _rows(kind: type[Composite]) -> tuple[_Row, ...]:
    found = fields(kind)  # type: ignore[arg-type]  # each subclass of Composite is a dataclass
    return tuple(
        _Row(row.name, row.metadata["kind"], None if row.default is MISSING else row.default, row.default is MISSING)
        for row in found
    )


_CLASSES: tuple[type[Composite], ...] = tuple(Composite.__subclasses__())
_ROWS = {kind: _rows(kind) for kind in _CLASSES}
_BY_DESCRIPTOR: dict[object, type[Composite]] = {kind.code: kind for kind in _CLASSES}
_BY_DESCRIPTOR.update({kind.name: kind for kind in _CLASSES})

ACCEPTED = Accepted()
RELEASED = Released()


def encode(value: Composite) -> bytes:
    """Return a composite value as a described list (1.4), without the fields that have their default value."""
    parts: list[bytes] = []
    for row in _ROWS[type(value)]:
        content = getattr(value, row.name)
        absent = content is None or (content == row.default and not row.mandatory)
        parts.append(_NULL if absent else row.kind.write(content))
    while parts and parts[-1] == _NULL:
        parts.pop()
    head = _DESCRIBED + bytes((value.code,))
    if not parts:
        return head + b"\x45"
    packed = b"".join(parts)
    if len(packed) < 255:
        return head + bytes((0xC0, len(packed) + 1, len(parts))) + packed
    return head + _LIST32(0xD0, len(packed) + 4, len(parts)) + packed


def decode(data: bytes, start: int, end: int) -> tuple[Composite, int]:
    """Return the composite value at ``start``, and the position after it.

    Raises:
        ViolationError: the bytes are not a composite value, a field is missing or has a wrong type, or there are more
            than ``_MOST_VALUES`` values.
    """
    try:
        # a value has at least one byte, and the loop spends no time on many values
        if end - start > _MOST_VALUES and has_more_values(_MOST_VALUES, data, start, skip(data, start, end)):
            raise ViolationError(DECODE_ERROR, f"a frame has more than {_MOST_VALUES:,} values")
        value, after = decode_value(data, start, end)
    except MessageFormatException as error:
        raise ViolationError(DECODE_ERROR, f"a frame cannot be decoded: {error}") from error
    if not isinstance(value, Described):
        raise ViolationError(DECODE_ERROR, f"expected a performative, not a {type(value).__name__}")
    return _compose(value), after


def _compose(value: Described) -> Composite:
    kind = _BY_DESCRIPTOR.get(value.descriptor) if isinstance(value.descriptor, ULong | Symbol) else None
    if kind is None:
        raise ViolationError(DECODE_ERROR, f"a frame has a value of the unknown type {str(value.descriptor)[:80]}")
    rows, values = _ROWS[kind], value.value
    if not isinstance(values, list) or len(values) > len(rows):
        raise ViolationError(DECODE_ERROR, f"{kind.name}: expected a list of at most {len(rows)} fields")
    found = {}
    for row, content in zip(rows, values + [None] * (len(rows) - len(values)), strict=True):
        if content is None:
            if row.mandatory:
                raise ViolationError(DECODE_ERROR, f"{kind.name}: the field {row.name} is missing")
            continue
        try:
            found[row.name] = row.kind.read(content)
        except _WrongTypeError as error:
            text = f"{kind.name}: the field {row.name} is a {error}; expected a {row.kind.name}"
            raise ViolationError(DECODE_ERROR, text) from error
    return kind(**found)
