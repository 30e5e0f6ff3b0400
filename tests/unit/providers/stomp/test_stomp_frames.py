"""Frames: any split of the bytes gives the same, stomp.py is the oracle, and what is hostile ends bounded."""

from __future__ import annotations

import random
import re
import tracemalloc
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from stomp.utils import Frame as OracleFrame
from stomp.utils import convert_frame, encode, parse_frame

from pyjmsack.errors import (
    ConnectionLostException,
    JMSException,
    MessageFormatException,
    ResourceAllocationException,
)
from pyjmsack.providers.stomp import frames
from pyjmsack.providers.stomp.errors import error_of
from pyjmsack.providers.stomp.frames import Frame, FrameParser, Limits
from pyjmsack.providers.stomp.header_lines import FORGED, decode_head, escape, has_legal_head, is_forged, raw_header

LIMITS = Limits(body=100_000, headers=50, header_line=1000)

STREAM = b"".join(
    (
        b"CONNECTED\nversion:1.2\nheart-beat:10000,10000\n\n\0\n\n",
        b"MESSAGE\nsubscription:s1\nack:a\\c1\ncontent-length:5\n\na\0b\n\0\0",
        b"\r\nMESSAGE\r\nsubscription:s1\r\nmessage-id:2\r\n\r\ntext with\n\n an empty line\0",
        b"RECEIPT\nreceipt-id:7\n\n\0\r\n",
        b"ERROR\nmessage:bad\n\nwhy\0",
        b"RECEIPT\n\n\0",
    )
)
FRAMES: list[tuple[bytes, dict[str, str], bytes]] = [
    (b"CONNECTED", {"version": "1.2", "heart-beat": "10000,10000"}, b""),
    (b"MESSAGE", {"subscription": "s1", "ack": "a:1", "content-length": "5"}, b"a\0b\n\0"),
    (b"MESSAGE", {"subscription": "s1", "message-id": "2"}, b"text with\n\n an empty line"),
    (b"RECEIPT", {"receipt-id": "7"}, b""),
    (b"ERROR", {"message": "bad"}, b"why"),
    (b"RECEIPT", {}, b""),
]


def read(*pieces: bytes, limits: Limits = LIMITS) -> list[tuple[bytes, dict[str, str], bytes]]:
    parser = FrameParser(limits)
    frames: list[Frame] = []
    for piece in pieces:
        frames += parser.feed(piece)
    if parser.broken is not None:
        raise parser.broken
    assert all(refusal is None for *_, refusal in frames)
    return [(command, decode_head(head), body) for command, head, body, _ in frames]


@pytest.mark.parametrize("at", range(len(STREAM)))
def test_a_stream_split_anywhere_gives_the_same_frames(at: int) -> None:
    assert read(STREAM[:at], STREAM[at:]) == FRAMES


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_stream_in_small_pieces_gives_the_same_frames(size: int) -> None:
    assert read(*(STREAM[at : at + size] for at in range(0, len(STREAM), size))) == FRAMES


NAMES = st.text(min_size=1, max_size=20).filter(lambda name: name != "content-length" and "\0" not in name)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n:\\"), min_size=1, max_size=20)


@settings(deadline=None)
@given(
    st.dictionaries(PLAIN.filter(lambda name: name != "content-length"), PLAIN, max_size=8),
    st.binary(max_size=300),
    st.integers(1, 50),
)
def test_what_stomp_py_writes_is_read_as_stomp_py_reads_it(headers: dict[str, str], body: bytes, size: int) -> None:
    written = b"".join(
        encode(part) for part in convert_frame(OracleFrame("MESSAGE", headers | {"content-length": len(body)}, body))
    )
    ((command, ours, content),) = read(*(written[at : at + size] for at in range(0, len(written), size)))
    oracle = parse_frame(written.rstrip(b"\n")[:-1])
    assert command == b"MESSAGE"
    assert ours == oracle.headers
    assert content == body


@given(TEXTS)
def test_every_text_survives_as_a_header_value(text: str) -> None:
    """STOMP 1.2, Value Encoding."""
    ((_, headers, _),) = read(f"MESSAGE\nname:{escape(text)}\n\n\0".encode())
    assert headers == {"name": text}


def test_of_repeated_headers_the_first_counts() -> None:
    """STOMP 1.2, Repeated Header Entries."""
    head = b"\nname:1\nname:2"
    assert decode_head(head) == {"name": "1"}
    assert raw_header(head, b"\nname:") == b"1"


@pytest.mark.parametrize("head", [b"\nname:\\t", b"\nname:\\", b"\nno colon", b"\nname:\xff"])
def test_header_lines_that_are_none_are_refused_when_they_are_read(head: bytes) -> None:
    """The message is refused, not the connection: others behind it are well."""
    with pytest.raises(MessageFormatException):
        decode_head(head)


@given(st.text(alphabet="\\cnrx:\r\n", max_size=30), st.booleans())
@example(":\n:\\", False)  # the escape stands in a line that does not count, because its name came before
def test_the_quick_look_at_the_lines_agrees_with_decoding(value: str, named: bool) -> None:
    """A producer of Java whose property name has a line feed makes a line without a colon."""
    head = (b"\nname:" if named else b"\n") + value.encode()
    try:
        decode_head(head)
    except MessageFormatException:
        assert not has_legal_head(head)
    else:
        assert has_legal_head(head)


HOSTILE = {
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n\0",
    "an unknown command": b"HELLO\n\n\0",
    "no command at all": b"x" * 16,
    "length no number": b"RECEIPT\ncontent-length:ten\n\n\0",
    "length too short": b"CONNECTED\ncontent-length:1\n\nabc\0",
    "length enormous": b"ERROR\ncontent-length:2147483647\n\n",
    "too many headers": b"RECEIPT\n" + b"a:b\n" * 51 + b"\n\0",
    "a header line too long": b"CONNECTED\na:" + b"b" * 1001 + b"\n\n\0",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_frame_that_no_producer_can_cause_ends_the_connection_behind_those_before_it(name: str) -> None:
    """S127: frames that stand before it in the same bytes are not lost."""
    parser = FrameParser(LIMITS)
    good = b"MESSAGE\nmessage-id:1\n\nbody\0\n"
    assert [body for _, _, body, _ in parser.feed(good + HOSTILE[name] + good)] == [b"body"]
    assert isinstance(parser.broken, ConnectionLostException)
    assert re.search(r"STOMP|maxFrameSize", str(parser.broken))
    assert parser.feed(good) == []


NAMED = {"subscription": "s1", "message-id": "m", "ack": "a", "persistent": "true", "NATIVE_MESSAGE_ID": "n"}
LINES = "".join(f"{name}:{value}\n" for name, value in NAMED.items()).encode()
POISON = {
    "too many headers": (b"MESSAGE\n" + LINES + b"a:b\n" * 51 + b"\nbody\0", "maxHeaders", b"body"),
    "a line too long": (b"MESSAGE\na:" + b"b" * 1001 + b"\n" + LINES + b"\nbody\0", "maxHeaderLength", b"body"),
    "length no number": (b"MESSAGE\n" + LINES + b"content-length:ten\n\nbody\0", "content-length", b"body"),
    "length too short": (b"MESSAGE\n" + LINES + b"content-length:1\n\nbody\0", "content-length", b"body"),
    "head too large, names first": (b"MESSAGE\n" + LINES + b"a:" + b"b" * 101_000 + b"\n\nbody\0", "maxHeader", b""),
    "head too large, names last": (b"MESSAGE\na:" + b"b" * 101_000 + b"\n" + LINES + b"\nbody\0", "maxHeader", b""),
    "head of many lines": (b"MESSAGE\n" + b"a:b\n" * 30_000 + LINES + b"\nbody\0", "maxHeader", b""),
    "head and length": (b"MESSAGE\n" + b"a:b\n" * 30_000 + LINES + b"content-length:3\n\n\0\0\0\0", "maxHeader", b""),
    "body too large": (b"MESSAGE\n" + LINES + b"\n" + b"b" * 100_001 + b"\0", "maxFrameSize", b""),
    "length too large": (
        b"MESSAGE\n" + LINES + b"content-length:100001\n\n" + b"\0" * 100_002, "maxFrameSize", b""
    ),
}  # fmt: skip
TOO_LONG = {
    "length too long": (b"MESSAGE\n" + LINES + b"content-length:5\n\nbody\0", "content-length", b"body"),
    "length into the next": (b"MESSAGE\n" + LINES + b"content-length:40\n\nbody\0", "content-length", b"body"),
}
"""What is behind them decides: where that ends before their length does, or has a NUL just there, nobody can tell."""
BEFORE = b"MESSAGE\nmessage-id:before\n\n1\0\n"
AFTER = b"MESSAGE\nmessage-id:after\n\n2\0\nRECEIPT\nreceipt-id:7\n\n\0\n"


@pytest.mark.parametrize("size", [61, 1000, 65536, 1 << 20])
@pytest.mark.parametrize("name", [*POISON, *TOO_LONG])
def test_a_message_over_the_limits_is_refused_alone(name: str, size: int) -> None:
    """S166: what stands before and behind it arrives, and the lines by which it can be refused are kept."""
    frame, reason, body = (POISON | TOO_LONG)[name]
    data = BEFORE + frame + AFTER
    parser = FrameParser(LIMITS)
    frames = [found for at in range(0, len(data), size) for found in parser.feed(data[at : at + size])]
    assert parser.broken is None
    assert [(command, content) for command, _, content, _ in frames] == [
        (b"MESSAGE", b"1"), (b"MESSAGE", body), (b"MESSAGE", b"2"), (b"RECEIPT", b"")
    ]  # fmt: skip
    refusals = [refusal for *_, refusal in frames]
    assert refusals[0] is refusals[2] is refusals[3] is None
    assert refusals[1] is not None
    assert reason in refusals[1].reason
    assert refusals[1].whole == bool(body)
    assert refusals[1].size == len(frame)
    head = decode_head(frames[1][1])
    assert {name: head[name] for name in NAMED} == NAMED
    if not refusals[1].whole:
        assert head.keys() <= {*NAMED, "content-length"}


def test_an_error_that_repeats_a_whole_message_is_an_error() -> None:
    """S129: Artemis names in an ERROR all properties of a message that it does not take."""
    ((command, head, _, refusal),) = FrameParser(LIMITS).feed(b"ERROR\nmessage:no" + b"x" * 5000 + b"\n\n\0")
    assert (command, refusal) == (b"ERROR", None)
    assert str(error_of(head, b"", "refused")).startswith("refused: noxxx")


ARTEMIS_REFUSAL = (
    "AMQ339011 Error sending message CoreMessage[address=%s, properties=TypedProperties[note=%s]]@14073545"
)
CLASSIC_REFUSAL = "Persistent store is Full, 100%% of 6291456. Stopping producer to prevent flooding queue://%s.%s"


@pytest.mark.parametrize(
    ("text", "kind"), [(ARTEMIS_REFUSAL, JMSException), (CLASSIC_REFUSAL, ResourceAllocationException)]
)
@pytest.mark.parametrize("word", ["permission", "heartbeat", "selector", "password", "InvalidClientID"])
def test_the_words_of_a_sender_do_not_decide_the_kind_of_an_error(
    text: str, kind: type[JMSException], word: str
) -> None:
    """S129: a queue named "permission" that is full is no missing permission. Artemis repeats the whole message."""
    error = error_of(b"\nmessage:" + (text % (word, word)).replace(":", "\\c").encode() + b"\n", b"", "refused")
    assert type(error) is kind


def test_a_refused_send_to_artemis_tells_the_possible_reasons_and_not_the_message() -> None:
    """S129: over STOMP the broker says only that it refused."""
    head = b"\nmessage:" + (ARTEMIS_REFUSAL % ("orders", "secret")).encode() + b"\n"
    error = error_of(head, b"", "the broker refused the request")
    assert str(error).startswith("the broker refused the request: AMQ339011 Error sending message (over STOMP Artemis")
    assert "the address may be full" in str(error)
    assert "secret" not in str(error)
    assert error.error_code == "AMQ339011"


@pytest.mark.parametrize("start", [b"HELLO", b"ERROR\nmessage:", b"RECEIPT\n\n"], ids=["command", "head", "body"])
def test_an_endless_frame_that_is_no_message_ends_with_memory_bounded(start: bytes) -> None:
    parser, piece = FrameParser(LIMITS), b"x" * 1000
    tracemalloc.start()
    try:
        parser.feed(start)
        _ = [parser.feed(piece) for _ in range(1500)]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert parser.broken is not None


@pytest.mark.parametrize("piece", [b"x" * 1000, b"ack:1\n" * 200, b"\nb" * 500], ids=["one line", "acks", "lines"])
@pytest.mark.parametrize("start", [b"MESSAGE\n", b"MESSAGE\nack:", b"MESSAGE\n\n"], ids=["head", "line", "body"])
def test_an_endless_message_is_skipped_with_memory_bounded(start: bytes, piece: bytes) -> None:
    """S166: nobody can know how large a message a producer was allowed to send."""
    parser = FrameParser(LIMITS)
    tracemalloc.start()
    try:
        parser.feed(start)
        _ = [parser.feed(piece) for _ in range(1500)]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert parser.broken is None
    ((_, head, body, refusal), last) = parser.feed(b"\n\n\0" + BEFORE)
    assert refusal is not None
    assert body == b""
    assert len(head) < 2 * LIMITS.header_line
    assert last[2] == b"1"


@settings(max_examples=200)
@given(st.lists(st.sampled_from([*POISON, "good"]), max_size=6), st.integers(20, 5000), st.randoms())
def test_any_mixture_in_any_pieces_gives_every_message_once(names: list[str], size: int, dice: random.Random) -> None:
    """S166."""
    data = b"".join(AFTER if name == "good" else POISON[name][0] for name in names)
    parser, found, position = FrameParser(LIMITS), 0, 0
    while position < len(data):
        step = dice.randrange(1, 20 * size)
        found += sum(command == b"MESSAGE" for command, *_ in parser.feed(data[position : position + step]))
        position += step
    assert parser.broken is None
    assert found == len(names)


def lie(declared: int) -> bytes:
    """Return a message whose content-length is wrong."""
    return b"MESSAGE\n%scontent-length:%d\n\nbody\0\n" % (LINES, declared)


PIECES = [*(frame for frame, *_ in (POISON | TOO_LONG).values()), AFTER, STREAM, lie(2), lie(300), lie(5000)]


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES), max_size=6), st.integers(200, 20_000), st.randoms())
def test_pending_bytes_give_the_same_frames_whether_they_are_copied_or_not(
    pieces: list[bytes], size: int, dice: random.Random
) -> None:
    data, position = b"".join(pieces) + b"\0" + AFTER, 0
    copying, in_place = FrameParser(LIMITS), FrameParser(LIMITS)
    while position < len(data):
        step = dice.randrange(1, 2 * size + 1)
        piece = data[position : position + step]
        expected = copying.feed(piece)
        with patch.object(frames, "_LITTLE", 0):
            found = in_place.feed(piece)
            while in_place.has_more:
                found += in_place.feed(b"")
        assert found == expected
        assert {type(part) for *parts, _ in found for part in parts} <= {bytes}
        assert (in_place.waits, in_place.begun, str(in_place.broken)) == (
            copying.waits, copying.begun, str(copying.broken)
        )  # fmt: skip
        position += step


def test_messages_with_a_wrong_content_length_do_not_copy_the_bytes_behind_them_again() -> None:
    """S166: each of them copied all that was pending, so that 40 MB of them held up all connections of a process for 28
    seconds. The copied bytes are counted, nothing is timed."""
    copied = 0

    class Counting(bytearray):
        def __iadd__(self, more: bytes) -> Counting:
            nonlocal copied
            copied += len(more)
            super().__iadd__(more)
            return self

    size, count = 600_000, 200
    data = b""
    for number in range(count):  # each claims a body that ends with the next byte to come
        head = b"MESSAGE\n%scontent-length:%%06d\n\n" % LINES
        data += head % (size + number - len(data) - len(head % 0)) + b"x\0"
    parser = FrameParser(Limits())
    parser._pending = Counting()
    assert parser.feed((data + b"MESSAGE\n\n").ljust(size, b"y")) == []
    found = [len(parser.feed(b"z")) for _ in range(count)]
    assert found == [1] * count
    assert copied == size + count


PROOF = b"probe-0123456789abcdef0123456789abcdef"
ANSWER = b"RECEIPT\nreceipt-id:" + PROOF + b"\n\n\0\n"
TINY = b"MESSAGE\n\n\0"


@pytest.mark.parametrize(("unit", "count"), [(TINY, 300_000), (b"\n", 0)], ids=["frames", "line feeds"])
def test_what_waited_behind_a_wrong_content_length_is_read_in_turns_s166(unit: bytes, count: int) -> None:
    """100 MB of tiny frames or line feeds in the body of one message held up all connections of the process."""
    parser = FrameParser(Limits())
    body = b"body\0" + unit * (3_000_000 // len(unit))
    assert parser.feed(b"MESSAGE\n%scontent-length:%d\n\n" % (LINES, len(body)) + body) == []
    found = parser.feed(b"\n" + BEFORE)
    assert found[0][2] == b"body"
    while parser.has_more:
        before = len(parser._pending)
        turn = parser.feed(b"")
        assert before - len(parser._pending) <= frames._LITTLE + frames._TURN
        found += turn
    assert len(found) == 2 + count
    assert found[-1][2] == b"1"
    assert parser.broken is None


def test_many_small_pieces_have_no_whole_turn_each_s166() -> None:
    """A hostile peer cut 12 KB into 1,000 messages of WebSocket. So one read of the socket stopped the loop for 4 s."""
    parser = FrameParser(Limits())
    body = b"body\0" + TINY * 300_000
    parser.feed(b"MESSAGE\ncontent-length:%d\n\n" % len(body) + body)
    parser.feed(b"\n")
    before = len(parser._pending)
    for _ in range(1000):
        parser.feed(b"\n" * 8)
    assert before - len(parser._pending) < 1000 * 8 * 4


def test_what_arrives_does_not_pile_up_behind_a_wrong_content_length_s166() -> None:
    parser = FrameParser(Limits())
    body = b"body\0" + TINY * 100_000
    parser.feed(b"MESSAGE\ncontent-length:%d\n\n" % len(body) + body)
    parser.feed(b"\n")
    assert parser.has_more
    while parser.has_more:
        before = len(parser._pending)
        parser.feed(TINY * 20_000)
        assert len(parser._pending) < before


@pytest.mark.parametrize("size", [1 << 20, 1000])
@pytest.mark.parametrize(
    ("length", "body", "proof"),
    [
        (b"", b"body", b""),
        (b"content-length:5\n", b"b\0ody", b""),
        (b"content-length:1\n", b"body", b""),
        (b"content-length:40\n", b"body", b""),
        (b"content-length:90000\n", b"body", PROOF),
    ],
    ids=["no length", "right", "too short", "too long", "disproved"],
)
def test_very_many_header_lines_are_not_kept_for_a_copy_s166(
    length: bytes, body: bytes, proof: bytes, size: int
) -> None:
    """Looking at all lines of a head of 98 MB for a copy held up all connections for seconds, at each delivery."""
    parser = FrameParser(LIMITS)
    text = b"MESSAGE\n" + LINES + length + b"a:b\n" * 6000 + b"\n" + body + b"\0"
    data, found = BEFORE + text + AFTER, []
    for at in range(0, len(data), size):
        found += parser.feed(data[at : at + size])
    if proof:
        parser.proof = proof
        found += parser.feed(ANSWER)
    assert [content for _, _, content, _ in found][:4] == [b"1", b"", b"2", b""]
    refusal = found[1][3]
    assert refusal is not None
    assert (refusal.whole, refusal.size) == (False, len(text))
    assert raw_header(found[1][1], b"\nack:") == b"a"
    assert parser.broken is None


def test_header_lines_over_the_limits_are_dropped_in_turns_s166() -> None:
    """A head of 100 MB held up all connections of the process at its last byte."""
    parser = FrameParser(Limits(body=3_000_000, header_line=1000))
    parser.feed(b"MESSAGE\n" + LINES + b"a:b\n" * 749_900)
    assert parser.feed(b"a:b\n" * 1000) == []
    turns = 0
    while parser.has_more:
        assert parser.feed(b"") == []
        turns += 1
    assert turns > 3_000_000 / (frames._LITTLE + frames._TURN)
    ((_, head, _, refusal), last) = parser.feed(b"\nbody\0" + BEFORE)
    assert refusal is not None
    assert decode_head(head) == NAMED
    assert last[2] == b"1"


def test_a_declared_body_takes_no_memory_before_it_comes() -> None:
    tracemalloc.start()
    try:
        FrameParser(Limits()).feed(b"MESSAGE\ncontent-length:100000000\n\nx")
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_a_long_body_in_small_pieces_is_looked_at_once() -> None:
    """No piece makes the parser copy or search what came before: the work is counted, not timed."""
    searched = 0

    class Counting(bytearray):
        def find(self, what: bytes, start: int = 0, end: int | None = None) -> int:
            nonlocal searched
            searched += len(self) - start
            return super().find(what, start)

    parser = FrameParser(Limits())
    parser._pending = Counting()
    parser.feed(b"MESSAGE\n\nx")
    for _ in range(2000):
        parser.feed(b"y" * 100)
    assert searched == 200_000
    ((_, _, body, _),) = parser.feed(b"\0")
    assert len(body) == 200_001


@pytest.mark.parametrize("size", [1, 61, 1 << 20])
@pytest.mark.parametrize("declared", [5000, 100_000, 100_001, 999_999_999_999])
def test_a_content_length_that_is_too_high_swallows_nothing_once_an_answer_proves_it_wrong(
    declared: int, size: int
) -> None:
    """S166: the text is refused alone, also if its length is over the limit; what is behind it arrives."""
    parser = FrameParser(LIMITS)
    data = BEFORE + b"MESSAGE\n%scontent-length:%d\n\nbody\0\n" % (LINES, declared) + AFTER
    frames = [found for at in range(0, len(data), size) for found in parser.feed(data[at : at + size])]
    assert [body for _, _, body, _ in frames] == [b"1"]
    assert parser.waits
    parser.proof = PROOF
    rest = b"\n\n" + ANSWER + AFTER
    frames = [found for at in range(0, len(rest), size) for found in parser.feed(rest[at : at + size])]
    assert [body for _, _, body, _ in frames] == [b"body", b"2", b"", b"", b"2", b""]
    assert [refusal is None for *_, refusal in frames] == [False, True, True, True, True, True]
    assert parser.broken is None
    assert not parser.waits


@pytest.mark.parametrize("size", [1000, 61, 1 << 20])
def test_an_answer_behind_a_body_disproves_nothing(size: int) -> None:
    """A large body, of whatever bytes, arrives whole: the answer comes after it, perhaps in the same piece."""
    body = (AFTER + ANSWER.replace(b"0", b"1")) * 100
    parser = FrameParser(LIMITS)
    data = b"MESSAGE\n%scontent-length:%d\n\n" % (LINES, len(body)) + body + b"\0\n" + ANSWER
    frames = parser.feed(data[:300])
    parser.proof = PROOF
    frames += [found for at in range(300, len(data), size) for found in parser.feed(data[at : at + size])]
    assert [(command, content, refusal) for command, _, content, refusal in frames] == [
        (b"MESSAGE", body, None),
        (b"RECEIPT", b"", None),
    ]


@pytest.mark.parametrize("size", [1, 4096])
def test_what_follows_a_lie_about_a_body_that_was_not_kept_ends_the_stream(size: int) -> None:
    """More than the limit came before the answer: those bytes are gone, so silence is the other end."""
    parser = FrameParser(LIMITS)
    parser.feed(b"MESSAGE\n%scontent-length:999999999999\n\nbody\0\n" % LINES + AFTER * 3000)
    parser.proof = PROOF
    rest = b"\n" + ANSWER
    assert [found for at in range(0, len(rest), size) for found in parser.feed(rest[at : at + size])] == []
    assert isinstance(parser.broken, ConnectionLostException)
    assert "content-length b'999999999999'" in str(parser.broken)


SECRET = b"secret-"
INNOCENT = b"MESSAGE\nack:ID\\c1\nsubscription:secret-1\nmessage-id:ID\\cm1\npriority:4\ntimestamp:1\n\nhello\0\n"


def classic_parser() -> FrameParser:
    """Return a parser that knows the secret of its connection."""
    parser = FrameParser(Limits())
    parser.own_line = b"\nsubscription:" + SECRET
    return parser


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("length", [b"", b"content-length:4\n"])
@pytest.mark.parametrize(
    "lines",
    [
        [b"a\n\nb:v", b"ack:ID\\c2", b"subscription:secret-1", b"message-id:ID\\cm2\npriority:4", b"timestamp:2"],
        [b"ack:ID\\c2", b"a\n\n\n\nb:v", b"subscription:secret-1", b"message-id:ID\\cm2\npriority:4", b"timestamp:2"],
        [
            b"subscription:secret-1",
            b"x\nack:ID\\c1\n\nb:v",
            b"ack:ID\\c2",
            b"message-id:ID\\cm2\npriority:4",
            b"timestamp:2",
        ],
        [
            b"timestamp:1\nmessage-id:1\n\n:v",
            b"subscription:secret-1",
            b"message-id:ID\\cm2\npriority:4",
            b"timestamp:2",
        ],
    ],
)
def test_an_empty_line_in_the_name_of_a_property_does_not_end_the_head_on_classic_s166(
    lines: list[bytes], length: bytes, size: int
) -> None:
    """Classic does not escape names. The messages before and behind such a message are whole, and it is marked."""
    data = INNOCENT + b"MESSAGE\n" + length + b"\n".join(lines) + b"\n\nevil\0\n" + INNOCENT
    parser = classic_parser()
    frames = [frame for begin in range(0, len(data), size) for frame in parser.feed(data[begin : begin + size])]
    assert [(body, refusal, is_forged(head)) for _, head, body, refusal in frames] == [
        (b"hello", None, False),
        (b"evil", None, True),
        (b"hello", None, False),
    ]
    assert frames[1][1] == b"\n" + length + b"\n".join(lines) + FORGED


@pytest.mark.parametrize("count", [97, 200_000])
def test_a_body_that_begins_with_many_header_lines_of_the_broker_is_marked_s118(count: int) -> None:
    """The ACK or NACK would have a forged id. With more than 96 header lines Classic may write ``subscription`` before
    ``ack``, and a refused message with 1 MiB of lines is kept only if it is marked."""
    forged = b"x\nack:ID\\c1\nmessage-id:1\npriority:4\ntimestamp:1\n\nb:v"
    lines = [b"p%d:v" % number for number in range(count)]
    lines += [b"subscription:secret-1", forged, b"ack:ID\\c2", b"message-id:ID\\cm2", b"timestamp:2"]
    data = b"MESSAGE\n" + b"\n".join(lines) + b"\n\nevil\0\n" + INNOCENT
    assert [is_forged(head) for _, head, _, _ in classic_parser().feed(data)] == [True, False]


@pytest.mark.parametrize("times", [1, 50])
@pytest.mark.parametrize("length", [False, True])
def test_a_body_that_shows_a_frame_is_a_body_s166(times: int, length: bool) -> None:
    """It may have any number of recorded frames of Classic."""
    body = (INNOCENT.rstrip(b"\0\n") + b"\n\n") * times
    data = INNOCENT.replace(b"hello", body)
    if length:
        data = data.replace(b"MESSAGE", b"MESSAGE\ncontent-length:%d" % len(body), 1)
    ((_, head, text, refusal),) = classic_parser().feed(data)
    assert (text, refusal, is_forged(head)) == (body, None, False)


@pytest.mark.parametrize("name", [b"ack", b"message-id", b"subscription"])
def test_a_second_line_with_an_id_is_forged_s118(name: bytes) -> None:
    """One of the two lines is the broker's, and nobody knows which. An ACK with the other one acknowledged a message of
    another consumer."""
    ((_, head, _, _),) = classic_parser().feed(INNOCENT.replace(b"\nack", b"\nx:y\n" + name + b":ID\\c7\nack"))
    assert is_forged(head)


def test_a_body_of_very_many_lines_is_looked_at_quickly_s166() -> None:
    """The time is bounded: a hostile body has 100 MB of the shortest header lines."""
    body = b":\n" * 1_000_000 + b"ack:ID\\c9\n\n"
    ((_, head, text, _),) = classic_parser().feed(INNOCENT.replace(b"hello", body)) or [(b"", b"", b"", None)]
    assert (len(text), is_forged(head)) == (len(body), True)
