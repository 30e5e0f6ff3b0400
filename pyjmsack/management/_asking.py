"""The common part of both faces of the manager: the verbs of a broker, and the run of steps."""

from __future__ import annotations

from pyjmsack import JMSException, JMSSecurityException, UnsupportedFeatureException
from pyjmsack.management.artemis import Artemis, forbidden
from pyjmsack.management.classic import Classic

__all__ = ["TIMEOUT", "Verbs", "explained", "verbs_of"]

TIMEOUT = 30.0
Verbs = Artemis | Classic


def verbs_of(broker: str) -> Artemis:
    """Return the verbs of a broker.

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


def explained(error: JMSException) -> JMSException:
    """Return the error to raise. A refused management message becomes an error that names the missing permission."""
    return forbidden(error) if isinstance(error, JMSSecurityException) else error
