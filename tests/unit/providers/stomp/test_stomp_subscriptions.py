"""The subscriptions of a consumer, alone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from pyjmsack import Queue
from pyjmsack.providers.stomp.dialect import dialect_of
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.providers.stomp.subscriptions import Shared, Subscriptions
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ConsumerInfo, Subscription


class Engine:
    """Keeps the requests until the test answers them."""

    secret = b""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, Callable[[BaseException | None], None]]] = []

    def write(self, *pieces: bytes) -> None:
        """Ignore a frame without a receipt."""

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

    def __init__(self, shared: Shared, named: Subscription | None = None) -> None:
        info = ConsumerInfo(id=1, session_id=1, destination=Queue("q"), prefetch=10, subscription=named)
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


@pytest.mark.parametrize("durable", [False, True], ids=["queue", "durable"])
def test_a_retired_subscription_ends_with_the_last_message_of_the_caller_and_is_replaced_once(durable: bool) -> None:
    """S89: a durable subscription may not have two at a time."""
    engine, dialect = Engine(), dialect_of("classic-6")
    named = Subscription("s", durable=True, shared=False) if durable else None
    receiver = Receiver(Shared(engine, None, dialect, 1, "stomp://b"), named)  # type: ignore[arg-type]
    subscriptions = receiver.subscriptions
    subscriptions.subscribe(lambda error: None)
    (first,) = subscriptions.all
    held, given_back = [StompInbound(b"\nmessage-id:%d\nack:%d" % (n, n), b"", dialect) for n in range(2)]
    for inbound in (held, given_back):
        subscriptions.hold(inbound, first)
    assert engine.answer() == [b"SUBSCRIBE"]
    subscriptions.retire_all()
    first.returned += 1
    subscriptions.release(first)
    subscriptions.replace_retired(lambda error: None)
    assert engine.answer() == ([] if durable else [b"SUBSCRIBE"])
    subscriptions.acknowledge(held)
    assert engine.answer() == ([b"UNSUBSCRIBE", b"SUBSCRIBE"] if durable else [b"UNSUBSCRIBE"])
    assert [subscription.retired for subscription in subscriptions.all] == [False]


def test_a_retired_subscription_whose_only_messages_were_set_aside_ends() -> None:
    """S118: nobody acknowledges a message of it, so nothing else would give its messages back to the broker."""
    engine = Engine()
    subscriptions = Receiver(Shared(engine, None, dialect_of("classic-6"), 1, "stomp://b")).subscriptions  # type: ignore[arg-type]
    for number in range(2):
        subscriptions.subscribe(lambda _: None)
        subscriptions.hold(
            StompInbound(b"\nmessage-id:%d" % number, b"", dialect_of("classic-6")), subscriptions.all[-1]
        )
    assert engine.answer() == [b"SUBSCRIBE"] * 2
    aside, held = subscriptions.all
    aside.returned += 1
    subscriptions.retire_all()
    subscriptions.release_returned()
    assert engine.answer() == [b"UNSUBSCRIBE"]
    assert (aside.open, held.open) == (False, True)
