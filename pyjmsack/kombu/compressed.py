"""Compressed bodies. A body is unpacked only up to a limit, because a few bytes may unpack to gigabytes."""

from __future__ import annotations

import bz2
import importlib
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Final

from kombu import compression

from pyjmsack import MessageFormatException

__all__ = ["LZMA_MEMORY", "unpacked"]

LZMA_MEMORY: Final = 1 << 27
"""The largest number of bytes that the decoder of lzma may take for its window, which are 128 MiB. ``xz -9`` needs
less. There is a limit, because the sender chooses the size of the window."""
_ZSTANDARD: Final = "kombu.compression"
"""The module of the decoder that kombu before 5.7 uses for Zstandard."""


def unpacked(body: bytes, method: object, limit: int) -> bytes:
    """Return the content of a compressed body.

    The limit does not hold for a compression method that the program itself registered with kombu, because pyjmsack
    does not know the decoder.

    Args:
        body: the compressed bytes.
        method: the value of the header ``compression``, which is a name or a content type that kombu knows.
        limit: the largest number of bytes of the content.

    Raises:
        MessageFormatException: the method is unknown, the content is larger than the limit, or the body is incomplete.
        Exception: the body does not have the form of this method. Each method has errors of its own.
    """
    decoder = _decoder(method)
    module = getattr(decoder, "__module__", "") or ""
    if module in ("_brotli", "brotli", "brotlicffi"):
        return _brotli(module, body, limit)
    if module == _ZSTANDARD:
        return _zstandard(decoder, body, limit)
    make = _BOUNDED.get(module)
    if make is None:
        return decoder(body)
    unpacker = make()
    found: bytes = unpacker.decompress(body, limit + 1)
    _check(len(found), limit, complete=unpacker.eof)
    return found


def _decoder(method: object) -> Callable[[bytes], Any]:
    try:
        decoder: Callable[[bytes], Any] = compression.get_decoder(method)
    except (KeyError, TypeError):
        known = ", ".join(sorted(compression.encoders()))
        raise MessageFormatException(
            f"the header 'compression' has an unknown value; expected one of: {known}"
        ) from None
    return decoder


def _check(size: int, limit: int, *, complete: bool) -> None:
    if size > limit:
        raise MessageFormatException(
            f"the compressed body unpacks to more than jms.maxMessageSize={limit} bytes; raise this option if you send"
            " such large tasks on purpose"
        )
    if not complete:
        raise MessageFormatException("the compressed body is incomplete")


def _zstd(module: str) -> Any:
    return importlib.import_module(module).ZstdDecompressor()


_BOUNDED: Final[dict[str, Callable[[], Any]]] = {
    "zlib": zlib.decompressobj,
    "bz2": bz2.BZ2Decompressor,
    "lzma": lambda: lzma.LZMADecompressor(memlimit=LZMA_MEMORY),
    "backports.zstd": lambda: _zstd("backports.zstd"),
    "compression.zstd": lambda: _zstd("compression.zstd"),
}
"""For each module with a decoder of kombu: a decoder that reads the same bytes and has a limit."""


def _brotli(module: str, body: bytes, limit: int) -> bytes:
    unpacker = importlib.import_module(module).Decompressor()
    try:
        found: bytes = unpacker.process(body, output_buffer_limit=limit + 1)
    except TypeError:
        raise MessageFormatException("Brotli before 1.2 cannot limit the unpacked size; install brotli>=1.2") from None
    _check(len(found), limit, complete=unpacker.is_finished())
    return found


def _zstandard(decoder: Callable[[bytes], bytes], body: bytes, limit: int) -> bytes:
    """Check the size of the result, which the first bytes of the body declare, and let kombu unpack the body. This is
    safe, because the decoder writes no more bytes than the declared size.
    """
    size: int = importlib.import_module("zstandard").frame_content_size(body)
    _check(size, limit, complete=size >= 0)
    return decoder(body)
