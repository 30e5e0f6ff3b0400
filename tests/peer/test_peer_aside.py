"""Messages that wait for the end of their consumer, copies of dead letters, and messages without acknowledgement: a
sender or a broker decides how many there are, so each has a limit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from time import monotonic, time
from typing import Any

import pytest
from peer_faces import Face
from polling import wait_until
from stomp_peer import ARTEMIS, CLASSIC, Received, StompPeer, start

from pyjmsack import AckMode, JMSException, Queue, Topic
from pyjmsack.providers.stomp import deadletter
from pyjmsack.spi import aside

INDIVIDUAL = AckMode.INDIVIDUAL_ACKNOWLEDGE
EITHER = pytest.mark.parametrize("server", [ARTEMIS, CLASSIC], ids=["artemis", "classic"])


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits, so that a few messages reach them."""
    monkeypatch.setattr(aside, "MOST_ASIDE", 3)
    monkeypatch.setattr(aside, "MOST_COPIES", 2)


def reject_all(consumer: Any) -> None:
    """Reject messages until the consumer ends."""
    while True:
        consumer.receive(timeout=60).reject()


def rejected(consumer: Any, at_least: int = 1) -> list[str]:
    """Reject all messages that come, and return their texts. ``receive`` asks the broker before it returns ``None``."""
    texts: list[str] = []
    while (message := consumer.receive(timeout=60 if len(texts) < at_least else 0.1)) is not None:
        texts.append(message.text)
        message.reject()
    return texts


def one_each(queue: list[str]) -> Any:
    """Return a rule: each subscription has a window of one message. The first one outlives an acknowledgement."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        first_is_free = frame.command == "ACK" and frame.headers["id"].startswith("s1,")
        if queue and (frame.command == "SUBSCRIBE" or first_is_free):
            peer.deliver("s1" if first_is_free else frame.headers["id"], str(len(queue)), queue.pop(0))
        return False

    return rule


def dead_letters(server: str) -> Queue:
    return Queue("DLQ" if server is ARTEMIS else "ActiveMQ.DLQ")


@EITHER
def test_a_stomp_consumer_with_too_many_messages_aside_ends_and_gives_all_back(face: Face, server: str) -> None:
    """S166, S126: each of them cost a subscription at the broker, without end."""
    peer = start(face, server, rule=one_each(["a", "b", "c", "d", "e"]))
    session = face.session(peer, "jms.prefetchPolicy.all=1", mode=INDIVIDUAL)
    consumer = session.create_consumer(dead_letters(server))
    for _ in range(3):
        consumer.receive(timeout=60).reject()
    with pytest.raises(JMSException, match="could neither hand out nor remove 3 messages"):
        reject_all(consumer)  # one more may have been on its way before the third was rejected
    consumer.close()
    session.create_producer(Queue("other")).send("the connection stays")
    assert len(peer.all("UNSUBSCRIBE")) == len(peer.all("SUBSCRIBE")) <= 4
    assert peer.log("ACK", "NACK") == []


def test_a_stomp_consumer_hands_out_its_inbox_before_it_ends(face: Face) -> None:
    """S166: innocent messages behind the last bad one are handed out, and their acknowledgements count."""
    peer = start(face, messages=["a", "b", "c", "good", "better"])
    consumer = face.session(peer, mode=INDIVIDUAL).create_consumer(dead_letters(ARTEMIS))
    for _ in range(3):
        consumer.receive(timeout=60).reject()
    for text in ("good", "better"):
        message = consumer.receive(timeout=60)
        assert message.text == text
        message.acknowledge()
    with pytest.raises(JMSException, match="nor remove 3 messages"):
        consumer.receive(timeout=60)
    consumer.close()
    assert peer.log("ACK", "UNSUBSCRIBE") == ["ACK s1,3", "ACK s1,4", "UNSUBSCRIBE s1"]


def test_a_stomp_consumer_asks_for_no_more_while_many_copies_are_on_their_way(face: Face) -> None:
    """S118: a broker that confirms no copy made the client send copies without end."""
    give, silent = one_each([*"abcdef"]), True

    def rule(peer: StompPeer, frame: Received) -> bool:
        return give(peer, frame) or (silent and frame.command == "SEND")

    peer = start(face, rule=rule)
    consumer = face.session(peer, "jms.prefetchPolicy.all=1", mode=INDIVIDUAL).create_consumer(Queue("q"))
    taken = rejected(consumer, at_least=2)
    assert taken in (["a", "b"], ["a", "b", "c"]), "the third may have been on its way when the second was rejected"
    assert len(peer.all("SUBSCRIBE")) <= 3
    silent = False
    for copy in peer.wait("SEND", len(taken)):
        peer.send("RECEIPT", receipt_id=copy.headers["receipt"])
    while len(taken) < 6:
        taken += rejected(consumer)
    assert taken == [*"abcdef"]


def refusing_copies(queue: str) -> Any:
    """Return a rule: refuse each copy for the dead-letter queue, which is full, and end the connection."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command != "SEND" or frame.headers["destination"] != queue:
            return False
        peer.give_back()
        peer.error(frame, "AMQ229102: Address DLQ is full")
        return True

    return rule


def test_a_broker_that_refuses_a_copy_loses_the_connection_once_and_neighbours_go_on(face: Face) -> None:
    """S118, S109: the restored consumer got the message again, and its next copy cost the next connection."""
    peer = start(face, rule=refusing_copies("DLQ"), messages=["bad", "worse", "good"])
    connection = face.failover(peer.url, options="failover.reconnectDelay=0")
    consumer = connection.create_session(INDIVIDUAL).create_consumer(Queue("q"))
    neighbour = connection.create_session(AckMode.SESSION_TRANSACTED)
    consumer.receive(timeout=60).reject()
    peer.wait("CONNECT", 2)
    while (message := consumer.receive(timeout=60)).text != "good":
        message.reject()
    message.acknowledge()
    producer = neighbour.create_producer(Queue("other"))
    for _ in range(3):
        producer.send("the connection stays")
        neighbour.commit()
    assert len(peer.all("CONNECT")) == 2
    assert [frame.headers["destination"] for frame in peer.all("SEND")] == ["DLQ", "other", "other", "other"]
    assert [key.partition(",")[2] for key in peer.log("ACK")] == ["2"], "the others wait for the end of the pause"


def test_a_broker_that_ends_connections_for_a_copy_without_a_word_gets_no_further_copy_s118(face: Face) -> None:
    """Classic did so for a property with the name of a header: 27 connections were lost in 35 s."""
    lost = deadletter._MOST_LOSSES

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SEND" and frame.headers["destination"] == "DLQ":
            peer.give_back()
            peer.drop()
            return True
        return False

    peer = start(face, rule=rule, messages=["bad"])
    connection = face.failover(peer.url, options="failover.reconnectDelay=0")
    consumer = connection.create_session(INDIVIDUAL).create_consumer(Queue("q"))
    neighbour = connection.create_session().create_producer(Queue("other"))
    for number in range(lost + 1):
        consumer.receive(timeout=60).reject()
        peer.wait("CONNECT", min(number, lost - 1) + 2)
    neighbour.send("the connection stays")
    assert len(peer.all("CONNECT")) == 1 + lost
    assert [frame.headers["destination"] for frame in peer.all("SEND")] == ["DLQ"] * lost + ["other"]


def test_copies_are_made_again_after_a_pause_that_grows_with_each_refusal(
    face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S118: a full dead-letter queue is emptied one day."""
    pauses: list[float] = []
    monkeypatch.setattr(deadletter, "monotonic", lambda: sum(pauses))

    def reject_again(peer: StompPeer) -> float:
        """Reject a message over a new connection, and return how long no copy is made after its refusal."""
        before = [*deadletter._Refusals.until.values()]
        face.session(peer, mode=INDIVIDUAL).create_consumer(Queue("q")).receive(timeout=60).reject()
        wait_until(lambda: [*deadletter._Refusals.until.values()] != before)
        ((_, pause),) = deadletter._Refusals.until.values()
        return pause

    refuse, full = refusing_copies("DLQ"), True
    peer = start(face, rule=lambda peer, frame: full and refuse(peer, frame), messages=["bad"])
    for _ in range(7):
        pauses.append(reject_again(peer))
    assert pauses == [10, 20, 40, 80, 160, 300, 300]
    full = False
    face.session(peer, mode=INDIVIDUAL).create_consumer(Queue("q")).receive(timeout=60).reject()
    peer.wait("ACK")
    assert deadletter._Refusals.until == {}


Pause = Callable[[StompPeer, bool], None]


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Pause:
    """Begin or end a pause for the dead-letter queue of a peer. The client looks often whether the pause is over."""
    monkeypatch.setattr(deadletter, "_FIRST_PAUSE", 0.05)

    def set_pause(peer: StompPeer, lasts: bool) -> None:
        queue = dead_letters(peer._server).name
        deadletter._Refusals.until[peer.url, "", queue] = (monotonic() + (1_000 if lasts else 0), 1_000)

    return set_pause


def test_a_message_that_is_rejected_in_the_pause_is_copied_after_it(face: Face, pause: Pause) -> None:
    """S118: the consumer goes on in the meantime, also with a window of one message."""
    peer = start(face, rule=one_each(["bad", "good"]))
    pause(peer, True)
    consumer = face.session(peer, "jms.prefetchPolicy.all=1", mode=INDIVIDUAL).create_consumer(Queue("q"))
    consumer.receive(timeout=60).reject()
    good = consumer.receive(timeout=60)
    assert good.text == "good"
    good.acknowledge()
    peer.wait("ACK")
    assert peer.all("SEND") == []
    pause(peer, False)
    peer.wait("ACK", 2)
    assert [(frame.headers["destination"], frame.body) for frame in peer.all("SEND")] == [("DLQ", b"bad")]


def test_a_message_of_a_topic_that_is_rejected_in_the_pause_is_not_lost(face: Face, pause: Pause) -> None:
    """S118: the broker keeps no message of such a consumer, so this client has the only one."""
    peer = start(face, rule=one_each(["bad", "good"]))
    pause(peer, True)
    consumer = face.session(peer, "jms.prefetchPolicy.all=1", mode=INDIVIDUAL).create_consumer(Topic("t"))
    consumer.receive(timeout=60).reject()
    assert consumer.receive(timeout=60).text == "good", "the window was full"
    assert len(peer.wait("ACK")) == 1, "to make room"
    pause(peer, False)
    assert [frame.body for frame in peer.wait("SEND")] == [b"bad"]


def test_a_close_in_the_pause_gives_the_rejected_messages_back_at_once(face: Face, pause: Pause) -> None:
    """S118, S126."""
    peer = start(face, messages=["a", "b"])
    pause(peer, True)
    consumer = face.session(peer, mode=INDIVIDUAL).create_consumer(Queue("q"))
    consumer.receive(timeout=60).reject()
    consumer.receive(timeout=60).reject()
    consumer.close()
    assert peer.log("SEND", "ACK", "NACK", "UNSUBSCRIBE") == ["UNSUBSCRIBE s1"]


def test_a_pause_for_dead_letters_is_none_for_expired_messages(face: Face, pause: Pause) -> None:
    """S118: Artemis has another queue for them."""

    def expired(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.deliver(frame.headers["id"], "1", "late", expires=str(int(time() * 1000) + 300))
        return False

    peer = start(face, rule=expired)
    pause(peer, True)
    message = face.session(peer, mode=INDIVIDUAL).create_consumer(Queue("q")).receive(timeout=60)
    wait_until(lambda: datetime.now(timezone.utc) > message.expiration)
    message.reject()
    assert [frame.headers["destination"] for frame in peer.wait("SEND")] == ["ExpiryQueue"]


def artemis_window(messages: int, window: int) -> Any:
    """Return a rule: keep at most ``window`` messages unacknowledged."""
    sent, lane = iter(range(messages)), []

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            lane.append(frame.headers["id"])
        room = window if frame.command == "SUBSCRIBE" else int(frame.command == "ACK")
        for _ in range(room):
            number = next(sent, None)
            if number is not None:
                peer.deliver(lane[0], str(number), f"m{number}")
        return False

    return rule


@pytest.mark.parametrize("prefetch", [1, 10])
def test_without_acknowledgement_the_inbox_of_a_slow_consumer_is_bounded_on_artemis(face: Face, prefetch: int) -> None:
    """S36: the client acknowledged each message as it came, so the whole queue came."""
    window = 5
    peer = start(face, rule=artemis_window(200, window))
    session = face.session(peer, f"jms.prefetchPolicy.all={prefetch}", mode=AckMode.NO_ACKNOWLEDGE)
    consumer = session.create_consumer(Queue("q"))
    wait_until(lambda: consumer.stats.buffered >= prefetch + window)
    session.create_producer(Queue("other")).send("what came before the answer is in the inbox")
    assert consumer.stats.buffered == prefetch + window
    assert [consumer.receive(timeout=60).text for _ in range(200)] == [f"m{number}" for number in range(200)]
    peer.wait("ACK", 200)
    assert [frame.headers["id"] for frame in peer.all("ACK")] == [f"s1,{number}" for number in range(200)]


def test_what_is_in_the_inbox_without_acknowledgement_is_acknowledged_before_the_subscription_ends(face: Face) -> None:
    """S36: ``drain()`` lets the caller have what came, so the broker must not deliver it again."""
    peer = start(face, rule=artemis_window(200, 5))
    session = face.session(peer, "jms.prefetchPolicy.all=10", mode=AckMode.NO_ACKNOWLEDGE)
    consumer = session.create_consumer(Queue("q"))
    wait_until(lambda: consumer.stats.buffered >= 15)
    consumer.drain()
    peer.wait("UNSUBSCRIBE")
    log = peer.log("ACK", "UNSUBSCRIBE")
    assert log.index("UNSUBSCRIBE s1") == len(log) - 1
    taken = []
    while (message := consumer.receive(timeout=0)) is not None:
        taken.append(message.text)
    assert len(taken) == len(log) - 1
