"""The checks that a service adds to the health of its app: ``@app.check("name")``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pyjmsack.app.listener import is_coroutine_function
from pyjmsack.loggers import get_logger

__all__ = ["Checks"]

log = get_logger("pyjmsack.app")


class Checks:
    """The checks of an app by name."""

    def __init__(self) -> None:
        self._functions: dict[str, Callable[[], Any]] = {}
        self._failing: set[str] = set()

    def add(self, name: str, function: Callable[[], Any]) -> None:
        """Add a check.

        Raises:
            ValueError: the name is in use.
            TypeError: the function cannot be called without arguments, or is a coroutine function.
        """
        if name in self._functions:
            raise ValueError(f"there is a check {name!r} already; give the new check another name")
        if is_coroutine_function(function):
            raise TypeError(
                f"check {name!r}: expected a plain function, not a coroutine function, because health() is a plain call"
            )
        try:
            inspect.signature(function).bind()
        except ValueError:  # the arguments of a function in C cannot be read
            pass
        except TypeError as error:
            raise TypeError(f"check {name!r}: expected a function without arguments: {error}") from error
        self._functions[name] = function

    def results(self) -> dict[str, dict[str, str]]:
        """Run the checks, and return the results by name. JSON can hold the results."""
        return {name: self._result(name, function) for name, function in [*self._functions.items()]}

    def _result(self, name: str, function: Callable[[], Any]) -> dict[str, str]:
        try:
            if function() is not False:
                self._failing.discard(name)
                return {"status": "UP"}
            error: Exception | str = "the function returned False"
        except Exception as raised:
            error = raised
        if name not in self._failing:  # log when the check begins to fail, and not again with each call
            self._failing.add(name)
            log.warning("check %r failed: %s", name, error, exc_info=error if isinstance(error, Exception) else None)
        # only the class of the error is shown, because its text may have secrets and many programs may read the health
        return {"status": "DOWN", "error": "False" if isinstance(error, str) else type(error).__name__}
