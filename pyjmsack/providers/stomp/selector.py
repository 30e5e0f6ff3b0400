"""Translates selectors for Artemis over STOMP. Artemis reads a selector as one of its own filters, in which the JMS
headers have other names."""

from __future__ import annotations

import re

from pyjmsack.kept import kept

__all__ = ["artemis_filter"]

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|[A-Za-z_$][\w$.]*")
_NAMES = {
    "JMSDeliveryMode": "AMQDurable",
    "JMSPriority": "AMQPriority",
    "JMSTimestamp": "AMQTimestamp",
    "JMSMessageID": "NATIVE_MESSAGE_ID",
    "JMSXGroupID": "AMQGroupID",
}
_MODES = {"'PERSISTENT'": "'DURABLE'", "'NON_PERSISTENT'": "'NON_DURABLE'"}
_CONVERT = "convert_string_expressions:"
"""The prefix of a filter that makes Artemis compare the texts of headers as numbers."""
_PREFIX = re.compile(r"\s*(no_convert_string_expressions|convert_string_expressions|hyphenated_props):")


@kept(256)
def artemis_filter(selector: str) -> str:
    """Return the filter of Artemis that selects the same messages as the selector. A selector that starts with a prefix
    of the broker is not changed."""
    if _PREFIX.match(selector):
        return selector
    words = {**_NAMES, **(_MODES if "JMSDeliveryMode" in selector else {})}
    return _CONVERT + _TOKEN.sub(lambda token: words.get(token[0], token[0]), selector)
