"""Reads the JSON (a text form of values) in the answers of a broker's management.

The standard parser works fast, but no other thread runs meanwhile, not even the loop of ``asyncio``. So each answer has
a limit for its values, and a large one is read by a slower parser, which lets other threads run.
"""

from __future__ import annotations

import json
from json.scanner import py_make_scanner  # type: ignore[attr-defined]  # the type stubs do not name this function
from typing import Any

from pyjmsack import JMSException

__all__ = ["parsed", "shown"]

_QUICK = 256 << 10
"""The largest number of bytes of an answer that the fast parser reads on a thread of its own."""
_LONGEST_NUMBER = 400
"""The largest number of characters of one number. Python takes seconds for many numbers of thousands of digits."""
_SHOWN = 500
"""The largest number of characters of a broker's reason that an error shows."""


def parsed(text: str | bytes, most: int, *, on_loop: bool) -> Any:
    """Return the values in a text of JSON.

    Args:
        text: the answer. Bytes are UTF-8.
        most: the largest number of values. Commas and brackets in strings count too.
        on_loop: whether a loop may wait for this call, so that it has to be short.

    Raises:
        JMSException: there are too many values.
        ValueError: the text is not JSON, or a number is too long.
        RecursionError: values are nested too deeply.
    """
    if isinstance(text, bytes):
        text = text.decode()
    values = text.count(",") + text.count("[") + text.count("{")
    if values > most:
        raise JMSException(f"an answer of the broker's management has {values:,} values; pyjmsack reads {most:,}")
    decoder = json.JSONDecoder(parse_int=_integer, parse_float=_float)
    if not on_loop and len(text) > _QUICK:
        decoder.scan_once = py_make_scanner(decoder)  # type: ignore[attr-defined]  # documented nowhere, in all Pythons
    return decoder.decode(text)


def shown(reason: object) -> str:
    """Return a broker's reason as an error shows it: a long text is cut."""
    text = str(reason)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _integer(digits: str) -> int:
    return int(_bounded(digits))


def _float(digits: str) -> float:
    return float(_bounded(digits))


def _bounded(digits: str) -> str:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(digits):,} characters")
    return digits
