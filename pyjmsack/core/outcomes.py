"""The outcomes that a caller may give a message: which feature each one needs, and which one ``JMS_AMQP_ACK_TYPE``
chooses."""

from __future__ import annotations

from typing import Any

from pyjmsack.errors import JMSException
from pyjmsack.types import Outcome

__all__ = ["FEATURES", "outcome_of"]

FEATURES = {
    Outcome.REJECTED: "reject",
    Outcome.RELEASED: "release",
    Outcome.MODIFIED_FAILED: "modified-failed",
    Outcome.MODIFIED_FAILED_UNDELIVERABLE: "undeliverable-here",
}
"""The feature that a broker needs for each outcome. No feature is needed to accept a message."""


def outcome_of(ack_type: Any) -> Outcome:
    """Return the outcome that ``acknowledge()`` has for a message (S38).

    Args:
        ack_type: the value of ``JMS_AMQP_ACK_TYPE``. ``None`` means that the message does not have this property.

    Raises:
        JMSException: the value names no outcome.
    """
    if ack_type is None:
        return Outcome.ACCEPTED
    try:
        return Outcome(ack_type)
    except ValueError as error:
        known = ", ".join(f"{o.value} ({o.name})" for o in Outcome)
        raise JMSException(f"JMS_AMQP_ACK_TYPE {ack_type!r}: expected one of {known} (S38)") from error
