"""Checks the text of a message selector before the client sends the selector. The broker evaluates the selector
(S187)."""

from __future__ import annotations

import re

from pyjmsack.errors import InvalidSelectorException
from pyjmsack.kept import kept

__all__ = ["BROKER_DIALECT", "MAX_LENGTH", "check_selector"]

MAX_LENGTH = 65_536
"""The largest number of characters in a selector."""

BROKER_DIALECT = re.compile(r"\s*(no_convert_string_expressions|convert_string_expressions|hyphenated_props):")
"""A prefix of the brokers. Behind it the selector is in another language."""


@kept(256)
def check_selector(text: str) -> None:
    """Check a selector of JMS 2.0 (section 3.8.1). A selector of Artemis with a quoted name, such as
    ``"m.annotation"``, is allowed too (S187, S188).

    A text that starts with a prefix of a broker, such as ``convert_string_expressions:``, is in another language. This
    function does not check such a text, because only the broker knows the language.

    Args:
        text: the selector. It may have at most 65,536 characters.

    Raises:
        InvalidSelectorException: ``text`` does not follow the grammar, compares values that have no order, names a
            header that selectors may not use, is too long, or has too many nested parts. The error shows the place of
            the mistake, and says what was expected at this place. If a keyword is misspelt, the error names the right
            keyword.
    """
    if len(text) > MAX_LENGTH:
        raise InvalidSelectorException(f"selector: expected at most {MAX_LENGTH} characters, not {len(text)}")
    if BROKER_DIALECT.match(text):
        return
    # imported here, because only programs that use selectors need the parser library
    from pyjmsack.selector.grammar import parse

    parse(text)
