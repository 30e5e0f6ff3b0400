"""The thread that reads a body while it is sent (S168)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from pyjmsack.errors import JMSException
from pyjmsack.io.reading import BodyReading
from pyjmsack.message.source import IterableSource


class Mute(Exception):
    """An error that cannot be turned into text."""

    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("no more"), "iterable of 10 bytes: ValueError: no more"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (asyncio.CancelledError(), "CancelledError"),
        (Mute(), "Mute"),
    ],
)
def test_a_send_hears_of_each_error_of_its_iterable(error: BaseException, words: str) -> None:
    """S168: whatever the iterable raises, because the other sends of the producer wait behind this one."""

    def pieces() -> Iterator[bytes]:
        yield b"part"
        raise error

    async def read() -> tuple[bytes, JMSException | None]:
        reading = BodyReading(asyncio.get_running_loop(), IterableSource(pieces(), 10))
        answer: asyncio.Future[tuple[bytes, JMSException | None]] = asyncio.Future()
        reading.ask(lambda piece, failure: answer.set_result((piece, failure)))
        try:
            return await asyncio.wait_for(answer, 60)
        finally:
            reading.close()

    piece, failure = asyncio.run(read())
    assert piece == b""
    assert failure is not None
    assert words in str(failure)
    assert failure.__cause__ is error


def test_a_send_hears_that_the_system_has_no_thread_for_its_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """S168: the producer waited for this body for ever, and so did the sends behind it."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def read() -> JMSException | None:
        reading = BodyReading(asyncio.get_running_loop(), IterableSource(iter([b"part"]), 4))
        answer: asyncio.Future[JMSException | None] = asyncio.Future()
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            reading.ask(lambda piece, failure: answer.set_result(failure))
        try:
            return await asyncio.wait_for(answer, 60)
        finally:
            reading.close()

    assert "can't start new thread" in str(asyncio.run(read()))
