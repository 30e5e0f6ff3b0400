"""Headers of the WebSocket handshake: ``transport.ws.httpHeader.NAME=VALUE``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pyjmsack.errors import InvalidURLException

__all__ = ["is_websocket_header", "websocket_headers"]

_PREFIX: Final = "transport.ws.httpHeader."
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")


def is_websocket_header(name: str) -> bool:
    """Return True for an option that names a header (RFC 9110, 5.6.2)."""
    return name.startswith(_PREFIX) and _NAME.fullmatch(name.removeprefix(_PREFIX)) is not None


def websocket_headers(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return names and values of the headers among ``texts``.

    Raises:
        InvalidURLException: a value has a line break or a character that is not in ASCII; it is not shown, as it may
            be secret.
    """
    headers = {name: text for name, text in texts.items() if is_websocket_header(name)}
    for name, text in headers.items():
        if not _VALUE.fullmatch(text):
            raise InvalidURLException(f"option {name}: expected printable ASCII characters")
    return tuple((name.removeprefix(_PREFIX), text) for name, text in headers.items())
