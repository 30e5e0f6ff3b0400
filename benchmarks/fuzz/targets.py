"""What is fuzzed: each target makes an input from a dice, and runs it; whatever it raises is a finding."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from benchmarks.fuzz.bench import Bench, FindingError, Sink, fed
from benchmarks.fuzz.values import amqp_value, damaged, described, frame, text, uint
from pyjmsack.destination import Queue
from pyjmsack.errors import (
    InvalidSelectorException,
    InvalidURLException,
    JMSException,
    MessageFormatException,
    UnsupportedFeatureException,
)
from pyjmsack.io.websocket import WebSocketEngine
from pyjmsack.message import BytesMessage, MapMessage, ObjectMessage, StreamMessage, TextMessage
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.provider import AmqpProvider
from pyjmsack.providers.amqp.sasl import SaslClient
from pyjmsack.providers.stomp.provider import StompProvider
from pyjmsack.selector import check_selector
from pyjmsack.spi.resources import ConsumerInfo, ProducerInfo, SessionInfo
from pyjmsack.types import AckMode
from pyjmsack.uri import Endpoint, parse_url

__all__ = ["TARGETS", "Target"]

Input = list[bytes]
_MOST_WRITTEN: Final = 1 << 22
"""Bytes that hostile input may make a client write."""
_PREFETCH: Final = 10
_BURST: Final = 256
"""Messages of one piece of input, at most: so many may come before credit is looked at."""


class Target(NamedTuple):
    """``make`` returns an input, ``run`` raises if it does harm."""

    make: Callable[[random.Random], Input]
    run: Callable[[Input], None]
    about: str


# -- AMQP frames ------------------------------------------------------------------------------------------------

_SASL = b"AMQP\x03\x01\x00\x00"
_AMQP = b"AMQP\x00\x01\x00\x00"
_NULL = b"\x40"


def _text(value: str) -> bytes:
    data = value.encode()
    return b"\xb1" + len(data).to_bytes(4, "big") + data


def _symbol(value: str) -> bytes:
    return b"\xa3" + bytes((len(value),)) + value.encode()


def _attach(name: str, handle: int, *, receiver: bool) -> bytes:
    terminus = described(0x29 if receiver else 0x28, [_text("q")])
    ends = [_NULL, terminus] if receiver else [terminus, _NULL]
    fields = [
        _text(name),
        uint(handle),
        b"\x41" if receiver else b"\x42",
        b"\x50\x02",
        b"\x50\x00",
        *ends,
        _NULL,
        _NULL,
    ]
    return frame(described(0x12, [*fields, uint(0)]), channel=1)


def _welcome() -> Input:
    """Return what a peer says, in two pieces, as it answers the second time to what the client then has said."""
    sasl = frame(described(0x40, [_symbol("ANONYMOUS")]), 1) + frame(described(0x44, [b"\x50\x00"]), 1)
    opened = frame(described(0x10, [_text("peer"), _NULL, uint(1 << 17)]))
    return [_SASL + sasl, _AMQP + opened + _begin(0)]


def _begin(channel: int) -> bytes:
    number = b"\x60" + channel.to_bytes(2, "big")
    return frame(described(0x11, [number, uint(0), uint(2048), uint(2048)]), channel=channel)


_WELCOME: Final = _welcome()
_FLOW: Final = frame(
    described(0x13, [uint(0), uint(2048), uint(0), uint(2048), uint(0), uint(0), uint(100)]), channel=1
)


def _garbage(dice: random.Random, kind: int = 0) -> bytes:
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
        _NULL,
        b"\x60\x00\x01",
        b"\xa0\x01t",
    ]
    return dice.choice([*choices, amqp_value(dice)])


def _amqp_input(dice: random.Random) -> Input:
    if dice.random() < 0.2:
        return [damaged(dice, piece) for piece in _WELCOME]
    return [*_WELCOME, *fed(dice, b"".join(_garbage(dice) for _ in range(dice.randrange(1, 12))))]


def _transfer(dice: random.Random, number: int) -> bytes:
    more = b"\x41" if dice.random() < 0.1 else b"\x42"
    fields = [uint(0), uint(number), b"\xa0\x02" + number.to_bytes(2, "big"), uint(0), b"\x42", more]
    return frame(described(0x14, fields) + b"\x00\x53\x77\xa1\x01x", channel=1)


def _credit_input(dice: random.Random) -> Input:
    """Return transfers beyond all credit, with flows between that answer drains nobody asked for."""
    pieces: Input = [*_WELCOME]
    number = 0
    for _ in range(dice.randrange(1, 8)):
        burst = b""
        for _ in range(dice.randrange(_BURST)):
            burst += _transfer(dice, number)
            number += 1
        if dice.random() < 0.3:
            drained = [uint(dice.randrange(number + 9)) for _ in range(3)]
            burst += frame(described(0x13, [uint(0), uint(9), *drained[:2], uint(0), drained[2], uint(0)]), channel=1)
        pieces.append(burst)
    return pieces


def _amqp(chunks: Input, engine: str = "python") -> tuple[Bench, Sink]:
    url = parse_url(f"amqp://peer?jms.maxMessageSize=100000&amqp.engine={engine}")
    bench, sink = Bench(), Sink()
    provider = AmqpProvider(url, bench)  # type: ignore[arg-type]  # as much of a connector as it needs
    bench.open(provider)
    for chunk in chunks[:2]:
        bench.engine.receive_data(chunk)
    if bench.asked[0][1].done and bench.asked[0][1].error is None:
        bench.ask(provider, "create_session", SessionInfo(1, AckMode.CLIENT_ACKNOWLEDGE))
        bench.engine.receive_data(_begin(1))
        info = ConsumerInfo(2, 1, Queue("q"), _PREFETCH)
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
        if len(sink.kept) > 2 * _PREFETCH + 100 + _BURST + len(chunk) // 20:
            raise FindingError(f"{len(sink.kept)} messages are kept with a prefetch of {_PREFETCH}")
        bench.pass_by(0.02)
    return bench, sink


def _run_amqp(chunks: Input, engine: str = "python") -> None:
    bench, sink = _amqp(chunks, engine)
    bench.pass_by(100)
    if bench.written > _MOST_WRITTEN:
        raise FindingError(f"{bench.written} bytes are written")
    bench.end()
    for inbound in sink.kept[:20]:
        _read(inbound)


def _run_proton(chunks: Input) -> None:
    _run_amqp(chunks, "proton")


# -- messages ---------------------------------------------------------------------------------------------------


def _read(inbound: Any) -> None:
    """Read all of a message, as a caller may."""
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


def _body_input(dice: random.Random) -> Input:
    return [damaged(dice, _messages(dice) if dice.random() < 0.5 else _sections(dice))]


def _run_body(chunks: Input) -> None:
    _read(AmqpInbound(chunks[0], 10**12))


# -- STOMP ------------------------------------------------------------------------------------------------------

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
_CONNECTED = b"CONNECTED\nversion:1.2\nheart-beat:10000,10000\nserver:%s\n\n\0"
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


def _stomp_input(dice: random.Random) -> Input:
    greeting = _CONNECTED % dice.choice(_SERVERS)
    frames = [_stomp_frame(dice) for _ in range(dice.randrange(1, 10))]
    return [damaged(dice, greeting) if dice.random() < 0.1 else greeting, *fed(dice, b"".join(frames))]


def _stomp(chunks: Input) -> tuple[Bench, Sink]:
    bench, sink = Bench(), Sink()
    provider = StompProvider(parse_url("stomp://peer?stomp.maxFrameSize=100000"), bench)  # type: ignore[arg-type]  # as above
    bench.open(provider)
    bench.engine.receive_data(chunks[0])
    if bench.asked[0][1].done and bench.asked[0][1].error is None:
        bench.ask(provider, "create_session", SessionInfo(1, AckMode.CLIENT_ACKNOWLEDGE))
        info = ConsumerInfo(2, 1, Queue("q"), _PREFETCH)
        bench.ask(provider, "create_consumer", info, sink)
        bench.engine.receive_data(b"RECEIPT\nreceipt-id:1\n\n\0")
        bench.ask(provider, "unsubscribe", "nobody")
    for chunk in chunks[1:]:
        bench.engine.receive_data(chunk)
        bench.pass_by(0.02)
    return bench, sink


def _run_stomp(chunks: Input) -> None:
    bench, sink = _stomp(chunks)
    if bench.written > _MOST_WRITTEN:
        raise FindingError(f"{bench.written} bytes are written")
    bench.end()
    for inbound in sink.kept[:20]:
        _read(inbound)


# -- SASL -------------------------------------------------------------------------------------------------------

_MECHANISMS = ["ANONYMOUS", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-1", "CRAM-MD5", "XOAUTH2", "EXTERNAL"]
_CHALLENGES = [
    b"r=%s,s=QSXCR+Q6sek8bf92,i=4096", b"r=,s=,i=", b"v=AAAA", b"e=other-error", b"r=x,s=!!,i=4096", b"=,=,=",
    b"r=%s,s=QSXCR+Q6sek8bf92,i=99999999999999999999", b"", b"\xff\xfe",
]  # fmt: skip


def _sasl_input(dice: random.Random) -> Input:
    names = [_symbol(name) for name in dice.sample(_MECHANISMS, dice.randrange(1, 4))]
    data = _SASL + frame(described(0x40, [dice.choice([names[0], amqp_value(dice)])]), 1)
    for _ in range(dice.randrange(4)):
        challenge = dice.choice(_CHALLENGES)
        field = b"\xa0" + bytes((len(challenge),)) + challenge
        data += frame(described(0x42, [dice.choice([field, field, amqp_value(dice)])]), 1)
    outcome = [
        dice.choice([b"\x50\x00", b"\x50\x01", amqp_value(dice)]),
        *([amqp_value(dice)] if dice.random() < 0.3 else []),
    ]
    data += frame(described(0x44, outcome), 1) if dice.random() < 0.8 else _garbage(dice, 1)
    if dice.random() < 0.2:
        data = data.replace(b"\x00\x53\x40", b"\x00" + _symbol("amqp:sasl-mechanisms:list"))
    return fed(dice, damaged(dice, data) if dice.random() < 0.5 else data)


def _run_sasl(chunks: Input) -> None:
    for user, password in (("u", "p"), (None, None)):
        client = SaslClient(user, password, external=False, allowed=())
        try:
            for chunk in chunks:
                client.receive(chunk)
        except JMSException:
            pass
        if len(client.output) > 8192:
            raise FindingError(f"{len(client.output)} bytes are written during a login")


# -- WebSocket --------------------------------------------------------------------------------------------------

_UPGRADED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
)


class _Inner:
    """A protocol that takes what comes."""

    def __init__(self) -> None:
        self.received = 0
        self.lost: list[BaseException | None] = []

    def connection_made(self, stream: Any) -> None: ...

    def receive_data(self, data: bytes) -> None:
        self.received += len(data)

    def data_to_send(self) -> bytes:
        return b""

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)

    def tick(self, now: float) -> float | None:
        return None


def _websocket_input(dice: random.Random) -> Input:
    frames = b""
    for _ in range(dice.randrange(8)):
        payload = dice.randbytes(dice.choice([0, 1, 125, 126, 1000]))
        first = bytes((dice.choice([0x80, 0, 0x90, 0x40]) | dice.choice([0, 1, 2, 2, 2, 8, 9, 9, 10, 3]),))
        size = bytes((len(payload),)) if len(payload) < 126 else b"\x7e" + len(payload).to_bytes(2, "big")
        frames += first + size + payload
    upgraded = _UPGRADED if dice.random() < 0.7 else damaged(dice, _UPGRADED)
    return [upgraded, *fed(dice, damaged(dice, frames))]


def _run_websocket(chunks: Input) -> None:
    from wsproto.utilities import generate_accept_token

    bench, inner = Bench(), _Inner()
    engine = WebSocketEngine(inner, Endpoint("amqpws", "peer", 80, False))
    bench.engine = engine
    engine.connection_made(bench)
    accepted = generate_accept_token(engine._connection.handshake._nonce)  # wsproto's choice; it tells nobody else
    for chunk in chunks:
        engine.receive_data(chunk.replace(b"%s", accepted))
        if bench.closed:
            break
    engine.connection_lost(None)
    if inner.lost and inner.lost[0] is not None and not isinstance(inner.lost[0], JMSException):
        raise FindingError(f"the protocol is told {inner.lost[0]!r}")


# -- texts ------------------------------------------------------------------------------------------------------

_WORDS = [
    "a",
    "JMSPriority",
    "'x'",
    "5",
    "1.5e3",
    "0x1F",
    "TRUE",
    "NULL",
    "NOT",
    "AND",
    "OR",
    "IN",
    "(",
    ")",
    ",",
    "BETWEEN",
    "LIKE",
    "ESCAPE",
    "'\\'",
    "IS",
    "=",
    "<>",
    "<",
    ">",
    "<=",
    ">=",
    "+",
    "-",
    "*",
    "/",
    '"m.x"',
    "$a",
    "_b",
    "ä",
    "'",
    '"',
    "\\",
    "convert_string_expressions:",
    "99999999999999999999",
    "1e999",
    ".5",
    "5.",
    "0777L",
    "@",
    "#",
]


def _selector_input(dice: random.Random) -> Input:
    words = dice.choices(_WORDS, k=dice.choice([1, 5, 20, 100]))
    if dice.random() < 0.1:
        words = [dice.choice(["(", "NOT", "-", "a = 1 OR", "a + (", "a IN ('x',", "((", "a LIKE '%%%"])] * dice.choice(
            [50, 300, 3000]
        )
    return ["".join(word + dice.choice([" ", " ", ""]) for word in words).encode("utf-8", "surrogatepass")]


def _run_selector(chunks: Input) -> None:
    try:
        check_selector.__wrapped__(chunks[0].decode("utf-8", "surrogatepass"))
    except InvalidSelectorException:
        return


_PARTS = [
    "amqp://",
    "amqps://",
    "stomp://",
    "failover:",
    "failover:(",
    "(",
    ")",
    ",",
    "localhost",
    "[::1]",
    "[",
    "]",
    ":",
    "5672",
    "99999",
    "-1",
    "?",
    "&",
    "=",
    "%",
    "%zz",
    "%00",
    "#",
    "/",
    "\\",
    "@",
    "u:p@",
    "jms.username=x",
    "jms.prefetchPolicy.all=5",
    "amqp.idleTimeout=²",
    "failover.nested.",
    "nested.",
    "transport.",
    "jms.",
    "amqp",
    "jms.redeliveryPolicy.maxRedeliveries=1",
    "stomp.heartBeat=1",
    "profile=activemq",
    "fan",
    "discovery:",
    "static:(",
    "vm://",
    "ä",
    "�",
]


def _url_input(dice: random.Random) -> Input:
    parts = dice.choices(_PARTS, k=dice.choice([2, 5, 12, 40]))
    if dice.random() < 0.05:
        parts = [dice.choice(["(", "failover:(", "a,", "&a=1", "%25"])] * 3000
    return ["".join([dice.choice(["amqp://h", "failover:(amqp://h)", ""]), *parts]).encode("utf-8", "surrogatepass")]


def _run_url(chunks: Input) -> None:
    try:
        repr(parse_url(chunks[0].decode("utf-8", "surrogatepass")))
    except (InvalidURLException, UnsupportedFeatureException):
        return


# -- heart-beats ------------------------------------------------------------------------------------------------


def _beats_input(dice: random.Random) -> Input:
    numbers = ["0", "1", "9999999999", "\u00b2", "-1", "", " 5 ", "9" * 5000, "1.5", "10000"]
    header = dice.choice(["{0},{1}", "{0}", "{0},{1},{1}"]).format(dice.choice(numbers), dice.choice(numbers))
    idle = dice.choice([uint(dice.choice([0, 1, 2, 100, 2**32 - 1])), amqp_value(dice)])
    opened = frame(described(0x10, [_text("peer"), _NULL, _NULL, _NULL, idle]))
    return [f"CONNECTED\nversion:1.2\nheart-beat:{header}\n\n\0".encode(), _AMQP + opened + _begin(0)]


def _run_beats(chunks: Input) -> None:
    """Ten seconds of silence: at most 20 beats a second, however often the peer wants one."""
    urls = ("stomp://peer?stomp.heartBeat=1000", "amqp://peer")
    for provider_of, url, chunk in zip((StompProvider, AmqpProvider), urls, chunks, strict=True):
        bench = Bench()
        provider: Any = provider_of(parse_url(url), bench)  # type: ignore[arg-type]  # as above
        bench.open(provider)
        if provider_of is AmqpProvider:
            bench.engine.receive_data(_WELCOME[0])
        bench.engine.receive_data(chunk)
        before, end, turns = bench.written, bench.now + 10, 0
        deadline: float | None = bench.now
        while deadline is not None and deadline < end:
            deadline, turns = bench.engine.tick(deadline), turns + 1
            if turns > 210 or bench.written - before > 9 * 210:
                raise FindingError(f"{turns} ticks and {bench.written - before} bytes in ten seconds of silence")
        bench.end()


TARGETS: Final[dict[str, Target]] = {
    "amqp": Target(_amqp_input, _run_amqp, "frames on an AMQP connection in use"),
    "credit": Target(_credit_input, _run_amqp, "transfers beyond all credit"),
    "amqp-proton": Target(_amqp_input, _run_proton, "frames on an AMQP connection in use, on proton"),
    "credit-proton": Target(_credit_input, _run_proton, "transfers beyond all credit, on proton"),
    "stomp": Target(_stomp_input, _run_stomp, "frames on a STOMP connection in use"),
    "body": Target(_body_input, _run_body, "sections and bodies of AMQP messages"),
    "sasl": Target(_sasl_input, _run_sasl, "logins"),
    "websocket": Target(_websocket_input, _run_websocket, "the upgrade and frames of WebSocket"),
    "selector": Target(_selector_input, _run_selector, "selectors"),
    "url": Target(_url_input, _run_url, "broker URLs"),
    "beats": Target(_beats_input, _run_beats, "heart-beats and idle time-outs"),
}
"""By name."""
