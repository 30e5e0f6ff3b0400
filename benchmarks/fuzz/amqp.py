"""Frames on an AMQP connection in use."""

from __future__ import annotations

import random
from typing import Final

from benchmarks.fuzz.bench import MOST_WRITTEN, PREFETCH, Bench, FindingError, Input, Sink, fed
from benchmarks.fuzz.messages import read
from benchmarks.fuzz.values import amqp_value, damaged, described, frame, uint
from pyjmsack.destination import Queue
from pyjmsack.providers.amqp.provider import AmqpProvider
from pyjmsack.spi.resources import ConsumerInfo, ProducerInfo, SessionInfo
from pyjmsack.types import AckMode
from pyjmsack.uri import parse_url

__all__ = [
    "AMQP_HEADER",
    "NULL",
    "SASL_HEADER",
    "WELCOME",
    "amqp_input",
    "amqp_text",
    "begin",
    "connected",
    "credit_input",
    "garbage",
    "run_amqp",
    "run_proton",
    "symbol",
    "transfer",
]

_BURST: Final = 256
"""Messages of one piece of input, at most: so many may come before credit is looked at."""

SASL_HEADER = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
NULL = b"\x40"


def amqp_text(value: str) -> bytes:
    data = value.encode()
    return b"\xb1" + len(data).to_bytes(4, "big") + data


def symbol(value: str) -> bytes:
    return b"\xa3" + bytes((len(value),)) + value.encode()


def _attach(name: str, handle: int, *, receiver: bool) -> bytes:
    terminus = described(0x29 if receiver else 0x28, [amqp_text("q")])
    ends = [NULL, terminus] if receiver else [terminus, NULL]
    fields = [
        amqp_text(name),
        uint(handle),
        b"\x41" if receiver else b"\x42",
        b"\x50\x02",
        b"\x50\x00",
        *ends,
        NULL,
        NULL,
    ]
    return frame(described(0x12, [*fields, uint(0)]), channel=1)


def _welcome() -> Input:
    """Return the bytes of a peer in two pieces, because the second piece answers the client's first bytes."""
    sasl = frame(described(0x40, [symbol("ANONYMOUS")]), 1) + frame(described(0x44, [b"\x50\x00"]), 1)
    opened = frame(described(0x10, [amqp_text("peer"), NULL, uint(1 << 17)]))
    return [SASL_HEADER + sasl, AMQP_HEADER + opened + begin(0)]


def begin(channel: int) -> bytes:
    number = b"\x60" + channel.to_bytes(2, "big")
    return frame(described(0x11, [number, uint(0), uint(2048), uint(2048)]), channel=channel)


WELCOME: Final = _welcome()
_FLOW: Final = frame(
    described(0x13, [uint(0), uint(2048), uint(0), uint(2048), uint(0), uint(0), uint(100)]), channel=1
)


def garbage(dice: random.Random, kind: int = 0) -> bytes:
    code = dice.choice(range(0x40, 0x46)) if kind else dice.choice([*range(0x10, 0x1A), 0x14, 0x14, 0x15, 0x24, 0x75])
    fields = [amqp_value(dice) for _ in range(dice.randrange(12))]
    if dice.random() < 0.5:
        fields = [_likely(dice) for _ in fields]
    payload = b"" if kind else dice.randbytes(dice.randrange(30))
    return damaged(dice, frame(described(code, fields) + payload, kind, dice.choice([0, 1, 1, 1, 2, 65535])))


def _likely(dice: random.Random) -> bytes:
    """Encode a field of a type that performatives have."""
    choices = [
        uint(dice.choice([0, 1, 2, 5, 2**31, 2**32 - 1])),
        b"\x41",
        b"\x42",
        NULL,
        b"\x60\x00\x01",
        b"\xa0\x01t",
    ]
    return dice.choice([*choices, amqp_value(dice)])


def amqp_input(dice: random.Random) -> Input:
    if dice.random() < 0.2:
        return [damaged(dice, piece) for piece in WELCOME]
    return [*WELCOME, *fed(dice, b"".join(garbage(dice) for _ in range(dice.randrange(1, 12))))]


def transfer(dice: random.Random, number: int) -> bytes:
    more = b"\x41" if dice.random() < 0.1 else b"\x42"
    fields = [uint(0), uint(number), b"\xa0\x02" + number.to_bytes(2, "big"), uint(0), b"\x42", more]
    return frame(described(0x14, fields) + b"\x00\x53\x77\xa1\x01x", channel=1)


def credit_input(dice: random.Random) -> Input:
    """Return transfers beyond all credit, mixed with flows that answer drains nobody asked for."""
    pieces: Input = [*WELCOME]
    number = 0
    for _ in range(dice.randrange(1, 8)):
        burst = b""
        for _ in range(dice.randrange(_BURST)):
            burst += transfer(dice, number)
            number += 1
        if dice.random() < 0.3:
            drained = [uint(dice.randrange(number + 9)) for _ in range(3)]
            burst += frame(described(0x13, [uint(0), uint(9), *drained[:2], uint(0), drained[2], uint(0)]), channel=1)
        pieces.append(burst)
    return pieces


def connected(chunks: Input, engine: str = "python") -> tuple[Bench, Sink]:
    url = parse_url(f"amqp://peer?jms.maxMessageSize=100000&amqp.engine={engine}")
    bench, sink = Bench(), Sink()
    provider = AmqpProvider(url, bench)  # type: ignore[arg-type]  # as much of a connector as it needs
    bench.open(provider)
    for chunk in chunks[:2]:
        bench.engine.receive_data(chunk)
    if bench.asked[0][1].done and bench.asked[0][1].error is None:
        bench.ask(provider, "create_session", SessionInfo(1, AckMode.CLIENT_ACKNOWLEDGE))
        bench.engine.receive_data(begin(1))
        info = ConsumerInfo(2, 1, Queue("q"), PREFETCH)
        bench.ask(provider, "create_consumer", info, sink)
        bench.ask(provider, "create_producer", ProducerInfo(3, 1, Queue("q")))
        answers = _attach("pyjmsack:consumer:2:fuzz", 0, receiver=False)
        answers += _attach("pyjmsack:producer:3:fuzz", 1, receiver=True)
        bench.engine.receive_data(answers)
        provider.start_consumer(2)
        provider.flush()
        bench.ask(provider, "create_producer", ProducerInfo(4, 1, Queue("unanswered")))
        bench.ask(provider, "drain", 2)
    for chunk in chunks[2:]:
        bench.engine.receive_data(chunk)
        if len(sink.kept) > 2 * PREFETCH + 100 + _BURST + len(chunk) // 20:
            raise FindingError(f"{len(sink.kept)} messages are kept with a prefetch of {PREFETCH}")
        bench.pass_by(0.02)
    return bench, sink


def run_amqp(chunks: Input, engine: str = "python") -> None:
    bench, sink = connected(chunks, engine)
    bench.pass_by(100)
    if bench.written > MOST_WRITTEN:
        raise FindingError(f"{bench.written} bytes are written")
    bench.end()
    for inbound in sink.kept[:20]:
        read(inbound)


def run_proton(chunks: Input) -> None:
    run_amqp(chunks, "proton")
