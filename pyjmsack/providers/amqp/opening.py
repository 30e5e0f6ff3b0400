"""Helpers to open a connection. They make the engine, the login and our Open frame, and read the Open frame of the
broker."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyjmsack.errors import UnsupportedFeatureException
from pyjmsack.extras import missing_extra
from pyjmsack.providers.amqp.dialect import AmqpDialect, dialect_of
from pyjmsack.providers.amqp.engine.performatives import Open
from pyjmsack.providers.amqp.engines import AmqpEngine, EngineListener, EngineOptions
from pyjmsack.providers.amqp.python_engine import PythonEngine
from pyjmsack.providers.amqp.sasl import SaslClient
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.features import Capabilities, broker_key
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata
from pyjmsack.uri import BrokerUrl
from pyjmsack.version import VERSION

if TYPE_CHECKING:
    from pyjmsack.providers.amqp.proton_engine import ProtonEngine

__all__ = ["engine_class", "find_dialect", "hostname_of", "metadata_of", "new_engine", "our_open"]

_DESIRED = ("ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS")
_EXCLUSIVE_CLIENT_ID = "sole-connection-for-container"


def engine_class(name: str) -> type[PythonEngine] | type[ProtonEngine]:
    """Return the engine class that ``amqp.engine`` names.

    Raises:
        UnsupportedFeatureException: the package of the engine is not installed.
    """
    if name == "python":
        return PythonEngine
    try:
        from pyjmsack.providers.amqp.proton_engine import ProtonEngine
    except ImportError as missing:
        raise UnsupportedFeatureException(missing_extra("proton", "amqp.engine=proton", missing)) from missing
    return ProtonEngine


def new_engine(url: BrokerUrl, info: ConnectionInfo, listener: EngineListener, connector: Connector) -> AmqpEngine:
    """Return a new engine with the settings of the URL. The connector has threads for long work.

    Raises:
        UnsupportedFeatureException: the package of the engine is not installed.
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
            elsewhere=connector.elsewhere,
        )

    return engine_class(amqp.engine)(listener, login if amqp.sasl_layer else None, options)


def _has_certificate(url: BrokerUrl) -> bool:
    """Return True if the mechanism EXTERNAL may be used, which needs a client certificate.

    Only the URL shows this, because an ``ssl.SSLContext`` does not show whether it has a certificate.
    """
    named = "EXTERNAL" in (name.upper() for name in url.amqp.sasl_mechanisms)
    return named or url.transport.key_store_location is not None


def hostname_of(url: BrokerUrl) -> str:
    """Return the host name for SASL and the Open frame: ``amqp.vhost``, or the host of the URL."""
    return url.endpoints[0].host if url.amqp.vhost is None else url.amqp.vhost


def our_open(url: BrokerUrl, info: ConnectionInfo) -> Open:
    """Return the Open frame of this client."""
    return Open(
        container_id=info.client_id,
        hostname=hostname_of(url) or None,
        desired_capabilities=_DESIRED + ((_EXCLUSIVE_CLIENT_ID,) if info.explicit_client_id else ()),
        properties={
            "product": "pyjmsack",
            "version": VERSION,
            "platform": f"Python/{platform.python_version()}",
        },
    )


def find_dialect(url: BrokerUrl, properties: Mapping[str, object]) -> AmqpDialect:
    """Return the dialect of a broker. ``properties`` are the properties in the Open frame of the broker."""
    named = broker_key(str(properties.get("product", "")), str(properties.get("version", "")))
    options = url.connection
    return dialect_of(url.broker or named, properties, options.queue_prefix, options.topic_prefix)


def metadata_of(url: BrokerUrl, engine: AmqpEngine, dialect: AmqpDialect) -> ConnectionMetadata:
    """Return the facts about the broker from its Open frame."""
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
