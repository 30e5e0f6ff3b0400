"""Translates names of kombu into names of JMS: queues, topics of exchanges, subscriptions.

A name of kombu may contain characters that mean something to a broker or to pyjmsack, such as the wildcards of Artemis
and Classic, ``::`` (queue of an address on Artemis) and ``?`` (options). This module writes such a character, and the
character ``~`` itself, as ``~`` and two hexadecimal digits. So two names of kombu never become the same name of JMS.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from pyjmsack import InvalidDestinationException

__all__ = [
    "ExchangeKind",
    "Pattern",
    "checked_name",
    "escaped",
    "key_of",
    "queue_name",
    "subscription_name",
    "topic_name",
    "topic_pattern",
    "unescaped",
]

_SPECIAL: Final = re.compile(r"[~,>*#?|\s\x00-\x1f\x7f]|:(?=[:/])")
_ESCAPED: Final = re.compile(r"(?:~[0-9a-f]{2})+")
_LONGEST: Final = 1000
"""The largest number of characters of a name. There is a limit, because the sender of a task chooses the name of the
queue for its result."""
_WIDEST: Final = 12
"""The largest number of characters that one escaped character takes: three for each of its at most four bytes."""
_EMPTY: Final = "~"
"""The text that replaces an empty name. No other name becomes a single ``~``."""


class ExchangeKind(str, Enum):
    """The kinds of exchanges that the transport has. An exchange of kombu sends messages on to its bound queues."""

    DIRECT = "direct"
    TOPIC = "topic"
    FANOUT = "fanout"


def escaped(name: str, *, one_word: bool = False) -> str:
    """Return a name without the characters that are special to a broker.

    Args:
        name: a name of kombu.
        one_word: whether dots are special too, so that the result is one word of a name.

    Raises:
        InvalidDestinationException: the name is too long.
    """
    if not name:
        return _EMPTY
    plain = _SPECIAL.sub(_escape, checked_name(name))
    return plain.replace(".", "~2e") if one_word else plain


def checked_name(name: str) -> str:
    """Return a name of kombu unchanged, after a check of its length.

    Raises:
        InvalidDestinationException: the name is too long.
    """
    if len(name) > _LONGEST:
        raise InvalidDestinationException(
            f"the name {name[:40]!r}... has {len(name)} characters; at most {_LONGEST} are allowed"
        )
    return name


def _escape(found: re.Match[str]) -> str:
    return "".join(f"~{byte:02x}" for byte in found[0].encode())


def unescaped(text: str) -> str:
    """Return the name from which :func:`escaped` made this text."""
    if text == _EMPTY:
        return ""
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[0].replace("~", "")).decode(errors="replace"), text)


def queue_name(queue: str) -> str:
    """Return the name of the JMS queue of a queue of kombu."""
    return escaped(queue)


def topic_name(kind: ExchangeKind, exchange: str, routing_key: str) -> str:
    """Return the name of the topic to which an exchange sends messages with this routing key.

    Dots are escaped in the routing key of a direct exchange, and in the name of a topic exchange. Otherwise the
    exchange ``a`` with the key ``b.c`` and the exchange ``a.b`` with the key ``c`` would share a topic.
    """
    return f"kombu.{kind.value}.{_tail(kind, exchange, routing_key)}"


def _tail(kind: ExchangeKind, exchange: str, routing_key: str) -> str:
    if kind is ExchangeKind.FANOUT:
        return escaped(exchange)
    if kind is ExchangeKind.DIRECT:
        return f"{escaped(exchange)}.{escaped(routing_key, one_word=True)}"
    return f"{escaped(exchange, one_word=True)}.{escaped(routing_key)}"


def topic_pattern(exchange: str, pattern: str, *, any_sequence: str) -> str:
    """Return the topic name, perhaps with wildcards, to which a binding to a topic exchange subscribes.

    Args:
        exchange: the name of the exchange.
        pattern: the routing key of the binding, with the wildcards ``*`` (one word) and ``#`` (any number of words).
        any_sequence: the broker's wildcard for any number of words. On Artemis this is ``#``, which may stand anywhere.
            On Classic this is ``>``, which may stand only at the end. So on Classic the subscription may also get
            messages that the binding does not cover, and :class:`Pattern` leaves these messages out.
    """
    words = []
    for word in pattern.split("."):
        if word == "#" and any_sequence == ">":
            words.append(">")
            break
        words.append(word if word in ("*", "#") else escaped(word))
    return f"kombu.topic.{escaped(exchange, one_word=True)}.{'.'.join(words)}"


def subscription_name(queue: str, topic: str) -> str:
    """Return the name of the durable subscription by which a queue gets the messages of an exchange's topic."""
    return f"{escaped(queue)}.{topic}".replace("*", "~2a").replace("#", "~23")


def key_of(kind: ExchangeKind, exchange: str, topic: str) -> str:
    """Return the routing key of a message that kombu did not send. The key is part of the name of the topic.

    Raises:
        InvalidDestinationException: the key is too long.
    """
    prefix = topic_name(kind, exchange, "x")[:-1]
    _, found, key = topic.partition(prefix)
    if not found or kind is ExchangeKind.FANOUT:
        return ""
    return checked_name(unescaped(key[: _LONGEST * _WIDEST + 1]))


class Pattern:
    """The routing keys that a binding to a topic exchange covers."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self._words = tuple(pattern.split("."))

    def matches(self, routing_key: str) -> bool:
        """Return whether the binding covers this key. The time grows at most with the product of two numbers: the words
        in the pattern, and the words in the key.
        """
        reached = {0}
        pattern = self._words
        for word in routing_key.split("."):
            reached = self._past_hashes(reached)
            reached = {
                place if pattern[place] == "#" else place + 1
                for place in reached
                if place < len(pattern) and pattern[place] in ("#", "*", word)
            }
        return len(pattern) in self._past_hashes(reached)

    def _past_hashes(self, places: set[int]) -> set[int]:
        """Return these places in the pattern. If a ``#`` is at one of these places, also return the place behind the
        ``#``, because a ``#`` may stand for no word.
        """
        found = set(places)
        for place in sorted(places):
            while place < len(self._words) and self._words[place] == "#":
                place += 1
                found.add(place)
        return found
