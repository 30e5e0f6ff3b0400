"""A cache of texts that repeat. The cache holds a bounded number of short texts and no long texts, because senders
choose the texts."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, TypeVar

__all__ = ["LONGEST", "kept"]

LONGEST = 256
"""The largest number of characters, or bytes, of a text that a cache keeps. This length and the number of texts limit
the memory of every cache. Names that repeat from message to message are shorter. For a longer text, the function runs
again each time."""

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


def kept(count: int, length: Callable[[Any], int] = len) -> Callable[[Callable[[K], R]], Callable[[K], R]]:
    """Return a decorator for a function that has one argument, a text. The decorated function keeps its results.

    Args:
        count: the largest number of results that are kept. The results that were used last stay.
        length: returns the length of an argument. The result for an argument that is longer than ``LONGEST`` is not
            kept.
    """

    def decorate(function: Callable[[K], R]) -> Callable[[K], R]:
        known = lru_cache(maxsize=count)(function)

        @wraps(function)
        def call(text: K) -> R:
            return known(text) if length(text) <= LONGEST else function(text)

        return call

    return decorate
