"""Requests that share a receipt: the last of a burst asks for it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import count, pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from pyjmsack.errors import ConnectionLostException, JMSException
from pyjmsack.message import BodySource
from pyjmsack.message.source import IterableSource
from pyjmsack.providers.stomp import engine
from pyjmsack.providers.stomp.engine import StompEngine, _heart_beat
from pyjmsack.providers.stomp.frames import Refusal
from pyjmsack.spi.envelope import StreamedPayload
from pyjmsack.uri import StompOptions


class Reading:
    """A body that the test reads."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.closed = False

    def ask(self, answer: Any) -> None:
        self.asked.append(answer)

    def close(self) -> None:
        self.closed = True

    def give(self, piece: bytes, error: JMSException | None = None) -> None:
        self.asked.pop(0)(piece, error)


class Late:
    """A stream that opens when nobody waits for it."""

    aborted = False

    def abort(self) -> None:
        self.aborted = True


class Line:
    """A stream and a provider that only take notes."""

    def __init__(self) -> None:
        self.failure: JMSException | None = None
        self.last: bytes | None = None
        self.messages: list[tuple[bytes, bool]] = []
        self.readings: list[Reading] = []
        self.calls: list[Callable[[], None]] = []
        self.engine = StompEngine(self, StompOptions(), later=self.later, read=self.read)
        self.engine.connection_made(self)
        self.engine.receive_data(b"CONNECTED\nversion:1.2\n\n\0")
        self.answers: list[tuple[Any, BaseException | None]] = []

    def later(self, delay: float, call: Callable[[], None]) -> None:
        self.calls.append(call)

    def note(self, name: Any) -> Any:
        return lambda error: self.answers.append((name, error))

    def send(self, *names: Any, size: int = 0) -> None:
        for name in names:
            self.engine.ask_together(b"SEND", f"\n{name}{'x' * size}\0".encode(), self.note(name))

    def outcomes(self) -> dict[Any, type[BaseException] | None]:
        return {name: error and type(error) for name, error in self.answers}

    def read(self, source: BodySource) -> Reading:
        self.readings.append(Reading())
        return self.readings[-1]

    def stream(self, name: str, length: int) -> None:
        payload = StreamedPayload(f"\n{name}".encode(), b"", IterableSource([], length), b"\0")
        self.engine.ask(b"SEND", payload, self.note(name))

    def flush(self) -> None: ...

    def close(self) -> None:
        """Take what waits, as a driver does before it closes the socket."""
        self.last = self.engine.data_to_send()

    def abort(self) -> None: ...

    def retick(self) -> None: ...

    def on_stream(self) -> None: ...

    def on_connected(self, headers: dict[str, str]) -> None: ...

    def on_message(self, subscription: bytes, head: bytes, body: bytes, refusal: Refusal | None) -> None:
        self.messages.append((body, refusal is None))

    def on_burst_end(self) -> None: ...

    def on_failure(self, error: JMSException) -> None:
        self.failure = error


@pytest.fixture
def line() -> Line:
    return Line()


def test_the_last_send_of_a_burst_asks_for_the_receipt_that_confirms_all_of_it_s61(line: Line) -> None:
    line.send("a", "b", "c")
    assert line.engine.data_to_send() == b"SEND\n\na\0SEND\n\nb\0SEND\nreceipt:1\n\nc\0"
    assert not line.answers
    line.engine.receive_data(b"RECEIPT\nreceipt-id:1\n\n\0")
    assert line.answers == [("a", None), ("b", None), ("c", None)]


def test_each_burst_has_a_receipt_of_its_own(line: Line) -> None:
    line.send("a", "b")
    line.engine.data_to_send()
    line.send("c")
    assert line.engine.data_to_send() == b"SEND\nreceipt:2\n\nc\0"
    line.engine.receive_data(b"RECEIPT\nreceipt-id:1\n\n\0")
    assert line.answers == [("a", None), ("b", None)]


@pytest.mark.parametrize(("count", "size", "receipts"), [(64, 0, 1), (65, 0, 2), (4, 40_000, 2)])
def test_a_burst_is_confirmed_in_parts_if_it_is_long(line: Line, count: int, size: int, receipts: int) -> None:
    line.send(*range(count), size=size)
    assert line.engine.data_to_send().count(b"receipt:") == receipts


@pytest.mark.parametrize("size", [10_000, 3_500_000])
def test_what_waits_for_a_slow_peer_leaves_in_parts_of_bounded_size(line: Line, size: int) -> None:
    """Joining all of it at once would hold up the other connections of the loop, and double the memory."""
    expected, sent = b"", []
    line.engine.write_and_forget(b"SEND", b"\nfirst\0", line.note("first"))
    for number in range(7_000_000 // size):
        line.send(number, size=size)
        expected += line.engine._output[-1]
    line.engine.write_and_forget(b"SEND", b"\nlast\0", line.note("last"))
    sent.append(line.engine.data_to_send())
    line.engine.write_and_forget(b"SEND", b"\nlater\0", line.note("later"))
    assert not line.answers
    while not line.answers:
        sent.append(line.engine.data_to_send())
    assert line.answers == [("first", None), ("last", None)]  # although another frame waits now
    assert line.engine.data_to_send() == b"SEND\n\nlater\0"
    assert max(map(len, sent)) == 1 << 20
    assert re.sub(rb"receipt:[0-9]+\n", b"", b"".join(sent)) == b"".join(
        [b"SEND\n\nfirst\0", *[b"SEND\n" + rest + b"\0" for rest in expected.split(b"\0")[:-1]], b"SEND\n\nlast\0"]
    )


def test_the_loss_of_the_connection_answers_frames_that_left_in_part_s128(line: Line) -> None:
    line.engine.write_and_forget(b"SEND", b"x" * 3_000_000, line.note("a"))
    line.engine.data_to_send()
    line.engine.connection_lost(None)
    assert line.outcomes() == {"a": ConnectionLostException}
    assert line.engine.data_to_send() == b""


def test_other_frames_in_a_burst_keep_their_place_and_their_receipts(line: Line) -> None:
    line.send("a")
    line.engine.ask(b"COMMIT\ntransaction:t", b"\n\0", line.note("commit"))
    line.engine.write(b"ACK\n\n\0")
    line.send("b")
    expected = b"SEND\n\na\0COMMIT\ntransaction:t\nreceipt:1\n\n\0ACK\n\n\0SEND\nreceipt:2\n\nb\0"
    assert line.engine.data_to_send() == expected
    line.engine.receive_data(b"RECEIPT\nreceipt-id:1\n\n\0")
    assert line.answers == [("commit", None)]


def test_an_error_that_names_the_receipt_is_about_the_last_send_and_the_others_are_open_s128(line: Line) -> None:
    line.send("a", "b", "c")
    line.engine.data_to_send()
    line.engine.receive_data(b"ERROR\nreceipt-id:1\nmessage:no\n\n\0")
    assert line.outcomes() == {"a": ConnectionLostException, "b": ConnectionLostException, "c": JMSException}
    assert line.failure is not None


def test_an_error_without_a_name_is_blamed_on_nobody_while_sends_share_a_receipt(line: Line) -> None:
    """It may be about one of those, and the subscription is made again by whoever fails over."""
    line.send("a", "b")
    line.engine.ask(b"SUBSCRIBE", b"\n\0", line.note("subscribe"), unnamed=True)
    line.engine.data_to_send()
    line.engine.receive_data(b"ERROR\nmessage:no\n\n\0")
    assert line.outcomes() == dict.fromkeys(("a", "b", "subscribe"), ConnectionLostException)


@pytest.mark.parametrize("written", [False, True])
def test_a_lost_connection_fails_those_who_share_a_receipt_s128(line: Line, written: bool) -> None:
    line.send("a", "b")
    if written:
        line.engine.data_to_send()
    line.engine.connection_lost(None)
    assert line.outcomes() == dict.fromkeys("ab", ConnectionLostException)


def test_a_body_that_goes_on_for_long_makes_the_engine_ask_once_by_a_name_that_nobody_can_guess(line: Line) -> None:
    """S166: a broker answers behind the frame, so an answer inside of it proves its content-length wrong."""
    line.engine.tick(0.0)
    line.engine.receive_data(b"MESSAGE\nsubscription:s1\ncontent-length:90000\n\nbody\0\n")
    asked = []
    for now in (1.0, 1.9, 2.0, 3.5):
        assert line.engine.tick(now) is not None
        asked.append(re.findall(rb"\nreceipt:(probe-[0-9a-f]{32})\n", line.engine.data_to_send()))
    assert [len(found) for found in asked] == [0, 0, 1, 0]
    line.engine.receive_data(b"MESSAGE\nsubscription:s1\n\nx\0\nRECEIPT\nreceipt-id:%b\n\n\0" % asked[2][0])
    assert line.messages == [(b"body", False), (b"x", True)]
    assert line.failure is None
    assert line.engine.tick(9.0) is None


def test_each_of_several_wrong_lengths_is_found_out_s166(line: Line) -> None:
    """The answer about the first was in the body of the second, which then waited for ever."""
    text = b"MESSAGE\nsubscription:1\ncontent-length:100000\n\nbody\0\n"
    line.engine.receive_data(3 * text + b"MESSAGE\nsubscription:1\n\ngood\0\n")
    for seconds in range(0, 14, 2):
        line.engine.tick(float(seconds))
        for receipt in re.findall(rb"receipt:(\S+)", line.engine.data_to_send()):
            line.engine.receive_data(b"RECEIPT\nreceipt-id:%b\n\n\0\n" % receipt)
    assert line.messages == [(b"body", False)] * 3 + [(b"good", True)]
    assert not line.engine._receipts


def test_a_row_of_wrong_lengths_does_not_cost_a_second_each_s166(line: Line) -> None:
    """After the first one the engine asks sooner. A second for each let one producer stop all consumers beside it."""
    text = b"MESSAGE\nsubscription:1\ncontent-length:100000\n\nbody\0\n"
    line.engine.receive_data(12 * text + b"MESSAGE\nsubscription:1\n\ngood\0\n")
    now = 0.0
    while len(line.messages) < 13 and now < 20:
        line.engine.tick(now)
        for receipt in re.findall(rb"receipt:(\S+)", line.engine.data_to_send()):
            line.engine.receive_data(b"RECEIPT\nreceipt-id:%b\n\n\0\n" % receipt)
        now += 0.05
    assert line.messages == [(b"body", False)] * 12 + [(b"good", True)]
    assert now < 3, "the time of the engine, which the test chooses"


def test_a_body_that_comes_at_once_is_not_asked_about(line: Line) -> None:
    line.engine.receive_data(b"MESSAGE\nsubscription:s1\ncontent-length:5\n\nhello\0\n")
    line.engine.tick(1.0)
    line.engine.tick(5.0)
    assert line.engine.data_to_send() == b""


# -- bodies that are read while they are sent -------------------------------------------------------------------


def test_what_waited_behind_a_wrong_content_length_arrives_without_another_byte_s166(line: Line) -> None:
    """Other connections have a turn between its parts."""
    message = b"MESSAGE\nsubscription:1\n\nx\0"
    body = b"body\0" + message * 20_000
    line.engine.receive_data(b"MESSAGE\nsubscription:1\ncontent-length:%d\n\n" % len(body) + body)
    line.engine.receive_data(b"\n" + message)
    turns = 0
    while line.engine.tick(7.0) == 7.0:
        turns += 1
    assert line.messages == [(b"body", False)] + [(b"x", True)] * 20_001
    assert turns > 5
    assert line.failure is None


def test_what_still_waits_at_the_end_of_the_stream_counts_s166(line: Line) -> None:
    """A RECEIPT that had arrived confirms its send. Otherwise a failover would send the message a second time."""
    line.send("a")
    line.engine.data_to_send()
    body = b"body\0" + b"MESSAGE\nsubscription:1\n\nx\0" * 20_000
    line.engine.receive_data(b"MESSAGE\nsubscription:1\ncontent-length:%d\n\n" % len(body) + body)
    line.engine.receive_data(b"\nRECEIPT\nreceipt-id:1\n\n\0")
    assert not line.answers
    line.engine.connection_lost(None)
    while line.calls:
        assert line.failure is None, "the frames count before the end"
        line.calls.pop()()
    assert line.outcomes() == {"a": None}
    assert len(line.messages) == 20_001
    assert isinstance(line.failure, ConnectionLostException)


def test_after_the_end_of_the_stream_other_connections_have_turns_s166(line: Line) -> None:
    """Ten connections that ended together, each with 10 MB behind a wrong content-length, stopped the loop for 5 s."""
    body = b"body\0" + b"MESSAGE\nsubscription:1\n\nx\0" * 20_000
    line.engine.receive_data(b"MESSAGE\nsubscription:1\ncontent-length:%d\n\n" % len(body) + body)
    line.engine.receive_data(b"\nMESSAGE\nsubscription:1\n\nlast\0")
    line.engine.connection_lost(None)
    line.engine.connection_lost(None)  # also after an error in the engine, which the stream tells first
    turns = 0
    while line.calls:
        (call,) = line.calls
        line.calls.clear()
        seen = len(line.messages)
        call()
        assert len(line.messages) - seen < 15_000
        turns += 1
    assert turns > 5
    assert line.messages[-1] == (b"last", True)
    assert isinstance(line.failure, ConnectionLostException)


def test_the_time_of_others_after_the_end_of_the_stream_does_not_count_s166(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RECEIPTs of 20 connections that ended together were dropped, and `failover:` sent their messages twice."""
    body = b"body\0" + b"MESSAGE\nsubscription:1\n\nx\0" * 20_000
    line.send("a")
    line.engine.data_to_send()
    line.engine.receive_data(b"MESSAGE\nsubscription:1\ncontent-length:%d\n\n" % len(body) + body)
    line.engine.receive_data(b"\nRECEIPT\nreceipt-id:1\n\n\0")
    slow = SimpleNamespace(monotonic=count(0, 10).__next__, thread_time=time.thread_time)
    monkeypatch.setattr(engine, "time", slow)
    line.engine.connection_lost(None)
    while line.calls:
        line.calls.pop()()
    assert line.outcomes() == {"a": None}


def test_an_aborted_connection_reads_nothing_more_after_its_end_s166(line: Line) -> None:
    body = b"body\0" + b"MESSAGE\nsubscription:1\n\nx\0" * 20_000
    line.engine.receive_data(b"MESSAGE\nsubscription:1\ncontent-length:%d\n\n" % len(body) + body)
    line.engine.receive_data(b"\n\n")
    line.engine.connection_lost(None)
    line.engine.abort(ConnectionLostException("given up"))
    seen = len(line.messages)
    for call in line.calls:
        call()
    assert len(line.messages) == seen
    assert len(line.calls) == 1
    assert line.failure is None


@pytest.mark.parametrize("end", [b"HELLO\n\n\0", b"ERROR\nmessage:no\n\n\0"])
def test_the_end_behind_a_wrong_content_length_is_told_in_its_turn_s166(line: Line, end: bytes) -> None:
    body = b"body\0" + b"\n" * 400_000
    line.engine.receive_data(b"MESSAGE\nsubscription:1\ncontent-length:%d\n\n" % len(body) + body)
    line.engine.receive_data(b"\n" + end)
    assert line.failure is None
    while line.engine.tick(7.0) is not None:
        assert line.failure is None
    assert isinstance(line.failure, JMSException)


def test_a_frame_leaves_piece_by_piece_and_others_behind_it_s168(line: Line) -> None:
    """No byte of another frame comes into its middle."""
    line.send("a")
    line.stream("large", 4)
    line.send("b")
    assert line.engine.data_to_send() == b"SEND\n\na\0"
    assert line.engine.data_to_send() == b""
    line.send("c")
    line.readings[0].give(b"1234")
    assert line.engine.data_to_send() == b"SEND\nreceipt:1\n\nlarge1234\0"
    assert line.engine.data_to_send() == b"SEND\nreceipt:2\n\nb\0SEND\nreceipt:3\n\nc\0"


def test_a_body_is_asked_for_only_when_all_before_has_left_s168(line: Line) -> None:
    """So that no more than a piece of it is in memory."""
    line.stream("large", 4)
    assert line.engine.data_to_send() == b""
    (reading,) = line.readings
    assert line.engine.data_to_send() == b""
    assert len(reading.asked) == 1
    reading.give(b"12")
    assert line.engine.data_to_send() == b"SEND\nreceipt:1\n\nlarge12"
    assert line.engine.data_to_send() == b""
    reading.give(b"34")
    assert line.engine.data_to_send() == b"34\0"
    assert reading.closed


def test_no_heart_beat_leaves_in_the_middle_of_a_frame_s168(line: Line) -> None:
    """STOMP has no place for one there."""
    line.stream("large", 4)
    line.engine.data_to_send()
    line.readings[0].give(b"12")
    line.engine.data_to_send()
    for now in (0.0, 100.0, 200.0):
        line.engine.tick(now)
    assert line.engine.data_to_send() == b""


PART = b"MESSAGE\nsubscription:1\ncontent-length:2\n\na"
"""A frame without its end."""


def beating(line: Line, written: list[bytes] | None = None) -> StompEngine:
    """Return an engine that owes the broker a heart-beat each second, after the first one at the time 0.0. If
    ``written`` is given, the socket takes the bytes at once, and they are noted there."""
    engine = StompEngine(line, StompOptions(), later=line.later, read=line.read)
    engine.connection_made(line)
    engine.data_to_send()
    if written is not None:
        line.flush = lambda: written.append(engine.data_to_send())  # type: ignore[method-assign]
    engine.receive_data(b"CONNECTED\nversion:1.2\nheart-beat:0,1000\n\n\0")
    engine.tick(0.0)
    return engine


def test_bodies_that_come_in_parts_bring_no_more_heart_beats_and_none_late(line: Line) -> None:
    """Each of them asks for a look of the engine. It sent a heart-beat each time, thousands a second."""
    written: list[bytes] = []
    engine, times = beating(line, written), [0.0]
    engine.receive_data(PART)
    for now in (tenths / 10 for tenths in range(1, 300)):
        written.clear()
        if now == 7.5:
            engine.write(b"ACK\n\n\0")
            engine.flush()
        engine.receive_data(b"a\0" + PART)
        engine.tick(now)
        times += [now] * len(written)
    assert 30 <= len(times) <= 30 / 0.4
    assert max(later - earlier for earlier, later in pairwise(times)) <= 1.0


def test_heart_beats_do_not_pile_up_while_the_broker_does_not_read(line: Line) -> None:
    engine = beating(line)
    for now in range(1, 100):
        engine.tick(float(now))
    assert engine.data_to_send() == b"\n"


def test_a_heart_beat_leaves_in_time_although_frames_are_read_in_many_turns(line: Line) -> None:
    """They wait behind a wrong content-length. The broker took the client for dead."""
    written: list[bytes] = []
    engine = beating(line, written)
    body = b"body\0" + b"MESSAGE\nsubscription:1\n\nx\0" * 20_000
    engine.receive_data(b"MESSAGE\nsubscription:1\ncontent-length:%d\n\n" % len(body) + body)
    engine.receive_data(b"\n")
    written.clear()
    assert engine.tick(1.0) == 1.0, "more frames wait"
    assert written == [b"\n"]


@pytest.mark.parametrize("wanted", [1, 5, 50, 100])
def test_a_broker_that_wants_very_many_heart_beats_gets_at_most_20_a_second(line: Line, wanted: int) -> None:
    """It got 50, against docs/security.md; the fuzzer found it."""
    engine = StompEngine(line, StompOptions(), later=line.later, read=line.read)
    engine.connection_made(line)
    engine.receive_data(f"CONNECTED\nversion:1.2\nheart-beat:0,{wanted}\n\n\0".encode())
    engine.data_to_send()
    sent, now = 0, 0.0
    while now < 10:
        next_tick = engine.tick(now)
        assert next_tick is not None
        sent, now = sent + len(engine.data_to_send()), next_tick
    assert 100 <= sent <= 201


def test_a_body_that_cannot_be_read_at_all_costs_its_own_frame_only_s168(line: Line) -> None:
    line.stream("large", 4)
    line.engine.data_to_send()
    line.readings[0].give(b"", JMSException("gone"))
    line.send("b")
    assert line.engine.data_to_send() == b"SEND\nreceipt:2\n\nb\0"
    assert line.outcomes() == {"large": JMSException}
    assert line.failure is None


@pytest.mark.parametrize("behind", [False, True])
def test_a_send_before_a_body_that_cannot_be_read_hears_that_it_has_left_s168(line: Line, behind: bool) -> None:
    """At once, not only with the next frame or heart-beat. With another frame behind the body, once this one leaves."""
    line.engine.write_and_forget(b"SEND", b"\na\0", line.note("a"))
    line.stream("large", 4)
    if behind:
        line.engine.write_and_forget(b"SEND", b"\nb\0", line.note("b"))
    assert line.engine.data_to_send() == b"SEND\n\na\0"
    line.engine.data_to_send()
    line.readings[0].give(b"", JMSException("gone"))
    if behind:
        assert line.engine.data_to_send() == b"SEND\n\nb\0"
    assert line.outcomes() == {"large": JMSException, "a": None} | ({"b": None} if behind else {})
    assert line.failure is None


def test_a_body_that_ends_in_the_middle_of_its_frame_ends_the_connection_s168(line: Line) -> None:
    """Its sender hears first, so that failover does not send it again; the others' outcome is that of a loss."""
    line.stream("large", 4)
    line.send("b")
    line.engine.data_to_send()
    line.readings[0].give(b"12")
    line.engine.data_to_send()
    line.engine.data_to_send()
    line.readings[0].give(b"", JMSException("gone"))
    assert line.last == b"", "the broker would take the frames behind it for the rest of the body"
    assert [name for name, _ in line.answers] == ["large", "b"]
    assert line.outcomes() == {"large": JMSException, "b": ConnectionLostException}
    assert isinstance(line.failure, ConnectionLostException)


def test_a_body_without_a_receipt_is_done_when_it_has_left_s168(line: Line) -> None:
    """Or when the connection is lost before that."""
    for name in ("first", "second"):
        payload = StreamedPayload(b"\n", b"", IterableSource([], 1), b"\0")
        line.engine.write_and_forget(b"SEND", payload, line.note(name))
    line.engine.data_to_send()
    assert line.answers == []
    line.readings[0].give(b"x")
    assert line.engine.data_to_send() == b"SEND\n\nx\0"
    assert line.outcomes() == {"first": None}
    line.engine.connection_lost(None)
    assert line.outcomes() == {"first": None, "second": ConnectionLostException}


@pytest.mark.parametrize("text", ["1,²", "1", "", "a,b", "1,12345678901", "-1,0"])
def test_a_heart_beat_that_is_no_pair_of_numbers_is_refused(text: str) -> None:
    """With an error of the library, which the caller expects."""
    with pytest.raises(ConnectionLostException, match="expected two numbers"):
        _heart_beat(text)


@pytest.mark.parametrize("text", ["10,20", " 10 , 20\t", "\x1e10,20\x1e"])
def test_the_numbers_of_a_heart_beat_may_have_blanks_around_them(text: str) -> None:
    """``int`` refuses some characters that ``strip`` takes for blanks: a raw ``ValueError`` ended the loop's call."""
    assert _heart_beat(text) == (0.01, 0.02)


def test_a_stream_that_opens_after_the_caller_gave_up_is_closed_and_no_error_is_told() -> None:
    """The provider found no engine, and this error was logged as if the peer had sent wrong bytes."""
    line, stream = Line(), Late()
    engine = StompEngine(line, StompOptions(), later=line.later)
    engine.abort(ConnectionLostException("given up"))
    engine.connection_made(stream)  # type: ignore[arg-type]  # nothing else is called
    assert stream.aborted
    assert engine.stream is None
    assert engine.data_to_send() == b""
