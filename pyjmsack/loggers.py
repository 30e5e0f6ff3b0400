"""The loggers of the library. If the logging of the program raises an error, only the present record is lost.

A thread that must not wait can let another thread write its lines; see :func:`divert`.
"""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections.abc import Callable
from functools import cache, partial
from typing import Any

__all__ = ["LONGEST", "Log", "Shortened", "divert", "ends_program", "get_logger"]

LONGEST = 8192
"""The largest number of characters of an error of the program in a line of the log."""
_ENDS_PROGRAM = (KeyboardInterrupt, SystemExit)
Write = Callable[[Callable[[], None], int], None]
"""Calls a function, which writes one line of so many characters, on another thread."""
_diverted: dict[int, Write] = {}
"""By the numbers of the threads that must not wait: what takes their lines."""

if hasattr(os, "register_at_fork"):  # the threads of a child process may get the same numbers
    os.register_at_fork(after_in_child=_diverted.clear)


def divert(write: Write | None) -> None:
    """Let another thread write the lines of the present thread. ``None`` ends this. A thread must end this before it
    ends itself, because the system may give its number to another thread.
    """
    if write is None:
        _diverted.pop(threading.get_ident(), None)
    else:
        _diverted[threading.get_ident()] = write


class Log:
    """The calls of one logger. None of them raises an error of the program's logging (S127).

    The program chooses the handlers, the filters, the formatting and the factory of records. The library logs between
    two steps of its work, on the loop too. An error there would leave a message without an outcome, stop the search for
    a broker, or end the loop of all connections.

    On the main thread ``KeyboardInterrupt`` and ``SystemExit`` pass, because Ctrl-C may come at any moment there. On
    other threads they do not end the program, but they would end the thread. So no error passes there.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self.logger = logger
        """The logger itself. A call of its methods may raise."""
        self._apart = _Apart(logger)
        self.isEnabledFor = logger.isEnabledFor
        # no method in Python for each level, because a call at the limit of the recursion must not need more frames
        self.debug = partial(self._write, logging.DEBUG)
        self.info = partial(self._write, logging.INFO)
        self.warning = partial(self._write, logging.WARNING)
        self.error = partial(self._write, logging.ERROR)
        self.exception = partial(self._write, logging.ERROR, exc_info=True)

    def _write(
        self, level: int, text: str, /, *arguments: object, exc_info: bool | BaseException | None = None
    ) -> None:
        logger = self._apart if threading.get_ident() in _diverted else self.logger
        try:
            logger.log(level, text, *arguments, exc_info=exc_info, stacklevel=2)
        except BaseException as error:
            _failed(error)


class _Apart(logging.Logger):
    """Makes the records of another logger, and lets another thread handle them. So a record names the thread and the
    line that made it.
    """

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger.name)
        self._logger = logger

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - a method of logging.Logger
        return self._logger.isEnabledFor(level)

    def makeRecord(self, *arguments: Any, **options: Any) -> logging.LogRecord:  # noqa: N802 - see above
        return self._logger.makeRecord(*arguments, **options)

    def handle(self, record: logging.LogRecord) -> None:
        _diverted[threading.get_ident()](partial(_handle, self._logger, record), _length(record))


def _handle(logger: logging.Logger, record: logging.LogRecord) -> None:
    try:
        logger.handle(record)
    except BaseException as error:
        _failed(error)


def _length(record: logging.LogRecord) -> int:
    """The characters of a record, without those of its traceback."""
    arguments = record.args if isinstance(record.args, tuple) else ()
    return sum(len(each) for each in (record.msg, *arguments) if isinstance(each, str))


def _failed(error: BaseException) -> None:
    """Show an error of the program's logging, or raise it if it may end the program."""
    if ends_program(error):
        raise error
    if logging.raiseExceptions:  # as the handlers of the standard library do
        try:
            traceback.print_exc()
        except BaseException as another:  # for example, standard error is closed
            if ends_program(another):
                raise


class Shortened:
    """An error of the program as an argument of a log call. Its text is often the body of a message, whose length a
    sender chooses, so at most ``LONGEST`` characters are written.

    The text is made only when the record is formatted, because a method of the program makes it, which may raise.

    Args:
        error: the error.
    """

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __str__(self) -> str:
        text = str(self.error)
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def ends_program(error: BaseException) -> bool:
    """Return whether an error that came out of the program's logging or tracing may end the program, such as Ctrl-C.
    Only the main thread runs signal handlers, so on other threads no such error comes from one.
    """
    return isinstance(error, _ENDS_PROGRAM) and threading.get_ident() == threading.main_thread().ident


@cache
def get_logger(name: str) -> Log:
    """Return the calls of the logger of this name, such as ``pyjmsack.failover``."""
    return Log(logging.getLogger(name))
