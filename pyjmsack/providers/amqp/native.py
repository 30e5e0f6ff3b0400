"""The few C functions of the proton engine that run once per message, called without proton's Python wrappers.

A wrapper object per delivery costs more than the whole rest of a delivery (measured by ``benchmarks/``), so links,
sessions and connections are proton's own Python objects, and deliveries are bare ``pn_delivery_t`` pointers. Such a
pointer is valid until it is settled or its link is freed; :mod:`receiver` and :mod:`sender` own that discipline.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import proton
from cproton_ffi import ffi, lib  # type: ignore[import-not-found]  # a compiled module without stubs

__all__ = [
    "ACCEPTED",
    "DECLARED",
    "EVENT_CONNECTION_REMOTE_CLOSE",
    "EVENT_CONNECTION_REMOTE_OPEN",
    "EVENT_DELIVERY",
    "EVENT_LINK_FLOW",
    "EVENT_LINK_REMOTE_CLOSE",
    "EVENT_LINK_REMOTE_DETACH",
    "EVENT_LINK_REMOTE_OPEN",
    "EVENT_SESSION_REMOTE_CLOSE",
    "EVENT_SESSION_REMOTE_OPEN",
    "EVENT_TRANSPORT_CLOSED",
    "EVENT_TRANSPORT_ERROR",
    "EVENT_TRANSPORT_TAIL_CLOSED",
    "MODIFIED",
    "REJECTED",
    "RELEASED",
    "TRANSACTIONAL",
    "Delivery",
    "Link",
    "collector_peek",
    "collector_pop",
    "data_copy",
    "delivery_aborted",
    "delivery_data",
    "delivery_link",
    "delivery_partial",
    "delivery_pending",
    "delivery_readable",
    "delivery_remote_settled",
    "delivery_remote_state",
    "delivery_settle",
    "delivery_update",
    "event_delivery",
    "event_link",
    "event_session",
    "event_type",
    "link_advance",
    "link_credit",
    "link_flow",
    "link_is_unasked",
    "new_delivery",
    "new_scratch",
    "push",
    "receive",
    "remote_transactional_state",
    "send",
    "session_is_unasked",
    "set_modified",
    "take_output",
    "tick",
    "wrap",
]

Delivery: TypeAlias = Any
"""A ``pn_delivery_t *``: hashable by address."""
Link: TypeAlias = Any
"""A ``pn_link_t *``."""

EVENT_DELIVERY: int = lib.PN_DELIVERY
EVENT_LINK_FLOW: int = lib.PN_LINK_FLOW
EVENT_LINK_REMOTE_OPEN: int = lib.PN_LINK_REMOTE_OPEN
EVENT_LINK_REMOTE_CLOSE: int = lib.PN_LINK_REMOTE_CLOSE
EVENT_LINK_REMOTE_DETACH: int = lib.PN_LINK_REMOTE_DETACH
EVENT_SESSION_REMOTE_OPEN: int = lib.PN_SESSION_REMOTE_OPEN
EVENT_SESSION_REMOTE_CLOSE: int = lib.PN_SESSION_REMOTE_CLOSE
EVENT_CONNECTION_REMOTE_OPEN: int = lib.PN_CONNECTION_REMOTE_OPEN
EVENT_CONNECTION_REMOTE_CLOSE: int = lib.PN_CONNECTION_REMOTE_CLOSE
EVENT_TRANSPORT_ERROR: int = lib.PN_TRANSPORT_ERROR
EVENT_TRANSPORT_CLOSED: int = lib.PN_TRANSPORT_CLOSED
EVENT_TRANSPORT_TAIL_CLOSED: int = lib.PN_TRANSPORT_TAIL_CLOSED
ACCEPTED: int = lib.PN_ACCEPTED
REJECTED: int = lib.PN_REJECTED
RELEASED: int = lib.PN_RELEASED
MODIFIED: int = lib.PN_MODIFIED
DECLARED = 0x33
TRANSACTIONAL = 0x34

collector_peek: Any = lib.pn_collector_peek
collector_pop: Any = lib.pn_collector_pop
event_type: Any = lib.pn_event_type
event_delivery: Any = lib.pn_event_delivery
event_link: Any = lib.pn_event_link
event_session: Any = lib.pn_event_session
delivery_link: Any = lib.pn_delivery_link
delivery_readable: Any = lib.pn_delivery_readable
delivery_partial: Any = lib.pn_delivery_partial
delivery_aborted: Any = lib.pn_delivery_aborted
delivery_pending: Any = lib.pn_delivery_pending
delivery_remote_state: Any = lib.pn_delivery_remote_state
delivery_remote_settled: Any = lib.pn_delivery_settled
delivery_settle: Any = lib.pn_delivery_settle
delivery_update: Any = lib.pn_delivery_update
link_advance: Any = lib.pn_link_advance
link_credit: Any = lib.pn_link_credit
link_flow: Any = lib.pn_link_flow
data_copy: Any = lib.pn_data_copy
tick: Any = lib.pn_transport_tick

SCRATCH_SIZE = 1 << 16
_link_recv = lib.pn_link_recv
_link_send = lib.pn_link_send
_from_buffer = ffi.from_buffer
_unpack = ffi.unpack


def new_scratch() -> Any:
    """Return a buffer for one engine: every C call drops the GIL, so engines of two threads must not share one."""
    return ffi.new("char[]", SCRATCH_SIZE)


def receive(link: Link, size: int, scratch: Any) -> bytes:
    """Return the ``size`` bytes of the current delivery."""
    buffer = scratch if size <= SCRATCH_SIZE else ffi.new("char[]", size)
    _link_recv(link, buffer, size)
    return _unpack(buffer, size)  # type: ignore[no-any-return]  # cffi is untyped; unpack of char[] is bytes


def send(link: Link, payload: bytes) -> None:
    """Append the payload to the current delivery."""
    _link_send(link, _from_buffer(payload), len(payload))


def new_delivery(link: Link, tag: bytes) -> Delivery:
    """Start a delivery; proton copies the tag."""
    return lib.pn_delivery(link, (len(tag), _from_buffer(tag)))


def link_is_unasked(link: Link) -> bool:
    """Whether the peer attached a link that this end knows nothing of."""
    return bool(lib.pn_link_state(link) & lib.PN_LOCAL_UNINIT)


def session_is_unasked(session: Any) -> bool:
    """Whether the peer began a session that this end knows nothing of."""
    return bool(lib.pn_session_state(session) & lib.PN_LOCAL_UNINIT)


def delivery_data(delivery: Delivery) -> Any:
    """Return the ``pn_data_t`` that carries the fields of a local state proton has no name for (0x34)."""
    return lib.pn_disposition_data(lib.pn_delivery_local(delivery))


def set_modified(delivery: Delivery, undeliverable_here: bool) -> None:
    """Mark the local ``modified`` state delivery-failed, and undeliverable-here if asked (AMQP 1.0 3.4.5)."""
    local = lib.pn_delivery_local(delivery)
    lib.pn_disposition_set_failed(local, True)
    if undeliverable_here:
        lib.pn_disposition_set_undeliverable(local, True)


def remote_transactional_state(delivery: Delivery) -> int:
    """Return the outcome code inside a transactional state (AMQP 1.0 4.5.5), or 0 where there is none."""
    data = lib.pn_disposition_data(lib.pn_delivery_remote(delivery))
    lib.pn_data_rewind(data)
    if not (lib.pn_data_next(data) and lib.pn_data_enter(data) and lib.pn_data_next(data)):
        return 0
    if not (lib.pn_data_next(data) and lib.pn_data_is_described(data) and lib.pn_data_enter(data)):
        return 0
    return int(lib.pn_data_get_ulong(data)) if lib.pn_data_next(data) else 0


def wrap(delivery: Delivery) -> proton.Delivery:
    """Return proton's own object for a delivery: for what is rare."""
    wrapped: proton.Delivery = proton.Delivery.wrap(delivery)  # type: ignore[no-untyped-call]  # proton's, untyped
    return wrapped


def push(transport: Any, data: bytes) -> int:
    """Feed the transport; returns how many bytes were left over because it is closed."""
    offset, size = 0, len(data)
    base = _from_buffer("char[]", data)
    while offset < size:
        room = lib.pn_transport_capacity(transport)
        if room <= 0:
            break
        taken = lib.pn_transport_push(transport, base + offset, min(room, size - offset))
        if taken <= 0:
            break
        offset += taken
    return size - offset


def take_output(transport: Any, scratch: Any) -> bytes:
    """Return and consume what the transport wants written, at most one scratch buffer of it."""
    pending = lib.pn_transport_pending(transport)
    if pending <= 0:
        return b""
    size = lib.pn_transport_peek(transport, scratch, min(pending, SCRATCH_SIZE))
    if size <= 0:
        return b""
    output: bytes = _unpack(scratch, size)
    lib.pn_transport_pop(transport, size)
    return output
