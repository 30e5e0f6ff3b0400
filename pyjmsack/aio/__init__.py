"""The asyncio face: the same names as ``pyjmsack``. A call that blocks in ``pyjmsack`` is a coroutine in this face."""

from __future__ import annotations

import typing

from pyjmsack.aio.connection import Connection, ConnectionFactory
from pyjmsack.aio.consumer import MessageConsumer, QueueBrowser
from pyjmsack.aio.context import JMSContext
from pyjmsack.aio.producer import MessageProducer
from pyjmsack.aio.requestor import Requestor
from pyjmsack.aio.session import Session

if typing.TYPE_CHECKING:
    from pyjmsack.app.tasks import App

__all__ = [
    "App",
    "Connection",
    "ConnectionFactory",
    "JMSContext",
    "MessageConsumer",
    "MessageProducer",
    "QueueBrowser",
    "Requestor",
    "Session",
]


def __getattr__(name: str) -> typing.Any:
    """Import ``App`` when a program first uses the class, because most programs do not use it."""
    if name != "App":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pyjmsack.app.tasks import App

    globals()["App"] = App
    return App


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
