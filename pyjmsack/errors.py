"""Every exception that this library raises on purpose, in one tree.

::

    JMSException
    +-- IllegalStateException            wrong moment: closed object, listener set, mode does not allow it
        +-- BodyConsumedException        a body from an iterator cannot be read a second time
    +-- InvalidClientIDException         client id refused, changed or set too late
    +-- InvalidDestinationException      unknown, empty or deleted destination
    +-- InvalidSelectorException         selector that does not parse
    +-- InvalidURLException              (ValueError) broker URL or option that is wrong or unknown
    +-- JMSSecurityException             (PermissionError) login or permission refused
    +-- MessageEOFException              (EOFError) read past the end of a bytes or stream body
    +-- MessageFormatException           (ValueError) value or conversion that JMS forbids
    +-- MessageNotReadableException      body is write-only
    +-- MessageNotWriteableException     body or properties are read-only
    +-- ResourceAllocationException      broker has no room, or a limit was reached
    +-- TransactionInProgressException   operation not allowed while a transaction is open
    +-- TransactionRolledBackException   commit() did not commit
    +-- UnsupportedFeatureException      this broker, protocol or producer cannot do it
    +-- ConnectionLostException          (ConnectionError) the broker went away
    +-- RequestTimedOutException         (TimeoutError) no answer in the time allowed
        +-- SendTimedOutException        send not confirmed in the time allowed

The names come from JMS 2.0 (chapter 8). Some classes also inherit from the built-in exception in parentheses, so that a
caller can write ``except TimeoutError``. The cause is always chained (``raise ... from cause``), rule S129.

A text that ends by citing a rule, as in ``(S15)``, is shown with the command that explains the rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = [
    "BodyConsumedException",
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


_CITED: Final = re.compile(r"[;,.]? \((S\d{1,3})(?:(?:, |-)S\d{1,3})*\)[;,.]?$")
"""Matches the rule, or the rules, that a text cites at its end."""


def _with_next_step(text: str) -> str:
    """Replace the rule at the end of a text by the command that explains the rule."""
    cited = _CITED.search(text)
    if cited is None:
        return text
    end = "" if text[: cited.start()].endswith(("?", "!")) else "."
    return f"{text[: cited.start()]}{end} Learn more: pyjmsack explain {cited[1]}"


class JMSException(Exception):
    """The root of all errors of this library.

    Args:
        message: the text.
        error_code: the failure in the words of the protocol.

    Attributes:
        error_code: the failure in the words of the protocol, such as the AMQP error condition ``amqp:not-found``.
            ``None`` if the protocol gave no such words.
    """

    def __init__(self, message: str = "", *, error_code: str | None = None) -> None:
        super().__init__(message)
        self.error_code = error_code

    def __str__(self) -> str:  # not super(), because PermissionError and similar classes would print an errno pair
        return _with_next_step(Exception.__str__(self))

    def fresh(self) -> JMSException:
        """Return a copy of the error for one more waiter. If the waiters shared one object, each raise would make its
        traceback longer."""
        twin = type(self).__new__(type(self))
        twin.args = self.args
        twin.__dict__.update(self.__dict__)
        twin.__cause__ = self.__cause__ or self
        return twin


class IllegalStateException(JMSException):
    """The call is not allowed now, because the object is closed, a listener is set, or the acknowledge mode is wrong
    (S7, S8, S125)."""


class BodyConsumedException(IllegalStateException):
    """A body from an iterator can be read only once, and was read already. Neither a new send nor the same send after a
    failover can read it (S168)."""


class InvalidClientIDException(JMSException):
    """The client id is empty, set twice, set too late, or in use at the broker (S122)."""


class InvalidDestinationException(JMSException):
    """The destination is missing, is unknown, or is a temporary destination that was deleted (S67, S68)."""


class InvalidSelectorException(JMSException):
    """The selector is not valid (S187)."""


class InvalidURLException(JMSException, ValueError):
    """The broker URL or one of its options is wrong. The text names the wrong part and the nearest right spelling."""


class JMSSecurityException(JMSException, PermissionError):
    """The broker refused the login, or the user lacks a permission."""


class MessageEOFException(JMSException, EOFError):
    """A read reached the end of a bytes or stream body before it found the whole value (S171, S174)."""


class MessageFormatException(JMSException, ValueError):
    """A value, name or conversion that JMS does not allow (S160-S162)."""


class MessageNotReadableException(JMSException):
    """The body is write-only until ``reset()`` (S171)."""


class MessageNotWriteableException(JMSException):
    """The message is read-only, because it was received, or because its completion listener has not run yet (S73,
    S163)."""


class ResourceAllocationException(JMSException):
    """A limit of the broker (AMQP ``amqp:resource-limit-exceeded``) or of the client was reached."""


class TransactionInProgressException(JMSException):
    """The operation is not allowed while a transaction is open."""


class TransactionRolledBackException(JMSException):
    """``commit()`` failed. The work of the transaction was undone, or its outcome is unknown (S79, S86, S87, S94).

    Args:
        message: the text.
        error_code: the failure in the words of the protocol.
        sent, acknowledged, in_doubt: see the attributes.

    Attributes:
        sent: the known message ids of the messages that the transaction sent, so that the caller can send them again.
        acknowledged: the known message ids of the messages that the transaction received.
        in_doubt: whether the commit was on its way when the connection was lost. Such a commit may have taken effect.
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
    """This broker, protocol or producer cannot do what the caller asked for. Nothing was done."""


class ConnectionLostException(JMSException, ConnectionError):
    """The connection to the broker failed (S128)."""


class RequestTimedOutException(JMSException, TimeoutError):
    """The broker did not answer in time, or nobody replied to a request in time. The text names the option with the
    limit."""


class SendTimedOutException(RequestTimedOutException):
    """A send was not confirmed, or got no credit, within ``jms.sendTimeout`` (S66)."""
