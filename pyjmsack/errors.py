"""Every exception this library raises on purpose, in one tree.

::

    JMSException
    +-- IllegalStateException            wrong moment: closed object, listener set, mode does not allow it
    +-- InvalidClientIDException         client id refused, changed or set too late
    +-- InvalidDestinationException      unknown, empty or deleted destination
    +-- InvalidSelectorException         selector that does not parse
    +-- InvalidURLException              (ValueError) broker URL or option that is wrong or unknown
    +-- JMSSecurityException             (PermissionError) login or permission refused
    +-- MessageEOFException              (EOFError) read past the end of a bytes or stream body
    +-- MessageFormatException           (ValueError) value or conversion that JMS forbids
    +-- MessageNotReadableException      body is write-only
    +-- MessageNotWriteableException     body or properties are read-only
    +-- ResourceAllocationException      broker has no room, or the rate limit was met
    +-- TransactionInProgressException   operation not allowed while a transaction is open
    +-- TransactionRolledBackException   commit() did not commit
    +-- UnsupportedFeatureException      this broker, protocol or producer cannot do it
    +-- ConnectionLostException          (ConnectionError) the broker went away
    +-- RequestTimedOutException         (TimeoutError) no answer in the time allowed
        +-- SendTimedOutException        the same, for a send

Names are those of JMS 2.0 (chapter 8); a Python built-in beside the JMS class lets a caller write
``except TimeoutError``.
The cause is always chained (``raise ... from cause``), rule S129.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "ConnectionLostException",
    "IllegalStateException",
    "InvalidClientIDException",
    "InvalidDestinationException",
    "InvalidSelectorException",
    "InvalidURLException",
    "JMSException",
    "JMSSecurityException",
    "MessageEOFException",
    "MessageFormatException",
    "MessageNotReadableException",
    "MessageNotWriteableException",
    "RequestTimedOutException",
    "ResourceAllocationException",
    "SendTimedOutException",
    "TransactionInProgressException",
    "TransactionRolledBackException",
    "UnsupportedFeatureException",
]


class JMSException(Exception):
    """Root of the tree.

    ``error_code`` is the protocol's own word for the failure, where it gave one (an AMQP error condition such as
    ``amqp:not-found``), else ``None``.
    """

    def __init__(self, message: str = "", *, error_code: str | None = None) -> None:
        super().__init__(message)
        self.error_code = error_code

    def fresh(self) -> JMSException:
        """Return a copy for one more waiter: a shared instance would grow a traceback with every raise."""
        twin = type(self).__new__(type(self))
        twin.args = self.args
        twin.__dict__.update(self.__dict__)
        twin.__cause__ = self.__cause__ or self
        return twin


class IllegalStateException(JMSException):
    """The call is not allowed now: closed object, listener set, wrong acknowledge mode (S7, S8, S125)."""


class InvalidClientIDException(JMSException):
    """The client id is empty, set twice, set too late, or in use at the broker (S122)."""


class InvalidDestinationException(JMSException):
    """No destination, an unknown one, or a deleted temporary one (S67, S68)."""


class InvalidSelectorException(JMSException):
    """The selector is not valid (S187)."""


class InvalidURLException(JMSException, ValueError):
    """The broker URL, or one of its options, is wrong; the text names the part and the nearest right spelling."""


class JMSSecurityException(JMSException, PermissionError):
    """The broker refused the login or the permission."""

    def __str__(self) -> str:  # PermissionError would print an errno pair
        return JMSException.__str__(self)


class MessageEOFException(JMSException, EOFError):
    """The end of a bytes or stream body was reached before the value (S171, S174)."""


class MessageFormatException(JMSException, ValueError):
    """A value, name or conversion that JMS does not allow (S160-S162)."""


class MessageNotReadableException(JMSException):
    """The body is write-only until ``reset()`` (S171)."""


class MessageNotWriteableException(JMSException):
    """A received message, or one in the hands of a completion listener, is read-only (S73, S163)."""


class ResourceAllocationException(JMSException):
    """The broker could not give the resource (AMQP ``amqp:resource-limit-exceeded``)."""


class TransactionInProgressException(JMSException):
    """The operation is not allowed while a transaction is open."""


class TransactionRolledBackException(JMSException):
    """``commit()`` failed; the transaction's work was undone, or its outcome is unknown (S79, S86, S87, S94).

    ``sent`` and ``acknowledged`` hold the message ids of the work of the transaction, as far as they are known, so
    that the caller can send the batch again. ``in_doubt`` is true where the commit was on its way when the connection
    was lost: then it may have taken effect.
    """

    def __init__(
        self,
        message: str = "",
        *,
        error_code: str | None = None,
        sent: Sequence[str] = (),
        acknowledged: Sequence[str] = (),
        in_doubt: bool = False,
    ) -> None:
        super().__init__(message, error_code=error_code)
        self.sent = tuple(sent)
        self.acknowledged = tuple(acknowledged)
        self.in_doubt = in_doubt


class UnsupportedFeatureException(JMSException):
    """This broker, protocol or producer cannot honour the request; nothing was done."""


class ConnectionLostException(JMSException, ConnectionError):
    """The connection to the broker failed (S128)."""

    def __str__(self) -> str:  # ConnectionError would print an errno pair
        return JMSException.__str__(self)


class RequestTimedOutException(JMSException, TimeoutError):
    """The broker did not answer within the time allowed by the option that the text names, or nobody replied to a
    request in time."""

    def __str__(self) -> str:  # TimeoutError would print an errno pair
        return JMSException.__str__(self)


class SendTimedOutException(RequestTimedOutException):
    """A send was not confirmed, or got no credit, within ``jms.sendTimeout`` (S66)."""
