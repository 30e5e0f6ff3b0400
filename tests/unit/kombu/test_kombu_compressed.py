"""A compressed body costs no more memory than a body that came without compression."""

from __future__ import annotations

import bz2
import lzma
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

pytest.importorskip("kombu", reason="the extra celery is not installed")

from kombu import compression

from pyjmsack import MessageFormatException
from pyjmsack.kombu.compressed import unpacked

LIMIT = 100_000
BOMB = bytes(20_000_000)
METHODS = [name for name in ("zlib", "bzip2", "lzma", "brotli", "zstd") if name in compression._aliases]
method = pytest.mark.parametrize("method", METHODS)


@method
def test_a_body_is_unpacked_as_kombu_does_it(method: str) -> None:
    for body in b"", b"task", bytes(LIMIT):
        packed, name = compression.compress(body, method)
        assert unpacked(packed, method, LIMIT) == body
        assert unpacked(packed, name, LIMIT) == body


@method
def test_a_body_that_unpacks_to_more_than_the_limit_is_refused_before_the_memory_is_spent(method: str) -> None:
    packed, name = compression.compress(BOMB, method)
    tracemalloc.start()
    try:
        with pytest.raises(MessageFormatException, match=f"more than jms.maxMessageSize={LIMIT} bytes"):
            unpacked(packed, name, LIMIT)
        assert tracemalloc.get_traced_memory()[1] < len(BOMB) / 2
    finally:
        tracemalloc.stop()


@method
def test_half_a_body_is_refused(method: str) -> None:
    packed, name = compression.compress(b"all of it" * 100, method)
    with pytest.raises(Exception, match=r"incomplete|full frame"):  # kombu before 5.7 calls zstandard, with its error
        unpacked(packed[: len(packed) // 2], name, LIMIT)


@pytest.mark.parametrize("given", ["rot13", [], {}, 7, True])
def test_an_unknown_compression_is_refused_with_those_that_are_known(given: object) -> None:
    with pytest.raises(MessageFormatException, match="application/x-gzip"):
        unpacked(b"", given, LIMIT)


def test_a_window_of_lzma_that_is_larger_than_any_sender_needs_is_refused() -> None:
    """The sender chooses the size of the window, and the decoder would take the memory at once."""
    with pytest.raises(lzma.LZMAError, match=r"[Mm]emory"):
        unpacked(with_window(1 << 28), "lzma", LIMIT)
    assert unpacked(with_window(1 << 26), "lzma", LIMIT) == b"task"  # that of xz -9


def with_window(size: int) -> bytes:
    return lzma.compress(b"task", filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": size}])


@pytest.mark.parametrize("decoder", [zlib.decompress, bz2.decompress, lambda body: body[::-1]])
def test_a_method_that_the_program_registered_is_called(
    decoder: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(compression._decoders, "application/x-own", decoder)
    body = {zlib.decompress: zlib.compress(b"ksat"), bz2.decompress: bz2.compress(b"ksat")}.get(decoder, b"task")
    assert unpacked(body, "application/x-own", LIMIT) == b"ksat"
