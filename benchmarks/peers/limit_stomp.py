"""The limit over STOMP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.job import BenchmarkError, Job, Stopwatch, Timing, login
from benchmarks.peers.line import CLIENT, Line, Outbox

_WINDOW = 1000 * 4096  # bytes, as pyjmsack with its prefetch of 1000
_END = b"\0"


class _StompLine(Line):
    """A socket that is logged in."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._kept = b""
        names = zip(("login", "passcode"), login(), strict=True)
        given = "".join(f"{name}:{value}\n" for name, value in names if value is not None)
        self.tell(f"CONNECT\naccept-version:1.2\nhost:broker\nheart-beat:0,0\n{given}\n")
        self.await_frame(b"CONNECTED")

    def tell(self, frame: str) -> None:
        """Write a frame without a body."""
        self.write(frame.encode() + _END)

    def whole_frames(self) -> bytes:
        """Read once, and return the whole frames that are there. No body has a NUL."""
        data = self._kept + self.read()
        end = data.rfind(_END) + 1
        self._kept = data[end:]
        if data.lstrip(b"\n").startswith(b"ERROR"):
            raise BenchmarkError(f"the broker refused the bare socket: {data[:200]!r}")
        return data[:end]

    def await_frame(self, text: bytes) -> None:
        """Return when a frame with this text has come."""
        while text not in self.whole_frames():
            pass


@contextmanager
def _line(job: Job) -> Iterator[_StompLine]:
    line = _StompLine(job)
    try:
        yield line
    finally:
        line.close()


def _frames(job: Job, *, receipt: range, persistent: bool = True) -> Outbox:
    """Return the SEND frames. Those whose number is in ``receipt`` ask for a receipt."""
    head = f"SEND\ndestination:{job.queue}\ndestination-type:ANYCAST\npersistent:{str(persistent).lower()}\n"
    start, body = head.encode(), b"\n" + job.text.encode() + _END
    return Outbox(
        [start + (b"receipt:%d\n" % number if number in receipt else b"") + body for number in range(job.count)]
    )


def send_all(job: Job, *, persistent: bool = True) -> Timing:
    """Timed from the first frame to the receipt of the last one, which the broker gives when it has them all."""
    outbox = _frames(job, receipt=range(job.count - 1, job.count), persistent=persistent)
    with _line(job) as line:
        watch = Stopwatch()
        line.write(outbox.part(0, job.count))
        line.await_frame(b"receipt-id:")
        return watch.timing(job.count, CLIENT)


def send_nonpersistent(job: Job) -> Timing:
    """As :func:`send_all`, with messages that the broker keeps in memory."""
    return send_all(job, persistent=False)


def send_each(job: Job) -> Timing:
    """Each message waits for the receipt of the one before."""
    outbox = _frames(job, receipt=range(job.count))
    with _line(job) as line:
        watch = Stopwatch()
        for number in range(job.count):
            line.write(outbox.part(number, number + 1))
            line.await_frame(b"receipt-id:")
        return watch.timing(job.count, CLIENT)


def receive(job: Job) -> Timing:
    """Timed from the first message to the receipt of UNSUBSCRIBE. One ACK acknowledges all messages of a read."""
    with _line(job) as line:
        line.tell(
            f"SUBSCRIBE\nid:0\ndestination:{job.queue}\nsubscription-type:ANYCAST\nack:client\n"
            f"consumer-window-size:{_WINDOW}\n\n"
        )
        watch: Stopwatch | None = None
        seen = 0
        while seen < job.count:
            data = line.whole_frames()
            if data:
                watch = watch or Stopwatch()
                seen += data.count(_END)
                start = data.rfind(b"\nack:") + 5
                line.write(b"ACK\nid:%s\n\n\0" % data[start : data.index(b"\n", start)])
        assert watch is not None  # messages came
        line.tell("UNSUBSCRIBE\nid:0\nreceipt:end\n\n")
        line.await_frame(b"receipt-id:end")
        return watch.timing(seen, CLIENT)
