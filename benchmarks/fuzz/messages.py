"""Sections and bodies of AMQP messages."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.fuzz.bench import Input
from benchmarks.fuzz.values import amqp_value, damaged, described, text
from pyjmsack.destination import Queue
from pyjmsack.errors import JMSException, MessageFormatException
from pyjmsack.message import BytesMessage, MapMessage, ObjectMessage, StreamMessage, TextMessage
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.amqp.inbound import AmqpInbound

__all__ = ["body_input", "read", "run_body"]


def read(inbound: Any) -> None:
    """Read all parts of a message, as a caller may."""
    inbound.expired(10**12)
    _ = inbound.redelivery_count, inbound.priority, getattr(inbound, "persistent", None)
    try:
        message = inbound.to_message(Queue("q"))
    except MessageFormatException:
        return
    for name in ("message_id", "correlation_id", "reply_to", "timestamp", "expiration", "type", "destination", "body"):
        try:
            value = getattr(message, name)
        except JMSException:
            continue
        repr(value)
    try:
        dict(message.properties)
        repr(message)
    except JMSException:
        return


def _messages(dice: random.Random) -> bytes:
    kind = dice.randrange(5)
    message: Any = [TextMessage, BytesMessage, MapMessage, StreamMessage, ObjectMessage][kind]()
    if kind == 0:
        message.text = text(dice)
    elif kind == 1:
        message.write_bytes(dice.randbytes(9))
    elif kind == 2:
        message["k"] = dice.choice([1, 1.5, "x", True, b"raw"])
    elif kind == 3:
        message.write_string("s")
    else:
        message.object = dice.choice([None, 5, "x", [1, {"a": 2}]])
    message.properties["p"] = dice.choice([1, True, "text", 2.5])
    message.correlation_id = "c"
    return bytes(encode(message, "q", 0, str, marks_repetitions=False))


def _sections(dice: random.Random) -> bytes:
    parts = [described(code, [amqp_value(dice) for _ in range(dice.randrange(10))]) for code in (0x70, 0x73)]
    parts += [b"\x00\x53" + bytes((code,)) + amqp_value(dice) for code in (0x72, 0x74, dice.choice([0x75, 0x76, 0x77]))]
    return b"".join(part for part in parts if dice.random() < 0.8)


def body_input(dice: random.Random) -> Input:
    return [damaged(dice, _messages(dice) if dice.random() < 0.5 else _sections(dice))]


def run_body(chunks: Input) -> None:
    read(AmqpInbound(chunks[0], 10**12))
