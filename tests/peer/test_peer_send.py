"""Outcomes of sends, credit, and who hears of a failure (S61-S67, S70, S157)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from peer import PATIENCE, Answer, accepted, in_turn, modified, rejected, released, settled, unanswered
from peer_faces import AioFace, Face, Told

from pyjmsack import (
    DeliveryMode,
    InvalidDestinationException,
    JMSException,
    JMSSecurityException,
    MessageFormatException,
    Queue,
    ResourceAllocationException,
    SendTimedOutException,
    TextMessage,
    UnsupportedFeatureException,
)

Q = Queue("q")
FAILURES = [
    pytest.param(rejected("amqp:resource-limit-exceeded", "full"), ResourceAllocationException, "full", id="full"),
    pytest.param(rejected("amqp:unauthorized-access"), JMSSecurityException, "rejected", id="unauthorized"),
    pytest.param(rejected("amqp:not-found"), InvalidDestinationException, "rejected", id="not-found"),
    pytest.param(rejected("failed"), JMSException, "rejected", id="rejected"),
    pytest.param(lambda transfer: transfer.answer(0x25), JMSException, "rejected", id="rejected-without-condition"),
    pytest.param(released, JMSException, "released", id="released"),
    pytest.param(modified, JMSException, "modified", id="modified"),
    pytest.param(settled, JMSException, "may have been stored", id="settled-without-state"),
]


@pytest.mark.parametrize(("answer", "error", "words"), FAILURES)
def test_a_persistent_send_that_is_not_accepted_raises_to_its_caller(
    face: Face, answer: Answer, error: type[JMSException], words: str
) -> None:
    """S63, S129; and the producer works on."""
    peer = face.peer(on_transfer=in_turn(answer, accepted))
    producer = face.session(peer).create_producer(Q)
    with pytest.raises(error, match=words):
        producer.send("one")
    producer.send("two")
    assert [transfer.message.body for transfer in peer.wait_transfers(2)] == ["one", "two"]


@pytest.mark.parametrize(("answer", "error", "words"), FAILURES)
def test_a_non_persistent_send_that_is_not_accepted_reaches_the_exception_listener(
    face: Face, answer: Answer, error: type[JMSException], words: str
) -> None:
    """S61, S64: the send itself returns."""
    connection = face.connect(face.peer(on_transfer=answer))
    connection.exception_listener = heard = Told()
    connection.create_session().create_producer(Q).send("x", delivery_mode=DeliveryMode.NON_PERSISTENT)
    failure = heard.first()
    assert isinstance(failure, error)
    assert words in str(failure)


@pytest.mark.parametrize(("answer", "error", "words"), FAILURES)
def test_a_send_with_a_completion_listener_that_is_not_accepted_reaches_it_alone(
    face: Face, answer: Answer, error: type[JMSException], words: str
) -> None:
    """S64, S73."""
    connection = face.connect(face.peer(on_transfer=answer))
    connection.exception_listener = heard = Told()
    told = Told()
    connection.create_session().create_producer(Q).send("x", completion_listener=told)
    ((what, name, failure),) = told.wait(1)
    assert (what, name) == ("failed", "x")
    assert isinstance(failure, error)
    assert words in str(failure)
    assert heard.calls == []


@pytest.mark.parametrize(("answer", "error", "words"), FAILURES)
def test_the_future_of_a_send_that_is_not_accepted_fails(
    face: Face, answer: Answer, error: type[JMSException], words: str
) -> None:
    """S64."""
    future = face.session(face.peer(on_transfer=answer)).create_producer(Q).send_async("x")
    with pytest.raises(error, match=words):
        future.result(60)


def test_the_future_of_an_accepted_send_is_none(face: Face) -> None:
    assert face.session(face.peer()).create_producer(Q).send_async("x").result(10) is None


def test_an_accepted_state_that_is_settled_later_confirms_the_send_at_once(face: Face) -> None:
    """S63: the outcome counts, not the settlement."""
    peer = face.peer(on_transfer=lambda transfer: transfer.answer(0x24, settle=False))
    face.session(peer).create_producer(Q).send("x")


# -- who waits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "mode", "arguments", "waits"),
    [
        ((), 1, {}, True),
        ((), 1, {"delivery_mode": 1}, False),
        (("jms.forceAsyncSend=true",), 1, {}, False),
        (("jms.forceSyncSend=true",), 1, {"delivery_mode": 1}, True),
        (("jms.forceSyncSend=true",), 0, {}, True),
        (("jms.sendTimeout=9000",), 1, {"delivery_mode": 1}, True),
        (("jms.sendTimeout=9000", "jms.forceAsyncSend=true"), 1, {}, True),
        ((), 0, {}, False),
        (("jms.presettlePolicy.presettleAll=true",), 1, {}, False),
    ],
)
def test_the_table_of_sends_that_wait_for_the_broker(
    sync: Face, options: tuple[str, ...], mode: int, arguments: dict[str, int], waits: bool
) -> None:
    """S61, S62: the broker answers only after the send returned, or the send cannot return before it does."""
    peer = sync.peer(on_transfer=unanswered)
    producer = sync.session(peer, *options, mode=mode).create_producer(Q)
    sending = sync.background(lambda: producer.send("x", **arguments))
    peer.wait_transfers(1)
    if waits:
        peer.do(lambda: None)
        assert not sending.done()
        peer.answer(0, accepted)
    sending.result(60)


def test_a_send_works_before_start_and_after_stop_s70(face: Face) -> None:
    peer = face.peer()
    connection = face.connect(peer, start=False)
    producer = connection.create_session().create_producer(Q)
    producer.send("before")
    connection.start()
    connection.stop()
    producer.send("after")
    assert len(peer.wait_transfers(2)) == 2


def test_the_same_message_can_be_changed_and_sent_again_s72(face: Face) -> None:
    peer = face.peer(on_transfer=unanswered)
    session = face.session(peer, "jms.forceAsyncSend=true")
    producer = session.create_producer(Q)
    message = session.create_text_message("one")
    producer.send(message)
    message.text = "two"
    producer.send(message)
    first, second = peer.wait_transfers(2)
    assert (first.message.body, second.message.body) == ("one", "two")
    assert first.message.id != second.message.id


def test_delivery_tags_differ_within_a_session_and_are_at_most_32_bytes(face: Face) -> None:
    """AMQP 1.0 2.6.12."""
    peer = face.peer(on_transfer=unanswered)
    session = face.session(peer, "jms.forceAsyncSend=true")
    for producer in (session.create_producer(Q), session.create_producer(Q)):
        for _ in range(3):
            producer.send("x")
    peer.wait_transfers(6)
    tags = [frame["delivery-tag"] for frame in peer.all("transfer")]
    assert len(set(tags)) == 6
    assert all(1 <= len(tag) <= 32 for tag in tags)


@pytest.mark.parametrize("delay", [0, 2.5])
def test_a_delivery_delay_needs_a_broker_that_offers_it(face: Face, delay: float) -> None:
    """S157."""
    peer = face.peer(capabilities=("ANONYMOUS-RELAY",))
    producer = face.session(peer).create_producer(Q)
    if delay:
        with pytest.raises(UnsupportedFeatureException, match=r"delivery delay.*DELAYED_DELIVERY"):
            producer.send("late", delivery_delay=delay)
    producer.send("now")
    assert [transfer.message.body for transfer in peer.wait_transfers(1)] == ["now"]


def test_a_delivery_delay_travels_as_the_time_of_delivery(face: Face) -> None:
    """S157."""
    peer = face.peer()
    face.session(peer).create_producer(Q).send("late", delivery_delay=2.5)
    (transfer,) = peer.wait_transfers(1)
    at = transfer.message.annotations["x-opt-delivery-time"]
    assert abs(at - (transfer.message.creation_time * 1000 + 2500)) <= 1


def test_a_message_that_cannot_be_encoded_leaves_the_producer_in_use(face: Face) -> None:
    """S69: nothing was sent, and nothing is waited for at close."""
    peer = face.peer()
    session = face.session(peer)
    producer = session.create_producer(Q)
    for wrong in (None, object()):
        with pytest.raises(MessageFormatException):
            producer.send(wrong)
    producer.send("right")
    producer.close()
    assert [transfer.message.body for transfer in peer.wait_transfers(1)] == ["right"]


def test_an_error_while_stamping_does_not_count_as_a_send(face: Face) -> None:
    """S157, S123: close of the producer does not wait for a send that never was."""
    peer = face.peer(capabilities=())
    producer = face.session(peer, "jms.closeTimeout=8000").create_producer(Q)
    with pytest.raises(UnsupportedFeatureException):
        producer.send("x", delivery_delay=1)
    with pytest.raises(JMSException):
        producer.send("x", priority=11)
    producer.close()
    peer.wait_frames("detach")


# -- credit -----------------------------------------------------------------------------------------------------


def test_without_credit_a_send_waits_and_goes_when_credit_comes(face: Face) -> None:
    """S66."""
    peer = face.peer(credit=0)
    session = face.session(peer)
    producer = session.create_producer(Q)
    sending = face.background(producer.send, "x")
    session_of_its_own = face.session(peer)
    face.barrier(peer, session_of_its_own)
    assert not sending.done()
    assert peer.transfers == []
    peer.grant(1)
    sending.result(60)
    assert len(peer.transfers) == 1


def test_sends_that_wait_for_credit_keep_their_order(face: Face) -> None:
    peer = face.peer(credit=0)
    producer = face.session(peer).create_producer(Q)
    futures = [producer.send_async(str(number)) for number in range(10)]
    peer.grant(4)
    futures[3].result(60)
    assert not futures[4].done()
    peer.grant(6)
    futures[9].result(60)
    assert [transfer.message.body for transfer in peer.transfers] == [str(number) for number in range(10)]


def test_without_credit_send_timeout_raises_and_the_message_never_leaves(face: Face) -> None:
    """S66: a caller who was told that the send failed must not find the message sent later."""
    peer = face.peer(credit=0)
    producer = face.session(peer, "jms.sendTimeout=1000").create_producer(Q)
    with pytest.raises(SendTimedOutException, match=r"jms\.sendTimeout") as caught:
        producer.send("withdrawn")
    assert isinstance(caught.value, TimeoutError)
    peer.grant(10)
    producer.send("later")
    assert [transfer.message.body for transfer in peer.wait_transfers(1)] == ["later"]


def test_no_credit_and_no_outcome_are_told_apart_in_the_text(face: Face) -> None:
    """S66: only one of the two messages may have been stored."""
    texts = []
    for script in ({"credit": 0}, {"on_transfer": unanswered}):
        producer = face.session(face.peer(**script), "jms.sendTimeout=1000").create_producer(Q)
        with pytest.raises(SendTimedOutException) as caught:
            producer.send("x")
        texts.append(str(caught.value))
    assert texts[0] != texts[1]
    assert "credit" in texts[0]
    assert "credit" not in texts[1]


def test_a_send_without_an_outcome_times_out_and_a_late_outcome_is_harmless(face: Face) -> None:
    """S66."""
    peer = face.peer(on_transfer=in_turn(unanswered, accepted))
    connection = face.connect(peer, "jms.sendTimeout=1000")
    connection.exception_listener = heard = Told()
    producer = connection.create_session().create_producer(Q)
    with pytest.raises(SendTimedOutException):
        producer.send("one")
    peer.answer(0, rejected("amqp:not-found"))
    producer.send("two")
    producer.close()
    assert heard.calls == []


def test_a_broker_that_drains_gets_its_credit_back(face: Face) -> None:
    """AMQP 1.0 2.6.7."""
    peer = face.peer(credit=5)
    face.session(peer).create_producer(Q).send("x")
    peer.do(lambda: peer.producers[0].link.drain(0))
    (flow,) = peer.wait_frames("flow")
    assert (flow["link-credit"], flow["delivery-count"]) == (0, 5)


# -- close ------------------------------------------------------------------------------------------------------


def test_close_of_a_producer_waits_for_the_outcomes_of_its_sends(face: Face) -> None:
    """S74: what was sent is answered before the link goes."""
    peer = face.peer(on_transfer=unanswered)
    producer = face.session(peer, "jms.forceAsyncSend=true").create_producer(Q)
    producer.send("x")
    closing = face.background(producer.close)
    peer.wait_transfers(1)
    assert not closing.done()
    peer.answer(0, accepted)
    closing.result(60)
    assert peer.names()[-1] == "detach"


def test_close_of_a_producer_gives_up_after_close_timeout(face: Face) -> None:
    """S123: and the future of what was not answered fails."""
    peer = face.peer(on_transfer=unanswered)
    producer = face.session(peer, "jms.closeTimeout=100").create_producer(Q)
    future = producer.send_async("x")
    producer.close()
    with pytest.raises(JMSException):
        future.result(60)
    peer.wait_frames("detach")


def test_a_producer_that_the_broker_closes_fails_what_is_out_and_what_comes(face: Face) -> None:
    """S126, S129."""
    peer = face.peer(on_transfer=unanswered)
    producer = face.session(peer).create_producer(Q)
    future = producer.send_async("out")
    peer.wait_transfers(1)
    peer.close_link(peer.producers[0], "amqp:resource-deleted", "the queue is gone")
    for outcome in (future, producer.send_async("later")):
        with pytest.raises(InvalidDestinationException, match="the queue is gone"):
            outcome.result(60)
    with pytest.raises(InvalidDestinationException):
        producer.send("later")


def test_a_text_message_from_elsewhere_is_sent_as_it_is(face: Face) -> None:
    peer = face.peer()
    face.session(peer).create_producer(Q).send(TextMessage("made without a session"))
    assert peer.wait_transfers(1)[0].message.body == "made without a session"


def test_in_asyncio_a_full_window_is_waited_for_by_send_and_refused_by_send_async(aio: AioFace) -> None:
    """S65: nothing is lost, the order stays, and the memory is bounded."""
    peer = aio.peer(credit=0)
    session = aio.session(peer, "jms.producerWindowSize=2000")
    producer = session.create_producer(Queue("q"))._target

    async def fill() -> tuple[list[str], str, list[Any]]:
        """Send until it is refused; then let a task wait for room."""
        sent: list[str] = []
        futures = []
        while True:
            try:
                futures.append(producer.send_async(str(len(sent))))
            except ResourceAllocationException as error:
                refusal = str(error)
                break
            sent.append(str(len(sent)))
        waiting = asyncio.create_task(producer.send(str(len(sent))))
        await asyncio.sleep(0)
        return sent, refusal, [*futures, waiting]

    sent, refusal, answers = aio.call(fill)
    assert 5 < len(sent) < 40
    assert "2000 bytes" in refusal
    assert "await some of the futures" in refusal
    peer.grant(1000)

    async def answered() -> None:
        await asyncio.wait_for(asyncio.gather(*answers), PATIENCE)

    aio.call(answered)
    assert [transfer.message.body for transfer in peer.wait_transfers(len(sent) + 1)] == [*sent, str(len(sent))]
    aio.call(lambda: producer.send_async("again")).result(PATIENCE)


def test_in_asyncio_no_more_than_4096_sends_are_unconfirmed(aio: AioFace) -> None:
    """S65."""
    peer = aio.peer(credit=0)
    producer = aio.session(peer).create_producer(Queue("q"))._target

    def fill() -> int:
        futures = []
        try:
            while True:
                futures.append(producer.send_async("x"))
        except ResourceAllocationException:
            for future in futures:
                future.cancel()
        return len(futures)

    assert aio.call(fill) == 4096
