"""Heart-beats and idle time-outs."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.fuzz.amqp import AMQP_HEADER, NULL, WELCOME, amqp_text, begin
from benchmarks.fuzz.bench import Bench, FindingError, Input
from benchmarks.fuzz.values import amqp_value, described, frame, uint
from pyjmsack.providers.amqp.provider import AmqpProvider
from pyjmsack.providers.stomp.provider import StompProvider
from pyjmsack.uri import parse_url

__all__ = ["beats_input", "run_beats"]


def beats_input(dice: random.Random) -> Input:
    numbers = ["0", "1", "9999999999", "\u00b2", "-1", "", " 5 ", "9" * 5000, "1.5", "10000"]
    header = dice.choice(["{0},{1}", "{0}", "{0},{1},{1}"]).format(dice.choice(numbers), dice.choice(numbers))
    idle = dice.choice([uint(dice.choice([0, 1, 2, 100, 2**32 - 1])), amqp_value(dice)])
    opened = frame(described(0x10, [amqp_text("peer"), NULL, NULL, NULL, idle]))
    return [f"CONNECTED\nversion:1.2\nheart-beat:{header}\n\n\0".encode(), AMQP_HEADER + opened + begin(0)]


def run_beats(chunks: Input) -> None:
    """Ten seconds of silence: at most 20 beats a second, however often the peer wants one."""
    urls = ("stomp://peer?stomp.heartBeat=1000", "amqp://peer")
    for provider_of, url, chunk in zip((StompProvider, AmqpProvider), urls, chunks, strict=True):
        bench = Bench()
        provider: Any = provider_of(parse_url(url), bench)  # type: ignore[arg-type]  # as above
        bench.open(provider)
        if provider_of is AmqpProvider:
            bench.engine.receive_data(WELCOME[0])
        bench.engine.receive_data(chunk)
        before, end, turns = bench.written, bench.now + 10, 0
        deadline: float | None = bench.now
        while deadline is not None and deadline < end:
            deadline, turns = bench.engine.tick(deadline), turns + 1
            if turns > 210 or bench.written - before > 9 * 210:
                raise FindingError(f"{turns} ticks and {bench.written - before} bytes in ten seconds of silence")
        bench.end()
