"""A file with more brokers: ``failover.updateURIsURL``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyjmsack.errors import JMSException
from pyjmsack.uri import BrokerUrl, parse_url

__all__ = ["MOST_CHARACTERS", "with_file"]

MOST_CHARACTERS = 65536
"""Of the file."""

log = logging.getLogger("pyjmsack.failover")


def with_file(members: Sequence[BrokerUrl], path: str | None) -> list[BrokerUrl]:
    """Return the brokers with those of a file behind them, which get the options of the first.

    A file that cannot be read, or does not hold broker addresses, is logged and changes nothing: a search for a broker
    must not end by it. It is small and read before each round only, so the loop waits for it.
    """
    if path is None:
        return [*members]
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)
        if len(text) > MOST_CHARACTERS:
            raise ValueError(f"it has more than {MOST_CHARACTERS:,} characters")
        named = [parse_url(part.strip()) for part in text.replace("\n", ",").split(",") if part.strip()]
    except (OSError, ValueError, JMSException) as error:
        log.warning("failover.updateURIsURL: %s: %s", path, error)
        return [*members]
    known = [str(member) for member in members]
    more = {str(url): url for url in named if str(url) not in known}
    return [*members, *(replace(members[0], scheme=url.scheme, endpoints=url.endpoints) for url in more.values())]
