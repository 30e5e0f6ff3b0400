"""Completion listeners: their order, what they may not do, and what happens at close (S73, S74)."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from peer import accepted, rejected, released, unanswered
from peer_faces import AioFace, Face, SyncFace, Told

from pyjmsack import (
    ConnectionLostException,
    IllegalStateException,
    JMSException,
    MessageNotWriteableException,
    Queue,
    TextMessage,
)
from pyjmsack.core import session as session_module
from pyjmsack.core.steps import Deadline, give_up
from pyjmsack.sync._runtime import ThreadDispatcher

Q = Queue("q")


def test_completion_listeners_run_in_the_order_of_the_sends_whatever_the_broker_s_order(face: Face) -> None:
    """S74."""
    peer = face.peer(on_transfer=unanswered)
    producer = face.session(peer).create_producer(Q)
    told = Told()
    for name in "abcd":
        producer.send(name, completion_listener=told)
    peer.wait_transfers(4)
    peer.answer(3, accepted)
    peer.answer(1, rejected("amqp:not-found"))
    assert told.calls == []
    peer.answer(0, accepted)
    peer.answer(2, released)
    assert [call[:2] for call in told.wait(4)] == [
        ("completed", "a"),
        ("failed", "b"),
        ("failed", "c"),
        ("completed", "d"),
    ]


def test_a_session_s_close_waits_for_the_sends_of_a_producer_whose_close_was_given_up(sync: SyncFace) -> None:
    """S74: the session forgot the producer when its close began, and Artemis settles such sends without an outcome."""
    peer = sync.peer(on_transfer=unanswered)
    connection = sync.connect(peer)
    session, other = connection.create_session(), connection.create_session()
    producer = session.create_producer(Q)
    future = producer.send_async("a")
    peer.wait_transfers(1)
    give_up(producer._core.close())  # as Ctrl-C does
    closing = session._core.close()
    waiting, _ = next(closing)
    while waiting.done:
        waiting, _ = closing.send(True)
    sync.barrier(peer, other)
    assert "detach" not in peer.names()
    assert "end" not in peer.names()
    peer.answer(0, accepted)
    assert future.result(60) is None
    with suppress(StopIteration):
        while True:
            sync.until(partial(getattr, waiting, "done"))
            waiting, _ = closing.send(True)
    assert "end" in peer.names()


def test_the_order_holds_across_the_producers_of_a_session(face: Face) -> None:
    """S74: per session."""
    peer = face.peer(on_transfer=unanswered)
    session = face.session(peer)
    told = Told()
    for name in "ab":
        session.create_producer(Q).send(name, completion_listener=told)
    peer.wait_transfers(2)
    peer.answer(1, accepted)
    peer.answer(0, accepted)
    assert [call[1] for call in told.wait(2)] == ["a", "b"]


def test_a_send_with_a_listener_returns_before_the_broker_answers(face: Face) -> None:
    """S62 row 1, also with jms.forceSyncSend."""
    peer = face.peer(on_transfer=unanswered)
    face.session(peer, "jms.forceSyncSend=true").create_producer(Q).send("x", completion_listener=Told())
    peer.wait_transfers(1)


def test_send_async_with_a_listener_serves_both(face: Face) -> None:
    told = Told()
    future = face.session(face.peer()).create_producer(Q).send_async("x", completion_listener=told)
    assert future.result(10) is None
    assert told.wait(1)[0][:2] == ("completed", "x")


def test_the_message_is_locked_until_its_listener_was_called(sync: SyncFace) -> None:
    """S73."""
    peer = sync.peer(on_transfer=unanswered)
    producer = sync.session(peer).create_producer(Q)
    message, told = TextMessage("x"), Told()
    producer.send(message, completion_listener=told)
    with pytest.raises(MessageNotWriteableException):
        message.text = "y"
    with pytest.raises(MessageNotWriteableException):
        message.set_string_property("a", "b")
    with pytest.raises(IllegalStateException):
        producer.send(message)
    peer.wait_transfers(1)
    peer.answer(0, accepted)
    told.wait(1)
    message.text = "y"
    assert len(peer.transfers) == 1


def test_inside_a_listener_the_message_is_free_again(sync: SyncFace) -> None:
    """S73: it may be sent again from there, when no other thread is inside a call of the session (S15)."""
    peer = sync.peer()
    producer = sync.session(peer).create_producer(Q)
    message = TextMessage("one")
    again = Told()
    returned = threading.Event()

    class Listener:
        def on_completion(self, _: Any) -> None:
            assert returned.wait(60)
            message.text = "two"
            producer.send(message, completion_listener=again)

        def on_exception(self, _: Any, error: JMSException) -> None:
            raise error

    producer.send(message, completion_listener=Listener())
    returned.set()
    assert again.wait(1)[0][:2] == ("completed", "two")


class Trying:
    """A completion listener that tries what is forbidden there."""

    def __init__(self, calls: list[Any]) -> None:
        self._calls = calls
        self.errors: list[Any] = []
        self.done = threading.Event()

    def on_completion(self, message: Any) -> None:
        for call in self._calls:
            try:
                call()
                self.errors.append(None)
            except Exception as error:
                self.errors.append(error)
        self.done.set()

    def on_exception(self, message: Any, error: JMSException) -> None:
        self.errors.append(error)
        self.done.set()


def test_commit_rollback_and_close_are_forbidden_inside_a_listener(sync: SyncFace) -> None:
    """S74."""
    connection = sync.connect(sync.peer())
    session = connection.create_session(0)
    trying = Trying([session.commit, session.rollback, session.close, connection.close])
    session.create_producer(Q).send("x", completion_listener=trying)
    assert trying.done.wait(60)
    assert [type(error) for error in trying.errors] == [IllegalStateException] * 4
    session.commit()


def test_commit_rollback_and_close_are_forbidden_inside_an_asyncio_listener(aio: AioFace) -> None:
    """S74."""
    connection = aio.connect(aio.peer())
    session = connection.create_session(0)
    errors: list[BaseException | None] = []
    done = threading.Event()

    class Listener:
        async def on_completion(self, message: Any) -> None:
            raw, owner = session._target, connection._target
            for call in (raw.commit, raw.rollback, raw.close, owner.close):
                try:
                    await call()
                    errors.append(None)
                except JMSException as error:
                    errors.append(error)
            done.set()

        def on_exception(self, message: Any, error: JMSException) -> None:
            errors.append(error)

    session.create_producer(Q).send("x", completion_listener=Listener())
    assert done.wait(60)
    assert [type(error) for error in errors] == [IllegalStateException] * 4


@pytest.mark.parametrize("what", ["session", "connection"])
def test_close_waits_for_outstanding_listeners(face: Face, what: str) -> None:
    """S74."""
    peer = face.peer(on_transfer=unanswered)
    connection = face.connect(peer)
    session = connection.create_session()
    told = Told()
    session.create_producer(Q).send("x", completion_listener=told)
    closing = face.background({"session": session, "connection": connection}[what].close)
    peer.wait_transfers(1)
    assert not closing.done()
    peer.answer(0, accepted)
    closing.result(60)
    assert [call[:2] for call in told.calls] == [("completed", "x")]


@pytest.mark.parametrize("what", ["session", "connection"])
def test_close_fails_what_is_unanswered_after_close_timeout_in_order(face: Face, what: str) -> None:
    """S74."""
    peer = face.peer(on_transfer=unanswered)
    connection = face.connect(peer, "jms.closeTimeout=100")
    session = connection.create_session()
    producer = session.create_producer(Q)
    told = Told()
    for name in "abc":
        producer.send(name, completion_listener=told)
    peer.wait_transfers(3)
    peer.answer(1, accepted)
    {"session": session, "connection": connection}[what].close()
    assert [call[:2] for call in told.calls] == [("failed", "a"), ("completed", "b"), ("failed", "c")]


def test_listeners_that_do_not_return_delay_the_close_of_a_connection_together_s74(
    sync: SyncFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each session waited five seconds for its listener, one session after the other."""
    waits: list[float] = []
    gate = threading.Event()
    close = ThreadDispatcher.close

    def recorded(dispatcher: ThreadDispatcher, deadline: Deadline | None = None) -> None:
        if dispatcher.busy:
            assert deadline is not None
            waits.append(deadline.remaining() or 0.0)
        close(dispatcher, deadline)

    class Hanging(Told):
        def on_exception(self, message: Any, error: JMSException) -> None:
            gate.wait(60)

    monkeypatch.setattr(ThreadDispatcher, "close", recorded)
    monkeypatch.setattr(session_module, "LAST_CALLS", 0.1)
    connection = sync.connect(sync.peer(on_transfer=unanswered), "jms.closeTimeout=1")
    for _ in range(3):
        connection.create_session().create_producer(Q).send("x", completion_listener=Hanging())
    connection.close()
    gate.set()
    assert len(waits) == 3
    assert max(waits) <= 0.1
    assert waits == sorted(waits, reverse=True), "each session began a time of its own"


def test_a_lost_connection_fails_every_outstanding_listener_in_order(face: Face) -> None:
    """S128."""
    peer = face.peer(on_transfer=unanswered)
    producer = face.session(peer).create_producer(Q)
    told = Told()
    for name in "abc":
        producer.send(name, completion_listener=told)
    peer.wait_transfers(3)
    peer.drop()
    calls = told.wait(3)
    assert [call[1] for call in calls] == ["a", "b", "c"]
    assert all(isinstance(call[2], ConnectionLostException) for call in calls)


def test_each_listener_gets_an_error_of_its_own(face: Face) -> None:
    """S127: a shared instance would grow with every raise."""
    peer = face.peer(on_transfer=unanswered)
    producer = face.session(peer).create_producer(Q)
    told = Told()
    for name in "ab":
        producer.send(name, completion_listener=told)
    peer.wait_transfers(2)
    peer.drop()
    first, second = told.wait(2)
    assert first[2] is not second[2]


def test_a_listener_that_raises_does_not_stop_the_next_s127(face: Face) -> None:
    peer = face.peer()
    producer = face.session(peer).create_producer(Q)

    def boom(*_: Any) -> None:
        raise ValueError("in the listener")

    first, second = Told(boom), Told()
    producer.send("a", completion_listener=first)
    producer.send("b", completion_listener=second)
    assert second.wait(1)[0][:2] == ("completed", "b")
    assert len(first.calls) == 1


def test_listeners_never_run_on_the_thread_that_reads_the_socket(sync: SyncFace) -> None:
    """S73, S127: a slow listener must not hold up the connection."""
    peer = sync.peer()
    session = sync.session(peer)
    names: list[str] = []
    told = Told(lambda *_: names.append(threading.current_thread().name))
    session.create_producer(Q).send("x", completion_listener=told)
    future = session.create_producer(Q).send_async("y")
    called = threading.Event()
    future.add_done_callback(lambda _: (names.append(threading.current_thread().name), called.set()))
    told.wait(1)
    assert called.wait(60)
    assert names
    assert "pyjmsack-io" not in names
