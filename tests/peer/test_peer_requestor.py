"""Request and reply where the moment matters: late replies, refusals, losses (S68, S130)."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

import proton
import pytest
from peer import Peer, accepted, in_turn, rejected, text, unanswered
from peer_faces import AioFace, Face, SyncFace
from proton import Condition, Link

from pyjmsack import (
    ConnectionLostException,
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
    Queue,
    RequestTimedOutException,
    TextMessage,
    UnsupportedFeatureException,
)


def requestor(face: Face, peer: Peer) -> Any:
    return face.session(peer).create_requestor(Queue("service"))


def asked(peer: Peer, number: int) -> list[str]:
    """Return the message ids of that many requests."""
    return [str(transfer.message.id) for transfer in peer.wait_transfers(number)]


def answer(peer: Peer, body: str, correlation_id: str) -> None:
    peer.deliver(text(body, correlation_id=correlation_id))


def with_correlation_id(value: str) -> TextMessage:
    message = TextMessage("?")
    message.correlation_id = value
    return message


def test_a_request_names_the_queue_for_its_reply_and_gets_the_reply_that_names_it(face: Face) -> None:
    """Replies in another order than their requests; each is acknowledged."""
    peer = face.peer()
    asking = requestor(face, peer)
    waiting = [face.background(asking.request, f"{number}?", 5) for number in range(3)]
    ids = {transfer.message.body: str(transfer.message.id) for transfer in peer.wait_transfers(3)}
    assert {transfer.message.reply_to for transfer in peer.transfers} == {"dynamic-1"} == {asking.reply_to.name}
    for body in ("2?", "0?", "1?"):
        answer(peer, f"to {body}", ids[body])
    assert [future.result(60).text for future in waiting] == ["to 0?", "to 1?", "to 2?"]
    peer.wait_frames("disposition")
    assert all(frame.state == (0x24, []) for frame in peer.all("disposition") if frame["role"])


def test_a_correlation_id_of_the_callers_may_come_back_too(face: Face) -> None:
    """By one or the other id, as those who answer differ."""
    peer = face.peer()
    asking = requestor(face, peer)
    first = face.background(asking.request, with_correlation_id("order-1"), 5)
    peer.wait_transfers(1)
    answer(peer, "a", "order-1")
    assert first.result(60).text == "a"
    second = face.background(asking.request, with_correlation_id("order-1"), 5)
    answer(peer, "b", asked(peer, 2)[1])
    assert second.result(60).text == "b"


@pytest.mark.parametrize("kind", [None, "UUID", "UUID_STRING", "PREFIXED_UUID_STRING"])
def test_a_request_travels_with_its_message_id_as_its_correlation_id(face: Face, kind: str | None) -> None:
    """S159: of the same type. A broker may give the request a new message id for clients of another protocol, and each
    request to such a service timed out.
    """
    peer = face.peer()
    options = [] if kind is None else [f"jms.messageIDPolicy.messageIDType={kind}"]
    asking = face.session(peer, *options).create_requestor(Queue("service"))
    waiting = face.background(asking.request, "?", 5)
    request = peer.wait_transfers(1)[0].message
    assert request.correlation_id == request.id
    assert type(request.correlation_id) is type(request.id)
    peer.deliver(text("!", correlation_id=request.correlation_id))
    assert waiting.result(60).text == "!"


def test_a_message_may_be_used_for_several_requests(face: Face) -> None:
    """Its first request leaves no correlation id in it, which would count as the caller's own."""
    peer = face.peer()
    asking = requestor(face, peer)
    question = TextMessage("?")
    with pytest.raises(RequestTimedOutException):
        asking.request(question, 0.01)
    assert question.correlation_id is None
    waiting = face.background(asking.request, question, 5)
    first, second = (transfer.message for transfer in peer.wait_transfers(2))
    assert first.correlation_id != second.correlation_id == second.id
    answer(peer, "!", second.correlation_id)
    assert waiting.result(60).text == "!"


@pytest.mark.parametrize("own", [None, "order-1"])
def test_a_transformer_may_return_the_same_message_for_each_request(sync: SyncFace, own: str | None) -> None:
    """S192."""
    shared = TextMessage("shared")
    shared.correlation_id = own

    class Sharing:
        def producer_transform(self, message: Any, destination: Any) -> Any:
            return shared

    peer = sync.peer()
    asking = sync.session(peer, message_transformer=Sharing()).create_requestor(Queue("service"))
    for number in (1, 2):
        waiting = sync.background(asking.request, "?", 5)
        request = peer.wait_transfers(number)[-1].message
        assert request.correlation_id == (own or request.id)
        answer(peer, "!", request.id)
        assert waiting.result(60).text == "!"
    assert shared.correlation_id == own


def test_a_request_that_cannot_be_encoded_leaves_no_correlation_id(face: Face) -> None:
    peer = face.peer()
    asking = face.session(peer, "wireFormat.maxFrameSize=1000").create_requestor(Queue("service"))
    question = TextMessage("?" * 2000)
    with pytest.raises(JMSException, match="1000 bytes"):
        asking.request(question, 5)
    assert question.correlation_id is None


def test_a_late_reply_is_not_taken_for_the_next_one(face: Face) -> None:
    """It is acknowledged and dropped."""
    peer = face.peer()
    asking = requestor(face, peer)
    with pytest.raises(RequestTimedOutException, match=r"no reply from service within 0\.01 s") as caught:
        asking.request("1?", 0.01)
    assert isinstance(caught.value, TimeoutError)
    next_one = face.background(asking.request, "2?", 5)
    late, current = asked(peer, 2)
    answer(peer, "late", late)
    answer(peer, "stray", "nobody's")
    answer(peer, "right", current)
    assert next_one.result(60).text == "right"
    peer.wait(lambda: sum(1 for frame in peer.all("disposition") if frame["role"]) >= 1)


def test_a_reply_is_decoded_by_who_waits_for_it_and_not_by_the_loop(sync: SyncFace) -> None:
    """A large one would hold up all connections of the process; nor does the caller's transformer run there."""
    threads: list[str] = []

    class Watching:
        def producer_transform(self, message: Any, destination: Any) -> Any:
            return message

        def consumer_transform(self, message: Any, destination: Any) -> Any:
            threads.append(threading.current_thread().name)
            return message

    peer = sync.peer()
    asking = sync.session(peer, message_transformer=Watching()).create_requestor(Queue("service"))
    waiting = sync.background(asking.request, "?", 5)
    answer(peer, "!", asked(peer, 1)[0])
    assert waiting.result(60).text == "!"
    assert [name for name in threads if "pyjmsack" in name] == []
    assert len(threads) == 1


def test_a_reply_that_cannot_be_decoded_is_refused_and_the_next_one_counts(face: Face) -> None:
    """S166: and the one after that is acknowledged, as nobody waits for it."""
    peer = face.peer()
    asking = requestor(face, peer)
    waiting = face.background(asking.request, "?", 5)
    (number,) = asked(peer, 1)
    broken = bytes(proton.Message(correlation_id=number).encode()) + b"\0\x53\x77\x3f"
    for payload in (b"garbage", broken, text("!", correlation_id=number), text("!!", correlation_id=number)):
        peer.deliver(payload)
    assert waiting.result(60).text == "!"
    outcomes = lambda: [frame.state[0] for frame in peer.all("disposition") if frame["role"]]  # noqa: E731
    peer.wait(lambda: {0x24, 0x27} == {*outcomes()})


def test_a_correlation_id_that_was_given_up_or_is_in_use_is_refused(face: Face) -> None:
    """A late reply with it could not be told from the one to the new request."""
    peer = face.peer()
    asking = requestor(face, peer)
    with pytest.raises(RequestTimedOutException):
        asking.request(with_correlation_id("given-up"), 0.01)
    waiting = face.background(asking.request, with_correlation_id("in-use"), 5)
    peer.wait_transfers(2)
    for used in ("given-up", "in-use"):
        with pytest.raises(IllegalStateException, match=used):
            asking.request(with_correlation_id(used), 5)
    answer(peer, "a", "in-use")
    assert waiting.result(60).text == "a"
    assert len(peer.transfers) == 2


def test_a_service_that_never_answers_does_not_fill_the_memory_with_correlation_ids(
    sync: SyncFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest are forgotten first."""
    monkeypatch.setattr("pyjmsack.core.requestor.GIVEN_UP", 2)
    peer = sync.peer()
    asking = requestor(sync, peer)

    def ask(number: int) -> None:
        with pytest.raises(RequestTimedOutException):
            asking.request(with_correlation_id(f"order-{number}"), 0)

    for number in range(3):
        ask(number)
    ask(0)
    with pytest.raises(IllegalStateException, match="was used before"):
        asking.request(with_correlation_id("order-2"), 0)


def test_a_request_that_the_broker_rejects_fails_at_once(face: Face) -> None:
    """S63: nobody waits for a reply to what was never stored."""
    peer = face.peer(on_transfer=in_turn(rejected("amqp:resource-limit-exceeded", "full"), accepted))
    asking = requestor(face, peer)
    with pytest.raises(JMSException, match="full"):
        asking.request("?")
    waiting = face.background(asking.request, "?", 5)
    answer(peer, "a", asked(peer, 2)[1])
    assert waiting.result(60).text == "a"


def test_a_reply_counts_even_before_the_broker_confirms_the_request(face: Face) -> None:
    """What was answered was stored."""
    peer = face.peer(on_transfer=unanswered)
    waiting = face.background(requestor(face, peer).request, "?", 5)
    answer(peer, "a", asked(peer, 1)[0])
    assert waiting.result(60).text == "a"


@pytest.mark.parametrize(
    ("end", "error"),
    [
        ("connection lost", ConnectionLostException),
        ("link closed", JMSException),
        ("requestor closed", IllegalStateException),
        ("connection closed", IllegalStateException),
    ],
)
def test_who_waits_for_a_reply_that_cannot_come_is_told(face: Face, end: str, error: type[JMSException]) -> None:
    """S123, S126, S128: and so is who asks next."""
    peer = face.peer()
    connection = face.connect(peer)
    asking = connection.create_session().create_requestor(Queue("service"))
    waiting: Future[Any] = face.background(asking.request, "?", 20)
    peer.wait_transfers(1)
    if end == "connection lost":
        peer.drop()
    elif end == "link closed":
        peer.close_link(peer.consumers[0], "amqp:resource-deleted", "gone")
    else:
        (asking if end == "requestor closed" else connection).close()
    with pytest.raises(error):
        waiting.result(60)
    with pytest.raises(JMSException) as caught:
        asking.request("?", 5)
    assert not isinstance(caught.value, RequestTimedOutException)


def test_closing_it_deletes_the_queue_once_and_leaves_the_session_that_made_it(face: Face) -> None:
    """S130, S131."""
    peer = face.peer()
    session = face.session(peer)
    asking = session.create_requestor(Queue("service"))
    asking.close()
    asking.close()
    dynamic = [frame for frame in peer.wait_frames("detach") if frame.link and frame.link["target"]]
    assert [f for f in dynamic if f.link.terminus("target").get("dynamic") and f["closed"]]
    session.create_producer(Queue("q")).send("still works")
    with pytest.raises(InvalidDestinationException, match="deleted"):
        session.create_producer().send("x", asking.reply_to)


@pytest.mark.parametrize("refused", ["producer", "queue", "consumer"])
def test_one_that_cannot_be_opened_leaves_nothing_behind(face: Face, refused: str) -> None:
    """Its session is ended, its queue deleted."""
    which = {
        "producer": lambda link: link.is_receiver and not link.remote_target.dynamic,
        "queue": lambda link: link.is_receiver and link.remote_target.dynamic,
        "consumer": lambda link: link.is_sender,
    }[refused]
    peer = face.peer(refuse_attach=lambda link: Condition("amqp:not-found") if which(link) else None)
    session = face.session(peer)
    with pytest.raises(InvalidDestinationException):
        session.create_requestor(Queue("service"))
    peer.wait_frames("end")
    attached = [frame for frame in peer.all("attach") if (frame.terminus("target") or {}).get("dynamic")]
    deleted = [frame for frame in peer.all("detach") if frame.link in attached]
    assert len(deleted) == len(attached)


def test_it_is_refused_on_a_stopped_connection_and_without_a_destination(face: Face) -> None:
    """No reply would arrive (S120), no request leave (S67)."""
    peer = face.peer()
    session = face.connect(peer, start=False).create_session()
    asking = session.create_requestor(Queue("service"))
    with pytest.raises(IllegalStateException, match="stopped"):
        asking.request("?")
    with pytest.raises(InvalidDestinationException):
        session.create_requestor(None)
    assert peer.transfers == []


def test_a_reply_goes_to_an_anonymous_producers_caller_only_if_one_is_wanted(face: Face) -> None:
    """S67."""
    peer = face.peer()
    session = face.session(peer)
    producer = session.create_producer()
    with pytest.raises(InvalidDestinationException, match="reply_to"):
        producer.reply(TextMessage("?"), "!")
    request = TextMessage("?")
    request.reply_to = Queue("answers")
    with pytest.raises(UnsupportedFeatureException):
        session.create_producer(Queue("fixed")).reply(request, "!")
    request.correlation_id = "c"
    producer.reply(request, "!", priority=7)
    sent = peer.wait_transfers(1)[0].message
    assert (sent.address, sent.correlation_id, sent.body, sent.priority) == ("answers", "c", "!", 7)


def test_one_whose_opening_is_cancelled_ends_its_session(aio: AioFace) -> None:
    """What it had opened already must not stay for the life of the connection."""
    asked, gate = threading.Event(), threading.Event()

    def hold(link: Link) -> None:
        asked.set()
        gate.wait(60)

    peer = aio.peer(refuse_attach=hold)
    session = aio.session(peer)

    async def give_up() -> None:
        opening = asyncio.ensure_future(session._target.create_requestor(Queue("service")))
        await asyncio.to_thread(asked.wait, 60)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    aio.call(give_up)
    gate.set()
    peer.wait_frames("end")
