"""Parses broker URLs, such as ``amqp://host:5672?jms.clientID=c`` and ``failover:(amqp://a,stomp://b)?options``.

The names, units and defaults of options are the same as in the Java clients. An unknown option is an error, as in the
Java clients. A ``+`` in a value is a space, and ``%2B`` is a plus. In two points this library differs from the Java
clients. This library logs a warning for each option that it ignores, and its errors show no passwords.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.loggers import get_logger
from pyjmsack.uri.address import (
    FAILOVER,
    PLAIN,
    Address,
    before_secret,
    check_plain,
    in_our_schemes,
    parse_address,
    redact,
    refuse,
    scheme_of,
    split_composite,
)
from pyjmsack.uri.model import BrokerUrl
from pyjmsack.uri.option import parse_values
from pyjmsack.uri.policy import RedeliveryPolicy, check_pattern, most_specific
from pyjmsack.uri.profiles import PROFILES
from pyjmsack.uri.query import (
    Given,
    Place,
    belongs,
    check_options,
    decode,
    has_secret,
    is_of_member,
    of_protocol,
    option_texts,
    query_texts,
)
from pyjmsack.uri.table import NESTED_PREFIX, OPTIONS, build
from pyjmsack.uri.transport import SCHEMES, Endpoint, websocket_headers

__all__ = [
    "parse_url",
    "plain_name",
    "redelivery_policies",
]

logger = get_logger("pyjmsack")


def parse_url(url: str, options: Mapping[str, object] | None = None) -> BrokerUrl:
    """Check a broker URL with its options, and return its content as typed values.

    Args:
        url: ``scheme://host[:port][?options]`` with a scheme of ``SCHEMES``, or ``failover:(url,url)[?options]``.
        options: more options, with the names and units of the URL (milliseconds, bytes). These options override the
            options in the URL. For a failover URL, they override the options after the parentheses.

    Raises:
        InvalidURLException: the URL is malformed, or an option is unknown, is given twice or has a value that is not
            allowed. The text lists all wrong options. For an unknown option, the text names the nearest known option.
        UnsupportedFeatureException: Java clients know a scheme or an option of the URL, but this library does not
            support it.
    """
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise InvalidURLException(f"broker URL: expected a text such as {PLAIN}, got {type(url).__name__}")
    try:
        return _checked(url, options or {})
    except (InvalidURLException, UnsupportedFeatureException):
        harmless = before_secret(url)
        if harmless is None:
            raise
    # only the part before a secret is checked, because an error must not show the secret or the text after it
    _checked(harmless + "x" + (")" if "(" in harmless and ")" not in harmless else ""), options or {})
    raise InvalidURLException(
        f"broker URL {redact(url)}: the part that begins with '***' is wrong. It is not shown, because it may be part"
        " of a password. In a password write '&' as %26, '?' as %3F, ',' as %2C and '%' as %25. Put passwords last, so"
        " that errors can name the other options"
    )


def _checked(url: str, options: Mapping[str, object]) -> BrokerUrl:
    """Parse a URL. If the URL has a scheme of a Java client, the error also names the other mistakes in the URL."""
    try:
        return _parsed(url, options)
    except InvalidURLException as error:
        first = error
    translated = in_our_schemes(url)
    if translated != url:
        try:
            _parsed(translated, options)
        except (InvalidURLException, UnsupportedFeatureException) as second:
            raise InvalidURLException(f"{first.args[0]}. Besides, {second.args[0]}") from None
    raise first


def _parsed(url: str, options: Mapping[str, object]) -> BrokerUrl:
    if scheme_of(url) == FAILOVER:
        return _failover(url, options)
    if url.lstrip().startswith("("):  # the Artemis client writes a list of brokers in this way
        refuse("broker URL", "a list of brokers needs failover: before it, such as failover:(amqp://a,amqp://b)")
    return _single(url, options)


def _single(url: str, options: Mapping[str, object]) -> BrokerUrl:
    what = f"broker URL {redact(url)}"
    # the address is parsed before the options, because after a wrong address the options may be a piece of a password
    address = parse_address(what, url)
    in_url, in_options = query_texts(address.query), option_texts(options)
    protocol = SCHEMES[address.scheme].protocol
    check_options(_given(Place.SINGLE, {protocol}, in_url, in_options))
    if address.user_info is not None:
        in_url = _with_user_info(what, address.user_info, in_url, in_options)
    layers = (_profile(Place.SINGLE, protocol, in_url, in_options), in_url, in_options)
    return _with_policies(_assemble(address, _values(*layers)), *layers)


def _failover(url: str, options: Mapping[str, object]) -> BrokerUrl:
    what = f"broker URL {redact(url)}"
    texts, query, parentheses = split_composite(what, url)
    addresses: list[Address] = []
    own: list[dict[str, str]] = []
    unsafe = False
    for number, text in enumerate(texts, start=1):
        addresses.append(parse_address(f"member {number} of the failover URL", text))
        own.append(query_texts(addresses[-1].query, unsafe=unsafe))
        unsafe = unsafe or has_secret(text)
    in_url, in_options = query_texts(query, unsafe=unsafe), option_texts(options)
    if not parentheses and len(texts) == 1:
        own = [{name: text for name, text in in_url.items() if is_of_member(name)}]
        in_url = {name: text for name, text in in_url.items() if name not in own[0]}
    protocols = [SCHEMES[address.scheme].protocol for address in addresses]
    of_members = [_given(Place.MEMBER, {protocol}, texts) for texts, protocol in zip(own, protocols, strict=True)]
    check_options(*of_members, _given(Place.OUTER, {*protocols}, in_url, in_options))
    if logins := {address.user_info for address in addresses} - {None}:
        if len(logins) > 1:
            refuse(what, "expected one user and password for all brokers")
        in_url = _with_user_info(what, logins.pop() or "", in_url, in_options)
    outer_layers = (_profile(Place.OUTER, "", in_url, in_options), in_url, in_options)
    outer = build(BrokerUrl, _values(*outer_layers), scheme=FAILOVER, endpoints=())
    outer = _with_policies(outer, *outer_layers)
    nested = [_nested(in_url), _nested(in_options)]
    members: list[BrokerUrl] = []
    for address, protocol, texts_of_member in zip(addresses, protocols, own, strict=True):
        layers = [{name: text for name, text in layer.items() if of_protocol(name, {protocol})} for layer in nested]
        defaults = _profile(Place.MEMBER, protocol, in_url, in_options)
        of_member = _values(defaults, *layers, texts_of_member)
        member = _assemble(address, of_member)
        shared = replace(
            member,
            connection=outer.connection,
            strict=outer.strict,
            profile=outer.profile,
            broker=member.broker or outer.broker,
            scheduler=member.scheduler if "scheduler" in of_member else outer.scheduler,
        )
        members.append(shared)
    outer = _with_priority(outer, [str(member) for member in members])
    endpoints = tuple(member.endpoints[0] for member in members)
    return replace(outer, endpoints=endpoints, members=tuple(members))


def _with_priority(outer: BrokerUrl, members: list[str]) -> BrokerUrl:
    """Return the URL with new ``failover.priorityURIs``, in which each broker is written like its member in the URL."""
    check_plain("failover.priorityURIs", outer.failover.priority_uris)
    preferred = tuple(str(_single(text, {})) for text in outer.failover.priority_uris)
    if unknown := [text for text in preferred if text not in members]:
        raise InvalidURLException(
            f"failover.priorityURIs: expected brokers of this URL ({', '.join(members)}), not {', '.join(unknown)}"
        )
    return replace(outer, failover=replace(outer.failover, priority_uris=preferred))


def _given(place: Place, protocols: set[str], *layers: Mapping[str, str]) -> Given:
    return Given([plain_name(name) for texts in layers for name in texts], layers, place, protocols)


def _with_policies(url: BrokerUrl, *layers: Mapping[str, str]) -> BrokerUrl:
    policies = redelivery_policies(*layers)
    return replace(url, connection=replace(url.connection, redelivery_policies=policies))


def _nested(texts: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(NESTED_PREFIX): text for name, text in texts.items() if name.startswith(NESTED_PREFIX)}


def _profile(place: Place, protocol: str, *layers: Mapping[str, str]) -> dict[str, str]:
    """Return those options of the profile that are allowed at this place of the URL.

    The last layer that has the option ``profile`` names the profile. A wrong name is refused later, together with other
    wrong values.
    """
    named = next((texts["profile"].lower() for texts in reversed(layers) if "profile" in texts), "")
    profile = PROFILES.get(named, {})
    return {name: text for name, text in profile.items() if belongs(name, place, {protocol})}


def _values(*layers: Mapping[str, str]) -> dict[str, Any]:
    """Parse one layer after the other, so that ``jms.prefetchPolicy.all`` in a later layer overrides the prefetch of
    one kind of consumer in an earlier layer.
    """
    values: dict[str, Any] = {}
    for texts in layers:
        values.update(parse_values(texts, OPTIONS, InvalidURLException))
        if headers := websocket_headers(texts):
            earlier = dict(values.get("transport.ws_http_headers", ()))
            values["transport.ws_http_headers"] = tuple((earlier | dict(headers)).items())
    return values


def _assemble(address: Address, values: Mapping[str, Any]) -> BrokerUrl:
    parsed = build(BrokerUrl, values, scheme=address.scheme, endpoints=())
    protocol, tls, _, websocket = SCHEMES[address.scheme]
    if not tls and (idle := parsed.transport.tls_options()):
        with_tls = next(
            name
            for name, other in SCHEMES.items()
            if other.tls and (other.protocol, other.websocket) == (protocol, websocket)
        )
        logger.warning("%s: no effect without TLS; use %s:// for TLS", ", ".join(idle), with_tls)
    return replace(parsed, endpoints=(_endpoint(address, parsed),))


def _endpoint(address: Address, url: BrokerUrl) -> Endpoint:
    _, tls, usual_port, _ = SCHEMES[address.scheme]
    default = url.transport.default_ssl_port if tls else url.transport.default_tcp_port
    return Endpoint(address.scheme, address.host, address.port or default or usual_port, tls)


def _with_user_info(
    what: str, user_info: str, in_url: Mapping[str, str], in_options: Mapping[str, str]
) -> dict[str, str]:
    """Return the options of the URL with the user name and password that stand before the host, if this is allowed."""
    allowed = in_options.get("jms.allowUserInfo", in_url.get("jms.allowUserInfo", "false"))
    if allowed.lower() != "true":
        refuse(
            what,
            "user and password before the host are refused, because logs would show them; use jms.username and"
            " jms.password, or allow user and password before the host with jms.allowUserInfo=true",
        )
    username, _, password = user_info.partition(":")
    texts = {"jms.username": decode("the user-info", username, unquote)}
    if ":" in user_info:
        texts["jms.password"] = decode("the user-info", password, unquote)
    if not username or texts.keys() & in_url.keys():
        refuse(what, "expected the user name once, either as jms.username or as user:password@host")
    return {**in_url, **texts}


# -- redelivery policies of single destinations: jms.redeliveryPolicy[orders.>].maxRedeliveries=3 --------------------


_PREFIX: Final = "jms.redeliveryPolicy"
_OF_DESTINATION: Final = re.compile(r"jms\.redeliveryPolicy\[([^\[\]]*)\]\.(\w+)")


def plain_name(name: str) -> str:
    """Return the name of an option without the pattern in brackets that an option of a redelivery policy may have.

    Raises:
        InvalidURLException: the text in the brackets is not a pattern.
    """
    match = _OF_DESTINATION.fullmatch(name)
    if match is None:
        return name
    try:
        check_pattern(match[1])
    except ValueError:
        raise InvalidURLException(
            f"option {_PREFIX}[...].{match[2]}: expected the name of a destination in the brackets, such as orders.>;"
            " a * stands for one part of the name, and a > at the end stands for all further parts"
        ) from None
    return f"{_PREFIX}.{match[2]}"


def redelivery_policies(*layers: Mapping[str, str]) -> tuple[tuple[str, RedeliveryPolicy], ...]:
    """Return the policies of single destinations, each with its pattern. The most specific pattern comes first.

    If the policy of a pattern does not have an option, the policy of all destinations decides. A later layer overrides
    an earlier layer.
    """
    special: dict[str, list[dict[str, str]]] = {}
    for number, texts in enumerate(layers):
        for name, text in texts.items():
            if match := _OF_DESTINATION.fullmatch(name):
                own = special.setdefault(match[1], [{} for _ in layers])
                own[number][f"{_PREFIX}.{match[2]}"] = text
    return tuple((pattern, _policy((*layers, *special[pattern]))) for pattern in most_specific(special))


def _policy(layers: tuple[Mapping[str, str], ...]) -> RedeliveryPolicy:
    values: dict[str, object] = {}
    for texts in layers:
        values.update(parse_values(texts, OPTIONS, InvalidURLException))
    return build(RedeliveryPolicy, values, "connection.redelivery_policy.")
