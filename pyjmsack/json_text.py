"""Reads JSON (a text form of values) that somebody else wrote, so that no text stops a program.

The parser of the standard library is fast, but no other thread runs while it reads, not even the loop of ``asyncio``.
So each text has a limit for its values, and a text with many values is read by a slower parser, during which other
threads run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from json.scanner import py_make_scanner  # type: ignore[attr-defined]  # the type stubs do not name this function
from typing import Any, TypeVar

__all__ = ["MOST_VALUES", "check_values", "read_json"]

T = TypeVar("T")

MOST_VALUES = 2_000_000
"""The largest number of values in the JSON of one message, unless the program chooses another one."""
_MOST_AT_ONCE = 200_000
"""The largest number of values that the fast parser reads."""
_SLICE = 10_000
"""The number of names that the slow parser puts into a mapping at once. After each slice other threads may run."""
_LONG = 1 << 18
"""Numbers in texts with more characters than this are read by a function of Python, after which other threads may run.
A number may have thousands of digits, which take long."""


def read_json(text: str | bytes, most: int, *, parse_float: Callable[[str], Any] | None = None) -> Any:
    """Return the values in a text of JSON.

    Args:
        text: the text. Bytes are UTF-8, UTF-16 or UTF-32.
        most: the largest number of values, which are counted by commas and opening brackets.
        parse_float: makes a value of the text of a number with a fraction or an exponent. ``None`` means ``float``.

    Raises:
        ValueError: the text is not JSON or has too many values.
        RecursionError: values are nested too deeply.
    """
    if isinstance(text, bytes | bytearray):
        text = text.decode(json.detect_encoding(text))  # half characters are refused: Python reads them too slowly
    values = check_values(text, most)
    slow = values > _MOST_AT_ONCE
    decoder = json.JSONDecoder(parse_int=_integer if slow or len(text) > _LONG else None, parse_float=parse_float)
    if slow:
        decoder.parse_float = partial(_ascii, decoder.parse_float)
        decoder.object_pairs_hook = _mapping
        decoder.scan_once = py_make_scanner(decoder)  # type: ignore[attr-defined]  # documented nowhere, in all Pythons
    return decoder.decode(text)


def check_values(text: str, most: int) -> int:
    """Return about how many values a text of JSON has, without reading it.

    Args:
        text: the text.
        most: the largest number of values, which are counted by commas and opening brackets.

    Raises:
        ValueError: there are more values.
    """
    values = _counted(text, most)
    if values > most:
        raise ValueError(f"it has {values:,} values, more than the limit of {most:,}")
    return values


def _counted(text: str, most: int) -> int:
    """Return about how many values a text has. If there are more than ``most``, do not count what is in strings."""
    values = _signs(text, 0, len(text))
    end = quotes = 0
    limit = 2 * most + 1_000  # a value has a name and a text, or less, unless quotes stand in texts
    while values > most and quotes <= limit and (start := text.find('"', end)) >= 0:
        end = start + 1
        while (end := text.find('"', end) + 1) and _is_escaped(text, end - 1) and quotes <= limit:
            quotes += 1
        quotes += 1
        end = end or len(text)
        values -= _signs(text, start, end)
    return values


def _signs(text: str, start: int, end: int) -> int:
    return text.count(",", start, end) + text.count("[", start, end) + text.count("{", start, end)


def _is_escaped(text: str, quote: int) -> bool:
    """Return whether an odd number of backslashes stands before a quote."""
    before = quote - 1
    while text[before] == "\\":
        before -= 1
    return (quote - before) % 2 == 0


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the mapping of an object with these names and values. One call for two million names would take 1.3 s."""
    values: dict[str, Any] = {}
    for start in range(0, len(pairs), _SLICE):
        values.update(pairs[start : start + _SLICE])
    return values


def _integer(digits: str) -> int:
    return _ascii(int, digits)


def _ascii(make: Callable[[str], T], number: str) -> T:
    """Make a value of a number. The slow parser takes the digits of all scripts for digits, which JSON does not."""
    if not number.isascii():
        raise ValueError(f"{number[:40]!r} is not a number of JSON")
    return make(number)
