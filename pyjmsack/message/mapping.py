"""Dicts whose keys a sender chose. No choice of keys makes such a dict slow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjmsack.errors import MessageFormatException

__all__ = ["MAX_OTHER_KEYS", "check_keys", "mapping"]

MAX_OTHER_KEYS = 10_000
"""Keys of one map that are neither text nor bytes. Python hashes those two with a secret, and nothing else: a sender
can choose numbers that share their place in a dict, and a map of n such keys then takes n times n steps."""
SAME_HASH = 16
"""Keys of one map that may share a hash; a long shares its own with at most eight others."""


def check_keys(keys: Sequence[Any]) -> None:
    """Refuse the keys of a map that a dict would be slow with.

    Raises:
        MessageFormatException: more than ``MAX_OTHER_KEYS`` are neither text nor bytes, or more than ``SAME_HASH`` of
            these have one hash.
        TypeError: one is a list or map.
    """
    others = [key for key in keys if not isinstance(key, (str, bytes))]
    if len(others) > MAX_OTHER_KEYS:
        raise MessageFormatException(
            f"a map with {len(others)} keys that are no text; at most {MAX_OTHER_KEYS} of them are allowed"
        )
    if len(others) > SAME_HASH:
        hashes = sorted(map(hash, others))
        if any(first == last for first, last in zip(hashes, hashes[SAME_HASH:], strict=False)):
            raise MessageFormatException(f"a map with more than {SAME_HASH} keys that share one hash value")


def mapping(keys: Sequence[Any], values: Sequence[Any]) -> dict[Any, Any]:
    """Return a dict, in a time that grows with the number of entries and not with its square.

    Raises:
        MessageFormatException, TypeError: as :func:`check_keys`.
    """
    check_keys(keys)
    return dict(zip(keys, values, strict=True))
