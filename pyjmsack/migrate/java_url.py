"""Splits the broker URLs of Java clients into parts: single brokers, ``failover:(...)`` and the lists of Artemis."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from pyjmsack.migrate.model import Unreadable

__all__ = ["JavaMember", "JavaUrl", "parse_java_url"]

_LONGEST: Final = 65_536
_MOST_MEMBERS: Final = 1000
_COMPOSITES: Final = ("failover", "static", "masterslave", "discovery", "fanout", "list")
_COMPOSITE: Final = re.compile(rf"({'|'.join(_COMPOSITES)}):(?://)?(?=[(a-z])(.*)", re.I | re.DOTALL)
_SINGLE: Final = re.compile(r"([a-z][a-z0-9+.-]*):(?://)?(.*)", re.I | re.DOTALL)
_PORT: Final = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class JavaMember:
    """One broker of a URL. ``port`` is 0 if the URL names no port."""

    scheme: str
    host: str
    port: int
    user: str
    has_password: bool
    options: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        login = f"{self.user}{':***' if self.has_password else ''}@" if self.user or self.has_password else ""
        return f"{self.scheme}://{login}{self.host}{f':{self.port}' if self.port else ''}"


@dataclass(frozen=True, slots=True)
class JavaUrl:
    """A URL of one or several brokers. The password is not kept."""

    composite: str
    """The scheme of a composite URL, such as ``failover`` or ``static``; ``list`` for a list of Artemis. Empty for a
    single broker.
    """
    members: tuple[JavaMember, ...]
    options: tuple[tuple[str, str], ...]
    """Options of the whole composite URL, and not of one broker."""

    def __str__(self) -> str:
        listed = ",".join(map(str, self.members))
        if not self.composite:
            return listed
        return f"({listed})" if self.composite == "list" else f"{self.composite}:({listed})"


def parse_java_url(text: str) -> JavaUrl:
    """Split the URL of a Java client into its parts.

    Raises:
        Unreadable: ``text`` is not the URL of a broker. The error does not show the URL, because the URL may contain a
            password.
    """
    text = text.strip().replace("&amp;", "&")
    if len(text) > _LONGEST:
        raise Unreadable(f"expected a broker URL of at most {_LONGEST} characters")
    if text.startswith("("):
        return _composite("list", text)
    if match := _COMPOSITE.fullmatch(text):
        return _composite(match[1].lower(), match[2])
    members = _split(text, "#") if "#" in text.partition("?")[0] else _split(text, ",") if "," in text else [text]
    if len(members) > 1:
        return _listed(members)
    return JavaUrl("", (_member(text),), ())


def _listed(members: list[str]) -> JavaUrl:
    """Split a list of Artemis without parentheses. The options after the last broker are options of the whole list."""
    parsed = [_member(member) for member in members]
    outer = parsed[-1].options
    return JavaUrl("list", (*parsed[:-1], _without_options(parsed[-1])), outer)


def _without_options(member: JavaMember) -> JavaMember:
    return JavaMember(member.scheme, member.host, member.port, member.user, member.has_password, ())


def _composite(kind: str, rest: str) -> JavaUrl:
    rest = rest.strip()
    if rest.startswith("("):
        end = _closing(rest)
        inside, after = rest[1:end], rest[end + 1 :]
        query = after.lstrip("/").removeprefix("?")
        if after.startswith("#"):  # backup brokers follow, as Artemis allows
            inside, query = f"{inside},{after[1:].partition('?')[0].strip('()')}", after.partition("?")[2]
    else:
        inside, _, query = rest.partition("?")
    members = _split(inside.replace("#", ","), ",") if kind == "list" else _split(inside, ",")
    if not members:
        raise Unreadable("expected a broker in the URL, such as tcp://host:61616")
    return JavaUrl(kind, tuple(_member(member) for member in members), _options(query))


def _closing(text: str) -> int:
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return index
    raise Unreadable("expected a broker URL whose parentheses match")


def _split(text: str, separator: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == separator and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts = [part.strip() for part in [*parts, text[start:]] if part.strip()]
    if len(parts) > _MOST_MEMBERS:
        raise Unreadable(f"expected a broker URL of at most {_MOST_MEMBERS} brokers")
    return parts


def _member(text: str) -> JavaMember:
    text = text.strip()
    match = _SINGLE.fullmatch(text)
    if match is None or match[2].startswith("("):
        raise Unreadable("expected a URL of a broker, such as tcp://host:61616")
    rest = match[2]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" not in authority and "@" in rest.partition("=")[0]:  # a password has an unescaped '/' or '?'
        authority = rest.rpartition("@")[0] + "@" + re.split(r"[/?#]", rest.rpartition("@")[2], maxsplit=1)[0]
    login, _, address = authority.rpartition("@")
    host, port = _host_and_port(address)
    user, colon, _ = login.partition(":")
    query = rest[len(authority) :].partition("?")[2].partition("#")[0]
    return JavaMember(match[1].lower(), host, port, unquote(user), bool(colon), _options(query))


def _host_and_port(address: str) -> tuple[str, int]:
    if address.startswith("["):
        host, _, port = address[1:].partition("]")
        host, port = f"[{host}]", port.removeprefix(":")
    else:
        host, _, port = address.partition(":")
    if port and not (_PORT.fullmatch(port) and 0 < int(port) < 65536):
        raise Unreadable("expected a broker URL with a port from 1 to 65535")
    if not host.isprintable() or " " in host:
        raise Unreadable("expected a broker URL whose host has no spaces and no line breaks")
    return host, int(port or 0)


def _options(query: str) -> tuple[tuple[str, str], ...]:
    parts: list[str] = []
    for part in query.split("&"):
        if "=" not in part and parts:  # the value before has an unescaped '&', and this part is its rest
            parts[-1] += f"&{part}"
        elif part:
            parts.append(part)
    pairs = [part.partition("=") for part in parts]
    return tuple((unquote(name.strip()), unquote(value.strip().replace("+", " "))) for name, _, value in pairs)
