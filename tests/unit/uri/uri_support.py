"""What the tests of broker URLs share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.uri import parse_url, redact

__all__ = ["MARKER", "assert_refused_or_parsed_without_leak", "value_at"]

MARKER = "Xq7Marker"
"""Part of every password here; the tests look for it where it must not be."""


def value_at(parsed: Any, path: str) -> Any:
    """Return the field at a dotted path."""
    for name in path.split("."):
        parsed = getattr(parsed, name)
    return parsed


def assert_refused_or_parsed_without_leak(url: str, options: Mapping[str, object] | None = None) -> None:
    """Whatever becomes of a URL with MARKER as password, nobody is shown it."""
    try:
        parsed = parse_url(url, options)
    except (InvalidURLException, UnsupportedFeatureException) as error:
        shown = f"{error}{error!r}{error.__cause__}"
    else:
        shown = repr(parsed) + str(parsed)
    assert MARKER not in shown
    assert MARKER not in redact(url)
