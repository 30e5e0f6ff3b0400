"""The common part of the managers of both faces: it chooses the requests that a broker understands, and turns an answer
with an error into an exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyjmsack import JMSException, JMSSecurityException, UnsupportedFeatureException
from pyjmsack.management.artemis import Artemis, forbidden
from pyjmsack.management.classic import Classic

__all__ = ["TIMEOUT", "Verbs", "explained", "understood", "verbs_of"]

TIMEOUT = 30.0
_SHOWN = 200
"""The largest number of characters of a reason that an error shows."""
_REFUSED_SEND = "AMQ339011"
"""The code of the error by which Artemis refuses a message over STOMP. The error names no reason. For a management
message the only possible reason is a missing permission, because Artemis does not store such messages."""
Verbs = Artemis | Classic


def verbs_of(broker: str) -> Artemis:
    """Return the object that makes the requests to a broker and reads its answers.

    Args:
        broker: ``connection.metadata.broker``.

    Raises:
        UnsupportedFeatureException: this broker reads no management messages.
    """
    if broker.startswith("classic"):
        raise UnsupportedFeatureException(
            "ActiveMQ Classic takes no management messages; give the URL of Jolokia, such as"
            " http://NAME:PASSWORD@HOST:8161/api/jolokia (--jolokia, PYJMSACK_JOLOKIA)"
        )
    return Artemis()


@contextmanager
def understood() -> Iterator[None]:
    """Return a context manager for code that reads an answer. An error in this code means that the answer has an
    unexpected form, and becomes a ``JMSException``.
    """
    try:
        yield
    except JMSException:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        text = f"{type(error).__name__}: {error}"[:_SHOWN]
        raise JMSException(f"the broker's answer does not have the expected form: {text}") from error


def explained(error: JMSException) -> JMSException:
    """Return the error to raise in the place of ``error``. If the broker refused a management message, the returned
    error names the missing permissions. Otherwise the same error is returned.
    """
    if error.error_code == _REFUSED_SEND:
        return forbidden("over STOMP the broker refused the request without a reason")
    return forbidden(error) if isinstance(error, JMSSecurityException) else error
