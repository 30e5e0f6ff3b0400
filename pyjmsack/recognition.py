"""Recognises which protocol a port speaks, by the first bytes that the port sends."""

from __future__ import annotations

import re

__all__ = ["mismatch", "recognise"]

_SIGNS: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("AMQP", re.compile(rb"AMQP[\x00\x02\x03]")),
    ("STOMP", re.compile(rb"(?:CONNECTED|ERROR|MESSAGE|RECEIPT)\r?\n")),
    ("TLS", re.compile(rb"[\x15\x16]\x03[\x00-\x04]")),
    ("HTTP", re.compile(rb"HTTP/\d")),
    ("OpenWire", re.compile(rb".{4}\x01ActiveMQ", re.DOTALL)),
    ("SSH", re.compile(rb"SSH-\d")),
    ("Redis", re.compile(rb"-(?:ERR|NOAUTH|DENIED) ")),
    ("MQTT", re.compile(rb"\x20[\x02\x03][\x00\x01]")),
)
_ADVICE = {
    "AMQP": "use amqp://",
    "STOMP": "use stomp://",
    "TLS": "use the encrypted scheme, amqps:// or stomp+ssl://",
    "HTTP": "this port belongs to a web server or a console; AMQP and STOMP over WebSocket are amqpws:// and stomp+ws://",
    "OpenWire": "this is ActiveMQ's port for Java clients; by default AMQP is at 5672 and STOMP at 61613",
}
_OTHERWISE = "by default brokers speak AMQP at 5672 and STOMP at 61613"


def recognise(data: bytes) -> str | None:
    """Return the protocol whose answers begin with these bytes. Return ``None`` if there are too few bytes, or if no
    known protocol begins with them.
    """
    return next((name for name, sign in _SIGNS if sign.match(data)), None)


def mismatch(place: str, spoken: str, expected: str) -> str:
    """Return the text of the error for a port that speaks another protocol than its URL."""
    return f"{place} speaks {spoken}, not {expected}: {_ADVICE.get(spoken, _OTHERWISE)}"
