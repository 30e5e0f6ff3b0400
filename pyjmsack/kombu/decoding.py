"""Limits what a sender can make kombu's decoders do.

kombu gives the content encoding of a message to ``codecs``, which knows more than character sets: ``bz2`` unpacks a few
bytes to gigabytes, the time of ``punycode`` grows with the square of the length, and Python keeps each unknown name.
While JSON is read, no other thread of the process runs.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kombu.serialization import registry
from kombu.utils.json import loads

from pyjmsack import MessageFormatException
from pyjmsack.json_text import MOST_VALUES, check_values

__all__ = ["check_body", "check_encoding", "read_json"]

_JSON: Final = "application/json"
_NO_TYPE: Final = "application/data"
"""The content type that kombu takes for a message without one."""
_ENCODINGS: Final = re.compile(
    r"binary|ascii-8bit|(us-)?ascii|utf-?8(-sig)?|utf-?(16|32)(-?[lb]e)?|latin-?1|iso-?8859-15?|(windows-|cp)1252"
)
"""The content encodings that kombu may look up. It decodes nothing with the first two."""


def check_encoding(content_type: str | None, encoding: str | None) -> None:
    """Check that kombu decodes a body with a character set, if it decodes the body with a codec of Python.

    A content type with a decoder of its own may have any encoding, because kombu does not look that up.

    Args:
        content_type: the content type of the message.
        encoding: its content encoding.

    Raises:
        MessageFormatException: the encoding is none of those that this module knows.
    """
    if not encoding or _ENCODINGS.fullmatch(encoding.lower().replace("_", "-")):
        return
    if (content_type or _NO_TYPE) not in getattr(registry, "_decoders", ()):  # kombu has no public name for it
        raise MessageFormatException(
            f"the content encoding {encoding[:40]!r} is not allowed; expected a character set such as utf-8, or binary"
        )


def check_body(body: str | bytes, content_type: str | None) -> None:
    """Check that a body does not have too many values, if it is JSON.

    Args:
        body: the body, unpacked.
        content_type: the content type of the message.

    Raises:
        MessageFormatException: there are more values than the limit.
    """
    if content_type == _JSON:
        # the counted characters are one byte each in UTF-8, and no byte of another character looks like them
        _check_json(body if isinstance(body, str) else bytes(body).decode("latin-1"), "the body")


def read_json(text: str, name: str) -> Any:
    """Return the values in a text of JSON, with the types that kombu adds.

    Args:
        text: the text.
        name: what the text is, for the error.

    Raises:
        MessageFormatException: there are more values than the limit.
        Exception: kombu cannot read the text. It raises errors of many kinds.
    """
    _check_json(text, name)
    return loads(text)


def _check_json(text: str, name: str) -> None:
    try:
        check_values(text, MOST_VALUES)
    except ValueError as error:
        raise MessageFormatException(f"{name} is refused: {error}") from None
