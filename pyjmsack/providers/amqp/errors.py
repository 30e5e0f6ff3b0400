"""Converts the error conditions of AMQP into JMS exceptions (S129; AMQP 1.0 2.8.15-2.8.18, 4.5.8)."""

from __future__ import annotations

from dataclasses import replace

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
from pyjmsack.providers.amqp.engine.performatives import Error

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


_DENIED = ("AMQ229032", "AMQ229213")
"""The codes with which Artemis says that the user lacks a permission. If Artemis has to create a queue for a link, and
the user may not create queues, the condition of the error is ``amqp:internal-error``, which does not say this.
"""
_LONGEST = 1000
"""The largest number of characters that an exception has of the broker's condition, and of its description. There is a
limit, because one frame may reject many messages. Each of them gets its own exception, with its own copy of the text.
"""


def _cut(error: Error | None) -> Error | None:
    """Return the error with a condition and a description that are not too long."""
    if error is None:
        return None
    description = error.description and error.description[:_LONGEST]
    return replace(error, condition=error.condition[:_LONGEST], description=description)


def _exception(error: Error | None, what: str, default: type[JMSException]) -> JMSException:
    error = _cut(error)
    if error is None:
        return default(what)
    name, description = error.condition, error.description or ""
    text = f"{what}: {name}" + (f" ({description})" if description else "")
    denied = name == "amqp:internal-error" and description.startswith(_DENIED)
    return (JMSSecurityException if denied else _BY_CONDITION.get(name, default))(text, error_code=name)


def connection_error(error: Error | None, what: str) -> JMSException:
    """Return the exception for a closed connection.

    If the error names the field ``container-id``, the client id is already in use (S122).
    """
    error = _cut(error)
    if error is not None and _names_field(error, "container-id"):
        return InvalidClientIDException(f"{what}: the broker says the client id is in use", error_code=error.condition)
    if error is not None and "idle-timeout" in (error.description or ""):  # the broker received nothing for too long
        return ConnectionLostException(f"{what}: {error.description}", error_code=error.condition)
    return _exception(error, what, ConnectionLostException)


def transport_error(error: Error | None) -> ConnectionLostException:
    """Return the exception for a connection that the engine gave up. The connection counts as lost, even if the error
    names another reason."""
    text, error = "the AMQP connection failed", _cut(error)
    if error is None:
        return ConnectionLostException(f"{text}: the peer sent bytes that are no AMQP 1.0 frame")
    return ConnectionLostException(f"{text}: {error.description or error.condition}", error_code=error.condition)


def link_error(error: Error | None, what: str, *, selector: str | None = None) -> JMSException:
    """Return the exception for a refused or closed link.

    If the broker reports an invalid field and the link has a selector, the exception says that the broker refused the
    selector.
    """
    error = _cut(error)
    if error is not None and selector and error.condition == "amqp:invalid-field":
        text = f"{what}: the broker refused the selector {selector!r} ({error.description})"
        return InvalidSelectorException(text, error_code=error.condition)
    return _exception(error, what, JMSException)


def outcome_error(state: str, error: Error | None) -> JMSException:
    """Return the exception for a message that the broker did not accept (S63)."""
    return _exception(error, f"the broker did not accept the message, outcome: {state}", JMSException)


def _names_field(error: Error, field: str) -> bool:
    info = error.info
    return isinstance(info, dict) and field in [str(v) for v in info.values()]
