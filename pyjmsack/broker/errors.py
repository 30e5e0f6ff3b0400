"""The exception of the embedded broker, and two subclasses that only the code of the embedded broker catches."""

from __future__ import annotations

from pyjmsack.errors import JMSException

__all__ = ["BrokerError", "BrokerExitedError", "PortTakenError"]


class BrokerError(JMSException):
    """The embedded broker cannot be fetched, started or controlled. The text gives the next step."""


class BrokerExitedError(BrokerError):
    """The broker's process ended before it was ready."""


class PortTakenError(BrokerError):
    """Another process listens on the port."""
