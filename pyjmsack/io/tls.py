"""The TLS context of a connection, from the ``transport.*`` options or from the application."""

from __future__ import annotations

import logging
import shlex
import ssl
from pathlib import Path
from typing import Final

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.uri import TransportOptions, store_conversion

__all__ = ["client_context"]

logger = logging.getLogger("pyjmsack")
_HIGHEST: Final = {
    "TLS": ssl.TLSVersion.MAXIMUM_SUPPORTED,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_MAGIC: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}


def client_context(transport: TransportOptions, ssl_context: ssl.SSLContext | None) -> ssl.SSLContext:
    """Return the context with which to connect; one that the application gives is used as it is.

    Raises:
        InvalidURLException: a store cannot be read, or the password of the key is wrong.
        UnsupportedFeatureException: a store is in a Java format; the text names the command that converts it.
    """
    if ssl_context is not None:
        if ignored := transport.tls_options():
            logger.warning("%s: no effect, as an ssl_context is given", ", ".join(ignored))
        return ssl_context
    context = _trusting(transport.trust_store_location)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = _HIGHEST[transport.context_protocol]
    _load_key(context, transport)
    context.check_hostname = transport.verify_host
    if transport.trust_all:
        logger.warning("transport.trustAll=true: the certificate is not verified, anyone can pose as the broker")
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _trusting(path: str | None) -> ssl.SSLContext:
    """Return a context that trusts the authorities in the file; ``None`` trusts those of the system."""
    if path is None:
        return ssl.create_default_context()
    name = "transport.trustStoreLocation"
    _require_pem(name, path)
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ValueError) as error:
        raise InvalidURLException(f"{name}={path}: expected PEM certificates: {error}") from error


def _load_key(context: ssl.SSLContext, transport: TransportOptions) -> None:
    name, path, password = "transport.keyStoreLocation", transport.key_store_location, transport.key_store_password
    if path is None:
        if password is not None:
            raise InvalidURLException(f"transport.keyStorePassword is given without {name}")
        return
    _require_pem(name, path)
    try:
        # without a password argument OpenSSL would ask for one on the terminal
        context.load_cert_chain(path, password=password.reveal() if password else "")
    except (OSError, ValueError) as error:
        raise InvalidURLException(
            f"{name}={path}: expected a PEM certificate chain with its private key, and the key's password in"
            f" transport.keyStorePassword if it has one: {error}"
        ) from error


def _require_pem(name: str, path: str) -> None:
    """Refuse a file that cannot be read or is in another format; Java tells formats by these first bytes as well."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidURLException(f"{name}={path}: cannot be read: {error}") from error
    if b"-----BEGIN " in data:
        return
    store_type = _MAGIC.get(data[:4]) or ("PKCS12" if data[:1] == b"\x30" else None)
    if store_type is None:
        raise InvalidURLException(f"{name}={path}: expected a PEM file")
    raise UnsupportedFeatureException(f"{name}={path}: {store_conversion(store_type, shlex.quote(path))}")
