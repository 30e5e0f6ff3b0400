"""Makes dicts whose keys a sender chose, and checks sets. No choice of keys can make such a dict or set slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyjmsack.errors import MessageFormatException

__all__ = ["MAX_OTHER_KEYS", "check_elements", "check_keys", "mapping"]

MAX_OTHER_KEYS = 10_000
"""The largest number of keys in one map that are neither text nor bytes.

Python hashes text and bytes with a secret, but it hashes numbers without a secret. So a sender can choose numbers that
share one place in a dict. A dict with n such keys needs n times n steps.
"""
SAME_HASH = 16
"""The largest number of keys in one map, or of elements in one set, that may share a hash. A long shares its hash with
at most eight other longs."""


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
            f"a map has {len(others)} keys that are neither text nor bytes; expected at most {MAX_OTHER_KEYS}"
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
    """Return a dict with these keys and values. The keys are checked first, so that making the dict is not slow.

    Raises:
        MessageFormatException: the keys would make a dict slow; see :func:`check_keys`.
        TypeError: a key is a list or a map.
    """
    check_keys(keys)
    return dict(zip(keys, values, strict=True))
