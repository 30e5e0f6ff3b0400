"""Dicts and sets whose keys a sender chose, made so that no choice of keys makes them slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyjmsack.errors import MessageFormatException

__all__ = ["MAX_OTHER_KEYS", "check_elements", "check_keys", "mapping"]

MAX_OTHER_KEYS = 10_000
"""The most keys of one map that are neither text nor bytes.

Python hashes text and bytes with a secret, and nothing else. A sender can choose numbers that share their place in a
dict. A map of n such keys needs n times n steps.
"""
SAME_HASH = 16
"""The most keys of one map, or elements of one set, that may share a hash. A long shares its hash with at most
eight others."""


def check_keys(keys: Sequence[Any]) -> None:
    """Refuse a map whose keys would make a dict slow.

    Raises:
        MessageFormatException: more than ``MAX_OTHER_KEYS`` keys are neither text nor bytes, or more than ``SAME_HASH``
            of these keys have the same hash.
        TypeError: a key is a list or a map.
    """
    others = [key for key in keys if not isinstance(key, (str, bytes))]
    if len(others) > MAX_OTHER_KEYS:
        raise MessageFormatException(
            f"a map with {len(others)} keys that are neither text nor bytes; at most {MAX_OTHER_KEYS} are allowed"
        )
    if len(others) > SAME_HASH:
        hashes = sorted(map(hash, others))
        if any(first == last for first, last in zip(hashes, hashes[SAME_HASH:], strict=False)):
            raise MessageFormatException(f"expected at most {SAME_HASH} keys of a map with the same hash value")


def check_elements(elements: Iterable[Any]) -> None:
    """Refuse elements that would make a set slow. Equal elements count once.

    Raises:
        MessageFormatException: more than ``SAME_HASH`` different elements have the same hash.
        TypeError: an element has no hash.
    """
    found: dict[int, list[Any]] = {}
    for element in elements:
        alike = found.setdefault(hash(element), [])
        if element not in alike:
            if len(alike) == SAME_HASH:
                raise MessageFormatException(f"expected at most {SAME_HASH} elements of a set with the same hash")
            alike.append(element)


def mapping(keys: Sequence[Any], values: Sequence[Any]) -> dict[Any, Any]:
    """Return a dict in a time that grows with the number of entries, and not with its square.

    Raises:
        MessageFormatException, TypeError: as :func:`check_keys`.
    """
    check_keys(keys)
    return dict(zip(keys, values, strict=True))
