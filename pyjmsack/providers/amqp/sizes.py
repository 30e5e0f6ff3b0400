"""What a frame may hold: names are checked before a frame with them is written.

AMQP has no way to split an Attach or an Open (2.3.1). If a broker gets a larger frame than it announced, it ends the
connection, and with it the work of all other sessions. A connection of a ``failover:`` URL would then send the same
frame again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyjmsack.errors import (
    InvalidClientIDException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
)

__all__ = ["ATTACH_BESIDES", "OPEN_LIMIT", "SASL_LIMIT", "shortened", "unfit_attach", "unfit_open"]

ATTACH_BESIDES: Final = 320
"""Bytes of an Attach besides the texts that users choose, at most: codes, sizes, modes, capabilities, names of
filters."""
OPEN_LIMIT: Final = 65536
"""Bytes of client id and host name together: the Open leaves before the broker has said how much it takes."""
SASL_LIMIT: Final = 4096
"""Bytes of a SASL frame: Artemis never answers a larger one, and the standard promises 512 only (5.3.1)."""

_KINDS: Final[Mapping[str, type[JMSException]]] = {
    "address": InvalidDestinationException,
    "selector": InvalidSelectorException,
}


_LONGEST: Final = 200
"""Characters of a name that an error shows."""


def shortened(text: str) -> str:
    """Return a text as an error shows it."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def unfit_attach(what: str, texts: Mapping[str, str | None], limit: int) -> JMSException | None:
    """Return why an Attach cannot be sent, ``None`` if it can.

    Asked before the link is made: proton takes a name up to its NUL only, which would be another one's.

    Args:
        what: the link, for the error.
        texts: what it names, by kind of text.
        limit: bytes that the peer takes in one frame; 0 = any number.
    """
    what = shortened(what)
    sizes: dict[str, int] = {}
    for kind, text in texts.items():
        if text is None:
            continue
        error = _KINDS.get(kind, JMSException)
        try:
            sizes[kind] = len(text.encode())
        except UnicodeEncodeError as cause:
            return error(f"{what}: the {kind} is not Unicode: {text[cause.start]!r} is half a character")
        if "\0" in text:
            return error(f"{what}: the {kind} holds a NUL, which no name may")
    size = sum(sizes.values()) + ATTACH_BESIDES
    if not limit or size <= limit:
        return None
    longest = max(sizes, key=sizes.__getitem__)
    return _KINDS.get(longest, JMSException)(
        f"{what} cannot be attached: the frame would have about {size:,} bytes, and this broker takes {limit:,}; the"
        f" {longest} alone has {sizes[longest]:,}"
    )


def unfit_open(client_id: str, hostname: str) -> JMSException | None:
    """Return why an Open cannot be sent, ``None`` if it can."""
    try:
        size = len(client_id.encode()) + len(hostname.encode())
    except UnicodeEncodeError as cause:
        return InvalidClientIDException(f"client id or host name: {cause.object[cause.start]!r} is half a character")
    if "\0" in client_id or "\0" in hostname:
        return InvalidClientIDException("client id or host name holds a NUL, which no name may")
    if size <= OPEN_LIMIT:
        return None
    return InvalidClientIDException(
        f"client id and host name have {size:,} bytes, and at most {OPEN_LIMIT:,} can be sent: the frame with them"
        " leaves before the broker has said how much it takes"
    )
