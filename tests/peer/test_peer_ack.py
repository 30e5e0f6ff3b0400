"""Outcomes on the wire: which, when, in what order and in what ranges (S16-S38, S84, S95, S166)."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from peer import Peer, text
from peer_faces import Face, SyncFace, Told

from pyjmsack import IllegalStateException, JMSException, Queue

Q = Queue("q?consumer.prefetchSize=10")
ACCEPTED, REJECTED, RELEASED = (0x24, []), (0x25, []), (0x26, [])
MODIFIED, UNDELIVERABLE = (0x27, [True]), (0x27, [True, True])
CLIENT, INDIVIDUAL = 2, 101

UNDECODABLE = b"\x00\x53\x77\xa1\x7ftoo short"
"""A text of 127 bytes that has 9."""


def outcomes(peer: Peer) -> list[tuple[int, int, Any]]:
    """Return first, last and state of every disposition; trailing nulls and falses of the state are dropped."""
    return [(f["first"], f["last"] if f["last"] is not None else f["first"], _trimmed(f.state)) for f in _settled(peer)]


def _settled(peer: Peer) -> list[Any]:
    frames = peer.all("disposition")
    assert all(frame["settled"] is True and frame["role"] is True for frame in frames)
    return frames


def _trimmed(state: Any) -> Any:
    code, fields = state
    while fields and fields[-1] in (None, False):
        fields = fields[:-1]
    return code, fields


def each(peer: Peer) -> list[tuple[int, Any]]:
    """Return delivery id and state, one entry per delivery, in order."""
    return [(number, state) for first, last, state in outcomes(peer) for number in range(first, last + 1)]


def numbered(number: int) -> list[bytes]:
    return [text(str(n)) for n in range(number)]


def buffered(face: Face, consumer: Any, number: int) -> None:
    face.until(lambda: consumer.stats.buffered == number)


# -- when -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [1, 3])
def test_auto_and_dups_ok_accept_a_message_that_receive_returned(face: Face, mode: int) -> None:
    """S16, S24: nothing else has to be called."""
    peer = face.peer(messages=numbered(2))
    consumer = face.session(peer, mode=mode).create_consumer(Q)
    consumer.receive(60)
    peer.wait_frames("disposition")
    assert outcomes(peer) == [(0, 0, ACCEPTED)]
    consumer.receive(60)
    peer.wait_frames("disposition", 2)
    assert each(peer) == [(0, ACCEPTED), (1, ACCEPTED)]


@pytest.mark.parametrize("mode", [CLIENT, 4, INDIVIDUAL, 0])
def test_other_modes_accept_nothing_by_themselves(face: Face, mode: int) -> None:
    """S10, S24, S34, S78: in a transaction the acceptance is provisional."""
    peer = face.peer(messages=numbered(2))
    session = face.session(peer, mode=mode)
    session.create_consumer(Q).receive(60)
    face.barrier(peer, session)
    assert all(state[0] == 0x34 for _, _, state in outcomes(peer)) if mode == 0 else outcomes(peer) == []


def test_what_is_prefetched_has_no_outcome_yet(face: Face) -> None:
    """S30, S51."""
    peer = face.peer(messages=numbered(5))
    session = face.session(peer)
    consumer = session.create_consumer(Q)
    buffered(face, consumer, 5)
    face.barrier(peer, session)
    assert outcomes(peer) == []


def test_a_listener_in_auto_mode_is_acknowledged_after_it_returned(sync: SyncFace) -> None:
    """S17."""
    peer = sync.peer(messages=numbered(1))
    session = sync.session(peer)
    entered, leave = threading.Event(), threading.Event()

    def listener(message: Any) -> None:
        entered.set()
        leave.wait(60)

    session.create_consumer(Q).message_listener = listener
    assert entered.wait(60)
    sync.barrier(peer, sync.session(peer))
    assert outcomes(peer) == []
    leave.set()
    peer.wait_frames("disposition")
    assert outcomes(peer) == [(0, 0, ACCEPTED)]


@pytest.mark.parametrize(("option", "state"), [("modified-failed", MODIFIED), ("released", RELEASED)])
@pytest.mark.parametrize("mode", [1, 3])
def test_a_listener_that_raises_hands_the_message_back_counted(face: Face, mode: int, option: str, state: Any) -> None:
    """S18, and the next message is delivered."""

    def listener(message: Any) -> None:
        if message.text == "0":
            raise ValueError("poison")

    peer = face.peer(messages=numbered(2))
    session = face.session(peer, f"jms.listenerErrorOutcome={option}", mode=mode)
    session.create_consumer(Q).message_listener = Told(listener)
    face.until(lambda: len(each(peer)) == 2)
    assert each(peer) == [(0, state), (1, ACCEPTED)]


# -- ranges -----------------------------------------------------------------------------------------------------


def test_client_acknowledge_settles_a_run_of_deliveries_with_ranges(face: Face) -> None:
    """S25, S26: one disposition for what is settled in one turn of the loop, not one for each message."""
    peer = face.peer(messages=numbered(50))
    consumer = face.session(peer, mode=CLIENT).create_consumer(Queue("q"))
    messages = [consumer.receive(60) for _ in range(50)]
    messages[-1].acknowledge()
    face.until(lambda: len(each(peer)) == 50)
    assert each(peer) == [(number, ACCEPTED) for number in range(50)]
    if face.name == "aio":
        assert outcomes(peer) == [(0, 49, ACCEPTED)]
    else:  # the loop's thread may begin while the caller's is still at it
        assert len(outcomes(peer)) < 25


def test_client_acknowledge_covers_the_other_consumers_of_the_session(face: Face) -> None:
    """S25."""
    peer = face.peer()
    session = face.session(peer, mode=CLIENT)
    first, second = session.create_consumer(Q), session.create_consumer(Q)
    peer.wait_frames("flow", 2)
    peer.deliver(text("a"), consumer=0)
    peer.deliver(text("b"), consumer=1)
    message = first.receive(60)
    second.receive(60)
    message.acknowledge()
    face.until(lambda: len(each(peer)) == 2)
    assert sorted(each(peer)) == [(0, ACCEPTED), (1, ACCEPTED)]


def test_an_acknowledge_of_the_session_or_consumer_does_the_same(face: Face) -> None:
    """S25."""
    peer = face.peer(messages=numbered(4))
    session = face.session(peer, mode=CLIENT)
    consumer = session.create_consumer(Q)
    consumer.receive(60)
    consumer.receive(60)
    session.acknowledge()
    consumer.receive(60)
    consumer.acknowledge()
    face.until(lambda: len(each(peer)) == 3)
    assert each(peer) == [(0, ACCEPTED), (1, ACCEPTED), (2, ACCEPTED)]


def test_individual_acknowledge_settles_that_one_alone(face: Face) -> None:
    """S34."""
    peer = face.peer(messages=numbered(4))
    session = face.session(peer, mode=INDIVIDUAL)
    consumer = session.create_consumer(Q)
    messages = [consumer.receive(60) for _ in range(4)]
    messages[3].acknowledge()
    messages[1].acknowledge()
    messages[1].acknowledge()
    face.barrier(peer, session)
    assert each(peer) == [(3, ACCEPTED), (1, ACCEPTED)]


def test_a_second_acknowledge_is_a_no_op_even_if_more_was_delivered(face: Face) -> None:
    """S28."""
    peer = face.peer(messages=numbered(3))
    session = face.session(peer, mode=CLIENT)
    consumer = session.create_consumer(Q)
    message = consumer.receive(60)
    message.acknowledge()
    consumer.receive(60)
    message.acknowledge()
    face.barrier(peer, session)
    assert each(peer) == [(0, ACCEPTED)]


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
@pytest.mark.parametrize(
    ("method", "arguments", "state"),
    [
        ("accept", {}, ACCEPTED),
        ("reject", {}, REJECTED),
        ("release", {}, RELEASED),
        ("modify", {}, MODIFIED),
        ("modify", {"undeliverable_here": True}, UNDELIVERABLE),
    ],
)
def test_a_message_may_be_given_an_outcome_of_its_own(
    face: Face, method: str, arguments: dict[str, bool], state: Any, mode: int
) -> None:
    """S38."""
    peer = face.peer(messages=numbered(2))
    session = face.session(peer, mode=mode)
    consumer = session.create_consumer(Q)
    consumer.receive(60)
    getattr(consumer.receive(60), method)(**arguments)
    face.barrier(peer, session)
    assert each(peer) == [(1, state)]


@pytest.mark.parametrize(
    ("value", "state"), [(1, ACCEPTED), (2, REJECTED), (3, RELEASED), (4, MODIFIED), (5, UNDELIVERABLE)]
)
def test_the_property_chooses_the_outcome_of_acknowledge(face: Face, value: int, state: Any) -> None:
    """S38."""
    peer = face.peer(messages=numbered(1))
    session = face.session(peer, mode=INDIVIDUAL)
    message = session.create_consumer(Q).receive(60)
    message.set_int_property("JMS_AMQP_ACK_TYPE", value)
    message.acknowledge()
    face.barrier(peer, session)
    assert each(peer) == [(0, state)]


def test_a_property_value_outside_1_to_5_raises_and_settles_nothing(face: Face) -> None:
    """S38."""
    peer = face.peer(messages=numbered(1))
    session = face.session(peer, mode=INDIVIDUAL)
    message = session.create_consumer(Q).receive(60)
    message.set_int_property("JMS_AMQP_ACK_TYPE", 6)
    with pytest.raises(JMSException, match="JMS_AMQP_ACK_TYPE"):
        message.acknowledge()
    face.barrier(peer, session)
    assert outcomes(peer) == []
    message.set_int_property("JMS_AMQP_ACK_TYPE", 1)
    message.acknowledge()
    face.barrier(peer, session)
    assert each(peer) == [(0, ACCEPTED)]


# -- recover ----------------------------------------------------------------------------------------------------


def test_recover_brings_the_unacknowledged_again_first_and_counted_without_the_broker(face: Face) -> None:
    """S32."""
    peer = face.peer(messages=numbered(4))
    session = face.session(peer, mode=CLIENT)
    consumer = session.create_consumer(Q)
    first = consumer.receive(60)
    first.acknowledge()
    for _ in range(2):
        consumer.receive(60)
    session.recover()
    again = [consumer.receive(60) for _ in range(3)]
    assert [(m.text, m.redelivered, m.delivery_count) for m in again] == [
        ("1", True, 2),
        ("2", True, 2),
        ("3", False, 1),
    ]
    face.barrier(peer, session)
    assert each(peer) == [(0, ACCEPTED)]


# -- session close ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
@pytest.mark.parametrize("what", ["session", "connection"])
def test_close_hands_back_the_delivered_counted_and_the_prefetched_uncounted_oldest_first(
    face: Face, what: str, mode: int
) -> None:
    """S30, S31, S81: before the End."""
    peer = face.peer(messages=numbered(5))
    connection = face.connect(peer)
    session = connection.create_session(mode)
    consumer = session.create_consumer(Q)
    consumer.receive(60)
    consumer.receive(60)
    buffered(face, consumer, 3)
    {"session": session, "connection": connection}[what].close()
    peer.wait_frames("end")
    assert each(peer) == [(0, MODIFIED), (1, MODIFIED), (2, RELEASED), (3, RELEASED), (4, RELEASED)]
    names = peer.names()
    assert max(i for i, name in enumerate(names) if name == "disposition") < names.index("end")


def test_close_hands_back_each_in_its_own_right_after_a_recover(face: Face) -> None:
    """S31: 0 seen again, 1 recovered and not seen again, 2 never seen."""
    peer = face.peer(messages=numbered(3))
    session = face.session(peer, mode=CLIENT)
    consumer = session.create_consumer(Q)
    consumer.receive(60)
    consumer.receive(60)
    buffered(face, consumer, 1)
    session.recover()
    consumer.receive(60)
    session.close()
    peer.wait_frames("end")
    assert each(peer) == [(0, MODIFIED), (1, MODIFIED), (2, RELEASED)]


def test_close_of_an_auto_session_releases_what_was_never_handed_out(face: Face) -> None:
    """S31."""
    peer = face.peer(messages=numbered(3))
    session = face.session(peer)
    consumer = session.create_consumer(Q)
    consumer.receive(60)
    buffered(face, consumer, 2)
    session.close()
    peer.wait_frames("end")
    assert each(peer) == [(0, ACCEPTED), (1, RELEASED), (2, RELEASED)]


def test_acknowledge_after_session_close_raises_s29(face: Face) -> None:
    peer = face.peer(messages=numbered(1))
    session = face.session(peer, mode=CLIENT)
    message = session.create_consumer(Q).receive(60)
    session.close()
    with pytest.raises(IllegalStateException):
        message.acknowledge()


def test_a_message_that_arrives_while_the_session_closes_is_handed_back_uncounted(face: Face) -> None:
    """S31: what crosses the close on the wire must not count as a delivery."""
    peer = face.peer(messages=numbered(1))
    session = face.session(peer, mode=CLIENT)
    consumer = session.create_consumer(Q)
    consumer.receive(60)
    session.close()
    peer.wait_frames("end")
    assert [state for number, state in each(peer) if number > 0] in ([], [RELEASED])


# -- consumer close ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
def test_a_closed_consumer_keeps_its_link_until_its_messages_are_acknowledged(face: Face, mode: int) -> None:
    """S29: then the link closes by itself."""
    peer = face.peer(messages=numbered(4))
    session = face.session(peer, mode=mode)
    consumer = session.create_consumer(Q)
    messages = [consumer.receive(60) for _ in range(2)]
    buffered(face, consumer, 2)
    consumer.close()
    face.barrier(peer, session)
    assert peer.all("detach") == []
    assert each(peer) == [(2, RELEASED), (3, RELEASED)]
    for message in messages:
        message.acknowledge()
    (detach,) = peer.wait_frames("detach")
    assert detach["closed"] is True
    assert each(peer)[2:] == [(0, ACCEPTED), (1, ACCEPTED)]
    assert peer.names()[-1] == "detach"


def test_a_closed_consumer_gives_no_new_message_and_no_new_credit(face: Face) -> None:
    """S29: what arrives while the drain is under way goes back."""
    peer = face.peer(messages=numbered(1), silent={"drain"})
    session = face.session(peer, mode=CLIENT)
    consumer = session.create_consumer(Q)
    message = consumer.receive(60)
    closing = face.background(consumer.close)
    peer.wait(lambda: any(f["drain"] for f in peer.all("flow")), "a drain")
    peer.deliver(text("late"))
    peer.script.silent.clear()
    peer.do(lambda: peer.consumers[0].pump())
    closing.result(60)
    message.acknowledge()
    peer.wait_frames("detach")
    assert each(peer) == [(1, RELEASED), (0, ACCEPTED)]
    assert peer.all("flow")[-1]["drain"] is True


def test_a_closed_consumer_without_messages_detaches_at_once(face: Face) -> None:
    peer = face.peer(messages=numbered(1))
    consumer = face.session(peer).create_consumer(Q)
    consumer.receive(60)
    consumer.close()
    consumer.close()
    assert len(peer.wait_frames("detach")) == 1


@pytest.mark.parametrize(("verb", "frame"), [("recover", "detach"), ("close", "end")])
def test_what_a_closed_consumer_delivered_goes_back_counted(face: Face, verb: str, frame: str) -> None:
    """S29, S30, S32: nobody is there to get it again."""
    peer = face.peer(messages=numbered(1))
    session = face.session(peer, mode=CLIENT)
    consumer = session.create_consumer(Q)
    consumer.receive(60)
    consumer.close()
    getattr(session, verb)()
    peer.wait_frames(frame)
    assert each(peer) == [(0, MODIFIED)]


def test_a_consumer_closed_while_receive_waits_returns_none(face: Face) -> None:
    """S123."""
    peer = face.peer()
    consumer = face.session(peer).create_consumer(Queue("q?consumer.prefetchSize=0"))
    receiving = face.background(consumer.receive)
    peer.wait_frames("flow")
    consumer.close()
    assert receiving.result(10) is None


def test_a_connection_closed_while_receive_waits_returns_none(face: Face) -> None:
    """S123."""
    peer = face.peer()
    connection = face.connect(peer)
    consumer = connection.create_session().create_consumer(Queue("q?consumer.prefetchSize=0"))
    receiving = face.background(consumer.receive)
    peer.wait_frames("flow")
    connection.close()
    assert receiving.result(10) is None


# -- bodies that cannot be decoded ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0, 1, 2, 101])
def test_an_undecodable_message_is_refused_here_and_the_next_one_received(face: Face, mode: int) -> None:
    """S166."""
    peer = face.peer(messages=[UNDECODABLE, text("good")])
    session = face.session(peer, mode=mode)
    assert session.create_consumer(Q).receive(60).text == "good"
    face.barrier(peer, session)
    assert each(peer)[0] == (0, UNDELIVERABLE)


def test_an_undecodable_message_does_not_stop_a_listener(face: Face) -> None:
    """S166."""
    peer = face.peer(messages=[text("a"), UNDECODABLE, text("b")])
    told = Told()
    face.session(peer).create_consumer(Q).message_listener = told
    assert [call[0].text for call in told.wait(2)] == ["a", "b"]
    face.until(lambda: len(each(peer)) == 3)
    assert sorted(each(peer)) == [(0, ACCEPTED), (1, UNDELIVERABLE), (2, ACCEPTED)]


def test_a_pull_whose_message_cannot_be_decoded_asks_for_the_next(face: Face) -> None:
    """S166, S22: within the same time-out."""
    peer = face.peer(messages=[UNDECODABLE, text("good")])
    consumer = face.session(peer).create_consumer(Queue("q?consumer.prefetchSize=0"))
    assert consumer.receive(60).text == "good"


@pytest.mark.parametrize("mode", [0, 1, 2, 101])
@pytest.mark.parametrize("torn", [b"", text("a") + text("b")], ids=["nothing", "two messages"])
def test_a_transfer_that_is_not_one_message_is_given_back_counted(face: Face, mode: int, torn: bytes) -> None:
    """S166: Artemis 2.56 sends two messages in one transfer, and nothing in the next, when a consumer comes back while
    the broker takes from the lost connection what that had. It has both whole."""
    peer = face.peer(messages=[torn, text("good")])
    session = face.session(peer, mode=mode)
    assert session.create_consumer(Q).receive(60).text == "good"
    face.barrier(peer, session)
    assert each(peer)[0] == (0, MODIFIED)


def test_what_keeps_coming_torn_is_refused_in_the_end(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    """S166: then the broker has it so, and may have no limit of deliveries."""
    monkeypatch.setattr("pyjmsack.core.taking.TORN", 1)
    peer = face.peer(messages=[b"", b"", text("good")])
    session = face.session(peer)
    assert session.create_consumer(Q).receive(60).text == "good"
    face.barrier(peer, session)
    assert each(peer)[:2] == [(0, MODIFIED), (1, UNDELIVERABLE)]


@pytest.mark.option("amqp.maxFrameSize", "amqp")
def test_a_message_in_several_frames_is_one_message(face: Face) -> None:
    """AMQP 1.0 2.6.14."""
    big = "x" * 300_000
    peer = face.peer(messages=[text(big), text("next")])
    consumer = face.session(peer, "amqp.maxFrameSize=4096").create_consumer(Q)
    assert consumer.receive(60).text == big
    assert consumer.receive(60).text == "next"
