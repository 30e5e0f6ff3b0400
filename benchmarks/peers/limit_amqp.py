"""The limit over AMQP. Our engine's codec is used for the frames that are made before the clock starts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct

from benchmarks.job import PATIENCE, BenchmarkError, Job, Stopwatch, Timing, login
from benchmarks.peers.line import CLIENT, Line, Outbox
from benchmarks.peers.queues import jms_message
from pyjmsack.providers.amqp.engine.fastpath import (
    TransferHeads,
    disposition_frame,
    read_disposition,
    read_transfer,
)
from pyjmsack.providers.amqp.engine.frames import PROTOCOL_HEADER, frame
from pyjmsack.providers.amqp.engine.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Composite,
    Detach,
    End,
    Flow,
    Open,
    Source,
    Target,
    decode,
    encode,
)
from pyjmsack.providers.amqp.sasl import SaslClient

_EMPTY_ROUNDS = 4
_PAUSE = 0.1
"""Seconds before the second look at an empty queue. Later looks wait longer."""
_REPEAT = 2.0
"""Seconds without an answer to a drain, until the drain is asked for again."""
_CREDIT = 1000
_WIDE = 2**31 - 1
_LARGEST_FRAME = 1 << 20
_HEAD = 8
_LENGTH = Struct(">I").unpack_from
_FLOW, _TRANSFER, _DISPOSITION = 0x13, 0x14, 0x15
_ACCEPTED = encode(Accepted())
_Found = tuple[int, bytes, int, int]


class _AmqpLine(Line):
    """A socket with one session and one link."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._kept = b""
        self.frame_size = 0
        self.broker = "unknown broker"
        self.credit = 0
        """How many messages may have been sent since the link began."""
        self.drained = False
        """Whether the sender has used up or given back all credit of a receiver."""
        sasl = SaslClient(*login(), external=False, allowed=())
        while not sasl.done:
            self.write(bytes(sasl.output))
            sasl.output.clear()
            self._kept = sasl.receive(self.read())
        window = Begin(next_outgoing_id=0, incoming_window=_WIDE, outgoing_window=_WIDE)
        self.write(PROTOCOL_HEADER)
        self.tell(Open(container_id=f"limit-{job.queue}", max_frame_size=_LARGEST_FRAME), window)
        while len(self._kept) < _HEAD:
            self._kept += self.read()
        self._kept = self._kept[_HEAD:]

    def tell(self, *performatives: Composite) -> None:
        """Write performatives."""
        self.write(b"".join(frame(0, encode(one)) for one in performatives))

    def frames(self) -> Iterator[_Found]:
        """Read once. Yield the code, the buffer, and the start and end in it, of each whole frame that is there."""
        data = self._kept + self.read() if self._kept else self.read()
        position, size = 0, len(data)
        while size - position >= _HEAD and (length := _LENGTH(data, position)[0]) <= size - position:
            if length > _HEAD:
                yield data[position + 10], data, position + 4 * data[position + 4], position + length
            position += length
        self._kept = data[position:]

    def note(self, found: _Found) -> Composite:
        """Decode a frame that is neither a transfer nor a disposition, and note the credit in it."""
        _, data, start, end = found
        performative, _ = decode(data, start, end)
        if isinstance(performative, Flow) and performative.link_credit is not None:
            self.credit = (performative.delivery_count or 0) + performative.link_credit
            self.drained = not performative.link_credit
        elif isinstance(performative, Open):
            self.frame_size = min(performative.max_frame_size, _LARGEST_FRAME)
            told = performative.properties or {}
            self.broker = " ".join(str(told[key]) for key in ("product", "version") if key in told) or self.broker
        elif isinstance(performative, Close | End) or (isinstance(performative, Detach) and performative.error):
            raise BenchmarkError(f"the broker refused the bare socket: {performative.error}")
        return performative

    def await_answer(self, kind: type[Composite]) -> None:
        """Return when a performative of this kind has come."""
        while not any([isinstance(self.note(found), kind) for found in self.frames()]):  # noqa: C419 - all are noted
            pass


@contextmanager
def _line(attach: Attach, job: Job) -> Iterator[_AmqpLine]:
    line = _AmqpLine(job)
    try:
        line.tell(attach)
        line.await_answer(Attach)
        yield line
        line.tell(Close())
    finally:
        line.close()


@contextmanager
def _sender(job: Job, *, durable: bool = True) -> Iterator[tuple[_AmqpLine, Outbox]]:
    target = Target(address=job.queue, capabilities=("queue",))
    attach = Attach(link_name=job.queue, handle=0, role=False, source=Source(), target=target, initial_delivery_count=0)
    with _line(attach, job) as line:
        message, heads = jms_message(job, durable=durable), TransferHeads(0, 0)
        room = line.frame_size - 2 * TransferHeads.SIZE
        yield line, Outbox([_frames(heads, number, message.copy(number), room) for number in range(job.count)])


def _frames(heads: TransferHeads, number: int, payload: bytes, room: int) -> bytes:
    """Return the transfer frames of one message, each with at most ``room`` bytes of it."""
    if len(payload) <= room:
        return heads.whole(number, False, len(payload)) + payload
    pieces = [payload[start : start + room] for start in range(0, len(payload), room)]
    made = [heads.first(number, False, b"", True, len(pieces[0])), pieces[0]]
    for place, piece in enumerate(pieces[1:], start=2):
        made += heads.following(place < len(pieces), len(piece)), piece
    return b"".join(made)


def _send(line: _AmqpLine, outbox: Outbox, count: int, most: int) -> Timing:
    """Send as the credit allows, with at most ``most`` messages that are not settled."""
    sent = settled = 0
    watch = Stopwatch()
    while settled < count:
        until = min(count, line.credit, settled + most)
        if until > sent:
            line.write(outbox.part(sent, until))
            sent = until
        for found in line.frames():
            if found[0] == _DISPOSITION:
                _, first, last, _, state = read_disposition(*found[1:])
                if state != _ACCEPTED:
                    raise BenchmarkError("the broker did not accept a message of the bare socket")
                settled += last - first + 1
            else:
                line.note(found)
    return watch.timing(settled, CLIENT)


def send_all(job: Job) -> Timing:
    """Timed from the first frame to the last disposition."""
    with _sender(job) as (line, outbox):
        return _send(line, outbox, job.count, job.count)


def send_each(job: Job) -> Timing:
    """Each message waits for the disposition of the one before."""
    with _sender(job) as (line, outbox):
        return _send(line, outbox, job.count, 1)


def send_nonpersistent(job: Job) -> Timing:
    """As :func:`send_all`, with messages that the broker keeps in memory."""
    with _sender(job, durable=False) as (line, outbox):
        return _send(line, outbox, job.count, job.count)


def receive(job: Job) -> Timing:
    """Timed from the first message to the answer to the link's detach. The credit is kept full, and one disposition
    acknowledges all messages of a read.
    """
    source = Source(address=job.queue, capabilities=("queue",))
    with _line(Attach(link_name=job.queue, handle=0, role=True, source=source, target=Target()), job) as line:
        line.tell(_credit(0))
        watch: Stopwatch | None = None
        seen = base = 0
        while seen < job.count:
            transfers = [read_transfer(*found[1:]) for found in line.frames() if found[0] == _TRANSFER]
            if transfers and watch is None:
                watch, base = Stopwatch(), transfers[0][1] or 0
            whole = sum(not more for _, _, _, more, _, _ in transfers)
            if whole:
                accepted = disposition_frame(0, True, base + seen, base + seen + whole - 1, _ACCEPTED)
                seen += whole
                line.write(accepted + frame(0, encode(_credit(seen))))
        assert watch is not None  # messages came
        line.tell(Detach(handle=0, closed=True))
        line.await_answer(Detach)
        return watch.timing(seen, CLIENT)


def drain(job: Job) -> Timing:
    """Empty a queue in rounds of drained credit, until some rounds in a row bring no message. One is not enough,
    because a busy Artemis may answer a drain before it delivers. A drain without an answer is asked for again, because
    Artemis sometimes forgets one. The client is the broker's name.
    """
    source = Source(address=job.queue, capabilities=("queue",))
    attach = Attach(link_name=job.queue, handle=0, role=True, snd_settle_mode=1, source=source, target=Target())
    with _line(attach, job) as line:
        watch, total, granted, empty = Stopwatch(), 0, 0, 0
        while empty < _EMPTY_ROUNDS:
            time.sleep(_PAUSE * empty)
            seen = 0
            line.tell(_credit(granted, drain=True))
            line.drained = False
            until = time.monotonic() + PATIENCE
            while seen < _CREDIT and not line.drained:
                if not line.comes(_REPEAT) and time.monotonic() < until:
                    line.tell(_credit(granted + seen, _CREDIT - seen, drain=True))
                    continue
                for found in line.frames():
                    if found[0] == _TRANSFER:
                        seen += not read_transfer(*found[1:])[3]
                    else:
                        line.note(found)
            granted, total = granted + _CREDIT, total + seen
            empty = 0 if seen else empty + 1
        return watch.timing(total, line.broker)


def _credit(seen: int, credit: int = _CREDIT, *, drain: bool = False) -> Flow:
    return Flow(
        next_incoming_id=seen,
        incoming_window=_WIDE,
        next_outgoing_id=0,
        outgoing_window=_WIDE,
        handle=0,
        delivery_count=seen,
        link_credit=credit,
        drain=drain,
    )
