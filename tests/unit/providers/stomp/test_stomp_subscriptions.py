"""The subscriptions of a consumer, alone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

from pyjmsack import Queue
from pyjmsack.providers.stomp.dialect import dialect_of
from pyjmsack.providers.stomp.subscriptions import Shared, Subscriptions
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ConsumerInfo


class Engine:
    """Keeps the requests until the test answers them."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, Callable[[BaseException | None], None]]] = []

    def ask(self, command: bytes, rest: bytes, answered: Any, *, unnamed: bool = False) -> None:
        """Note a request."""
        self.asked.append((command, answered))

    def answer(self) -> list[bytes]:
        """Answer all requests, and return their commands."""
        asked, self.asked = self.asked, []
        for _, answered in asked:
            answered(None)
        return [command for command, _ in asked]


class Receiver:
    """Has subscriptions, which deliver to it."""

    def __init__(self, shared: Shared) -> None:
        info = ConsumerInfo(id=1, session_id=1, destination=Queue("q"), prefetch=10)
        self.subscriptions = Subscriptions(shared, info, self)  # type: ignore[arg-type]


def test_a_closed_receiver_does_not_wait_for_the_garbage_collection() -> None:
    """Some programs make a consumer for each message; what a receiver has, such as its inbox, would pile up."""
    engine, opened, closed = Engine(), Completion[None](), Completion[None]()
    receiver = Receiver(Shared(engine, None, dialect_of("artemis"), 1, "stomp://b"))  # type: ignore[arg-type]
    kept = weakref.ref(receiver)
    gc.collect()
    gc.disable()
    try:
        receiver.subscriptions.subscribe(opened.settle)
        assert engine.answer() == [b"SUBSCRIBE"]
        receiver.subscriptions.close(closed)
        del receiver
        assert engine.answer() == [b"UNSUBSCRIBE"]
        assert opened.done
        assert kept() is None
    finally:
        gc.enable()
