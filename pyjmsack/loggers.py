"""The loggers of the library. If a log handler of the program raises an error, only the present record is lost."""

from __future__ import annotations

import logging
import traceback
from functools import cache

__all__ = ["get_logger"]


@cache
def get_logger(name: str) -> logging.Logger:
    """Return the logger of this name, such as ``pyjmsack.failover``. Its methods never raise the error of a handler or
    a filter.

    The program chooses the handlers. The library logs between two steps of its work, on the loop too. An error there
    would leave a message without an outcome, or end a connection.
    """
    logger = logging.getLogger(name)
    handle = logger.handle

    def guarded(record: logging.LogRecord) -> None:
        try:
            handle(record)
        except Exception:
            if logging.raiseExceptions:  # as the handlers of the standard library do
                traceback.print_exc()

    logger.handle = guarded  # type: ignore[method-assign]  # each logging call passes its record to this attribute
    return logger
