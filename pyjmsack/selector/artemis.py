"""Selectors as Artemis' own filters, in which the JMS headers have other names. Artemis reads a selector as such a
filter over STOMP, and for the topics of AMQP. For the queues of AMQP, Artemis translates the selector itself."""

from __future__ import annotations

import re

from pyjmsack.errors import UnsupportedFeatureException
from pyjmsack.kept import kept
from pyjmsack.selector import BROKER_DIALECT

__all__ = ["amqp_topic_filter", "own_names", "stomp_filter"]

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\r\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?|[A-Za-z_$][\w$.]*")
"""Texts, quoted names, comments and names. A comment without an end is one, too, so that a selector with many
beginnings of comments takes no longer than another."""
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


@kept(256)
def own_names(selector: str) -> str:
    """Return the selector with Artemis' names of the headers."""
    words = {**_NAMES, **(_MODES if "JMSDeliveryMode" in selector else {})}
    return _TOKEN.sub(lambda token: words.get(token[0], token[0]), selector)


def amqp_topic_filter(selector: str, *, no_local: bool) -> str:
    """Return the filter that selects the same messages of a topic over AMQP.

    With ``no_local`` the broker writes ``AND`` and a condition of its own behind the filter, so an ``OR`` needs
    parentheses. Nothing else gets them: another filter would empty a durable subscription (S142).
    """
    selector = own_names(selector)
    if not no_local or all(token.upper() != "OR" for token in _TOKEN.findall(selector)):
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
    rest = _TOKEN.sub(lambda token: token[0] if token[0].upper() in ("TRUE", "FALSE") else "", selector)
    if prefixed or not _TEXTS_ONLY.fullmatch(rest):
        raise UnsupportedFeatureException(
            "over STOMP, Artemis has no_local only with a selector that compares texts by =, <>, IN and LIKE; use AMQP,"
            " or a selector without numbers, TRUE and FALSE (S147)"
        )
    return f"({own_names(selector)})"
