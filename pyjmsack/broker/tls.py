"""TLS of an embedded broker: a key store of the caller, or one that is made for the broker."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from pyjmsack.broker.certificate import BROKER, CLIENT, CLIENTS, TRUST, write_stores
from pyjmsack.broker.errors import BrokerError
from pyjmsack.broker.private import write_private

__all__ = ["KeyStore", "Keys", "Tls", "with_activemq_tls", "with_artemis_tls"]

_WORD: Final = "word"
_MADE: Final = (BROKER, TRUST, CLIENT, CLIENTS, _WORD)


@dataclass(frozen=True)
class KeyStore:
    """A key store of your own, for the TLS of an embedded broker.

    Args:
        path: a PKCS12 file, or a JKS file whose name ends in ``.jks``, with the broker's key and certificate chain.
        password: the password of the store and of its key.
        trust: a PEM file with the authorities that clients trust. The broker's URLs name it. ``None`` means the
            authorities of the system.
        host: the name in the certificate. The broker's URLs have this name, which must lead to 127.0.0.1.
        clients: a trust store for Java with the authorities of clients, as ``keytool -importcert`` makes it: a PKCS12
            or JKS file with the same password. A client must then show a certificate of one of these authorities.
            ``None`` means that clients need no certificate.
        client: a PEM file with a certificate and a key for clients. The broker's URLs name it. ``None`` means that the
            URLs name no such file.

    Raises:
        ValueError: a path or the password contains ``${``, which the brokers read as a variable.
    """

    path: str | os.PathLike[str]
    password: str = field(repr=False)
    trust: str | os.PathLike[str] | None = None
    host: str = "localhost"
    clients: str | os.PathLike[str] | None = None
    client: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if any("${" in os.fspath(text) for text in (self.path, self.password, self.clients or "")):
            raise ValueError("KeyStore: paths and password cannot hold ${, which the brokers read as a variable")

    def _stores(self) -> Iterator[tuple[str, Path, str]]:
        """Yield each store: its name in the options of the brokers, its file, and its kind."""
        for name, store in (("keyStore", self.path), ("trustStore", self.clients)):
            if store is not None:
                yield name, Path(store).absolute(), "JKS" if os.fspath(store).lower().endswith(".jks") else "PKCS12"


Tls = bool | Literal["mutual"] | KeyStore
"""The type of the argument ``tls`` of an embedded broker."""


class Keys:
    """The keys of one embedded broker. All starts of the broker have the same keys, so that its URLs stay the same.

    Args:
        wanted: ``True`` to make keys, ``"mutual"`` to ask clients for a certificate too, ``False`` for no TLS, or a key
            store of the caller.
        directory: where made keys are kept for later processes. ``None`` means a temporary directory.

    Raises:
        BrokerError: ``wanted`` asks to make keys, and the extra ``pkcs12`` is missing.
        FileNotFoundError: a file of the caller does not exist.
        ValueError: ``wanted`` is another text.
    """

    def __init__(self, wanted: Tls, directory: Path | None) -> None:
        self._directory = directory
        self.store: KeyStore | None = None
        """The key store. ``None`` means that the broker has no TLS."""
        if isinstance(wanted, KeyStore):
            for file in (wanted.path, wanted.trust, wanted.clients, wanted.client):
                if file is not None:
                    Path(file).stat()
            self.store = wanted
        elif isinstance(wanted, str) and wanted != "mutual":
            raise ValueError(f"tls: expected True, False, 'mutual' or a KeyStore, not {wanted!r}")
        elif wanted:
            self.store = self._made(wanted == "mutual")

    def _made(self, mutual: bool) -> KeyStore:
        if self._directory is None:
            folder = Path(tempfile.mkdtemp(prefix="pyjmsack-tls-")).resolve()
            self.remove = weakref.finalize(self, _remove, folder, os.getpid())
        else:
            folder = self._directory / "tls"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            if not all((folder / name).exists() for name in _MADE):
                (folder / _WORD).unlink(missing_ok=True)  # so that a kill now leaves no password of older stores
                password = secrets.token_hex(16)
                write_stores(folder, password)
                write_private(folder / _WORD, password.encode())
            password = (folder / _WORD).read_text()
            clients, client = (folder / CLIENTS, folder / CLIENT) if mutual else (None, None)
            return KeyStore(folder / BROKER, password, folder / TRUST, "127.0.0.1", clients, client)
        except OSError as error:
            raise BrokerError(f"The keys for TLS cannot be written: {error}. Give another data_dir.") from error

    def url(self, scheme: str, secure: str, port: int) -> str:
        """Return the URL of a port of the broker, with the files that a client needs for TLS.

        Args:
            scheme: the scheme of a broker without TLS.
            secure: the scheme of a broker with TLS.
            port: the port of the broker.
        """
        if self.store is None:
            return f"{scheme}://127.0.0.1:{port}"
        files = {"transport.trustStoreLocation": self.trust, "transport.keyStoreLocation": self.client}
        query = "&".join(f"{name}={quote(str(file))}" for name, file in files.items() if file is not None)
        return f"{secure}://{self.store.host}:{port}" + (query and f"?{query}")

    @property
    def trust(self) -> Path | None:
        """The file with the authorities that clients trust. ``None`` means that clients trust the authorities of the
        system, or that there is no TLS.
        """
        return None if self.store is None else _absolute(self.store.trust)

    @property
    def client(self) -> Path | None:
        """The file with a certificate and a key for clients. ``None`` means that there is no such file."""
        return None if self.store is None else _absolute(self.store.client)


def _absolute(file: str | os.PathLike[str] | None) -> Path | None:
    return None if file is None else Path(file).absolute()


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child of the owner must not remove the keys
        shutil.rmtree(folder, ignore_errors=True)


def with_artemis_tls(text: bytes, store: KeyStore | None) -> bytes:
    """Return a ``broker.xml`` of this package whose acceptors speak TLS."""
    if store is None:
        return text
    options = {"sslEnabled": "true", "needClientAuth": str(store.clients is not None).lower()}
    for name, file, kind in store._stores():
        options |= {f"{name}Path": str(file), f"{name}Password": store.password, f"{name}Type": kind}
    # quoted twice, because Artemis decodes the query as a whole, splits it, and decodes each value again
    pairs = ";".join(f"{name}={quote(quote(value))}" for name, value in options.items())
    return text.replace(b"?protocols=", f"?{pairs};protocols=".encode())


def with_activemq_tls(text: bytes, store: KeyStore | None) -> bytes:
    """Return an ``activemq.xml`` of this package whose connectors speak TLS."""
    if store is None:
        return text
    values: dict[str, str] = {}
    for name, file, kind in store._stores():
        values |= {name: file.as_uri(), f"{name}Password": store.password, f"{name}Type": kind}
    attributes = " ".join(f"{name}={quoteattr(value)}" for name, value in values.items())
    context = f"<sslContext><sslContext {attributes}/></sslContext>\n"
    secure = rf'uri="\1+ssl\2?transport.needClientAuth={str(store.clients is not None).lower()}&amp;'
    text = re.sub(rb'uri="(amqp|stomp)(://[^"?]*)\?', secure.encode(), text)
    return text.replace(b"<systemUsage>", context.encode() + b"<systemUsage>", 1)
