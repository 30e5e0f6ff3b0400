"""Reads the texts of the options of a URL, from the query and from ``options={...}``.

An option has one of three places: the URL of a single broker, the inside of the parentheses of a failover URL, or the
part after the parentheses. :func:`check_options` refuses an option at a wrong place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import unquote_plus

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.uri.option import Option, did_you_mean, first_of, named, nearest, not_here, parse_values, text_of
from pyjmsack.uri.table import (
    FAILOVER_PREFIX,
    IGNORED,
    NESTED_PREFIX,
    OPTION_PREFIXES,
    OPTIONS,
    REFUSED,
    is_meaningless,
    warn_meaningless,
)
from pyjmsack.uri.transport import SCHEMES, is_websocket_header

__all__ = [
    "Given",
    "Place",
    "belongs",
    "check_options",
    "decode",
    "has_secret",
    "is_of_member",
    "of_protocol",
    "option_texts",
    "query_texts",
]

_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def query_texts(query: str, *, unsafe: bool = False) -> dict[str, str]:
    """Return the options of a query, decoded.

    If a password contains an unescaped ``&``, the text after the ``&`` looks like an option. If the user-info contains
    an unescaped ``?``, the text after the ``?`` looks like a query. Therefore the error about an unknown name does not
    show the name if a secret stands before the name, or if the query contains an ``@``.

    Args:
        query: the text after the ``?``.
        unsafe: whether a secret stands before the query.

    Raises:
        InvalidURLException: a part has no ``=``, a percent code is wrong, a name is given twice, or a name that must
            not be shown is unknown.
    """
    texts: dict[str, str] = {}
    unsafe = unsafe or "@" in query
    for position, part in enumerate(query.split("&") if query else (), start=1):
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidURLException(
                f"option number {position} of the broker URL has no '='; write name=value, and in a value write '&' as"
                " %26"
            )
        name = decode(f"the name of option number {position}", name)
        row = _row(name)
        known = row is not None or name.startswith(OPTION_PREFIXES)
        if unsafe and not known:
            raise InvalidURLException(
                f"option number {position} of the broker URL is unknown (not shown, because it may be part of a"
                " password); in a password write '&' as %26 and '?' as %3F"
            )
        if name in texts:
            raise InvalidURLException(f"option {named(name)} is given twice in the broker URL")
        unsafe = unsafe or (row is not None and row.kind.secret)
        texts[name] = decode(f"option {named(name)}", value)
    return texts


def has_secret(query: str) -> bool:
    """Return whether a query may contain a password. If so, the text after the query may be the rest of the
    password.
    """
    return "passw" in query.lower()


def _row(name: str) -> Option | None:
    return OPTIONS.get(name.removeprefix(NESTED_PREFIX))


def decode(what: str, text: str, unquoting: Callable[..., str] = unquote_plus) -> str:
    """Return ``text`` with its percent codes replaced.

    Args:
        what: the words that name the text in errors. An error does not show the text itself.
        text: a part of the URL.
        unquoting: the function that replaces the codes. The default function also replaces ``+`` by a space.

    Raises:
        InvalidURLException: no code follows a percent sign, or the bytes are not UTF-8.
    """
    try:
        if _BAD_PERCENT.search(text):
            raise ValueError
        return unquoting(text, errors="strict")
    except ValueError:  # the error has no cause, because the text of the cause would show the value
        raise InvalidURLException(
            f"{what} has a '%' that is not followed by the code of a UTF-8 byte; write a percent sign as %25"
        ) from None


def option_texts(options: Mapping[str, object]) -> dict[str, str]:
    """Return the values of ``options={...}`` as texts, in the form that they have in a URL.

    Raises:
        InvalidURLException: a name is not a ``str``, or a URL cannot express a value of this type.
    """
    texts: dict[str, str] = {}
    for name, value in options.items():
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise InvalidURLException(f"option names: expected str, got {type(name).__name__}")
        try:
            texts[name] = text_of(value)
        except ValueError:
            row = _row(name)
            expected = row.kind.expected if row else "a text"
            kind = type(value).__name__
            raise InvalidURLException(f"option {named(name)}: expected {expected}, got {kind}") from None
    return texts


# -- the right place of an option ------------------------------------------------------------------------------------


_OF_BOTH: Final = {
    "amqp.idleTimeout": "stomp.heartBeat",
    "amqp.vhost": "stomp.vhost",
    "amqp.maxFrameSize": "stomp.maxFrameSize",
    "amqp.traceFrames": "stomp.traceFrames",
}
_COUNTERPARTS: Final = {**_OF_BOTH, **{stomp: amqp for amqp, stomp in _OF_BOTH.items()}}
"""Options of one protocol, each with the option of the other protocol that has the same meaning."""
_MISTAKEN: Final = {
    **dict.fromkeys(
        ("backOffMultiplier", "failover.backOffMultiplier"),
        "failover.reconnectBackOffMultiplier, or reconnectDelayExponent as in ActiveMQ",
    ),
    **dict.fromkeys(
        ("prefetch", "prefetchSize", "prefetchCount", "consumer.prefetchSize"),
        "jms.prefetchPolicy.all, or consumer.prefetchSize in the name of a queue: 'orders?consumer.prefetchSize=10'",
    ),
}
"""Names that look like options, but that no Java client knows. The value of each name lists the options that the user
probably meant.
"""
_PROTOCOLS: Final = tuple({f"{scheme.protocol}." for scheme in SCHEMES.values()})
_MEMBER_PREFIXES: Final = (*_PROTOCOLS, "transport.", "wireFormat.")
_OF_ANY: Final = ("broker", "broker.scheduler")
_BARE: Final = {name for name in (*OPTIONS, *REFUSED) if "." not in name}
_FAILOVER_NAMES: Final = {
    "jms.closeLinksThatFailOnReconnect",
    *(name for name, row in OPTIONS.items() if row.targets[0].startswith(FAILOVER_PREFIX)),
    *(
        name
        for refused_or_ignored in (REFUSED, IGNORED)
        for name in refused_or_ignored
        if FAILOVER_PREFIX + name.removeprefix(FAILOVER_PREFIX) in refused_or_ignored
    ),
}


class Place(Enum):
    """The place of an option in a URL."""

    SINGLE = "a single broker"
    MEMBER = "inside the parentheses"
    OUTER = "after the parentheses"


def is_of_member(name: str) -> bool:
    """Return whether an option belongs to the stream to one broker. This is true for options of the protocol, of TCP
    and of TLS."""
    if name.startswith(_MEMBER_PREFIXES):
        return True
    bare = name in _BARE or (is_meaningless(name) and "." not in name)
    return bare and name not in _FAILOVER_NAMES and name not in ("strict", "profile", *_OF_ANY)


def of_protocol(name: str, protocols: Collection[str]) -> bool:
    """Return whether an option fits these protocols. An option without the prefix of a protocol fits all protocols."""
    return not name.startswith(_PROTOCOLS) or name.partition(".")[0] in protocols


def belongs(name: str, place: Place, protocols: Collection[str]) -> bool:
    """Return whether a known option is allowed at ``place``, if the brokers speak ``protocols``."""
    return _misplaced(name, place) is None and of_protocol(name, protocols)


class Given(NamedTuple):
    """The options at one place of a URL."""

    names: Collection[str]
    layers: Sequence[Mapping[str, str]]
    """The texts of the options. The first mapping has the options of the URL, and the second mapping has the options
    that the caller gave beside the URL."""
    place: Place
    protocols: Collection[str]
    """The protocols of the brokers at this place."""


def check_options(*given: Given) -> None:
    """Raise one error for all wrong options. Log a warning for each option that has no meaning in Python.

    Raises:
        InvalidURLException: options are unknown, stand at a wrong place, belong to another protocol, or have wrong
            values. The text lists each wrong option with its correction.
        UnsupportedFeatureException: the only wrong options are options of Java clients that this library refuses.
    """
    problems: list[str] = []
    unsupported: list[str] = []
    for each in given:
        wrong, known = _problems(each)
        problems += wrong
        unsupported += known
    if problems:
        raise InvalidURLException("; ".join(dict.fromkeys(problems + unsupported)))
    if unsupported:
        raise UnsupportedFeatureException("; ".join(dict.fromkeys(unsupported)))
    for name in dict.fromkeys(name.removeprefix(NESTED_PREFIX) for each in given for name in each.names):
        if is_meaningless(name):
            warn_meaningless(name)


def _problems(given: Given) -> tuple[list[str], list[str]]:
    """Return two lists for one place of a URL: the mistakes, and the errors about options of Java clients that are not
    supported."""
    place, protocols = given.place, given.protocols
    names = list(dict.fromkeys(given.names))
    # on a single broker, a name with a prefix of failover URLs counts as misplaced, and not as unknown
    elsewhere = (FAILOVER_PREFIX, NESTED_PREFIX, "discovery.") if place is Place.SINGLE else ()
    unknown = [name for name in names if not _is_known(name, place) and not name.startswith(elsewhere)]
    problems: list[str] = []
    if unknown:
        known = [name for name in _known(place) if of_protocol(name.removeprefix(NESTED_PREFIX), protocols)]
        problems.append("unknown option " + first_of(unknown, partial(_with_hint, known=known)))
    strange = set(unknown)
    known_names = [name for name in names if name not in strange]
    if misplaced := [text for text in (_misplaced(name, place) for name in known_names) if text]:
        problems.append("option " + "; ".join(misplaced))
    if foreign := [name for name in known_names if not of_protocol(name.removeprefix(NESTED_PREFIX), protocols)]:
        listed = ", ".join(_foreign(name.removeprefix(NESTED_PREFIX)) for name in foreign)
        problems.append(f"not allowed in {' or '.join(sorted(protocols))} URLs: option {listed}")
    plain = [name.removeprefix(NESTED_PREFIX) for name in names]
    refused = [name for name in plain if name in REFUSED]
    unsupported = [f"option {not_here(refused, REFUSED)}"] if refused else []
    for texts in given.layers:
        for prefix in ("", NESTED_PREFIX):
            own = {name.removeprefix(prefix): text for name, text in texts.items() if name.startswith(prefix)}
            try:
                parse_values(own, OPTIONS, InvalidURLException)
            except InvalidURLException as error:
                problems.append(error.args[0])
            except UnsupportedFeatureException as error:
                unsupported.append(error.args[0])
    return problems, unsupported


def _with_hint(name: str, known: Iterable[str]) -> str:
    """Return an unknown name with a hint. If a Java client has an option with this name, the hint names the
    replacement. Otherwise the hint is the nearest known name. If only the other protocol has such an option, the hint
    is the option of this protocol that has the same meaning.
    """
    if name in _MISTAKEN:
        return f"{name} (did you mean {_MISTAKEN[name]}?)"
    # imported here, because most programs have no unknown option and start faster without this import
    from pyjmsack.java_options.table import JAVA_OPTIONS

    rows = (options.get(name.removeprefix(NESTED_PREFIX)) for options in JAVA_OPTIONS.values())
    hint = next((hint for row in rows if row is not None and (hint := row.hint())), "")
    if hint:
        return f"{name} (known in Java; {hint})"
    other = None if nearest(name, known) else nearest(name, _COUNTERPARTS)
    return did_you_mean(name, known) if other is None else f"{named(name)} (did you mean {_COUNTERPARTS[other]}?)"


def _is_known(name: str, place: Place) -> bool:
    if place is Place.OUTER:
        name = name.removeprefix(NESTED_PREFIX)
    return name in OPTIONS or name in REFUSED or is_meaningless(name) or is_websocket_header(name)


def _known(place: Place) -> list[str]:
    every = (*OPTIONS, *REFUSED)
    if place is Place.OUTER:
        return [NESTED_PREFIX + name if is_of_member(name) else name for name in every]
    if place is Place.MEMBER:
        return [name for name in every if is_of_member(name)]
    return [name for name in every if name not in _FAILOVER_NAMES]


def _misplaced(name: str, place: Place) -> str | None:
    """Return a text with the right place of an option. Return ``None`` if the option stands at a right place."""
    if place is Place.SINGLE:
        composite = name in _FAILOVER_NAMES or name.startswith((FAILOVER_PREFIX, NESTED_PREFIX, "discovery."))
        return f"{named(name)} belongs to a failover:(...) URL" if composite else None
    if place is Place.MEMBER:
        right = name in _OF_ANY or is_of_member(name) or (is_meaningless(name) and name not in _FAILOVER_NAMES)
        return None if right else f"{named(name)} holds for all brokers and goes after the parentheses"
    if name.startswith(NESTED_PREFIX):
        inner = name.removeprefix(NESTED_PREFIX)
        right = inner in _OF_ANY or is_of_member(inner)
        return None if right else f"{named(name)} holds for all brokers and is written {inner}"
    if is_of_member(name):
        return f"{named(name)} goes inside the parentheses, or after them as {NESTED_PREFIX}{name}"
    return None


def _foreign(name: str) -> str:
    return f"{name} (use {_COUNTERPARTS[name]})" if name in _COUNTERPARTS else name
