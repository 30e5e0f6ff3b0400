"""Broker URLs: ``amqp://host:5672?jms.clientID=c&transport.tcpNoDelay=false``.

Names, units and defaults are those of the Java clients. As there, an unknown option is an error and ``+`` in a value is
a space (``%2B`` is a plus). Other than there, nothing is ignored in silence and no message shows a password.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NoReturn
from urllib.parse import unquote, unquote_plus

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.uri.kinds import text_of
from pyjmsack.uri.model import SCHEMES, BrokerUrl, Endpoint
from pyjmsack.uri.redaction import redact, split_query, split_user_info
from pyjmsack.uri.table import (
    OPTION_PREFIXES,
    OPTIONS,
    OPTIONS_LATER,
    build,
    is_later,
    is_meaningless,
    nearest,
    warn_meaningless,
)
from pyjmsack.uri.values import did_you_mean, named, not_there_yet, parse_values

__all__ = ["parse_url"]

logger = logging.getLogger("pyjmsack")

_SCHEMES_LATER: Final = ("amqpws", "amqpwss", "stomp+ws", "stomp+wss", "failover", "discovery")
_COUNTERPARTS: Final = {
    "amqp.idleTimeout": "stomp.heartBeat",
    "amqp.vhost": "stomp.vhost",
    "amqp.maxFrameSize": "stomp.maxFrameSize",
    "amqp.traceFrames": "stomp.traceFrames",
}
"""Options of one protocol that say what those of the other say."""
_PLAIN: Final = "amqp://host:5672"
_TLS: Final = "amqps://host:5671"
_INSTEAD: Final[Mapping[str, tuple[str, str]]] = {
    "tcp": ("is OpenWire or the Artemis core protocol", _PLAIN),
    "nio": ("is OpenWire", _PLAIN),
    "auto": ("is OpenWire", _PLAIN),
    "ssl": ("is OpenWire or the Artemis core protocol over TLS", _TLS),
    "tls": ("names no protocol", _TLS),
    "nio+ssl": ("is OpenWire over TLS", _TLS),
    "auto+ssl": ("is OpenWire over TLS", _TLS),
    "vm": ("is a broker inside a Java process", _PLAIN),
    "peer": ("is a broker inside a Java process", _PLAIN),
    "udp": ("is OpenWire", _PLAIN),
    "multicast": ("is a way to find brokers", _PLAIN),
    "http": ("is OpenWire over HTTP", _PLAIN),
    "https": ("is OpenWire over HTTP", _TLS),
    "ws": ("names no protocol", _PLAIN),
    "wss": ("names no protocol", _TLS),
    "mqtt": ("is another protocol", _PLAIN),
    "mqtts": ("is another protocol", _TLS),
    "mqtt+ssl": ("is another protocol", _TLS),
}
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_HOST_CHARACTERS: Final = re.compile(r"[\w.-]+")
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def parse_url(url: str, options: Mapping[str, object] | None = None) -> BrokerUrl:
    """Return a broker URL and its options, checked and typed.

    Args:
        url: ``scheme://host[:port][?options]``; the schemes are those of ``SCHEMES``.
        options: more options, with the names and units of the URL (milliseconds, bytes); an entry here wins over the
            same option in the URL.

    Raises:
        InvalidURLException: the URL is malformed, or an option is unknown, given twice or has a value that is not
            allowed; unknown options are all listed, each with the nearest known one.
        UnsupportedFeatureException: a scheme or an option that is known and not there yet.
    """
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise InvalidURLException(f"broker URL: expected a text such as {_PLAIN}, got {type(url).__name__}")
    scheme, rest = _split_scheme(url)
    user_info, rest = split_user_info(rest)
    address, query = split_query(rest)
    # before the options: where the address is wrong, they may be a piece of a password
    host, port = _host_and_port(url, address, "#" in rest)
    in_url, in_options = _query_texts(query), _option_texts(options or {})
    _check_names((*in_url, *in_options), SCHEMES[scheme].protocol)
    if user_info is not None:
        in_url = _with_user_info(url, user_info, in_url, in_options)
    # two passes, so that jms.prefetchPolicy.all in `options` wins over a single prefetch in the URL
    values = parse_values(in_url, OPTIONS, InvalidURLException)
    values.update(parse_values(in_options, OPTIONS, InvalidURLException))
    return _assemble(scheme, host, port, values)


def _assemble(scheme: str, host: str, port: int | None, values: Mapping[str, Any]) -> BrokerUrl:
    parsed = build(BrokerUrl, values, scheme=scheme, endpoints=())
    transport, (protocol, tls, usual_port) = parsed.transport, SCHEMES[scheme]
    if not tls and (idle := transport.tls_options()):
        with_tls = next(name for name, other in SCHEMES.items() if other.protocol == protocol and other.tls)
        logger.warning("%s: no effect without TLS; use %s:// for TLS", ", ".join(idle), with_tls)
    port = port or (transport.default_ssl_port if tls else transport.default_tcp_port) or usual_port
    return replace(parsed, endpoints=(Endpoint(scheme, host, port, tls),))


def _refuse(url: str, why: str) -> NoReturn:
    raise InvalidURLException(f"broker URL {redact(url)}: {why}")


def _split_scheme(url: str) -> tuple[str, str]:
    scheme = url.partition(":")[0].lower()
    if scheme in _SCHEMES_LATER:
        raise UnsupportedFeatureException(
            f"{scheme} URLs are known but not supported yet; supported are {', '.join(SCHEMES)}"
        )
    if scheme in _INSTEAD:
        what, pattern = _INSTEAD[scheme]
        raise InvalidURLException(
            f"{scheme}:// {what}, which this client does not speak; use {pattern} (the broker's AMQP port)"
        )
    match = _SCHEME.fullmatch(url)
    if match is None:
        _refuse(url, f"expected a scheme and a host, such as {_PLAIN}")
    if scheme not in SCHEMES:
        near = nearest(scheme, (*SCHEMES, *_SCHEMES_LATER))
        _refuse(url, f"unknown scheme {scheme}" + (f", did you mean {near}?" if near else f", use {_PLAIN}"))
    return scheme, match[2]


def _with_user_info(
    url: str, user_info: str, in_url: Mapping[str, str], in_options: Mapping[str, str]
) -> dict[str, str]:
    """Return the URL's options with user name and password added, if that was allowed."""
    allowed = in_options.get("jms.allowUserInfo", in_url.get("jms.allowUserInfo", "false"))
    if allowed.lower() != "true":
        _refuse(
            url,
            "user and password before the host are refused, as they end up in logs;"
            " use jms.username and jms.password, or jms.allowUserInfo=true to take them from here",
        )
    username, _, password = user_info.partition(":")
    texts = {"jms.username": _decode("the user-info", username, unquote)}
    if ":" in user_info:
        texts["jms.password"] = _decode("the user-info", password, unquote)
    if not username or texts.keys() & in_url.keys():
        _refuse(url, "expected the user name once, either as jms.username or as user:password@host")
    return {**in_url, **texts}


def _host_and_port(url: str, address: str, fragment: bool) -> tuple[str, int | None]:
    authority, _, path = address.partition("/")
    if path:
        _refuse(url, "a path is not allowed; a virtual host is written as the option amqp.vhost")
    if fragment:
        _refuse(url, "'#' is not allowed; inside a value write %23")
    if authority.startswith("["):
        host, bracket, port = authority[1:].partition("]")
        well_formed = bool(bracket) and (not port or port.startswith(":"))
        port = port[1:]
        host = host.replace("%25", "%")
    else:
        host, _, port = authority.partition(":")
        well_formed = ":" not in port
    if not well_formed:
        _refuse(url, "expected host:port; an IPv6 address goes in brackets, as in amqp://[::1]:5672")
    _check_host(url, host, ipv6=authority.startswith("["))
    return host, _port(url, port)


def _check_host(url: str, host: str, *, ipv6: bool) -> None:
    if not host:
        _refuse(url, f"the host is missing; expected {_PLAIN}")
    try:
        if ipv6:
            ipaddress.IPv6Address(host)
        elif not _HOST_CHARACTERS.fullmatch(host):
            raise ValueError
        else:
            host.encode("idna")  # what getaddrinfo does; it refuses empty and overlong labels
    except ValueError:
        _refuse(url, "the host is neither a name nor an address")


def _port(url: str, text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch("[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        _refuse(url, "the port must be a number from 1 to 65535")
    return int(text)


def _query_texts(query: str) -> dict[str, str]:
    """Return the options of the query, decoded.

    A raw ``&`` in a password makes its rest look like options, and a raw ``?`` in user-info makes it look like a query:
    an unknown name that follows a secret, or where there is an ``@``, is not printed.
    """
    texts: dict[str, str] = {}
    unsafe = "@" in query
    for position, part in enumerate(query.split("&") if query else (), start=1):
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidURLException(
                f"option number {position} of the broker URL has no '='; write name=value, and a '&' in a value as %26"
            )
        name = _decode(f"the name of option number {position}", name)
        row = OPTIONS.get(name)
        known = row is not None or name.startswith(OPTION_PREFIXES)
        if unsafe and not known:
            raise InvalidURLException(
                f"option number {position} of the broker URL is unknown (not shown, as it may be part of a password);"
                " in a password '&' is written %26 and '?' %3F"
            )
        if name in texts:
            raise InvalidURLException(f"option {named(name)} is given twice in the broker URL")
        unsafe = "@" in query or (row is not None and row.kind.secret)
        texts[name] = _decode(f"option {named(name)}", value)
    return texts


def _decode(what: str, text: str, unquoting: Callable[..., str] = unquote_plus) -> str:
    try:
        if _BAD_PERCENT.search(text):
            raise ValueError
        return unquoting(text, errors="strict")
    except ValueError:  # no cause: its text would quote the value
        raise InvalidURLException(
            f"{what} has a '%' that is not followed by the code of a UTF-8 byte; write a percent sign as %25"
        ) from None


def _option_texts(options: Mapping[str, object]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in options.items():
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise InvalidURLException(f"option names are texts, got {type(name).__name__}")
        try:
            texts[name] = text_of(value)
        except ValueError:
            kind = type(value).__name__
            expected = OPTIONS[name].kind.expected if name in OPTIONS else "a text"
            raise InvalidURLException(f"option {named(name)}: expected {expected}, got {kind}") from None
    return texts


def _check_names(names: tuple[str, ...], protocol: str) -> None:
    """Refuse what is unknown or of the other protocol, then what is not there yet; warn about what means nothing in
    Python."""
    composite = [name for name in names if name.startswith(("failover.", "nested.", "discovery."))]
    if composite:
        raise InvalidURLException(
            f"option {', '.join(map(named, composite))} belongs to a failover:(...) or discovery:(...) URL"
        )
    later = [name for name in names if is_later(name)]
    meaningless = [name for name in names if is_meaningless(name)]
    unknown = [name for name in names if name not in OPTIONS and name not in later and name not in meaningless]
    if unknown:
        known = [name for name in (*OPTIONS, *OPTIONS_LATER) if _of_protocol(name, protocol)]
        raise InvalidURLException("unknown option " + ", ".join(did_you_mean(name, known) for name in unknown))
    if foreign := [name for name in names if not _of_protocol(name, protocol)]:
        listed = ", ".join(_foreign(name) for name in foreign)
        raise InvalidURLException(f"no options of {protocol} URLs: {listed}")
    if later:
        raise UnsupportedFeatureException(f"option {not_there_yet(later, OPTIONS_LATER)}")
    for name in meaningless:
        warn_meaningless(name)


def _of_protocol(name: str, protocol: str) -> bool:
    return not name.startswith(tuple({f"{other.protocol}." for other in SCHEMES.values()} - {f"{protocol}."}))


def _foreign(name: str) -> str:
    pairs = {**_COUNTERPARTS, **{stomp: amqp for amqp, stomp in _COUNTERPARTS.items()}}
    return f"{name} (use {pairs[name]})" if name in pairs else name
