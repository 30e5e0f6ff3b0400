"""TLS of an embedded broker: a key store of the caller, or one that is made for the broker."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from pyjmsack.broker.certificate import write_stores
from pyjmsack.broker.errors import BrokerError
from pyjmsack.broker.private import write_private

__all__ = ["KeyStore", "Keys", "with_activemq_tls", "with_artemis_tls"]

_BROKER: Final = "broker.p12"
_TRUST: Final = "trust.pem"
_WORD: Final = "word"


@dataclass(frozen=True)
class KeyStore:
    """A key store of your own, for the TLS of an embedded broker.

    Args:
        path: a PKCS12 file, or a JKS file whose name ends in ``.jks``, with the broker's key and certificate chain.
        password: of the store and of its key.
        trust: a PEM file with the authorities that clients trust. The broker's URLs name it. ``None``: the system's.
        host: the name in the certificate, which the broker's URLs have. It must lead to 127.0.0.1.

    Raises:
        ValueError: the path or the password holds ``${``, which the brokers read as a variable.
    """

    path: str | os.PathLike[str]
    password: str = field(repr=False)
    trust: str | os.PathLike[str] | None = None
    host: str = "localhost"

    def __post_init__(self) -> None:
        if "${" in os.fspath(self.path) or "${" in self.password:
            raise ValueError("KeyStore: path and password cannot hold ${, which the brokers read as a variable")

    @property
    def _kind(self) -> str:
        return "JKS" if os.fspath(self.path).lower().endswith(".jks") else "PKCS12"

    @property
    def _file(self) -> Path:
        return Path(self.path).absolute()


class Keys:
    """The keys of one embedded broker. All starts of the broker have the same, so that its URLs stay the same.

    Args:
        wanted: ``True`` to make keys, ``False`` for none, or a store of the caller.
        directory: where keys are made, and found by a later process; ``None``: a temporary directory.

    Raises:
        BrokerError: keys shall be made, and the extra ``pkcs12`` is missing.
        FileNotFoundError: the caller's store or file of authorities does not exist.
    """

    def __init__(self, wanted: bool | KeyStore, directory: Path | None) -> None:
        self._directory = directory
        self.store: KeyStore | None = None
        """The key store; ``None``: no TLS."""
        if isinstance(wanted, KeyStore):
            for file in (wanted.path, wanted.trust):
                if file is not None:
                    Path(file).stat()
            self.store = wanted
        elif wanted:
            self.store = self._made()

    def _made(self) -> KeyStore:
        if self._directory is None:
            folder = Path(tempfile.mkdtemp(prefix="pyjmsack-tls-")).resolve()
            self.remove = weakref.finalize(self, _remove, folder, os.getpid())
        else:
            folder = self._directory / "tls"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        store, trust, secret = folder / _BROKER, folder / _TRUST, folder / _WORD
        try:
            if not (store.exists() and trust.exists() and secret.exists()):
                password = secrets.token_hex(16)
                write_stores(store, trust, password)
                write_private(secret, password.encode())
            return KeyStore(store, secret.read_text(), trust, "127.0.0.1")
        except OSError as error:
            raise BrokerError(f"The keys for TLS cannot be written: {error}. Give another data_dir.") from error

    def url(self, scheme: str, secure: str, port: int) -> str:
        """Return the URL of a port.

        Args:
            scheme: without TLS.
            secure: with TLS.
            port: of the broker.
        """
        if self.store is None:
            return f"{scheme}://127.0.0.1:{port}"
        trust = self.store.trust
        query = "" if trust is None else f"?transport.trustStoreLocation={quote(str(Path(trust).absolute()))}"
        return f"{secure}://{self.store.host}:{port}{query}"


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked copy of the owner ends, and the keys belong to the parent
        shutil.rmtree(folder, ignore_errors=True)


def with_artemis_tls(text: bytes, store: KeyStore | None) -> bytes:
    """Return a ``broker.xml`` of this package whose acceptors speak TLS."""
    if store is None:
        return text
    options = {"keyStorePath": str(store._file), "keyStorePassword": store.password, "keyStoreType": store._kind}
    # quoted twice, because Artemis decodes the query as a whole, splits it, and decodes each value again
    pairs = ";".join(f"{name}={quote(quote(value))}" for name, value in options.items())
    return text.replace(b"?protocols=", f"?sslEnabled=true;{pairs};protocols=".encode())


def with_activemq_tls(text: bytes, store: KeyStore | None) -> bytes:
    """Return an ``activemq.xml`` of this package whose connectors speak TLS."""
    if store is None:
        return text
    values = {"keyStore": store._file.as_uri(), "keyStorePassword": store.password, "keyStoreType": store._kind}
    attributes = " ".join(f"{name}={quoteattr(value)}" for name, value in values.items())
    context = f"<sslContext><sslContext {attributes}/></sslContext>\n"
    for scheme in (b"amqp", b"stomp"):
        text = text.replace(b'uri="' + scheme + b"://", b'uri="' + scheme + b"+ssl://")
    return text.replace(b"<systemUsage>", context.encode() + b"<systemUsage>", 1)
