"""Large messages in files: where their body is, and that they are the same message as in memory."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from pyjmsack.errors import MessageFormatException
from pyjmsack.io.spooling import Spooler
from pyjmsack.providers.amqp.download import Download, SpooledInbound
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.pieces import DataSections, head_of
from pyjmsack.spi.envelope import NotOneMessageError

HEAD = b"\x00\x53\x70\xc0\x02\x01\x41" + b"\x00\x53\x73\xc0\x06\x01\xa1\x03m-1"
"""A header, durable, and properties with a message id."""
FOOTER = b"\x00\x53\x78\xc1\x06\x02\xa3\x01k\x54\x01"
BODY = bytes(range(256)) * 40


def data(content: bytes, form: int = 0) -> bytes:
    """Return a data section, with its descriptor in one of three forms."""
    code = (b"\x00\x53\x75", b"\x00\x80" + bytes(7) + b"\x75", b"\x00\xa3\x10amqp:data:binary")[form]
    return code + b"\xb0" + len(content).to_bytes(4, "big") + content


def at_once(work: Callable[[], None], then: Callable[[], None]) -> None:
    work()
    then()


def spooled(message: bytes, seed: int = 0, limit: int = 1 << 20) -> AmqpInbound:
    """Return a message that came in pieces of random sizes."""
    cuts = random.Random(seed)
    start = cuts.randrange(len(HEAD) + 3, len(message))
    head = head_of(message[:start])
    assert head == HEAD
    spool = Spooler(at_once).open(None, lambda unwritten: None)
    download = Download(1, message[:start], head, spool, limit)
    while start < len(message):
        size = cuts.randrange(1, 5000)
        download.feed(message[start : start + size])
        start += size
    download.finish(settled=False)
    assert download.over
    return download.inbound()


MESSAGES = {
    "one section": HEAD + data(BODY),
    "three sections": HEAD + data(BODY) + data(b"", 1) + data(b"end", 2),
    "a footer": HEAD + data(BODY) + FOOTER,
}


@pytest.mark.parametrize("kept_whole", [True, False], ids=["artemis", "classic"])
@pytest.mark.parametrize("kind", MESSAGES)
def test_a_message_in_a_file_is_the_same_as_in_memory(kind: str, kept_whole: bool) -> None:
    """S105, S168: its body, and its identity for the guard against duplicates, wherever the transfers were cut."""
    for seed in range(20):
        inbound, plain = spooled(MESSAGES[kind], seed), AmqpInbound(MESSAGES[kind])
        inbound.kept_whole = plain.kept_whole = kept_whole
        assert isinstance(inbound, SpooledInbound)
        assert inbound.heavy
        assert inbound.identity() == plain.identity() is not None
        assert not inbound.heavy
        assert inbound.to_message().body == plain.to_message().body
        assert inbound.has_footer == (kind == "a footer")


def test_the_end_of_a_message_in_a_file_belongs_to_its_identity() -> None:
    """S105."""
    one, other = (spooled(HEAD + data(BODY + end)) for end in (b"a", b"b"))
    assert one.identity() != other.identity()


@pytest.mark.parametrize(
    ("behind", "error"),
    [
        (HEAD, NotOneMessageError),
        (FOOTER + b"\x00", NotOneMessageError),
        (b"\x00\x53\x77\x40", NotOneMessageError),
        (b"\x01", MessageFormatException),
        (b"\x00\x53\x75\xa1\x01x", MessageFormatException),
        (b"\x00\x53\x78\xd1\x00\x01\x00\x01", MessageFormatException),
        (b"\x00\x53", MessageFormatException),
        (data(b"cut")[:-1], MessageFormatException),
    ],
)
def test_what_is_no_body_of_bytes_is_refused(behind: bytes, error: type[Exception]) -> None:
    """S166: a torn transfer is told from a broken message, as in memory."""
    inbound = spooled(HEAD + data(BODY) + behind)
    with pytest.raises(error) as caught:
        inbound.to_message()
    assert type(caught.value) is error
    assert inbound.unreadable


def test_too_many_sections_are_refused() -> None:
    sections = DataSections(0)
    with pytest.raises(MessageFormatException, match="65,536"):
        sections.feed(b"\x00\x53\x75\xa0\x00" * 65_537)


def test_a_message_over_the_limit_is_dropped() -> None:
    """S166: with its size, and its header."""
    message = HEAD + data(BODY)
    inbound = spooled(message, limit=5000)
    assert inbound.persistent
    with pytest.raises(MessageFormatException, match=rf"the message has {len(message):,} bytes.*5,000"):
        inbound.to_message()


@pytest.mark.parametrize(
    "start",
    [
        b"",
        HEAD,
        HEAD[:10],
        HEAD + b"\x00\x53\x77\xa1\x01x",
        b"\x00\x53\x72\xc1\x1a\x04\xa3\x12x-opt-jms-msg-type\x51\x05\x40\x40" + data(BODY),
        b"\x00\x53\x73\xc0\x0e\x07\x40\x40\x40\x40\x40\x40\xa3\x06text/x" + data(BODY),
    ],
    ids=["nothing", "no body", "half a head", "a value", "text by its mark", "text by its content type"],
)
def test_other_messages_are_gathered_in_memory(start: bytes) -> None:
    assert head_of(start) is None


def test_a_whole_head_of_a_section_is_taken_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """S168: a message of thousands of empty sections costs the I/O loop no step for each byte."""
    looks = 0
    look = DataSections._look

    def counting(sections: DataSections, position: int) -> None:
        nonlocal looks
        looks += 1
        look(sections, position)

    monkeypatch.setattr(DataSections, "_look", counting)
    sections = DataSections(0)
    empty = data(b"")
    sections.feed(empty * 999 + empty[:3])
    assert (len(sections.spans), looks) == (999, 3)
    sections.feed(empty[3:] + FOOTER)
    sections.end()
    assert (len(sections.spans), bytes(sections.footer)) == (1000, FOOTER)
    assert looks == len(empty)
