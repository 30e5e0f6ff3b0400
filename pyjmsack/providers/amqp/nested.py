"""Refuses values in the lists and maps of a property for which ActiveMQ Classic would end the connection.

A program of JMS cannot set a list or map as a property. A sender over AMQP can, and the message may be sent on.
"""

from __future__ import annotations

from typing import Any, Final

from pyjmsack.errors import MessageFormatException
from pyjmsack.message.utf import encode_utf
from pyjmsack.types import Byte, Char, Double, Float, Int, Long, Short

__all__ = ["check_nested"]

_LONGEST_KEY: Final = 65_535
"""The largest number of bytes of a key in a map. Classic writes the length in 16 bits."""
_SHOWN: Final = 40
_TAKEN: Final = frozenset((type(None), bool, int, float, str, Byte, Short, Int, Long, Float, Double, Char))
"""The types that Classic can write inside of a list or map. At the top level of the properties it takes all types."""


def check_nested(properties: dict[str, Any]) -> None:
    """Refuse a list or map that contains a value which ActiveMQ Classic cannot write. Classic would end the connection,
    which others may use.

    Args:
        properties: the properties of a message. They were encoded before, so they are not nested too deeply.

    Raises:
        MessageFormatException: a list or map contains such a value.
    """
    for name, value in properties.items():
        if isinstance(value, (list, dict)):
            fault = _fault(value)
            if fault is not None:
                raise MessageFormatException(
                    f"property {name[:_SHOWN]!r} contains {fault}, for which ActiveMQ Classic would end the connection;"
                    " expected only bool, int up to 64 bits, float, str and None inside of a list or map, and keys of"
                    f" type str with at most {_LONGEST_KEY:,} bytes (S160)"
                )


def _fault(value: Any) -> str | None:
    """Return a text that names the first value which Classic cannot write, or ``None``."""
    if type(value) in _TAKEN:
        return None
    if isinstance(value, dict):
        return next(filter(None, map(_key_fault, value)), None) or _fault([*value.values()])
    if isinstance(value, list):
        return next(filter(None, map(_fault, value)), None)
    return f"a value of type {type(value).__name__}"


def _key_fault(key: Any) -> str | None:
    if type(key) is not str:
        return f"a key of type {type(key).__name__}"
    size = len(encode_utf(key))
    return f"a key with {size:,} bytes" if size > _LONGEST_KEY else None
