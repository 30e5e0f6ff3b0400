"""What a STOMP broker refuses or never answers, and what must be refused before it is sent."""

from __future__ import annotations

from typing import Any

import pytest
from peer_faces import Face, Told
from stomp_peer import ARTEMIS, CLASSIC, Received, StompPeer, drop, ignore, refuse, start

from pyjmsack import (
    AckMode,
    ConnectionLostException,
    JMSException,
    MessageFormatException,
    Queue,
    RequestTimedOutException,
    TextMessage,
    Topic,
    TransactionRolledBackException,
)

QUEUE = Queue("q")
EITHER = pytest.mark.parametrize("server", [ARTEMIS, CLASSIC], ids=["artemis", "classic"])


# -- answers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [drop("ACK"), refuse("ACK", "AMQ339018: no such id")], ids=["lost", "refused"])
def test_sends_are_committed_whatever_becomes_of_the_held_acks(face: Face, rule: Any) -> None:
    """S88: the caller must not take it for a rollback and do the work again."""
    peer = start(face, rule=rule, messages=["a"])
    session = face.session(peer, mode=AckMode.SESSION_TRANSACTED)
    session.create_consumer(QUEUE).receive(timeout=60)
    session.create_producer(Queue("out")).send("b")
    with pytest.raises(TransactionRolledBackException, match="the sends are committed") as raised:
        session.commit()
    assert raised.value.in_doubt
    assert len(peer.all("COMMIT")) == 1


@EITHER
def test_work_behind_a_rollback_whose_caller_gave_up_is_not_undone_by_it(face: Face, server: str) -> None:
    """S80: the rollback waits for the answer to the commit before it. Later work belongs to the next transaction."""
    late: list[Received] = []

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "COMMIT" and not late:
            late.append(frame)
            return True
        return False

    peer = start(face, server, rule=rule)
    session = face.session(peer, "jms.requestTimeout=300", mode=AckMode.SESSION_TRANSACTED)
    producer = session.create_producer(QUEUE)
    producer.send("a")
    with pytest.raises(TransactionRolledBackException) as raised:
        session.commit()
    assert raised.value.in_doubt
    producer.send("b")
    with pytest.raises(RequestTimedOutException):
        session.rollback()
    producer.send("c")
    peer.answer(late[0])
    peer.wait("ABORT")
    session.commit()
    sent = {frame.body: frame.headers["transaction"] for frame in peer.all("SEND")}
    assert [frame.headers["transaction"] for frame in peer.all("ABORT")] == [sent[b"b"]]
    assert [frame.headers["transaction"] for frame in peer.all("COMMIT")] == [sent[b"a"], sent[b"c"]]


def test_an_error_that_names_no_request_is_blamed_on_none_where_requests_are_named(face: Face) -> None:
    """S129: Classic names what it refuses, so this ends the connection; a pending subscription is not its reason."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.send("ERROR", message="a header line is too long")
        return frame.command == "SUBSCRIBE"

    session = face.session(start(face, CLASSIC, rule=rule))
    with pytest.raises(ConnectionLostException, match="a header line is too long"):
        session.create_consumer(QUEUE)


@pytest.mark.option("stomp.drainTimeout", "stomp")
@pytest.mark.parametrize("option", ["stomp.drainTimeout", "jms.requestTimeout"])
def test_a_browser_that_the_broker_never_ends_ends_with_an_error(face: Face, option: str) -> None:
    """S134: Classic says nothing more when a selector cannot be evaluated."""
    peer = start(face, CLASSIC, messages=["a", "b"])
    browsing = iter(face.session(peer, f"{option}=500").create_browser(QUEUE))
    assert [next(browsing).text for _ in range(2)] == ["a", "b"]
    with pytest.raises(RequestTimedOutException, match=rf"brows.* q.*{option} \(0\.5 s\)"):
        next(browsing)


def test_a_question_that_the_broker_does_not_answer_ends_with_an_error(face: Face) -> None:
    """Catalogue 24: whether there are more messages."""
    consumer = face.session(start(face, rule=ignore("ABORT")), "stomp.drainTimeout=50").create_consumer(QUEUE)
    with pytest.raises(RequestTimedOutException, match=r"consumer of q.*stomp\.drainTimeout"):
        consumer.receive(timeout=0)


# -- refused before they are sent -------------------------------------------------------------------------------


def message_with(name: str, value: str) -> TextMessage:
    """Return a message with a property or header of that value."""
    message = TextMessage("a")
    if hasattr(message, name):
        setattr(message, name, value)
    else:
        message.properties[name] = value
    return message


@EITHER
@pytest.mark.parametrize("value", ["nu\0l", "half \ud800 a pair"], ids=["nul", "surrogate"])
@pytest.mark.parametrize(
    ("name", "named"),
    [("color", "color"), ("destination", "destination"), ("priority_", "priority_"), ("type", "type"),
     ("correlation_id", "correlation-id"), ("JMSXGroupID", "JMSXGroupID")],
    ids=lambda name: str(name),
)  # fmt: skip
def test_a_character_that_a_frame_cannot_carry_is_refused_with_the_name_of_its_property(
    face: Face, server: str, name: str, named: str, value: str
) -> None:
    """S160: a NUL would end the frame, and the rest would be another one."""
    peer = start(face, server)
    producer = face.session(peer).create_producer(QUEUE)
    message = TextMessage("a")
    if name == "destination":
        message.properties[name] = value
    else:
        message = message_with(name, value)
    with pytest.raises(MessageFormatException, match=f"'{named}'"):
        producer.send(message)
    producer.send("b")
    assert [frame.body for frame in peer.all("SEND")] == [b"b"]


@EITHER
@pytest.mark.parametrize("text", ["nu\0l", "half \ud800 a pair"], ids=["nul", "surrogate"])
@pytest.mark.parametrize("what", ["consumer", "selector", "producer", "subscription", "unsubscribe"])
def test_names_that_a_frame_cannot_carry_are_refused(face: Face, server: str, what: str, text: str) -> None:
    """S67, S187."""
    peer = start(face, server)
    session = face.connect(peer, client_id="c").create_session()
    calls: dict[str, Any] = {
        "consumer": lambda: session.create_consumer(Queue(text)),
        "selector": lambda: session.create_consumer(QUEUE, f"name = '{text}'"),
        "producer": lambda: session.create_producer(Queue(text)).send("a"),
        "subscription": lambda: session.create_durable_consumer(Topic("t"), text),
        "unsubscribe": lambda: session.unsubscribe(text),
    }
    with pytest.raises(JMSException):
        calls[what]()
    assert peer.log("SEND", "SUBSCRIBE", "UNSUBSCRIBE") == []


TOO_MUCH = {
    "a property for Classic": (CLASSIC, {"color": "x" * 10_300}, "'color' is too long.*10240"),
    "a property for receivers": (ARTEMIS, {"color": "x" * 70_000}, "'color' is too long.*65536"),
    "many properties for Classic": (CLASSIC, {f"p{number}": "v" for number in range(1000)}, "too many properties"),
    "many properties for receivers": (ARTEMIS, {f"p{number}": "v" for number in range(1000)}, "too many properties"),
    "a property for Artemis": (ARTEMIS, {"color": "x" * 10_300}, None),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_what_a_broker_or_a_receiver_does_not_take_is_refused_before_it_is_sent(face: Face, case: str) -> None:
    """S160, S91, trap 24: Classic closes, and in a failover URL it would be sent again for ever."""
    server, properties, text = TOO_MUCH[case]
    peer = start(face, server)
    producer = face.session(peer).create_producer(QUEUE)
    message = TextMessage("a")
    message.properties.update(properties)
    if text is not None:
        with pytest.raises(MessageFormatException, match=text):
            producer.send(message)
    else:
        producer.send(message)
    assert len(peer.all("SEND")) == (text is None)


def test_a_frame_larger_than_classic_takes_is_refused(face: Face) -> None:
    """S91: the limit is stomp.maxFrameSize, by default that of the broker's own configuration."""
    peer = start(face, CLASSIC)
    producer = face.session(peer, "stomp.maxFrameSize=2048").create_producer(QUEUE)
    with pytest.raises(MessageFormatException, match=r"too large.*stomp\.maxFrameSize"):
        producer.send(b"x" * 2048)
    producer.send(b"x" * 1024)
    assert len(peer.all("SEND")) == 1


# -- messages beyond the window ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "prefetch", "size", "most"),
    [pytest.param(CLASSIC, 5, 1, 106, id="classic"), pytest.param(ARTEMIS, 2, 100_000, 11, id="artemis")],
)
def test_a_broker_that_ignores_the_window_loses_its_connection(
    face: Face, server: str, prefetch: int, size: int, most: int
) -> None:
    """S52: the window is all that bounds the memory. Artemis counts bytes: 4 windows of 8 KB, and 1 MB."""
    peer = start(face, server)
    connection = face.connect(peer, f"jms.prefetchPolicy.all={prefetch}")
    connection.exception_listener = heard = Told()
    consumer = connection.create_session(AckMode.CLIENT_ACKNOWLEDGE).create_consumer(QUEUE)
    (subscription,) = peer.wait("SUBSCRIBE")
    for number in range(most):
        peer.deliver(subscription.headers["id"], str(number), "x" * size)
    for _ in range(most):
        assert consumer.receive(timeout=60)
    assert heard.calls == []
    for number in range(most, 2 * most):
        peer.deliver(subscription.headers["id"], str(number), "x" * size)
    assert isinstance(heard.first(), ConnectionLostException)
    assert "than the window of the consumer allows" in str(heard.first())
