"""Selectors as Artemis' own filters, in which the JMS headers have other names. Artemis reads a selector as such a
filter over STOMP, and for the topics of AMQP. For the queues of AMQP, Artemis translates the selector itself."""

from __future__ import annotations

import re
from collections.abc import Callable

from pyjmsack.errors import UnsupportedFeatureException
from pyjmsack.kept import kept
from pyjmsack.selector import BROKER_DIALECT

__all__ = ["amqp_topic_filter", "own_names", "stomp_filter"]

_PARTS = r"'(?:[^']|'')*'|\"[^\"]*\"|/\*(?:[^*]|\*(?!/))*(?:\*/)?|[()]|[A-Za-z_$][\w$.]*"
_SIGNED = re.compile(_PARTS)
"""Texts, quoted names, comments, parentheses and names. A comment without an end is one, too, so that a selector with
many beginnings of comments takes no longer than another."""
_TOKEN = re.compile(rf"--[^\r\n]*|{_PARTS}")
"""The same, and comments to the end of a line."""
_NAMES = {
    "JMSDeliveryMode": "AMQDurable",
    "JMSPriority": "AMQPriority",
    "JMSTimestamp": "AMQTimestamp",
    "JMSExpiration": "AMQExpiration",
    "JMSMessageID": "AMQUserID",
    "JMSXGroupID": "AMQGroupID",
}
_MODES = {"'PERSISTENT'": "'DURABLE'", "'NON_PERSISTENT'": "'NON_DURABLE'"}
_CONVERT = "convert_string_expressions:"
"""The prefix of a filter that makes Artemis compare the texts of headers as numbers."""
_TEXTS_ONLY = re.compile(r"(?:[\s(),=]|<>)*")
"""What is left of a selector that compares texts only, without its texts, names and comments."""


def _split(selector: str) -> tuple[str, str]:
    """Return the part of a selector in which ``--`` begins a comment, and the rest. If no line ends behind a ``--``,
    the brokers read two signs."""
    for token in _TOKEN.finditer(selector):
        if token.end() == len(selector) and token[0].startswith("--"):
            return selector[: token.start()], selector[token.start() :]
    return selector, ""


def _replaced(selector: str, replace: Callable[[str], str]) -> str:
    """Return the selector with other tokens."""
    head, tail = _split(selector)
    return _TOKEN.sub(lambda token: replace(token[0]), head) + _SIGNED.sub(lambda token: replace(token[0]), tail)


@kept(256)
def own_names(selector: str) -> str:
    """Return the selector with Artemis' names of the headers."""
    words = {**_NAMES, **(_MODES if "JMSDeliveryMode" in selector else {})}
    return _replaced(selector, lambda token: words.get(token, token))


def _has_open_or(selector: str) -> bool:
    """Whether an ``OR`` stands outside of all parentheses."""
    head, tail = _split(selector)
    depth = 0
    for part in [*_TOKEN.findall(head), *_SIGNED.findall(tail)]:
        depth += (part == "(") - (part == ")")
        if depth == 0 and part.upper() == "OR":
            return True
    return False


def amqp_topic_filter(selector: str, *, no_local: bool) -> str:
    """Return the filter that selects the same messages of a topic over AMQP.

    With ``no_local`` the broker writes ``AND`` and a condition of its own behind the filter, so an ``OR`` outside of
    parentheses needs them. Nothing else gets them: another filter would empty a durable subscription (S142).
    """
    selector = own_names(selector)
    if not no_local or not _has_open_or(selector):
        return selector
    prefix = BROKER_DIALECT.match(selector)
    start = prefix.end() if prefix else 0
    return f"{selector[:start]}({selector[start:]})"


def stomp_filter(selector: str, *, no_local: bool) -> str:
    """Return the filter that selects the same messages over STOMP. A selector that starts with a prefix of the broker
    is not changed.

    Raises:
        UnsupportedFeatureException: with ``no_local`` the broker writes a condition of its own in front of the filter,
            where no prefix may stand. Without the prefix, only texts can be compared (S147).
    """
    prefixed = BROKER_DIALECT.match(selector)
    if not no_local:
        return selector if prefixed else _CONVERT + own_names(selector)
    rest = _replaced(selector, lambda token: token if token.upper() in ("TRUE", "FALSE") else "")
    if prefixed or not _TEXTS_ONLY.fullmatch(rest):
        raise UnsupportedFeatureException(
            "over STOMP, Artemis has no_local only with a selector that compares texts by =, <>, IN and LIKE; use AMQP,"
            " or a selector without numbers, TRUE and FALSE (S147)"
        )
    return f"({own_names(selector)})"
