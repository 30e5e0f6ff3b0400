"""Between the words of :mod:`.engine.performatives` and proton's objects."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from proton import Condition, Data, Described, Link, Terminus, int32, symbol, ulong

from pyjmsack.providers.amqp import native
from pyjmsack.providers.amqp import wire_types as ours
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
)

__all__ = ["configure", "described", "error_of", "outcome_of", "remote_attach", "state_of"]

_EXPIRIES = {"session-end": Terminus.EXPIRE_WITH_SESSION, "never": Terminus.EXPIRE_NEVER}
_MODES = {"copy": Terminus.DIST_MODE_COPY, "move": Terminus.DIST_MODE_MOVE}


def described(value: Any) -> Any:
    """Return a value of ours, or what is in it, in proton's types."""
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
    """Give a link of proton what our Attach says, but for the desired capabilities, which it cannot write."""
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
    """Return what the peer's Attach says of its node: a source or target that is ``None`` means that it refuses."""
    source, target = link.remote_source, link.remote_target
    return Attach(
        link_name=link.name,
        handle=0,
        role=link.is_sender,
        source=None if source.type == Terminus.UNSPECIFIED else Source(address=source.address),
        target=None if target.type == Terminus.UNSPECIFIED else Target(address=target.address),
        max_message_size=link.remote_max_message_size or None,
    )


def error_of(condition: Condition | None) -> Error | None:
    """Return proton's condition as an error."""
    if condition is None:
        return None
    info = condition.info
    items = {str(key): value for key, value in info.items()} if isinstance(info, dict) else None
    return Error(condition=str(condition.name), description=condition.description, info=items)


def outcome_of(delivery: native.Delivery) -> Composite | None:
    """Return what the peer says became of a delivery; ``None`` if it says nothing."""
    code = native.delivery_remote_state(delivery)
    if code == native.ACCEPTED:
        return ACCEPTED
    if code == native.TRANSACTIONAL:
        inner = native.remote_transactional_state(delivery)
        return Transactional(txn_id=b"", outcome=_SIMPLE.get(inner))
    if code in _SIMPLE:
        remote = native.wrap(delivery).remote if code == native.REJECTED else None
        return _SIMPLE[code] if remote is None else Rejected(error=error_of(remote.condition))
    if code == native.DECLARED:
        return _declared(native.wrap(delivery).remote.data)
    return None


def _declared(fields: Any) -> Composite | None:
    value = fields[0] if fields else None
    return Declared(txn_id=bytes(value)) if isinstance(value, bytes | memoryview) else None


_SIMPLE: dict[int, Composite] = {
    native.ACCEPTED: ACCEPTED,
    native.REJECTED: Rejected(),
    native.RELEASED: RELEASED,
    native.MODIFIED: Modified(),
}


class LocalState:
    """A state of ours as proton wants to be told."""

    def __init__(self, state: Composite) -> None:
        self._code = state.code
        self._undeliverable = isinstance(state, Modified) and state.undeliverable_here
        self._data: Data | None = None
        if isinstance(state, Transactional):
            self._data = Data()
            outcome = [] if state.outcome is None else [Described(ulong(state.outcome.code), [])]
            self._data.put_object([state.txn_id, *outcome])

    def put_on(self, delivery: native.Delivery) -> None:
        """Make it the local state of a delivery."""
        if self._data is not None:
            native.data_copy(native.delivery_data(delivery), self._data._data)
        elif self._code == native.MODIFIED:
            native.set_modified(delivery, self._undeliverable)
        native.delivery_update(delivery, self._code)


@lru_cache(maxsize=64)
def state_of(encoded: bytes) -> LocalState:
    """Return an encoded state as proton wants to be told."""
    return LocalState(decode(encoded, 0, len(encoded))[0])
