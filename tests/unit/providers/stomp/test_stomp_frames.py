"""Frames: any split of the bytes gives the same, stomp.py is the oracle, and what is hostile ends bounded."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stomp.utils import Frame as OracleFrame
from stomp.utils import convert_frame, encode, parse_frame

from pyjmsack.errors import ConnectionLostException, MessageFormatException
from pyjmsack.providers.stomp.frames import Frame, FrameParser, Limits, decode_head, escape, raw_header

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
    return [(command, decode_head(head), body) for command, head, body in frames]


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


HOSTILE = {
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n\0",
    "an unknown command": b"HELLO\n\n\0",
    "length no number": b"MESSAGE\ncontent-length:ten\n\n\0",
    "length negative": b"MESSAGE\ncontent-length:-1\n\n\0",
    "length enormous": b"MESSAGE\ncontent-length:2147483647\n\n",
    "length too short": b"MESSAGE\ncontent-length:1\n\nabc\0",
    "too many headers": b"MESSAGE\n" + b"a:b\n" * 51 + b"\n\0",
    "a header line too long": b"MESSAGE\na:" + b"b" * 1001 + b"\n\n\0",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_frame_ends_the_connection(name: str) -> None:
    with pytest.raises(ConnectionLostException, match=r"STOMP|maxFrameSize"):
        read(HOSTILE[name])


@pytest.mark.parametrize(
    "start", [b"", b"MESSAGE\n", b"MESSAGE\nname:", b"MESSAGE\n\n"], ids=["command", "headers", "one header", "body"]
)
def test_an_endless_frame_ends_with_memory_bounded(start: bytes) -> None:
    parser, piece = FrameParser(LIMITS), b"x" * 1000
    parser.feed(start)
    tracemalloc.start()
    try:
        with pytest.raises(ConnectionLostException):
            _ = [parser.feed(piece) for _ in range(10_000)]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


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
    ((_, _, body),) = parser.feed(b"\0")
    assert len(body) == 200_001
