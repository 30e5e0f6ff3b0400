"""The schemes of broker URLs, the address of a broker, and the options of the stream (TCP, TLS, WebSocket)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, NamedTuple

from pyjmsack.errors import InvalidURLException
from pyjmsack.uri.option import (
    BOOLEAN,
    BYTES_OR_SYSTEM,
    BYTES_OR_UNLIMITED,
    COUNT_OR_UNLIMITED,
    LIST,
    METADATA_KEY,
    MILLIS_OR_FOREVER,
    NAME,
    PASSWORD,
    PORT,
    STORE_TYPE,
    Secret,
    choice,
    integer,
    names,
    option,
)

__all__ = [
    "SCHEMES",
    "Endpoint",
    "Scheme",
    "TransportOptions",
    "is_websocket_header",
    "websocket_headers",
]


class Scheme(NamedTuple):
    """The protocol and the transport that the scheme of a URL names."""

    protocol: str
    tls: bool
    port: int
    websocket: str = ""
    """The sub-protocol of the WebSocket. Empty for a scheme without WebSocket."""


SCHEMES: Final[Mapping[str, Scheme]] = {
    "amqp": Scheme("amqp", False, 5672),
    "amqps": Scheme("amqp", True, 5671),
    "stomp": Scheme("stomp", False, 61613),
    "stomp+ssl": Scheme("stomp", True, 61614),
    "amqpws": Scheme("amqp", False, 80, "amqp"),
    "amqpwss": Scheme("amqp", True, 443, "amqp"),
    "stomp+ws": Scheme("stomp", False, 80, "v12.stomp"),
    "stomp+wss": Scheme("stomp", True, 443, "v12.stomp"),
}
"""The schemes for the URL of a single broker. Each scheme has a default port."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of a broker. An IPv6 ``host`` has no brackets."""

    scheme: str
    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        host = f"[{self.host.replace('%', '%25')}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


_TLS_FIELDS: Final = frozenset(
    [
        "trust_store_location",
        "trust_store_password",
        "trust_store_type",
        "key_store_location",
        "key_store_password",
        "key_store_type",
        "store_type",
        "context_protocol",
        "enabled_protocols",
        "disabled_protocols",
        "enabled_cipher_suites",
        "disabled_cipher_suites",
        "verify_host",
        "trust_all",
    ]
)
_PROTOCOLS = names("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
_TLS_VERSION = choice({"TLS": "TLS", "TLSv1.2": "TLSv1.2", "TLSv1.3": "TLSv1.3"})


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """The ``transport.*`` options, which are for TCP, TLS and WebSocket."""

    connect_timeout: float | None = option(
        "transport.connectTimeout",
        MILLIS_OR_FOREVER,
        "60000",
        "limit for the TCP connect and the TLS handshake",
        also="connectionTimeout",
    )
    tcp_no_delay: bool = option(
        "transport.tcpNoDelay", BOOLEAN, "true", "set TCP_NODELAY, and on Linux TCP_QUICKACK", also="tcpNoDelay"
    )
    tcp_keep_alive: bool = option("transport.tcpKeepAlive", BOOLEAN, "false", "SO_KEEPALIVE", also="keepAlive")
    so_linger: int | None = option(
        "transport.soLinger",
        COUNT_OR_UNLIMITED,
        "-1",
        "SO_LINGER, in seconds; -1 keeps the system's default",
        also="soLinger",
    )
    traffic_class: int = option("transport.trafficClass", integer(0, 255), "0", "IP_TOS", also="trafficClass")
    send_buffer_size: int | None = option(
        "transport.sendBufferSize", BYTES_OR_SYSTEM, "65536", "SO_SNDBUF; -1 keeps the system's default"
    )
    receive_buffer_size: int | None = option(
        "transport.receiveBufferSize", BYTES_OR_SYSTEM, "65536", "SO_RCVBUF; -1 keeps the system's default"
    )
    local_address: str | None = option("transport.localAddress", NAME, None, "address to bind before connecting")
    local_port: int = option("transport.localPort", integer(0, 65535), "0", "local port to bind; 0 takes any free port")
    default_tcp_port: int | None = option(
        "transport.defaultTcpPort", PORT, None, "default port for URLs without TLS, instead of the port of the protocol"
    )
    default_ssl_port: int | None = option(
        "transport.defaultSslPort", PORT, None, "default port for URLs with TLS, instead of the port of the protocol"
    )
    trust_store_location: str | None = option(
        "transport.trustStoreLocation", NAME, None, "file with the authorities to trust, instead of those of the system"
    )
    trust_store_password: Secret | None = option(  # noqa: RUF009 - it returns dataclasses.field()
        "transport.trustStorePassword", PASSWORD, None, "password of a PKCS12 trust store; never printed"
    )
    trust_store_type: str | None = option(
        "transport.trustStoreType",
        STORE_TYPE,
        None,
        "format of the trust store; if not set, the content of the file shows the format",
    )
    key_store_location: str | None = option(
        "transport.keyStoreLocation", NAME, None, "file with the client's certificate chain and private key"
    )
    key_store_password: Secret | None = option(  # noqa: RUF009 - it returns dataclasses.field()
        "transport.keyStorePassword",
        PASSWORD,
        None,
        "password of the private key in a PEM file, or of a PKCS12 store; never printed",
    )
    key_store_type: str | None = option(
        "transport.keyStoreType",
        STORE_TYPE,
        None,
        "format of the key store; if not set, the content of the file shows the format",
    )
    store_type: str | None = option("transport.storeType", STORE_TYPE, None, "format of both stores")
    context_protocol: str = option(
        "transport.contextProtocol",
        _TLS_VERSION,
        "TLS",
        "highest TLS version, at least 1.2; TLS means the highest version that both sides have",
    )
    enabled_protocols: tuple[str, ...] = option(
        "transport.enabledProtocols",
        _PROTOCOLS,
        "",
        "the allowed TLS versions; empty allows 1.2 and 1.3; older versions are never used",
    )
    disabled_protocols: tuple[str, ...] = option(
        "transport.disabledProtocols", _PROTOCOLS, "SSLv2Hello,SSLv3", "the TLS versions that are not allowed"
    )
    enabled_cipher_suites: tuple[str, ...] = option(
        "transport.enabledCipherSuites",
        LIST,
        "",
        "the allowed cipher suites, with the names of Java or OpenSSL; empty allows all but those with DHE",
    )
    disabled_cipher_suites: tuple[str, ...] = option(
        "transport.disabledCipherSuites", LIST, "", "the cipher suites that are not allowed"
    )
    verify_host: bool = option(
        "transport.verifyHost", BOOLEAN, "true", "the certificate must be for the host of the URL"
    )
    max_frame_size: int | None = option(
        "wireFormat.maxFrameSize",
        BYTES_OR_UNLIMITED,
        "-1",
        "largest message that may be sent, in its encoded form; sending a larger message raises an error",
        "ActiveMQ Classic",
    )
    max_frame_size_enabled: bool = option(
        "wireFormat.maxFrameSizeEnabled",
        BOOLEAN,
        "true",
        "whether wireFormat.maxFrameSize has an effect",
        "ActiveMQ Classic",
    )
    trace_bytes: bool = option(
        "transport.traceBytes",
        BOOLEAN,
        "false",
        "log all bytes in hexadecimal, with the bodies of messages, but without the login",
        also="amqp.traceBytes",
    )
    ws_http_headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The headers of the WebSocket handshake, from ``transport.ws.httpHeader.NAME=VALUE``. A value may be secret."""
    trust_all: bool = option(
        "transport.trustAll", BOOLEAN, "false", "do not verify certificates, and log a warning; for tests only"
    )

    def tls_options(self) -> list[str]:
        """Return the names of the TLS options that differ from their defaults."""
        rows = ((member, member.metadata[METADATA_KEY].name) for member in fields(self) if member.name in _TLS_FIELDS)
        return [name for member, name in rows if getattr(self, member.name) != member.default]


# -- headers of the WebSocket handshake ------------------------------------------------------------------------------


_PREFIX: Final = "transport.ws.httpHeader."
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")


def is_websocket_header(name: str) -> bool:
    """Return whether an option sets a header of the WebSocket handshake (RFC 9110, section 5.6.2)."""
    return name.startswith(_PREFIX) and _NAME.fullmatch(name.removeprefix(_PREFIX)) is not None


def websocket_headers(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the names and values of the headers among the options ``texts``.

    Raises:
        InvalidURLException: a value has a character that is not printable ASCII, such as a line break, or a blank at
            one of its ends. The error does not show the value, because the value may be secret.
    """
    headers = {name: text for name, text in texts.items() if is_websocket_header(name)}
    for name, text in headers.items():
        if not _VALUE.fullmatch(text):
            raise InvalidURLException(
                f"option {name}: expected printable ASCII characters, without a blank at the beginning or the end"
            )
    return tuple((name.removeprefix(_PREFIX), text) for name, text in headers.items())
