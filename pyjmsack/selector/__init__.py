"""Message selectors: this package checks their text before it is sent. The broker evaluates them (S187)."""

from __future__ import annotations

import re

from pyjmsack.errors import InvalidSelectorException
from pyjmsack.kept import kept

__all__ = ["MAX_LENGTH", "check_selector"]

MAX_LENGTH = 65_536
"""The most characters of a selector."""

_BROKER_DIALECT = re.compile(r"\s*(no_convert_string_expressions|convert_string_expressions|hyphenated_props):")


@kept(256)
def check_selector(text: str) -> None:
    """Check a selector of JMS 2.0 (3.8.1), or of Artemis with ``"m.annotation"`` (S187, S188).

    A text that starts with a broker's own prefix, such as ``convert_string_expressions:``, is in another language,
    which only the broker checks.

    Args:
        text: the selector, at most 65,536 characters.

    Raises:
        InvalidSelectorException: ``text`` does not parse, compares values that have no order, names a header that
            selectors may not use, or is too long or too deep. The text of the error shows the place, what was expected,
            and the nearest word.
    """
    if len(text) > MAX_LENGTH:
        raise InvalidSelectorException(f"selector: expected at most {MAX_LENGTH} characters, not {len(text)}")
    if _BROKER_DIALECT.match(text):
        return
    # not imported above, because only programs with selectors need the parser library
    from pyjmsack.selector.grammar import parse

    parse(text)
