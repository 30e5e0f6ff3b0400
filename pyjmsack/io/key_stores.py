"""Reads key stores and trust stores for TLS.

PEM files are read directly, and PKCS12 files after a conversion. The formats of Java are refused, and the error shows
the commands that convert a Java store.
"""

from __future__ import annotations

import secrets
import shlex
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.extras import missing_extra
from pyjmsack.uri import Secret, store_conversion

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

__all__ = ["Store"]

_MAGIC: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
"""The first bytes of a file in each format of Java. Java also recognises the formats by these bytes."""


@dataclass(frozen=True)
class Store:
    """One key store or trust store that the options of the URL name.

    Attributes:
        kind: "keyStore" or "trustStore", as in ``transport.keyStoreLocation``.
        path: the path of the file.
        password: the password of the private key of a PEM file, or of a whole PKCS12 file.
        type: PEM or PKCS12. ``None`` means that the content of the file decides.
    """

    kind: str
    path: str
    password: Secret | None
    type: str | None

    def trusting(self) -> ssl.SSLContext:
        """Return a context that trusts the authorities in the store, and no others.

        Raises:
            InvalidURLException: the store cannot be read, or contains no certificate of an authority.
            UnsupportedFeatureException: the store is in a format that Python cannot read.
        """
        if self._format() == "PKCS12":
            return ssl.create_default_context(cadata=self._authorities())
        if self.password is not None:
            raise InvalidURLException(
                f"transport.{self.kind}Password is given, but a PEM {self.kind} has no password: remove the option"
            )
        try:
            return ssl.create_default_context(cafile=self.path)
        except (OSError, ValueError) as error:
            raise InvalidURLException(f"{self}: expected PEM certificates: {error}") from error

    def load_key(self, context: ssl.SSLContext) -> None:
        """Let the context present the certificate in the store to the broker.

        Raises:
            InvalidURLException: the store cannot be read or contains no private key, or the password is wrong.
            UnsupportedFeatureException: the store is in a format that Python cannot read.
        """
        if self._format() == "PKCS12":
            self._load_pkcs12(context)
            return
        try:
            # without a password argument OpenSSL would ask for one on the terminal
            context.load_cert_chain(self.path, password=self.password.reveal() if self.password else "")
        except (OSError, ValueError) as error:
            raise InvalidURLException(
                f"{self}: expected a PEM certificate chain with its private key, and the key's password in"
                f" transport.{self.kind}Password if it has one: {error}"
            ) from error

    def __str__(self) -> str:
        return f"transport.{self.kind}Location={self.path}"

    def _read(self) -> bytes:
        try:
            return Path(self.path).read_bytes()
        except (OSError, ValueError) as error:
            raise InvalidURLException(f"{self}: cannot be read: {error}") from error

    def _format(self) -> str:
        """Return "PEM" or "PKCS12", as the content of the file shows. Raise an error if the options name another
        format."""
        data = self._read()
        found = "PEM" if b"-----BEGIN " in data else _MAGIC.get(data[:4])
        if found is None and data[:1] == b"\x30":  # an ASN.1 sequence
            found = "PKCS12"
        if found is None:
            raise InvalidURLException(f"{self}: expected a PEM or PKCS12 file")
        if found in _MAGIC.values():
            raise UnsupportedFeatureException(
                f"{self}: {found} stores cannot be read; {store_conversion(found, shlex.quote(self.path))}"
            )
        if self.type not in (None, found):
            raise InvalidURLException(f"{self}: the options say that the store is {self.type}, but the file is {found}")
        return found

    def _authorities(self) -> bytes:
        content = self._decrypt()
        certificates = [entry.certificate for entry in (content.cert, *content.additional_certs) if entry is not None]
        if not certificates:
            raise InvalidURLException(f"{self}: the store contains no certificates")
        from cryptography.hazmat.primitives.serialization import Encoding

        return b"".join(one.public_bytes(Encoding.DER) for one in certificates)

    def _load_pkcs12(self, context: ssl.SSLContext) -> None:
        """Load the key of a PKCS12 store.

        Python loads keys only from PEM files. Therefore this method writes the encrypted key to a temporary file for a
        moment.
        """
        from cryptography.hazmat.primitives import serialization

        content = self._decrypt()
        if content.key is None or content.cert is None:
            raise InvalidURLException(f"{self}: the store contains no private key with its certificate")
        password = secrets.token_urlsafe()
        pem = content.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password.encode()),
        )
        for entry in (content.cert, *content.additional_certs):
            pem += entry.certificate.public_bytes(serialization.Encoding.PEM)
        with tempfile.TemporaryDirectory(prefix="pyjmsack-") as folder:
            path = Path(folder, "key.pem")
            path.write_bytes(pem)
            context.load_cert_chain(path, password=password)

    def _decrypt(self) -> PKCS12KeyAndCertificates:
        try:
            from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
        except ImportError as error:
            raise UnsupportedFeatureException(
                f"{self}: {missing_extra('pkcs12', 'Reading a PKCS12 store', error)}, or"
                f" {store_conversion('PKCS12', shlex.quote(self.path))}"
            ) from error
        password = self.password.reveal().encode() if self.password else None
        try:
            return load_pkcs12(self._read(), password)
        except Exception as error:  # ValueError, and the error of cryptography for unknown algorithms
            raise InvalidURLException(
                f"{self}: expected a PKCS12 file, and its password in transport.{self.kind}Password: {error}"
            ) from None  # because the traceback of the cause would contain the password
