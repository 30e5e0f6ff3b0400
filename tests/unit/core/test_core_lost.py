"""A connection is lost while a message is between the buffer and its caller (S95, S101)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from core_fakes import Bench, FakeInbound

from pyjmsack.core.consumer import Consumer
from pyjmsack.core.guard import MemoryStore
from pyjmsack.core.session import Session
from pyjmsack.core.unsettled import Unsettled
from pyjmsack.message import Message
from pyjmsack.types import AckMode

CLIENT, INDIVIDUAL = AckMode.CLIENT_ACKNOWLEDGE, AckMode.INDIVIDUAL_ACKNOWLEDGE


class LostWhileDecoded(FakeInbound):
    """The loop notes a lost connection at the moment in which the caller decodes this message."""

    def __init__(self, name: str, bench: Bench) -> None:
        super().__init__(name)
        self._bench = bench

    def to_message(self, destination: Any, /) -> Message:
        if self._bench.connection.channel.lost_generation == 0:
            lose(self._bench)
        return super().to_message(destination)


def lose(bench: Bench) -> None:
    bench.connection.on_interrupted(ConnectionError("gone"), 1)


def again(bench: Bench, consumer: Consumer, *names: str) -> None:
    """The next connection delivers these."""
    inbounds = [FakeInbound(name) for name in names]
    for inbound in inbounds:
        inbound.generation = 2
    bench.arrive(consumer, *inbounds)


def opened(mode: int, *, prefetch: int = 10) -> tuple[Bench, Session, Consumer]:
    bench = Bench()
    session = bench.session(mode)
    session.memory.store = MemoryStore(10)
    return bench, session, bench.consumer(session, prefetch)


def taken(consumer: Consumer) -> Message:
    message = consumer.receive_now()
    assert message is not None
    return message


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
def test_what_is_acknowledged_counts_as_processed_although_its_connection_went_on_the_way(mode: int) -> None:
    """S95, S105: acknowledged in CLIENT mode it was neither, and came twice."""
    bench, session, consumer = opened(mode)
    bench.arrive(consumer, LostWhileDecoded("a", bench))
    session.acknowledge_message(taken(consumer))
    again(bench, consumer, "a")
    assert consumer.receive_now() is None
    assert (consumer.stats.stale, consumer.stats.duplicates_skipped, consumer.stats.unacknowledged) == (1, 1, 0)


def test_what_came_on_the_way_of_a_loss_takes_no_newer_message_along() -> None:
    """S95."""
    bench, session, consumer = opened(CLIENT)
    bench.arrive(consumer, LostWhileDecoded("a", bench))
    first = taken(consumer)
    again(bench, consumer, "b")
    taken(consumer)
    session.acknowledge_message(first)
    assert consumer.stats.unacknowledged == 1


def put_back(bench: Bench, session: Session, consumer: Consumer) -> None:
    """Ctrl-C between the buffer and the caller."""

    def interrupted(*_: object, **__: object) -> None:
        lose(bench)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Unsettled, "hand_over", interrupted)  # a signal
        with pytest.raises(KeyboardInterrupt):
            consumer.receive_now()


def recovered(bench: Bench, session: Session, consumer: Consumer) -> None:
    """The loss is noted while recover() puts back what it has taken."""
    taken(consumer)
    redeliver = consumer.redeliver

    def lost_first(inbounds: Any) -> None:
        lose(bench)
        redeliver(inbounds)

    consumer.redeliver = lost_first  # type: ignore[method-assign]  # the loop comes between
    session.recover()
    consumer.redeliver = redeliver  # type: ignore[method-assign]  # as it was


@pytest.mark.parametrize("way", [put_back, recovered])
def test_what_is_put_back_after_its_connection_was_lost_is_not_handed_out_twice(way: Callable[..., None]) -> None:
    """S101: the broker delivers it again."""
    bench, session, consumer = opened(CLIENT)
    bench.arrive(consumer, "a")
    way(bench, session, consumer)
    again(bench, consumer, "a", "b")
    assert [taken(consumer).body, taken(consumer).body, consumer.receive_now()] == ["a", "b", None]


def test_what_is_not_handed_out_again_makes_room_at_the_broker() -> None:
    """S53: else a consumer with room for one message would wait for ever."""
    bench, session, consumer = opened(CLIENT, prefetch=1)
    bench.arrive(consumer, "a")
    recovered(bench, session, consumer)
    bench.runtime.turn()
    before = bench.provider.names().count("replenish")
    assert consumer.receive_now() is None
    bench.runtime.turn()
    assert bench.provider.names().count("replenish") == before + 1


def test_a_consumer_that_is_being_created_while_the_connection_is_lost_knows_of_the_loss() -> None:
    """S105: no consumer was told of the loss that was not in the session's table yet, and the message came twice."""
    bench, session, first = opened(AckMode.AUTO_ACKNOWLEDGE)
    bench.arrive(first, "a")
    taken(first)
    bench.provider.hold("create_consumer")

    def lost_first() -> None:
        lose(bench)
        bench.provider.held["create_consumer"][0].succeed()

    bench.runtime.meanwhile.append(lost_first)
    second = bench.consumer(session)
    again(bench, second, "a", "b")
    assert taken(second).body == "b"
    assert second.stats.duplicates_skipped == 1
