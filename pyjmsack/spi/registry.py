"""URL scheme -> provider. Providers are imported on first use, so that ``import pyjmsack`` stays light."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from pyjmsack.errors import UnsupportedFeatureException
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.provider import Provider
from pyjmsack.uri import BrokerUrl

__all__ = ["create_provider"]

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
    """Return a new, unconnected provider for ``url.scheme`` (which ``uri`` has checked).

    Raises:
        UnsupportedFeatureException: there is none for the scheme, or a library that it needs is not installed.
    """
    if url.scheme not in _FACTORIES:
        raise UnsupportedFeatureException(f"{url.scheme} URLs are understood, but cannot be connected to yet")
    module, name = _FACTORIES[url.scheme]
    try:
        factory = cast(ProviderFactory, getattr(import_module(module), name))
    except ModuleNotFoundError as error:
        raise UnsupportedFeatureException(f"{url.scheme} URLs need {error.name}, which is not installed") from error
    return factory(url, connector)
