"""The settings in a connection of kombu: the URL of the broker, the login, TLS and the options of the transport."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from pyjmsack import InvalidURLException
from pyjmsack.uri import parse_url, redact

__all__ = ["SCHEMES", "Settings", "masked", "settings_of"]

SCHEMES: Final = ("jms", "jms+amqp", "jms+amqps", "jms+stomp", "jms+stomp+ssl", "jms+failover")
"""The schemes of broker URLs. kombu usually takes the part before the first ``+`` as the name of the transport. When it
switches to another URL of a list, it takes the whole scheme."""
_SECURE: Final = ("amqps:", "stomp+ssl:", "amqpwss:", "stomp+wss:")
_ENVELOPES: Final = ("kombu", "jms")
_DEFAULTS: Final = {
    "jms.closeTimeout": 5000,
    "jms.requestTimeout": 30_000,
    "jms.connectTimeout": None,
    "transport.connectTimeout": None,
    "jms.localMessagePriority": "true",
    "jms.forceSyncSend": "true",
    "amqp.singleCredit": "always",
}
"""Options that the transport sets if the URL does not set them. With them no call waits for a broker for ever, and the
client hands out messages by priority. Each send waits for the broker, because a program may end right after it sent a
task, and Celery then closes no connection. A worker asks for one task at a time, because after a kill of a worker
Artemis could otherwise mix up the messages of other workers (docs/failover.md). ``None`` means kombu's connect
timeout."""
_RECONNECTING: Final = ("failover.maxReconnectAttempts", "failover.startupMaxReconnectAttempts")


@dataclass(frozen=True)
class Settings:
    """The settings of a connection. ``repr`` shows nothing that may contain a login."""

    url: str = field(repr=False)
    username: str | None = field(repr=False)
    password: str | None = field(repr=False)
    options: Mapping[str, object] = field(repr=False)
    ssl_context: ssl.SSLContext | None
    envelope: str
    native_eta: bool
    largest: int
    """The largest number of bytes of an unpacked body. This is ``jms.maxMessageSize``, which is also the limit for a
    body that is not compressed."""


def settings_of(client: Any) -> Settings:
    """Return the settings of a connection of kombu.

    Args:
        client: a :class:`kombu.Connection`.

    Raises:
        InvalidURLException: the URL, or an option of the transport, is wrong.
    """
    if any("?" in alternate for alternate in client.alt):
        raise InvalidURLException(
            "broker_url: the URLs of a list can have no options, because kombu cannot read them when it turns to a URL"
            " of the list; put the options into jms_options, or write jms+failover:(URL,URL)"
        )
    url = _url(client)
    given: Mapping[str, Any] = client.transport_options or {}
    envelope = given.get("envelope", "kombu")
    if envelope not in _ENVELOPES:
        raise InvalidURLException(f"transport option envelope={envelope!r}: expected one of {', '.join(_ENVELOPES)}")
    password: Any = client.password() if callable(client.password) else client.password
    options = _options(url, given.get("jms_options") or {}, client.connect_timeout)
    return Settings(
        url,
        client.userid or None,
        password or None,
        options,
        _context(url, client.ssl),
        envelope,
        bool(given.get("native_eta", False)),
        parse_url(url, options).connection.max_message_size,
    )


def _url(client: Any) -> str:
    host: str = client.hostname or "localhost"
    name: str = client.transport_cls if isinstance(client.transport_cls, str) else ""
    if "://" in host:
        if host.startswith("jms://"):
            raise InvalidURLException(
                f"broker URL jms://...: write the protocol after a plus sign: {SCHEMES[1]}://host"
            )
        return host.removeprefix("jms+")
    scheme = name.removeprefix("jms+") if name.startswith("jms+") else "amqp"
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    port = f":{client.port}" if client.port else ""
    return f"{scheme}://{host}{port}"


def _options(url: str, given: Mapping[str, object], connect_timeout: float | None) -> dict[str, object]:
    options = dict(given)
    failover = url.startswith("failover:")
    speaks_amqp = "amqp" in url.partition("?")[0]
    asynchronous = any("AsyncSend" in place for place in (url, *options))  # the user chose sends that do not wait
    for name, value in _DEFAULTS.items():
        if (asynchronous and name == "jms.forceSyncSend") or (name.startswith("amqp.") and not speaks_amqp):
            continue
        own = f"nested.{name}" if failover and name.startswith(("transport.", "amqp.")) else name
        if own not in options and f"{name}=" not in url:
            limit = value if value is not None else round(1000 * connect_timeout) if connect_timeout else None
            if limit is not None:
                options[own] = limit
    if failover:
        for name in _RECONNECTING:
            if name in options or f"{name}=" in url or f"{name.removeprefix('failover.')}=" in url:
                raise InvalidURLException(
                    f"option {name}: this transport restores no connection, because Celery itself connects again;"
                    " leave the option out"
                )
        options[_RECONNECTING[0]] = 0
        options[_RECONNECTING[1]] = 1
    return options


def _context(url: str, given: Any) -> ssl.SSLContext | None:
    """Return the TLS context that ``broker_use_ssl`` describes. Return ``None`` if the setting is empty or ``True``.

    A mapping may have the keys ``ca_certs``, ``certfile``, ``keyfile``, ``cert_reqs`` and ``password``. Each key may
    have ``ssl_`` in front.
    """
    if not given:
        return None
    if not url.startswith(_SECURE):
        raise InvalidURLException(
            f"broker_use_ssl is set, but the URL {redact(url)} has no TLS; write jms+amqps:// or jms+stomp+ssl://"
        )
    if not isinstance(given, Mapping):
        return None
    known = {"ca_certs", "certfile", "keyfile", "cert_reqs", "password"}
    names = {name.removeprefix("ssl_"): value for name, value in given.items()}
    if unknown := sorted(names.keys() - known):
        raise InvalidURLException(f"broker_use_ssl: unknown {', '.join(unknown)}; expected {', '.join(sorted(known))}")
    context = ssl.create_default_context(cafile=names.get("ca_certs"))
    if names.get("cert_reqs", ssl.CERT_REQUIRED) == ssl.CERT_NONE:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if names.get("certfile"):
        context.load_cert_chain(names["certfile"], names.get("keyfile"), names.get("password"))
    return context


def masked(client: Any, *, include_password: bool, mask: str) -> str:
    """Return the URL of a connection for people to read: with the scheme of this transport, and a mask for passwords.

    Args:
        client: a :class:`kombu.Connection`.
        include_password: whether passwords are shown.
        mask: the text in place of a password.
    """
    url = _url(client)
    user = client.userid
    if include_password:
        login = f"{quote(user, safe='')}:{quote(str(client.password or ''), safe='')}@" if user else ""
        return f"jms+{url.replace('://', f'://{login}', 1)}"
    shown = redact(url).replace("***", mask)
    return f"jms+{shown.replace('://', f'://{quote(user, safe=str())}:{mask}@', 1) if user else shown}"
