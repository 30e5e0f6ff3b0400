"""Both faces in one spelling, that of ``pyjmsack.aio``, so that a scenario is written once.

``AIO`` is the asyncio face itself. ``SYNC`` dresses the blocking face: what is awaited in ``pyjmsack.aio`` runs in a
worker thread here, and a callback, which may be a coroutine function in both, is driven by the thread that calls it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
from collections.abc import AsyncIterator, Callable
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pyjmsack
from pyjmsack import aio
from pyjmsack.aio._runtime import Opening

__all__ = ["AIO", "SYNC", "Face"]

_END = object()


@dataclass(frozen=True)
class Face:
    """A way to call the library."""

    name: str
    factory: Callable[..., aio.ConnectionFactory]


def _awaited(kind: type, name: str) -> str | None:
    """Return how ``pyjmsack.aio`` spells this member: ``"coroutine"``, ``"opening"``, or ``None`` for a plain one."""
    member = inspect.getattr_static(getattr(aio, kind.__name__), name, None)
    if inspect.iscoroutinefunction(member):
        return "coroutine"
    opens = str(getattr(member, "__annotations__", {}).get("return")).startswith("Opening[")
    return "opening" if opens else None


async def _call(function: Callable[[], Any]) -> Any:
    """Call, without blocking the scenario; inside a callback, on the thread that runs it."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return _dressed(function())
    return _dressed(await loop.run_in_executor(None, copy_context().run, function))


def _dressed(result: Any) -> Any:
    if isinstance(result, concurrent.futures.Future):
        return asyncio.wrap_future(result)
    return _Dressed(result) if type(result).__module__.startswith("pyjmsack.sync.") else result


def _driven(callback: Any) -> Any:
    """Return a plain function that runs a callback, which may be a coroutine function, to its end."""

    def run(*arguments: Any) -> None:
        coroutine = callback(*arguments)
        if inspect.iscoroutine(coroutine):
            try:
                coroutine.send(None)
            except StopIteration:
                return
            raise AssertionError("a callback awaited something other than the library and a Gate")

    return run if callable(callback) else callback


class _DrivenListener:
    def __init__(self, listener: Any) -> None:
        self.on_completion = _driven(listener.on_completion)
        self.on_exception = _driven(listener.on_exception)


class _Dressed:
    """An object of the blocking face in the spelling of its twin."""

    def __init__(self, real: Any) -> None:
        object.__setattr__(self, "_real", real)

    def __repr__(self) -> str:
        return repr(self._real)

    def __getattr__(self, name: str) -> Any:
        if name == "set_client_id":
            return lambda value: _call(partial(setattr, self._real, "client_id", value))
        value = getattr(self._real, name)
        return partial(self._invoke, name, value) if callable(value) and name in dir(type(self._real)) else value

    def _invoke(self, name: str, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        if named.get("completion_listener") is not None:
            named["completion_listener"] = _DrivenListener(named["completion_listener"])
        if name == "set_message_listener":
            arguments = (_driven(arguments[0]), *arguments[1:])
        call = partial(method, *arguments, **named)
        spelling = _awaited(type(self._real), name)
        if spelling is None:
            return _dressed(call())
        return Opening(_call(call)) if spelling == "opening" else _call(call)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, _driven(value) if name.endswith("_listener") else value)

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await _call(self._real.close)

    async def __aiter__(self) -> AsyncIterator[Any]:
        iterator = iter(self._real)
        try:
            while (item := await _call(partial(next, iterator, _END))) is not _END:
                yield item
        finally:
            await _call(iterator.close)


def _blocking_factory(*arguments: Any, **named: Any) -> aio.ConnectionFactory:
    return cast(aio.ConnectionFactory, _Dressed(pyjmsack.ConnectionFactory(*arguments, **named)))


AIO = Face("aio", aio.ConnectionFactory)
SYNC = Face("sync", _blocking_factory)
