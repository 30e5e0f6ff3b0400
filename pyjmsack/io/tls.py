"""Makes the TLS context of a connection from the ``transport.*`` options, or uses the context of the application."""

from __future__ import annotations

import ssl
from typing import Final

from pyjmsack.errors import InvalidURLException, JMSSecurityException
from pyjmsack.io.cipher_suites import restrict_suites, restrict_versions
from pyjmsack.io.key_stores import Store
from pyjmsack.loggers import get_logger
from pyjmsack.uri import Endpoint, Secret, TransportOptions

__all__ = ["client_context", "handshake_error", "refusal"]

logger = get_logger("pyjmsack")
_UNKNOWN_AUTHORITY: Final = (18, 19, 20, 21)
"""OpenSSL's error codes for a certificate that no trusted authority has signed."""

_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "UNKNOWN_PROTOCOL")
"""The reasons that OpenSSL gives when the answer of the broker is not TLS."""

_CERTIFICATE_ALERTS: Final = frozenset(
    (
        "BAD_CERTIFICATE",
        "UNSUPPORTED_CERTIFICATE",
        "CERTIFICATE_REVOKED",
        "CERTIFICATE_EXPIRED",
        "CERTIFICATE_UNKNOWN",
        "CERTIFICATE_REQUIRED",
        "UNKNOWN_CA",
        "ACCESS_DENIED",
    )
)
"""The alerts with which a broker refuses a certificate (RFC 8446 6.2), by the names of OpenSSL."""


def client_context(transport: TransportOptions, ssl_context: ssl.SSLContext | None) -> ssl.SSLContext:
    """Return the TLS context for a connection. A context of the application is used without changes.

    Raises:
        InvalidURLException: a store cannot be read, a password is wrong, or the options leave no version or suite.
        UnsupportedFeatureException: a store is in a Java format; the text names the command that converts it.
    """
    if ssl_context is not None:
        if ignored := transport.tls_options():
            logger.warning("%s: no effect, because an ssl_context is given", ", ".join(ignored))
        return ssl_context
    trust, key = _stores(transport)
    context = ssl.create_default_context() if trust is None else trust.trusting()
    restrict_versions(context, transport)
    restrict_suites(context, transport)
    if key is not None:
        key.load_key(context)
    context.check_hostname = transport.verify_host
    if transport.trust_all:
        logger.warning("transport.trustAll=true: the certificate is not verified, so anyone can pose as the broker")
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif not transport.verify_host:
        logger.warning("transport.verifyHost=false: any host with a trusted certificate can pose as the broker")
    return context


def _stores(transport: TransportOptions) -> tuple[Store | None, Store | None]:
    """Return the trust store and the key store that the options name, or ``None`` for a store that is not given."""
    trust = _store(
        "trustStore",
        transport.trust_store_location,
        transport.trust_store_password,
        transport.trust_store_type or transport.store_type,
    )
    key = _store(
        "keyStore",
        transport.key_store_location,
        transport.key_store_password,
        transport.key_store_type or transport.store_type,
    )
    return trust, key


def _store(kind: str, path: str | None, password: Secret | None, store_type: str | None) -> Store | None:
    if path is not None:
        return Store(kind, path, password, store_type)
    if password is not None:
        raise InvalidURLException(
            f"transport.{kind}Password is given without transport.{kind}Location; give both or none"
        )
    return None


def handshake_error(endpoint: Endpoint, error: ssl.SSLError) -> JMSSecurityException:
    """Return the JMS exception for a failed TLS handshake."""
    code, hint = "tls:handshake", ""
    if isinstance(error, ssl.SSLCertVerificationError):
        code = "tls:certificate"
        if error.verify_code in _UNKNOWN_AUTHORITY:
            hint = "; transport.trustStoreLocation names the authorities to trust"
    elif error.reason in _NO_TLS:
        hint = "; this port does not speak TLS: try a scheme without TLS, amqp:// or stomp://, or another port"
    return JMSSecurityException(f"TLS with {endpoint} failed: {error}{hint}", error_code=code)


def refusal(error: Exception | None) -> JMSSecurityException | None:
    """Return the JMS exception for a client certificate that the broker refused after the handshake.

    This happens only in TLS 1.3, in which the handshake of the client ends before the broker checks the certificate.
    Returns ``None`` for other errors, also for an alert about something else, such as a damaged record.
    """
    if not isinstance(error, ssl.SSLError) or (error.reason or "").partition("_ALERT_")[2] not in _CERTIFICATE_ALERTS:
        return None
    refused = JMSSecurityException(
        f"the broker ended TLS: {error}; check the client's certificate, in transport.keyStoreLocation or in the"
        " ssl_context",
        error_code="tls:certificate",
    )
    refused.__cause__ = error
    return refused
