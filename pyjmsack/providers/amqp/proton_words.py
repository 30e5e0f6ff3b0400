"""Converts between the classes of :mod:`.engine.performatives` and proton's objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from proton import Condition, Data, Delivery, Described, Link, Terminus, int32, symbol, ulong

from pyjmsack.providers.amqp import wire_types as ours
from pyjmsack.providers.amqp.engine.frames import frame
from pyjmsack.providers.amqp.engine.performatives import (
    ACCEPTED,
    RELEASED,
    Attach,
    Composite,
    Coordinator,
    Declared,
    Error,
    Modified,
    Rejected,
    Source,
    Target,
    Transactional,
    decode,
    encode,
)

__all__ = [
    "configure",
    "described",
    "error_of",
    "outcome_of",
    "put_state",
    "remote_attach",
    "with_desired_capabilities",
]

_EXPIRIES = {"session-end": Terminus.EXPIRE_WITH_SESSION, "never": Terminus.EXPIRE_NEVER}
_MODES = {"copy": Terminus.DIST_MODE_COPY, "move": Terminus.DIST_MODE_MOVE}


def described(value: Any) -> Any:
    """Return a value in which the types of proton replace the types of this library."""
    if isinstance(value, ours.Described):
        return Described(described(value.descriptor), described(value.value))
    if isinstance(value, ours.ULong):
        return ulong(value)
    if isinstance(value, ours.Symbol):
        return symbol(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return int32(value)


def _fields(items: Mapping[str, Any] | None) -> dict[Any, Any]:
    return {symbol(key): described(value) for key, value in (items or {}).items()}


def configure(link: Link, attach: Attach) -> None:
    """Set the fields of our Attach frame on a link of proton. Only the desired capabilities are left out, because
    proton cannot write them."""
    link.snd_settle_mode, link.rcv_settle_mode = attach.snd_settle_mode, attach.rcv_settle_mode
    if attach.properties:
        link.properties = _fields(attach.properties)
    if attach.source is None:
        link.source.type = Terminus.UNSPECIFIED
    else:
        _configure_source(link.source, attach.source)
    if isinstance(attach.target, Coordinator):
        link.target.type = Terminus.COORDINATOR
        _put_symbols(link.target.capabilities, attach.target.capabilities)
    elif attach.target is not None:
        _configure_terminus(link.target, attach.target)


def _configure_terminus(terminus: Terminus, node: Source | Target) -> None:
    if node.address is not None:
        terminus.address = node.address
    if node.dynamic:
        terminus.dynamic = True
    if node.dynamic_node_properties:
        terminus.properties.put_dict(_fields(node.dynamic_node_properties))
    terminus.durability = node.durable
    terminus.expiry_policy = _EXPIRIES[node.expiry_policy]
    _put_symbols(terminus.capabilities, node.capabilities)


def _configure_source(terminus: Terminus, source: Source) -> None:
    _configure_terminus(terminus, source)
    if source.distribution_mode is not None:
        terminus.distribution_mode = _MODES[source.distribution_mode]
    if source.filter:
        terminus.filter.put_dict(_fields(source.filter))


def _put_symbols(data: Data, names: tuple[str, ...]) -> None:
    if len(names) == 1:
        data.put_object(symbol(names[0]))
    elif names:
        data.put_array(False, Data.SYMBOL)
        data.enter()
        for name in names:
            data.put_symbol(symbol(name))
        data.exit()


def remote_attach(link: Link) -> Attach:
    """Return the peer's Attach frame. If its source or target is ``None``, the peer refuses the link."""
    source, target = link.remote_source, link.remote_target
    mode = next((name for name, number in _MODES.items() if number == source.distribution_mode), None)
    sender = Source(address=source.address, distribution_mode=mode, filter=_filters(source))
    return Attach(
        link_name=link.name,
        handle=0,
        role=link.is_sender,
        source=None if source.type == Terminus.UNSPECIFIED else sender,
        target=None if target.type == Terminus.UNSPECIFIED else Target(address=target.address),
        max_message_size=link.remote_max_message_size or None,
    )


def _filters(source: Terminus) -> dict[str, Any] | None:
    """Return the filters that the peer applies."""
    data = source.filter
    data.rewind()
    return {str(name): value for name, value in data.get_dict().items()} if data.next() == Data.MAP else None


def error_of(condition: Condition | None) -> Error | None:
    """Return the error for a condition of proton."""
    if condition is None:
        return None
    info = condition.info
    items = {str(key): value for key, value in info.items()} if isinstance(info, dict) else None
    return Error(condition=str(condition.name), description=condition.description, info=items)


def outcome_of(delivery: Delivery) -> Composite | None:
    """Return the outcome or transactional state that the peer sent for a delivery, or ``None`` if the peer sent
    neither."""
    code = int(delivery.remote_state)
    if code == Rejected.code:
        return Rejected(error=error_of(delivery.remote.condition))
    if code in _SIMPLE:
        return _SIMPLE[code]
    if code in (Declared.code, Transactional.code):
        fields = delivery.remote.data
        values = fields if isinstance(fields, list) else []
        return _declared(values) if code == Declared.code else _transactional(values)
    return None


def _declared(values: list[Any]) -> Composite | None:
    value = values[0] if values else None
    return Declared(txn_id=bytes(value)) if isinstance(value, bytes | memoryview) else None


def _transactional(values: list[Any]) -> Composite:
    outcome = values[1] if len(values) > 1 else None
    descriptor = outcome.descriptor if isinstance(outcome, Described) else None
    known = _SIMPLE.get(descriptor) if isinstance(descriptor, int | str) else None
    return Transactional(txn_id=b"", outcome=known)


_SIMPLE: dict[int | str, Composite] = {
    name: state for state in (ACCEPTED, Rejected(), RELEASED, Modified()) for name in (state.code, state.name)
}
"""The outcomes, each with empty fields. The key is the code of the outcome, or its name."""

_decode_state = lru_cache(maxsize=64)(lambda encoded: decode(encoded, 0, len(encoded))[0])


def put_state(encoded: bytes, delivery: Delivery) -> None:
    """Set the local state of a delivery of proton to an encoded outcome or transactional state."""
    state = _decode_state(encoded)
    local: Any = delivery.local  # the type hints of proton declare its data as a list of numbers
    if isinstance(state, Transactional):
        outcome = [] if state.outcome is None else [Described(ulong(state.outcome.code), [])]
        local.data = [state.txn_id, *outcome]
    elif isinstance(state, Modified):
        local.failed, local.undeliverable = True, state.undeliverable_here
    delivery.update(state.code)


def with_desired_capabilities(attach_frame: bytes, names: tuple[str, ...]) -> bytes:
    """Return an Attach frame with desired capabilities added (2.7.3), because proton cannot write them."""
    attach, _ = decode(attach_frame, attach_frame[4] * 4, len(attach_frame))
    assert isinstance(attach, Attach)  # proton wrote only this frame
    return frame(int.from_bytes(attach_frame[6:8], "big"), encode(replace(attach, desired_capabilities=names)))
