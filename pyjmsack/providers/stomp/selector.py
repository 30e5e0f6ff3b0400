"""Selectors for Artemis over STOMP: it takes them for its own filters, which have other names for the JMS headers."""

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
"""Lets a number be compared with the text that a STOMP header is."""
_PREFIX = re.compile(r"\s*(no_convert_string_expressions|convert_string_expressions|hyphenated_props):")


@kept(256)
def artemis_filter(selector: str) -> str:
    """Return the filter that selects the same messages; one that starts with a prefix of the broker is left alone."""
    if _PREFIX.match(selector):
        return selector
    words = {**_NAMES, **(_MODES if "JMSDeliveryMode" in selector else {})}
    return _CONVERT + _TOKEN.sub(lambda token: words.get(token[0], token[0]), selector)
