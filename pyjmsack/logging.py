"""The log of this library as JSON, or as ``key=value``, one line for each event.

The library logs to the loggers that docs/logging.md names, and sets up no handler by itself. One call sets up a
handler::

    import pyjmsack.logging

    pyjmsack.logging.json()

Programs that have a logging configuration of their own use :class:`JsonFormatter` or :class:`KeyValueFormatter` in that
configuration. Importing this module changes nothing.
"""

from __future__ import annotations

import json as _json
import logging
import re
import sys
from datetime import datetime, timezone
from typing import Final, TextIO

__all__ = ["JsonFormatter", "KeyValueFormatter", "json", "key_value"]

_LONGEST: Final = 8192
"""The largest number of characters of one value, because a peer chooses the length of some texts."""
_LOGIN: Final = re.compile(r"(?<=://)[^\s/:]*:")
"""The user name of a login in a URL, or a host, and the colon behind it."""
_WORD_END: Final = re.compile(r"\s|://")
_PORT: Final = re.compile(r"[0-9]{1,5}(?:(?P<path>/)|\?[\w.%\[\]-]+=)")
"""A port with a path or with options behind it."""
_PLAIN: Final = re.compile(r"[\w./:@+-]+")
_OURS: Final = "_pyjmsack_handler"


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object in one line.

    Its members are ``time`` (UTC, ISO 8601), ``level``, ``logger``, ``event`` (the text before its values are filled
    in, which is the same for all events of a kind), ``message`` (the whole text) and ``thread``. If the record has an
    exception, the object also has ``error`` and ``traceback``. A password in a URL becomes ``***``, and each value has
    8,192 characters at most.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, without a line end.

        Args:
            record: the record to write.
        """
        return _json.dumps(self._fields(record), ensure_ascii=True)

    def _fields(self, record: logging.LogRecord) -> dict[str, str]:
        moment = datetime.fromtimestamp(record.created, timezone.utc)
        fields = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": str(record.msg),
            "message": record.getMessage(),
            "thread": record.threadName or "",
        }
        if record.exc_info is not None and record.exc_info[1] is not None:
            error = record.exc_info[1]
            fields["error"] = f"{type(error).__name__}: {error}"
            fields["traceback"] = self.formatException(record.exc_info)
        return {name: _harmless(value) for name, value in fields.items()}


class KeyValueFormatter(JsonFormatter):
    """Formats a record as ``key=value key="value with spaces"`` in one line, with the same members as
    :class:`JsonFormatter`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, without a line end.

        Args:
            record: the record to write.
        """
        return " ".join(f"{name}={_quoted(value)}" for name, value in self._fields(record).items())


def json(level: int | str = logging.INFO, stream: TextIO | None = None) -> logging.Handler:
    """Write the library's log as JSON, with one object in each line.

    A second call replaces the handler of the first call. Handlers that the application added to the logger ``pyjmsack``
    stay. Handlers of the root logger no longer get the records of this library, because otherwise each event would be
    written twice.

    Args:
        level: the least level that is written.
        stream: where the lines go. ``None`` means standard error.

    Returns:
        The handler.

    Raises:
        ValueError: there is no such level.
    """
    return _set_up(JsonFormatter(), level, stream)


def key_value(level: int | str = logging.INFO, stream: TextIO | None = None) -> logging.Handler:
    """Write the library's log as ``key=value``, one line for each event. Handlers are replaced as described at
    :func:`json`.

    Args:
        level: the least level that is written.
        stream: where the lines go. ``None`` means standard error.

    Returns:
        The handler.

    Raises:
        ValueError: there is no such level.
    """
    return _set_up(KeyValueFormatter(), level, stream)


def _set_up(formatter: logging.Formatter, level: int | str, stream: TextIO | None) -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(formatter)
    handler.setLevel(level)
    setattr(handler, _OURS, True)
    log = logging.getLogger("pyjmsack")
    for former in [each for each in log.handlers if hasattr(each, _OURS)]:
        log.removeHandler(former)
    log.addHandler(handler)
    log.setLevel(handler.level)
    log.propagate = False
    return handler


def _harmless(text: str) -> str:
    shown = _without_passwords(text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _without_passwords(text: str) -> str:
    """Return the text with ``***`` for the password of each login in a URL. A password ends at the last ``@`` of its
    word, because people do not always escape one.

    This is no single regular expression, because a group that is repeated takes 80 bytes for each character.
    """
    parts, done = [], 0
    for found in _LOGIN.finditer(text):
        start = found.end()
        end = _WORD_END.search(text, start)
        at = text.rfind("@", start, len(text) if end is None else end.start())
        if at >= 0 and not _is_port(text, found):
            parts += [text[done:start], "***"]
            done = at
    return "".join([*parts, text[done:]])


def _is_port(text: str, host: re.Match[str]) -> bool:
    """Return whether a port stands behind a host, and not the password of a login."""
    port = _PORT.match(text, host.end())
    # the URLs of brokers have no path, so there a / belongs to a password
    return port is not None and (not port["path"] or text.endswith(("http://", "https://"), 0, host.start()))


def _quoted(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else _json.dumps(value, ensure_ascii=True)
