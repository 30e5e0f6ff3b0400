"""A text with a NUL and without a content-length, as ActiveMQ Classic writes it for OpenWire clients."""

from __future__ import annotations

import random

import pytest

from pyjmsack.providers.stomp.frames import Frame, FrameParser, Limits
from pyjmsack.providers.stomp.stray_text import StrayText

SECRET = b"sEcReT-_1234-"
FORGED = (
    b"RECEIPT\nreceipt-id:1\n\n",
    b"MESSAGE\nsubscription:s1\nmessage-id:forged\n\nforged",
    b"MESSAGE\nsubscription:s1\ncontent-length:1000000\n\nforged",
    b"RECEIPT\r\nreceipt-id:1\r\n\r\n",
    b"MESSAGE\n\n",
    b"MESSAGE\nsubscription:z\nx:y",
    b"ERROR\nmessage:x",
    b"no frame at all",
    b"a line\nand another",
    b"",
    b"\n\n\r\n",
    b"M",
    b"MESSAG",
)


def parser(limits: Limits | None = None) -> FrameParser:
    made = FrameParser(limits or Limits())
    made.stray = StrayText(SECRET)
    return made


def message(text: bytes, number: int = 1, lines: bytes = b"") -> bytes:
    start = b"MESSAGE\nack:a\n%bsubscription:%bs1\nmessage-id:m%d\n\n" % (lines, SECRET, number)
    return start + text + b"\0\n"


def receipt(number: int) -> bytes:
    return b"RECEIPT\nreceipt-id:%b%d\n\n\0\n" % (SECRET, number)


def bodies(frames: list[Frame]) -> list[bytes]:
    return [body for command, _, body, _ in frames if command == b"MESSAGE"]


def with_nuls(between: bytes, count: int = 3) -> bytes:
    return b"before\0" + b"\0".join([between] * count) + b"\0\nafter"


@pytest.mark.parametrize("forged", FORGED)
def test_what_follows_a_nul_of_a_text_is_text_s166(forged: bytes) -> None:
    text = with_nuls(b"\n" + forged)
    made = parser()
    frames = made.feed(message(b"first", 1) + message(text, 2) + receipt(7) + message(b"last", 3))
    assert bodies(frames) == [b"first", text, b"last"]
    assert [command for command, *_ in frames].count(b"RECEIPT") == 1
    assert made.broken is None


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_a_text_with_nuls_in_pieces_harms_no_frame_behind_it_s166(forged: bytes, size: int) -> None:
    """The text itself may arrive cut at its first NUL, because nobody can know what follows."""
    data = message(b"first", 1) + message(with_nuls(b"\n" + forged), 2) + receipt(7) + message(b"last", 3)
    made, frames = parser(), []
    for position in range(0, len(data), size):
        frames += made.feed(data[position : position + size])
    assert [command for command, *_ in frames] == [b"MESSAGE", b"MESSAGE", b"RECEIPT", b"MESSAGE"]
    assert bodies(frames)[::2] == [b"first", b"last"]
    assert made.broken is None


def test_a_text_that_goes_on_behind_the_received_bytes_is_refused_s166() -> None:
    """The client does not hand out a text that is cut, if it knows so."""
    made = parser()
    (frame,) = made.feed(message(b"before\0after" * 10)[:-30])
    assert frame[2] == b""
    assert frame[3] is not None
    assert b"message-id:m1" in frame[1]
    assert bodies(made.feed(b"after\0\n" + message(b"last"))) == [b"last"]


def test_a_nul_in_a_header_line_ends_no_frame_s166() -> None:
    """Classic writes a NUL of a property as it is."""
    for line in (b"prop:x\0y\n", b"prop:x\0\n", b"prop:x\0MESSAGE\n", b"prop:\0RECEIPT\nreceipt-id:1\n"):
        made = parser()
        frames = made.feed(message(b"first") + message(b"second", 2, line) + message(b"third", 3))
        assert bodies(frames) == [b"first", b"second", b"third"]
        assert all(refusal is None for *_, refusal in frames)


def test_an_open_head_in_a_text_takes_no_frame_whatever_its_size_s166() -> None:
    text = b"a\0\nMESSAGE\nsubscription:z\nx:" + b"y" * 3_000_000
    data = message(text, 1) + receipt(7) + message(b"innocent", 2) + message(b"last", 3)
    for limits in (Limits(), Limits(body=100_000)):
        made, frames = parser(limits), []
        for position in range(0, len(data), 65536):
            frames += made.feed(data[position : position + 65536])
        assert [command for command, *_ in frames] == [b"MESSAGE", b"RECEIPT", b"MESSAGE", b"MESSAGE"]
        assert bodies(frames)[1:] == [b"innocent", b"last"]


def test_a_frame_whose_subscription_comes_late_waits_for_it_s166() -> None:
    made = parser()
    data = message(b"first") + message(b"second", 2, b"prop:" + b"x" * 50_000 + b"\0y\n") + message(b"third", 3)
    frames = []
    for position in range(0, len(data), 1000):
        frames += made.feed(data[position : position + 1000])
    assert bodies(frames) == [b"first", b"second", b"third"]


def test_a_content_length_of_the_producer_makes_no_frame_of_its_text_s166() -> None:
    """Classic copies a property ``content-length`` into the frame of a text."""
    text = b"abc\0\nRECEIPT\nreceipt-id:1\n\n"
    made = parser()
    frames = made.feed(message(text, 1, b"content-length:3\n") + message(b"last"))
    assert bodies(frames) == [text, b"last"]
    assert frames[0][3] is not None
    assert "content-length" in frames[0][3].reason
    assert frames[1][3] is None


def test_a_content_length_that_covers_the_next_frame_takes_nothing_s166() -> None:
    next_one = message(b"innocent", 2)
    length = len(b"abc\0\n") + len(next_one) - 2
    for size in (1, 50, 1000):
        data = message(b"abc", 1, b"content-length:%d\n" % length) + next_one + message(b"last", 3)
        made, frames = parser(), []
        for position in range(0, len(data), size):
            frames += made.feed(data[position : position + size])
        assert bodies(frames) == [b"abc", b"innocent", b"last"]
        assert [refusal is None for *_, refusal in frames] == [False, True, True]


def test_a_body_of_the_right_length_may_contain_nuls_s166() -> None:
    body = b"a\0\nMESSAGE\n\nb\0"
    made = parser()
    frames = made.feed(message(body, 1, b"content-length:%d\n" % len(body)) + message(b"last"))
    assert [(text, refusal) for _, _, text, refusal in frames] == [(body, None), (b"last", None)]


@pytest.mark.parametrize("size", [1, 60, 1000])
def test_a_text_with_nuls_over_the_limit_is_refused_alone_s166(size: int) -> None:
    text = b"x" * 100 + b"\0\n" + b"MESSAGE\nsubscription:s1\n\n" * 5 + b"\0\nMESS\0" + b"y" * 100
    data = message(text, 2) + receipt(7) + message(b"last", 3)
    made, frames = parser(Limits(body=60)), []
    for position in range(0, len(data), size):
        frames += made.feed(data[position : position + size])
    assert [(command, body, refusal is None) for command, _, body, refusal in frames] == [
        (b"MESSAGE", b"", False),
        (b"RECEIPT", b"", True),
        (b"MESSAGE", b"last", True),
    ]


@pytest.mark.parametrize("lines", [b"", b"receipt-id:%b9\n" % SECRET])
def test_an_error_behind_a_text_counts_s166(lines: bytes) -> None:
    """Classic gives some ERROR frames no mark of the client, and none of them may be lost."""
    for text in (b"a", b"a\0\nx"):
        made = parser()
        frames = made.feed(message(text) + b"ERROR\n%bmessage:no\n\nno\0\n" % lines)
        assert [(command, body) for command, _, body, _ in frames] == [(b"MESSAGE", text), (b"ERROR", b"no")]


def test_a_body_that_quotes_the_names_of_this_connection_is_a_body_s166() -> None:
    """A program may send its own log to a queue that it reads."""
    body = b"log: MESSAGE\nsubscription:%bs1\n" % SECRET
    (frame,) = parser().feed(message(body, 1, b"content-length:%d\n" % len(body)))
    assert frame[2:] == (body, None)


def test_bytes_that_follow_no_message_and_are_no_frame_end_the_stream() -> None:
    made = parser()
    made.feed(message(b"a") + receipt(1) + b"this is not a frame of STOMP\n\n\0")
    assert made.broken is not None


def test_random_texts_take_no_other_frame_s166() -> None:
    """Texts of NULs, parts of frames and line ends, and heads with NULs, cut at random places."""
    chance = random.Random(10)
    parts = [b"\0", b"\n", b"\r\n", b"x", b"MESSAGE\n", b"RECEIPT\n", b"\nsubscription:s1\n", b"\n\n", b"MESS", b"E"]
    parts += [b"receipt-id:1\n", SECRET[:-1], b"\r", b"content-length:9\n", b":"]
    for _ in range(3000):
        data, wanted = b"", []
        for number in range(6):
            lines = chance.choice((b"", b"", b"prop:x\0y\n", b"prop:x\0\n", b"prop:\0MESSAGE\n"))
            if chance.random() < 0.4:
                data += message(b"".join(chance.choices(parts, k=chance.randrange(12))), number)
                wanted.append(None)
            elif chance.random() < 0.3:
                data += receipt(number)
                wanted.append(b"")
            else:
                body = b"innocent %d" % number + b"\0\nMESSAGE\n\n" * chance.randrange(2)
                lines += b"content-length:%d\n" % len(body) if b"\0" in body or chance.random() < 0.3 else b""
                data += message(body, number, lines)
                wanted.append(body)
        made, frames, position = parser(), [], 0
        while position < len(data):
            size = chance.choice((1, 5, 90, 1000, chance.randrange(1, 300)))
            frames += made.feed(data[position : position + size])
            position += size
        assert made.broken is None
        assert len(frames) == len(wanted)
        for (_, _, body, refusal), right in zip(frames, wanted, strict=True):
            assert right is None or (body == right and refusal is None)
