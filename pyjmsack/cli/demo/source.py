"""The files that the demo sends, line by line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click

import pyjmsack
from pyjmsack import BytesMessage, Int, Message, TextMessage

__all__ = ["Line", "Source", "body_bytes", "default_paths", "line_message"]


class Line(NamedTuple):
    """One line with its line end, exactly as in the file."""

    file: int
    number: int
    sequence: int
    """The number of the line among the lines of all files."""
    data: bytes


@dataclass(frozen=True)
class Source:
    """The input: file names, a digest of each, and all lines in order."""

    names: tuple[str, ...]
    digests: tuple[str, ...]
    lines: tuple[Line, ...]

    @classmethod
    def read(cls, paths: Sequence[Path], limit: int | None = None) -> Source:
        """Read the given files, and all files below the given directories.

        Args:
            paths: the files and directories.
            limit: the largest number of lines, in all files together. A file whose lines would exceed the limit is left
                out.

        Raises:
            UsageError: there is nothing to send.
        """
        names: list[str] = []
        digests: list[str] = []
        lines: list[Line] = []
        for path in _files(paths):
            data = path.read_bytes()
            split = [*_split(data)]
            if limit is not None and len(lines) + len(split) > limit:
                continue
            file, first = len(names), len(lines)
            names.append(str(path))
            digests.append(hashlib.sha256(data).hexdigest())
            lines += (Line(file, number, first + number - 1, line) for number, line in enumerate(split, 1))
        if not lines:
            raise click.UsageError("--input: the files have no lines")
        return cls(tuple(names), tuple(digests), tuple(lines))

    def differing(self, received: Iterable[tuple[int, int, bytes]]) -> list[str]:
        """Return the names of the files whose received lines differ from the sent lines, by a check of digests."""
        hashes = [hashlib.sha256() for _ in self.names]
        for file, _, data in sorted(received):
            hashes[file].update(data)
        return [n for n, d, h in zip(self.names, self.digests, hashes, strict=True) if d != h.hexdigest()]


def _split(data: bytes) -> Iterator[bytes]:
    *lines, rest = data.split(b"\n")
    yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.is_file())
        else:
            yield path


def default_paths() -> tuple[Path, ...]:
    """Return the sources of this package: several thousand lines that every machine with pyjmsack has."""
    return tuple(sorted(Path(pyjmsack.__file__).parent.rglob("*.py")))


def line_message(line: Line, *, rolled_back: bool = False) -> Message:
    """Return a line as a message: text if it is UTF-8, otherwise bytes."""
    try:
        message: Message = TextMessage(line.data.decode())
    except UnicodeDecodeError:
        message = BytesMessage(line.data)
    properties = message.properties
    properties["file"] = Int(line.file)
    properties["line"] = Int(line.number)
    properties["sequence"] = Int(line.sequence)
    if rolled_back:
        properties["rolled_back"] = True
    return message


def body_bytes(message: Message) -> bytes:
    """Return the bytes of the line that a message carries."""
    body = message.body
    return body.encode() if isinstance(body, str) else bytes(body or b"")
