"""What a face supplies to the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pyjmsack.core.steps import Steps

__all__ = ["Dispatcher", "Runtime"]


class Dispatcher(Protocol):
    """Runs user code, one call at a time and in order, never on the I/O loop's own time (a thread, or a task)."""

    def submit(self, call: Callable[[], Any]) -> None:
        """Queue a call; its exceptions are logged (S127). In asyncio it may return an awaitable. Any thread."""
        ...

    def running_here(self) -> bool:
        """Whether the caller is inside a call of this dispatcher."""
        ...

    def idle(self) -> Steps[None]:
        """Wait until the call at work, if any, is over."""
        ...

    def close(self) -> None:
        """Run no further call; the one at work may finish."""
        ...


class Runtime(Protocol):
    """One connection's way to the loop."""

    def submit(self, command: Callable[..., Any], *arguments: Any) -> None:
        """Run ``command(*arguments)`` on the loop, in order; one wake and one write per burst. Any thread."""
        ...

    def dispatcher(self, name: str) -> Dispatcher:
        """Return a new dispatcher; it starts with its first call."""
        ...
