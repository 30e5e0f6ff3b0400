"""Redelivery policies of single destinations: ``jms.redeliveryPolicy[orders.>].maxRedeliveries=3``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pyjmsack.errors import InvalidURLException
from pyjmsack.uri.policy import RedeliveryPolicy, check_pattern, most_specific
from pyjmsack.uri.table import OPTIONS, build
from pyjmsack.uri.values import parse_values

__all__ = ["plain_name", "redelivery_policies"]

_PREFIX: Final = "jms.redeliveryPolicy"
_OF_DESTINATION: Final = re.compile(r"jms\.redeliveryPolicy\[([^\[\]]*)\]\.(\w+)")


def plain_name(name: str) -> str:
    """Return an option of a redelivery policy without its pattern, and any other name as it is.

    Raises:
        InvalidURLException: the pattern is none.
    """
    match = _OF_DESTINATION.fullmatch(name)
    if match is None:
        return name
    try:
        check_pattern(match[1])
    except ValueError:
        raise InvalidURLException(
            f"option {_PREFIX}[...].{match[2]}: expected the name of a destination in the brackets, in which * stands"
            " for one part and > at the end for all others, such as orders.>"
        ) from None
    return f"{_PREFIX}.{match[2]}"


def redelivery_policies(*layers: Mapping[str, str]) -> tuple[tuple[str, RedeliveryPolicy], ...]:
    """Return the policies of single destinations, each with its pattern, the most specific first.

    What an entry does not say is as in the policy for all. A later layer wins over an earlier one.
    """
    special: dict[str, list[dict[str, str]]] = {}
    for number, texts in enumerate(layers):
        for name, text in texts.items():
            if match := _OF_DESTINATION.fullmatch(name):
                own = special.setdefault(match[1], [{} for _ in layers])
                own[number][f"{_PREFIX}.{match[2]}"] = text
    return tuple((pattern, _policy((*layers, *special[pattern]))) for pattern in most_specific(special))


def _policy(layers: tuple[Mapping[str, str], ...]) -> RedeliveryPolicy:
    values: dict[str, object] = {}
    for texts in layers:
        values.update(parse_values(texts, OPTIONS, InvalidURLException))
    return build(RedeliveryPolicy, values, "connection.redelivery_policy.")
