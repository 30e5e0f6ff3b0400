"""AMQP error conditions -> JMS exceptions, in one place (S129; AMQP 1.0 2.8.15-2.8.18, 4.5.8)."""

from __future__ import annotations

from proton import Condition

from pyjmsack.errors import (
    ConnectionLostException,
    IllegalStateException,
    InvalidClientIDException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    JMSSecurityException,
    ResourceAllocationException,
    TransactionRolledBackException,
    UnsupportedFeatureException,
)

__all__ = ["connection_error", "link_error", "outcome_error", "transport_error"]

_BY_CONDITION: dict[str, type[JMSException]] = {
    "amqp:unauthorized-access": JMSSecurityException,
    "amqp:not-found": InvalidDestinationException,
    "amqp:resource-deleted": InvalidDestinationException,
    "amqp:resource-limit-exceeded": ResourceAllocationException,
    "amqp:illegal-state": IllegalStateException,
    "amqp:not-implemented": UnsupportedFeatureException,
    "amqp:transaction:rollback": TransactionRolledBackException,
    "amqp:transaction:timeout": TransactionRolledBackException,
    "amqp:transaction:unknown-id": TransactionRolledBackException,
    "amqp:connection:forced": ConnectionLostException,
    "amqp:connection:framing-error": ConnectionLostException,
}


def _exception(condition: Condition | None, what: str, default: type[JMSException]) -> JMSException:
    if condition is None:
        return default(what)
    name = str(condition.name)
    text = f"{what}: {name}" + (f" ({condition.description})" if condition.description else "")
    return _BY_CONDITION.get(name, default)(text, error_code=name)


def connection_error(condition: Condition | None, what: str) -> JMSException:
    """Return the exception for a closed connection; a taken client id is recognised by the field it names (S122)."""
    if condition is not None and _names_field(condition, "container-id"):
        return InvalidClientIDException(
            f"{what}: the broker says the client id is in use", error_code=str(condition.name)
        )
    if condition is not None and "idle-timeout" in str(condition.description):  # said by a broker that lost us
        return ConnectionLostException(f"{what}: {condition.description}", error_code=str(condition.name))
    return _exception(condition, what, ConnectionLostException)


def transport_error(condition: Condition | None) -> ConnectionLostException:
    """Return the exception for a connection that proton gave up: lost, whatever proton calls the reason."""
    text = "the AMQP connection failed"
    if condition is None:
        return ConnectionLostException(f"{text}: the peer sent what is not an AMQP 1.0 frame")
    return ConnectionLostException(f"{text}: {condition.description or condition.name}", error_code=str(condition.name))


def link_error(condition: Condition | None, what: str, *, selector: str | None = None) -> JMSException:
    """Return the exception for a refused or closed link. A refused field can only be the selector if there is one."""
    if condition is not None and selector and str(condition.name) == "amqp:invalid-field":
        text = f"{what}: selector {selector!r} refused ({condition.description})"
        return InvalidSelectorException(text, error_code=str(condition.name))
    return _exception(condition, what, JMSException)


def outcome_error(state: str, condition: Condition | None) -> JMSException:
    """Return the exception for a message the broker did not accept (S63)."""
    return _exception(condition, f"the broker did not accept the message, outcome: {state}", JMSException)


def _names_field(condition: Condition, field: str) -> bool:
    info = condition.info
    return isinstance(info, dict) and field in [str(v) for v in info.values()]
