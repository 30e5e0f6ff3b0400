"""Finds the provider for a URL scheme, the decoder for a protocol, the ledger, the tracing object, and the file of the
guard against duplicates.

Each module is imported on its first use, so that ``import pyjmsack`` is fast. Each module is imported by its name,
because no provider may depend on another provider.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

from pyjmsack.destination import Destination
from pyjmsack.errors import UnsupportedFeatureException
from pyjmsack.message import Message
from pyjmsack.spi import tracing
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.guard_file import GuardFile, Report
from pyjmsack.spi.ledger import Ledger
from pyjmsack.spi.provider import Provider
from pyjmsack.uri import BrokerUrl

__all__ = ["create_ledger", "create_provider", "create_tracing", "decode_foreign", "open_guard_file"]

ProviderFactory = Callable[[BrokerUrl, Connector], Provider]

_FACTORIES = {
    "amqp": ("pyjmsack.providers.amqp.provider", "AmqpProvider"),
    "amqps": ("pyjmsack.providers.amqp.provider", "AmqpProvider"),
    "amqpws": ("pyjmsack.providers.amqp.provider", "AmqpProvider"),
    "amqpwss": ("pyjmsack.providers.amqp.provider", "AmqpProvider"),
    "failover": ("pyjmsack.providers.failover.provider", "FailoverProvider"),
    "stomp": ("pyjmsack.providers.stomp.provider", "StompProvider"),
    "stomp+ssl": ("pyjmsack.providers.stomp.provider", "StompProvider"),
    "stomp+ws": ("pyjmsack.providers.stomp.provider", "StompProvider"),
    "stomp+wss": ("pyjmsack.providers.stomp.provider", "StompProvider"),
}


def create_provider(url: BrokerUrl, connector: Connector) -> Provider:
    """Return a new provider for ``url.scheme``. The provider is not connected yet.

    Raises:
        UnsupportedFeatureException: there is no provider for the scheme, or a library that the provider needs is not
            installed.
    """
    if url.scheme not in _FACTORIES:
        raise UnsupportedFeatureException(f"pyjmsack can read {url.scheme} URLs, but cannot connect to them yet")
    module, name = _FACTORIES[url.scheme]
    try:
        factory = cast(ProviderFactory, getattr(import_module(module), name))
    except ModuleNotFoundError as error:
        raise UnsupportedFeatureException(f"{url.scheme} URLs need {error.name}, which is not installed") from error
    return factory(url, connector)


def create_ledger(path: str | os.PathLike[str]) -> Ledger:
    """Return an object that writes the records of one new connection into the ledger in this directory.

    Raises:
        JMSException: the directory cannot be created or written to.
    """
    return cast(Callable[[object], Ledger], import_module("pyjmsack.ledger").Ledger)(path)


def create_tracing(option: str) -> tracing.Tracing | None:
    """Return the tracing object of a new connection, or ``None`` if the connection is not traced.

    Args:
        option: the value of ``jms.tracing``. With ``opentelemetry``, the connection is traced even if no factory is
            installed.
    """
    installed = tracing.create()
    if installed is None and option == "opentelemetry":
        return cast(Callable[[], tracing.Tracing], import_module("pyjmsack.otel").create_tracing)()
    return installed


def open_guard_file(path: str, size: int, report: Report) -> GuardFile:
    """Return the file in which the guard remembers processed messages; see ``pyjmsack.io.guard_file``."""
    opener = import_module("pyjmsack.io.guard_file").open_guard_file
    return cast(Callable[[str, int, Report], GuardFile], opener)(path, size, report)


class _Encoded(Protocol):
    def to_message(self, consumer_destination: Destination | None, /) -> Message: ...


_DECODERS = {"amqp": ("pyjmsack.providers.amqp.inbound", "AmqpInbound")}


def decode_foreign(protocol: str, payload: bytes, destination: Destination | None) -> Message:
    """Return the message whose ``payload`` is encoded in another protocol.

    A consumer needs this because ActiveMQ Classic delivers some messages in the encoding of AMQP.

    Raises:
        MessageFormatException: the payload cannot be decoded.
    """
    module, name = _DECODERS[protocol]
    decoder = cast(Callable[[bytes], _Encoded], getattr(import_module(module), name))
    return decoder(payload).to_message(destination)
