"""What opening a connection takes: the engine, the login, our Open, and what the broker said of itself."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

from pyjmsack.errors import UnsupportedFeatureException
from pyjmsack.extras import missing_extra
from pyjmsack.providers.amqp.dialect import AmqpDialect, dialect_of
from pyjmsack.providers.amqp.engine.performatives import Open
from pyjmsack.providers.amqp.engines import AmqpEngine, EngineListener, EngineOptions
from pyjmsack.providers.amqp.python_engine import PythonEngine
from pyjmsack.providers.amqp.sasl import SaslClient
from pyjmsack.spi.features import Capabilities, broker_key
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata
from pyjmsack.uri import BrokerUrl

if TYPE_CHECKING:
    from pyjmsack.providers.amqp.proton_engine import ProtonEngine

__all__ = ["engine_class", "find_dialect", "hostname_of", "metadata_of", "new_engine", "our_open"]

_DESIRED = ("ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS")
_EXCLUSIVE_CLIENT_ID = "sole-connection-for-container"
_VERSION = version("pyjmsack")


def engine_class(name: str) -> type[PythonEngine] | type[ProtonEngine]:
    """Return the engine that ``amqp.engine`` names.

    Raises:
        UnsupportedFeatureException: its package is not installed.
    """
    if name == "python":
        return PythonEngine
    try:
        from pyjmsack.providers.amqp.proton_engine import ProtonEngine
    except ImportError as missing:
        raise UnsupportedFeatureException(missing_extra("proton", "amqp.engine=proton", missing)) from missing
    return ProtonEngine


def new_engine(url: BrokerUrl, info: ConnectionInfo, listener: EngineListener) -> AmqpEngine:
    """Return an engine as the URL wants it.

    Raises:
        UnsupportedFeatureException: its package is not installed.
    """
    amqp = url.amqp
    options = EngineOptions(
        max_frame_size=amqp.max_frame_size,
        channel_max=amqp.channel_max,
        idle_timeout=amqp.idle_timeout,
        trace=amqp.trace_frames_payload_limit if amqp.trace_frames else None,
        trace_bytes=url.transport.trace_bytes,
    )

    def login(encrypted: bool) -> SaslClient:
        return SaslClient(
            info.username,
            info.password,
            external=encrypted and _has_certificate(url),
            allowed=amqp.sasl_mechanisms,
            hostname=hostname_of(url),
        )

    return engine_class(amqp.engine)(listener, login if amqp.sasl_layer else None, options)


def _has_certificate(url: BrokerUrl) -> bool:
    """Whether to offer EXTERNAL; an ``ssl.SSLContext`` cannot be asked for its certificate, so the URL says it."""
    named = "EXTERNAL" in (name.upper() for name in url.amqp.sasl_mechanisms)
    return named or url.transport.key_store_location is not None


def hostname_of(url: BrokerUrl) -> str:
    """Return the name of the host for SASL and Open."""
    return url.endpoints[0].host if url.amqp.vhost is None else url.amqp.vhost


def our_open(url: BrokerUrl, info: ConnectionInfo) -> Open:
    """Return the Open frame of this client."""
    return Open(
        container_id=info.client_id,
        hostname=hostname_of(url) or None,
        desired_capabilities=_DESIRED + ((_EXCLUSIVE_CLIENT_ID,) if info.explicit_client_id else ()),
        properties={
            "product": "pyjmsack",
            "version": _VERSION,
            "platform": f"Python/{platform.python_version()}",
        },
    )


def find_dialect(url: BrokerUrl, properties: Mapping[str, object]) -> AmqpDialect:
    """Return how the broker with these properties differs from others."""
    named = broker_key(str(properties.get("product", "")), str(properties.get("version", "")))
    options = url.connection
    return dialect_of(url.broker or named, properties, options.queue_prefix, options.topic_prefix)


def metadata_of(url: BrokerUrl, engine: AmqpEngine, dialect: AmqpDialect) -> ConnectionMetadata:
    """Return what is known of the broker when its Open is here."""
    properties = dict(engine.remote.properties or {})
    offered = set(engine.remote.offered_capabilities)
    return ConnectionMetadata(
        protocol="AMQP 1.0",
        broker_name=str(properties.get("product", "unknown")),
        broker_version=str(properties.get("version", "unknown")),
        provider_version=engine.name,
        capabilities=Capabilities(dialect.features(offered, scheduler=url.scheduler), offered),
        properties=properties,
        broker=dialect.broker,
        url=str(url),
        encrypted=url.endpoints[0].tls,
    )
