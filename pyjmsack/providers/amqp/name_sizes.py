"""Checks whether names fit in a frame, before the frame is written.

AMQP cannot split an Attach or Open frame into smaller frames (2.3.1). A broker that gets a frame over its limit ends
the connection with all sessions. A connection of a ``failover:`` URL would then send the same frame again. The limit on
the size of a message is in ``uri/connection.py``.
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
"""The largest number of bytes of an Attach frame without the texts that users choose. These bytes are codes, sizes,
modes, capabilities and the names of filters."""
OPEN_LIMIT: Final = 65536
"""The largest number of bytes of the client id and the host name together. The number is fixed, because the Open frame
is sent before the broker has told how large a frame may be."""
SASL_LIMIT: Final = 4096
"""The largest number of bytes of a SASL frame that this client sends. Artemis does not answer a larger frame, and the
standard requires a peer to accept only 512 bytes (5.3.1)."""

_KINDS: Final[Mapping[str, type[JMSException]]] = {
    "address": InvalidDestinationException,
    "selector": InvalidSelectorException,
}


_LONGEST: Final = 200
"""An error shows at most this many characters of a name."""


def shortened(text: str) -> str:
    """Return a text in the form that errors show: a long text is cut."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def unfit_attach(what: str, texts: Mapping[str, str | None], limit: int, own_limit: int) -> JMSException | None:
    """Return the reason why an Attach frame cannot be sent, or ``None`` if the frame can be sent.

    The broker answers with an Attach frame that repeats the texts. Brokers send this frame also if it is larger than
    we accept, and then this client would end the connection with all sessions.

    Call this before the link is made, because proton cuts a name at a NUL, and another link may have the shorter name.

    Args:
        what: a description of the link for the error.
        texts: the texts in the frame, by their kind, such as ``address``.
        limit: the largest number of bytes that the peer accepts in one frame. 0 means any number.
        own_limit: the largest number of bytes that this client accepts in one frame (``amqp.maxFrameSize``).
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
            return error(f"{what}: the {kind} contains a NUL, which is not allowed in a name")
    size = sum(sizes.values()) + ATTACH_BESIDES
    if limit and size > limit:
        why = f"the frame would have about {size:,} bytes, and this broker accepts {limit:,}"
    elif size > own_limit:
        why = f"the frame of the answer would have about {size:,} bytes, and amqp.maxFrameSize allows {own_limit:,}"
    else:
        return None
    longest = max(sizes, key=sizes.__getitem__)
    return _KINDS.get(longest, JMSException)(
        f"{what} cannot be opened: {why}; the {longest} alone has {sizes[longest]:,} bytes"
    )


def unfit_open(client_id: str, hostname: str) -> JMSException | None:
    """Return the reason why an Open frame cannot be sent, or ``None`` if the frame can be sent."""
    try:
        size = len(client_id.encode()) + len(hostname.encode())
    except UnicodeEncodeError as cause:
        return InvalidClientIDException(f"client id or host name: {cause.object[cause.start]!r} is half a character")
    if "\0" in client_id or "\0" in hostname:
        return InvalidClientIDException("client id or host name contains a NUL, which is not allowed in a name")
    if size <= OPEN_LIMIT:
        return None
    return InvalidClientIDException(
        f"client id and host name have {size:,} bytes; expected at most {OPEN_LIMIT:,}, because the frame with them is"
        " sent before the broker has said how large a frame may be"
    )
