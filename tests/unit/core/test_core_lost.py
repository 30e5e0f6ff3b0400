"""A connection is lost while a message is between the buffer and its caller (S95, S101)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from core_fakes import Bench, FakeInbound

from pyjmsack.core.batching import AckBatch
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.guard import MemoryStore
from pyjmsack.core.recorder import Recorder
from pyjmsack.core.recording import Deliveries, RecordedSend
from pyjmsack.core.session import Session
from pyjmsack.core.unsettled import Unsettled
from pyjmsack.message import Message
from pyjmsack.types import AckMode, Outcome

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
    message = consumer.receiving.receive_now()
    assert message is not None
    return message


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
def test_what_is_acknowledged_counts_as_processed_although_its_connection_went_on_the_way(mode: int) -> None:
    """S95, S105: acknowledged in CLIENT mode it was neither, and came twice."""
    bench, session, consumer = opened(mode)
    bench.arrive(consumer, LostWhileDecoded("a", bench))
    session.acknowledge_message(taken(consumer))
    again(bench, consumer, "a")
    assert consumer.receiving.receive_now() is None
    assert (consumer.stats.stale, consumer.stats.duplicates_skipped, consumer.stats.unacknowledged) == (1, 1, 0)


@pytest.mark.parametrize("lost_first", [True, False])
@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
def test_what_is_acknowledged_after_its_consumer_and_its_connection_ended_counts_as_processed(
    mode: int, lost_first: bool
) -> None:
    """S95, S105, S29: the session had forgotten the consumer, so another consumer got the message again."""
    bench, session, consumer = opened(mode)
    other = bench.consumer(session, 10)
    bench.arrive(consumer, "a", "b")
    first, second = taken(consumer), taken(consumer)
    for happens in (partial(lose, bench), lambda: bench.run(consumer.close()))[:: 1 if lost_first else -1]:
        happens()
    assert consumer.info.id not in session.consumers
    for message in (first, second):
        session.acknowledge_message(message)
    assert (consumer.stats.stale, session.ended) == (2, {})
    again(bench, other, "a", "b")
    assert other.receiving.receive_now() is None
    assert other.stats.duplicates_skipped == 2


def test_a_session_forgets_consumers_that_ended_when_nobody_can_acknowledge_their_messages() -> None:
    """S95: the messages that the caller dropped, and those that recover() gave back."""
    bench, session, consumer = opened(INDIVIDUAL)
    bench.arrive(consumer, "a", "b")
    taken(consumer)
    kept = taken(consumer)
    lose(bench)
    bench.run(consumer.close())
    assert [*session.ended] == [consumer.info.id]
    session.recover()
    assert not session.ended
    assert kept is not None


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
            consumer.receiving.receive_now()


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
    assert [taken(consumer).body, taken(consumer).body, consumer.receiving.receive_now()] == ["a", "b", None]


def test_what_is_not_handed_out_again_makes_room_at_the_broker() -> None:
    """S53: else a consumer with room for one message would wait for ever."""
    bench, session, consumer = opened(CLIENT, prefetch=1)
    bench.arrive(consumer, "a")
    recovered(bench, session, consumer)
    bench.runtime.turn()
    before = bench.provider.names().count("replenish")
    assert consumer.receiving.receive_now() is None
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


class Watched(dict[Any, None]):
    """What the caller has; the loop notes a loss just before somebody touches this for the ``touch``-th time."""

    def __init__(self, bench: Bench, consumer: Consumer, touch: int) -> None:
        super().__init__(consumer.unsettled.delivered)
        self._bench = bench
        self._left = touch
        consumer.unsettled.delivered = self

    def touched(self) -> None:
        self._left -= 1
        if self._left == 0:
            lose(self._bench)

    def __contains__(self, key: object) -> bool:
        self.touched()
        return super().__contains__(key)

    def __iter__(self) -> Any:
        self.touched()
        return iter([*super().keys()])

    def pop(self, *arguments: Any) -> Any:
        self.touched()
        return super().pop(*arguments)


def acknowledged(session: Session, consumer: Consumer, message: Message) -> None:
    """By the verb of the mode."""
    if session.info.ack_mode is AckMode.AUTO_ACKNOWLEDGE:
        consumer.listening.end(message, None)
    else:
        session.acknowledge_message(message)


@pytest.mark.parametrize("touch", [1, 2, 3])
@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL, AckMode.AUTO_ACKNOWLEDGE])
def test_no_acknowledgement_is_forgotten_whenever_the_loss_comes(mode: int, touch: int) -> None:
    """S95, S105: it was dropped without a word, or ended in a KeyError, and the message came twice."""
    bench, session, consumer = opened(mode)
    bench.arrive(consumer, "a")
    message = consumer.take_for_listener() if mode is AckMode.AUTO_ACKNOWLEDGE else taken(consumer)
    assert message is not None
    delivered = Watched(bench, consumer, touch)
    acknowledged(session, consumer, message)
    while bench.connection.channel.lost_generation == 0:
        delivered.touched()
    again(bench, consumer, "a")
    assert consumer.receiving.receive_now() is None
    assert (consumer.stats.duplicates_skipped, consumer.stats.unacknowledged) == (1, 0)
    assert not consumer.unsettled.stale


def test_an_acknowledgement_counts_between_the_note_of_a_loss_and_what_follows_from_it() -> None:
    """S95: the loop had noted the loss, and had not come to this consumer yet."""
    bench, session, consumer = opened(CLIENT)
    bench.arrive(consumer, "a")
    message = taken(consumer)
    bench.connection.channel.lost_generation = 1
    session.acknowledge_message(message)
    lose(bench)
    again(bench, consumer, "a")
    assert consumer.receiving.receive_now() is None


def test_what_joins_a_batch_behind_a_loss_counts_as_processed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """S105: it counted with the next batch only, and came twice before."""
    bench = Bench("jms.optimizeAcknowledge=true")
    session = bench.session(AckMode.AUTO_ACKNOWLEDGE)
    session.memory.store = MemoryStore(10)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a")
    add = AckBatch.add

    def lost_first(batch: AckBatch, inbound: Any) -> None:
        lose(bench)
        add(batch, inbound)

    with monkeypatch.context() as patch:
        patch.setattr(AckBatch, "add", lost_first)
        taken(consumer)
    again(bench, consumer, "a")
    assert consumer.receiving.receive_now() is None


@pytest.mark.parametrize("touch", [1, 2, 3])
def test_what_is_recovered_comes_again_whenever_the_loss_comes(touch: int) -> None:
    """S32, S95: a later acknowledgement of newer messages took it along, and nobody got it again."""
    bench, session, consumer = opened(CLIENT)
    bench.arrive(consumer, "a")
    taken(consumer)
    delivered = Watched(bench, consumer, touch)
    session.recover()
    while bench.connection.channel.lost_generation == 0:
        delivered.touched()
    again(bench, consumer, "b")
    session.acknowledge_message(taken(consumer))
    again(bench, consumer, "a")
    assert taken(consumer).body == "a"


@pytest.mark.parametrize("accepted", [True, False])
def test_what_is_recovered_comes_again_unless_another_delivery_of_it_was_processed(accepted: bool) -> None:
    """S32, S95, S105: the caller held the deliveries of two connections, and accepted the first one."""
    bench, session, consumer = opened(INDIVIDUAL)
    bench.arrive(consumer, "a")
    first = taken(consumer)
    lose(bench)
    again(bench, consumer, "a")
    second = taken(consumer)
    if accepted:
        session.acknowledge_message(first)
    session.recover()
    third = consumer.receiving.receive_now()
    assert (third is None, consumer.stats.duplicates_skipped) == (accepted, accepted)
    assert second is not third


def test_an_outcome_of_an_older_loss_covers_nothing_of_a_newer_one() -> None:
    """S28: a second call for a message that is acknowledged is a no-op."""
    bench, session, consumer = opened(CLIENT)
    bench.arrive(consumer, "a")
    first = taken(consumer)
    lose(bench)
    session.acknowledge_message(first)
    again(bench, consumer, "b")
    taken(consumer)
    bench.connection.on_interrupted(ConnectionError("gone"), 2)
    session.acknowledge_message(first)
    assert len(consumer.unsettled.stale) == 1
    session.acknowledge(Outcome.ACCEPTED)
    assert not consumer.unsettled.stale


@pytest.mark.parametrize("acknowledged", [True, False])
def test_the_ledger_gets_one_row_for_a_message_whose_consumer_and_connection_ended(acknowledged: bool) -> None:
    """S95: a late acknowledgement is written as stale, and a missing one as none when the session ends."""
    bench, session, consumer = opened(INDIVIDUAL)
    lines: list[str] = []
    ledger: Any = SimpleNamespace(connection_id="c", receive=lines.append)
    consumer.unsettled.record = Deliveries(Recorder(ledger, "amqp://a"), session.state, consumer.info)
    bench.arrive(consumer, "a")
    message = taken(consumer)
    lose(bench)
    bench.run(consumer.close())
    if acknowledged:
        session.acknowledge_message(message)
    bench.run(session.close())
    assert [line.split(",")[6] for line in lines] == ["stale" if acknowledged else "none"]


def test_the_ledger_gets_a_count_that_its_column_can_hold() -> None:
    """The sender of a message chooses its count over AMQP. A row with a larger count made the ledger unreadable."""
    bench, session, consumer = opened(INDIVIDUAL)
    lines: list[str] = []
    ledger: Any = SimpleNamespace(connection_id="c", receive=lines.append)
    consumer.unsettled.record = Deliveries(Recorder(ledger, "amqp://a"), session.state, consumer.info)
    for redeliveries in (0, 1, (1 << 32) - 1):
        bench.arrive(consumer, FakeInbound("a", redeliveries=redeliveries))
        session.acknowledge_message(taken(consumer))
    assert [line.split(",")[4:6] for line in lines] == [["1", "0"], ["2", "1"], [str((1 << 31) - 1), "1"]]


def test_the_ledger_gets_an_id_whose_prefix_has_quotes() -> None:
    """``jms.connectionIDPrefix`` is any text, and is a part of the id of each message that is sent."""
    lines: list[str] = []
    send: Any = SimpleNamespace(
        message_id='"1-1',
        _duplicate_id="",
        _number=1,
        _time=0,
        _tail="tail",
        _records=SimpleNamespace(write=lines.append),
    )
    RecordedSend._write(send, "confirmed")
    assert lines[0].startswith('"""1-1",,1,0,')
