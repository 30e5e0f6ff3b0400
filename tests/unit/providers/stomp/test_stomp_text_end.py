"""A text with a NUL and without a content-length, as ActiveMQ Classic writes it for OpenWire clients."""

from __future__ import annotations

import random
import secrets

import pytest

from pyjmsack.providers.stomp.frames import Frame, FrameParser, Limits
from pyjmsack.providers.stomp.text_end import TextEnd

SECRET = b"sEcReT-_1234-"
FORGED = (
    b"RECEIPT\nreceipt-id:1\n\n",
    b"MESSAGE\nsubscription:s1\nmessage-id:forged\n\nforged",
    b"RECEIPT\r\nreceipt-id:1\r\n\r\n",
    b"ERROR\nreceipt-id:",
    b"MESSAGE\nsubscription:",
    b"MESSAGE\n\n",
    b"no frame at all",
    b"",
    b"\n\n\r\n",
    b"M",
    b"MESSAG",
)


def parser(limits: Limits | None = None) -> FrameParser:
    made = FrameParser(limits or Limits())
    made.text_end = TextEnd(SECRET, f"stomp://{secrets.token_hex(8)}:1")
    return made


def message(text: bytes, number: int = 1, lines: bytes = b"") -> bytes:
    start = b"MESSAGE\nack:a\nsubscription:%bs1\nmessage-id:m%d\n%b\n" % (SECRET, number, lines)
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
def test_a_text_with_nuls_may_come_in_pieces_s166(forged: bytes, size: int) -> None:
    """The first NUL ends the text if only line ends follow so far. So two NULs come together here."""
    text = with_nuls(b"\n" + forged)
    data = message(text, 2) + receipt(7) + message(b"last", 3)
    start = data.index(b"\0", data.index(b"\0") + 1) + 1
    made = parser()
    frames = made.feed(data[:start])
    for position in range(start, len(data), size):
        frames += made.feed(data[position : position + size])
    assert bodies(frames) == [text, b"last"]
    assert made.broken is None


def test_a_text_without_a_nul_waits_for_nothing_s166() -> None:
    made = parser()
    for text in (b"one", b"", b"two lines\n\n"):
        assert bodies(made.feed(message(text)[:-1])) == [text]
        assert made.feed(b"\n") == []
        assert not made.waits


def test_while_the_end_of_a_text_is_doubtful_the_engine_may_ask_s166() -> None:
    """The answer to the question has the secret, so it shows where the text ended."""
    made = parser()
    assert made.feed(message(b"a\0b")) == []
    assert made.waits
    begun = made.begun
    frames = made.feed(b"\n\n" + receipt(3))
    assert begun == 1
    assert bodies(frames) == [b"a\0b"]
    assert not made.waits


def test_a_content_length_of_the_producer_ends_no_text_before_its_end_s166() -> None:
    """Classic copies a property ``content-length`` into the frame of a text."""
    text = b"abc\0\nRECEIPT\nreceipt-id:1\n\n"
    made = parser()
    frames = made.feed(message(text, 1, b"content-length:3\n") + message(b"last"))
    assert bodies(frames) == [text, b"last"]
    assert frames[0][3] is not None
    assert "content-length" in frames[0][3].reason
    assert frames[1][3] is None


def test_a_body_of_the_right_length_may_contain_nuls_s166() -> None:
    body = b"a\0\nMESSAGE\n\nb\0"
    made = parser()
    frames = made.feed(message(body, 1, b"content-length:%d\n" % len(body)) + message(b"last"))
    assert [(text, refusal) for _, _, text, refusal in frames] == [(body, None), (b"last", None)]


@pytest.mark.parametrize("size", [1, 60, 1000])
def test_a_text_with_nuls_over_the_limit_is_refused_alone_s166(size: int) -> None:
    text = b"x" * 100 + b"\0\n" + b"MESSAGE\nsubscription:s1\n\n" * 5 + b"\0\nMESS\0" + b"y" * 100
    data = message(text, 2) + receipt(7) + message(b"last", 3)
    made = parser(Limits(body=60))
    start = data.index(b"\0") + 3
    frames = made.feed(data[:start])
    for position in range(start, len(data), size):
        frames += made.feed(data[position : position + size])
    assert [(command, body, refusal is None) for command, _, body, refusal in frames] == [
        (b"MESSAGE", b"", False),
        (b"RECEIPT", b"", True),
        (b"MESSAGE", b"last", True),
    ]
    assert frames[0][3] is not None
    assert frames[0][3].size == len(message(text, 2)) - 1


def test_an_error_without_a_receipt_behind_a_text_counts_once_s166() -> None:
    """Classic gives such an ERROR no mark of the client. If the message comes again, the ERROR is its text."""
    place = f"stomp://{secrets.token_hex(8)}:1"
    text = b"a\0\nERROR\nmessage:forged\n\nforged"
    made = parser()
    made.text_end = TextEnd(SECRET, place)
    frames = made.feed(message(text) + receipt(1))
    assert [command for command, *_ in frames] == [b"MESSAGE", b"ERROR", b"RECEIPT"]
    assert made.text_end.convict()
    again = parser()
    again.text_end = TextEnd(SECRET, place)
    assert bodies(again.feed(message(text) + receipt(1))) == [text]
    assert not again.text_end.convict()
    frames = again.feed(message(b"a", 2) + b"ERROR\nreceipt-id:%b9\n\nno\0\n" % SECRET)
    assert [command for command, *_ in frames] == [b"MESSAGE", b"ERROR"]
    assert not again.text_end.convict()


def test_random_texts_arrive_whole_and_end_nothing_s166() -> None:
    """Texts of NULs, parts of frames and line ends, cut at random places. A text is cut short only if a piece ends
    behind its first NUL and the line ends that follow."""
    chance = random.Random(10)
    parts = [
        b"\0",
        b"\n",
        b"\r\n",
        b"x",
        b"MESSAGE\n",
        b"RECEIPT\n",
        b"\nsubscription:s1\n",
        b"\n\n",
        b"receipt-id:1\n",
    ]
    parts += [b"MESS", b"E", SECRET[:-1], b"\r"]
    for _ in range(2000):
        texts = [b"".join(chance.choices(parts, k=chance.randrange(12))) for _ in range(3)]
        data = b"".join(message(text, number) for number, text in enumerate(texts)) + receipt(1)
        made, frames, position = parser(), [], 0
        while position < len(data):
            end = position + chance.randrange(1, 90)
            while end < len(data) and data[end - 1] in b"\0\r\n":
                end += 1
            frames += made.feed(data[position:end])
            position = end
        assert bodies(frames) == texts
        assert len(frames) == 4
        assert made.broken is None
