"""Logins by SASL."""

from __future__ import annotations

import random

from benchmarks.fuzz.amqp import SASL_HEADER, garbage, symbol
from benchmarks.fuzz.bench import FindingError, Input, fed
from benchmarks.fuzz.values import amqp_value, damaged, described, frame
from pyjmsack.errors import JMSException
from pyjmsack.providers.amqp.sasl import SaslClient

__all__ = ["run_sasl", "sasl_input"]

_MECHANISMS = ["ANONYMOUS", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-1", "CRAM-MD5", "XOAUTH2", "EXTERNAL"]
_CHALLENGES = [
    b"r=%s,s=QSXCR+Q6sek8bf92,i=4096", b"r=,s=,i=", b"v=AAAA", b"e=other-error", b"r=x,s=!!,i=4096", b"=,=,=",
    b"r=%s,s=QSXCR+Q6sek8bf92,i=99999999999999999999", b"", b"\xff\xfe",
]  # fmt: skip


def sasl_input(dice: random.Random) -> Input:
    names = [symbol(name) for name in dice.sample(_MECHANISMS, dice.randrange(1, 4))]
    data = SASL_HEADER + frame(described(0x40, [dice.choice([names[0], amqp_value(dice)])]), 1)
    for _ in range(dice.randrange(4)):
        challenge = dice.choice(_CHALLENGES)
        field = b"\xa0" + bytes((len(challenge),)) + challenge
        data += frame(described(0x42, [dice.choice([field, field, amqp_value(dice)])]), 1)
    outcome = [
        dice.choice([b"\x50\x00", b"\x50\x01", amqp_value(dice)]),
        *([amqp_value(dice)] if dice.random() < 0.3 else []),
    ]
    data += frame(described(0x44, outcome), 1) if dice.random() < 0.8 else garbage(dice, 1)
    if dice.random() < 0.2:
        data = data.replace(b"\x00\x53\x40", b"\x00" + symbol("amqp:sasl-mechanisms:list"))
    return fed(dice, damaged(dice, data) if dice.random() < 0.5 else data)


def run_sasl(chunks: Input) -> None:
    for user, password in (("u", "p"), (None, None)):
        client = SaslClient(user, password, external=False, allowed=())
        try:
            for chunk in chunks:
                client.receive(chunk)
        except JMSException:
            pass
        if len(client.output) > 8192:
            raise FindingError(f"{len(client.output)} bytes are written during a login")
