"""Frames on a STOMP connection in use."""

from __future__ import annotations

import random

from benchmarks.fuzz.bench import MOST_WRITTEN, PREFETCH, Bench, FindingError, Input, Sink, fed
from benchmarks.fuzz.messages import read
from benchmarks.fuzz.values import damaged, text
from pyjmsack.destination import Queue
from pyjmsack.providers.stomp.provider import StompProvider
from pyjmsack.spi.resources import ConsumerInfo, SessionInfo
from pyjmsack.types import AckMode
from pyjmsack.uri import parse_url

__all__ = ["CONNECTED", "run_stomp", "stomp_input", "subscribed"]

_COMMANDS = ["MESSAGE", "MESSAGE", "MESSAGE", "RECEIPT", "ERROR", "CONNECTED", "message", ""]
_NAMES = [
    "subscription",
    "message-id",
    "ack",
    "receipt-id",
    "content-length",
    "message",
    "heart-beat",
    "expires",
    "persistent",
    "priority",
    "redelivered",
    "content-type",
    "NATIVE_MESSAGE_ID",
    "correlation-id",
    "reply-to",
    "destination",
    "amq-msg-type",
    "pyjmsack-types",
    "version",
    "server",
]
_VALUES = [
    "1",
    "-1",
    "99999999999",
    "a\\b",
    "a\\",
    "\\\\",
    "x" * 70_000,
    "1,1",
    "true",
    "NaN",
    "\u00b2,\u00b2",
    "9" * 5000,
]
_JSON = "application/vnd.pyjmsack.{}+json"
CONNECTED = b"CONNECTED\nversion:1.2\nheart-beat:10000,10000\nserver:%s\n\n\0"
_SERVERS = [b"ActiveMQ-Artemis/2.56.0 x", b"ActiveMQ/6.3.1", b"other"]


def _stomp_frame(dice: random.Random) -> bytes:
    values = [*_VALUES, text(dice), *(_JSON.format(kind) for kind in ("map", "stream", "object"))]
    lines = [f"{dice.choice(_NAMES)}{dice.choice('::::=')}{dice.choice(values)}" for _ in range(dice.randrange(8))]
    if dice.random() < 0.7:
        lines.insert(0, "subscription:s1")
        lines.append(f"message-id:{dice.randrange(9)}")
        lines.append(f"ack:{dice.randrange(9)}")
    head = dice.choice(["\n", "\n", "\r\n"]).join([dice.choice(_COMMANDS), *lines, "", ""])
    bodies = [dice.randbytes(dice.randrange(40)), b'{"a": {"int": 5}}', b"[" * 3000, b'{"a": 1e999}', b"9" * 5000]
    return damaged(dice, head.encode() + dice.choice(bodies) + dice.choice([b"\0", b"\0", b"\0\n", b""]))


def stomp_input(dice: random.Random) -> Input:
    greeting = CONNECTED % dice.choice(_SERVERS)
    frames = [_stomp_frame(dice) for _ in range(dice.randrange(1, 10))]
    return [damaged(dice, greeting) if dice.random() < 0.1 else greeting, *fed(dice, b"".join(frames))]


def subscribed(chunks: Input) -> tuple[Bench, Sink]:
    bench, sink = Bench(), Sink()
    provider = StompProvider(parse_url("stomp://peer?stomp.maxFrameSize=100000"), bench)  # type: ignore[arg-type]  # as above
    bench.open(provider)
    bench.engine.receive_data(chunks[0])
    if bench.asked[0][1].done and bench.asked[0][1].error is None:
        bench.ask(provider, "create_session", SessionInfo(1, AckMode.CLIENT_ACKNOWLEDGE))
        info = ConsumerInfo(2, 1, Queue("q"), PREFETCH)
        bench.ask(provider, "create_consumer", info, sink)
        bench.engine.receive_data(b"RECEIPT\nreceipt-id:%b1\n\n\0" % bench.engine.secret)
        bench.ask(provider, "unsubscribe", "nobody")
    named = b"subscription:%bs1" % bench.engine.secret
    for chunk in chunks[1:]:
        bench.engine.receive_data(chunk.replace(b"subscription:s1", named))
        bench.pass_by(0.02)
    return bench, sink


def run_stomp(chunks: Input) -> None:
    bench, sink = subscribed(chunks)
    if bench.written > MOST_WRITTEN:
        raise FindingError(f"{bench.written} bytes are written")
    bench.end()
    for inbound in sink.kept[:20]:
        read(inbound)
