"""A message that Artemis cannot convert for STOMP ends each connection that it is delivered on. Only the consumers of
its queue are closed, at the third loss, long before the tenth delivery makes dead letters (S101)."""

from __future__ import annotations

from typing import Any

import pytest
from peer_faces import Face
from stomp_peer import ARTEMIS, Received, StompPeer, start

from pyjmsack import Queue
from pyjmsack.errors import ConnectionLostException, JMSException, ResourceAllocationException
from pyjmsack.providers.stomp import caution
from pyjmsack.providers.stomp.errors import ended_consumer

ENDED = (
    "consumer with ID ServerConsumerImpl [id=71, filter=null, binding=LocalQueueBinding [address={address},"
    " queue=QueueImpl[name={queue}, postOffice=PostOfficeImpl [server=ActiveMQServerImpl::name=a], temp=false]@1,"
    " filter=null, name={queue}, clusterName={queue}1], closed={closed}] disconnected by server"
)
NOT_ACKNOWLEDGED = "AMQ339018 Error acknowledging message 71,9"
OPTIONS = "failover.reconnectDelay=0&failover.duplicateGuard=none"


class EndsConsumers:
    """A rule: Artemis delivers the message behind the one that it cannot convert, and ends the connection.

    Args:
        losses: the number of losses. Later the queue holds ``good``.
        closed: what Artemis says of the consumer: ``false`` if somebody deleted the queue.
        refuses: whether an ERROR about an ACK comes before the one that names the queue.
        names: whether the ERROR that names the queue comes at all.
    """

    def __init__(self, losses: int, *, closed: str = "true", refuses: bool = False, names: bool = True) -> None:
        self._losses, self._closed, self._refuses, self._names = losses, closed, refuses, names

    def __call__(self, peer: StompPeer, frame: Received) -> bool:
        if frame.command != "SUBSCRIBE" or frame.headers["destination"] != "q":
            return False
        peer.send("RECEIPT", receipt_id=frame.headers["receipt"])
        peer.deliver(frame.headers["id"], "71,9", "good")
        if self._losses:
            self._losses -= 1
            self._end(peer)
        return True

    def _end(self, peer: StompPeer) -> None:
        frames = b""
        if self._refuses:
            frames += f"ERROR\nmessage:{NOT_ACKNOWLEDGED}\n\n\0".encode()
        if self._names:
            body = ENDED.format(address="q", queue="q", closed=self._closed)
            frames += f"ERROR\ncontent-type:text/plain\ncontent-length:{len(body)}\n\n{body}\0".encode()
        peer.write(frames)
        peer.drop()


def subscriptions(peer: StompPeer, name: str) -> list[str | None]:
    """Return the windows of the subscriptions to a queue."""
    sent = [frame.headers for frame in peer.all("SUBSCRIBE") if frame.headers["destination"] == name]
    return [headers.get("consumer-window-size") for headers in sent]


def failure(consumer: Any) -> JMSException:
    """Receive until the consumer is closed. Return its error."""
    try:
        while consumer.receive(timeout=60):
            pass
    except JMSException as error:
        return error
    raise AssertionError("the consumer waits for messages")


@pytest.mark.parametrize("refuses", [False, True], ids=["named", "after a refused ACK"])
@pytest.mark.parametrize("prefetch", [1, 1000])
def test_the_third_end_in_a_row_closes_the_consumers_of_the_queue_alone(
    face: Face, refuses: bool, prefetch: int
) -> None:
    """S101: the error names the queue, the cause and what to do. A neighbour session goes on."""
    peer = start(face, ARTEMIS, EndsConsumers(100, refuses=refuses))
    connection = face.failover(peer.url, options=f"{OPTIONS}&jms.prefetchPolicy.all={prefetch}")
    session = connection.create_session()
    neighbour, producer = session.create_consumer(Queue("n")), session.create_producer(Queue("n"))
    first, second = (connection.create_session().create_consumer(Queue("q")) for _ in range(2))
    for consumer in first, second:
        error = failure(consumer)
        assert isinstance(error, ResourceAllocationException)
        assert "the consumer of 'q'" in str(error)
        assert "receive it over amqp://" in str(error)
    producer.send("still here")
    assert neighbour.receive(timeout=0.01) is None
    # with two consumers, two more losses: an end during a restoration counts as a refusal of the broker first (S104)
    assert 3 <= len(subscriptions(peer, "q")) <= 10


def test_the_queue_is_known_by_its_name_with_the_prefix_of_the_user(face: Face) -> None:
    """S101: the broker names the queue as it knows it."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        if frame.command == "SUBSCRIBE":
            peer.answer(frame)
            body = ENDED.format(address="team.q", queue="team.q", closed="true")
            peer.write(f"ERROR\ncontent-length:{len(body)}\n\n{body}\0".encode())
            peer.drop()
        return frame.command == "SUBSCRIBE"

    peer = start(face, ARTEMIS, rule)
    connection = face.failover(peer.url, options=f"{OPTIONS}&jms.queuePrefix=team.")
    error = failure(connection.create_session().create_consumer(Queue("q")))
    assert isinstance(error, ResourceAllocationException)


def test_from_the_first_end_on_one_message_at_a_time_is_sent_ahead(face: Face) -> None:
    """S101: so each further loss counts a delivery for one harmless message, and not for the whole window."""
    peer = start(face, ARTEMIS, EndsConsumers(2))
    consumer = face.failover(peer.url, options=OPTIONS, start=False).create_session().create_consumer(Queue("q"))
    face.until(lambda: len(subscriptions(peer, "q")) == 3)
    assert subscriptions(peer, "q") == ["4096000", "0", "0"]
    consumer.close()


@pytest.mark.parametrize(
    "script",
    [{"closed": "false"}, {"refuses": True, "names": False}],
    ids=["a deleted queue", "refused ACKs alone"],
)
def test_another_reason_does_not_close_the_consumer(face: Face, script: dict[str, Any]) -> None:
    """S101: an administrator who deletes a queue, or a broker that cannot store ACKs, says nothing of a message."""
    peer = start(face, ARTEMIS, EndsConsumers(5, **script))
    connection = face.failover(peer.url, options=OPTIONS, start=False)
    consumer = connection.create_session().create_consumer(Queue("q"))
    face.until(lambda: len(subscriptions(peer, "q")) == 6)
    connection.start()
    assert consumer.receive(timeout=60).text == "good"


def test_without_failover_the_error_of_the_connection_names_the_queue(face: Face) -> None:
    """S101, S129: the program learns which queue to look at."""
    peer = start(face, ARTEMIS, EndsConsumers(1))
    connection = face.connect(peer)
    error = failure(connection.create_session().create_consumer(Queue("q")))
    assert isinstance(error, ConnectionLostException)
    assert "ended the consumer of 'q'" in str(error)
    assert "receive it over amqp://" in str(error)


def frame_of(address: str, queue: str) -> bytes:
    return ENDED.format(address=address, queue=queue, closed="true").encode()


def names(head: bytes, body: bytes) -> tuple[str, ...] | None:
    ended = ended_consumer(head, body)
    assert ended is None or ended.number == b"71"
    return None if ended is None else ended.names


def test_the_names_in_an_end_are_read_whatever_they_contain() -> None:
    """S101: also the name of a queue of a topic, of a fully qualified name, and parts of other names."""
    assert names(b"", frame_of("t", "c.s")) == ("t", "t::c.s")
    odd = "a], closed=false [address=é\u2028, "
    assert names(b"", frame_of(odd, odd)) == (odd, f"{odd}::{odd}")
    assert names(b"\nmessage:" + NOT_ACKNOWLEDGED.encode(), b"") == ()
    assert names(b"\nmessage:AMQ339016 Error creating subscription s2", b"") is None
    assert names(b"", ENDED.format(address="q", queue="q", closed="false").encode()) is None


def test_ends_long_apart_close_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """S101: three different messages in an hour are no reason. One connection counts once."""
    now = 1000.0
    monkeypatch.setattr(caution, "monotonic", lambda: now)
    losses = caution.Caution("peer", "ends long apart")
    for connection in range(6):
        now += caution._REMEMBERED + 1
        assert not losses.ended(connection, 0, certain=True)
    assert losses.single
    assert not losses.ended(7, 0, certain=False)
    assert not losses.ended(7, 0, certain=True)
    assert losses.ended(8, 0, certain=False)


def test_acknowledgements_of_another_consumer_do_not_hide_the_cause() -> None:
    """S101: several connections may share the queue. The message goes from one to the next."""
    losses = caution.Caution("peer", "acknowledged by others")
    for connection in range(2):
        assert not losses.ended(connection, 10, certain=True)
        losses.acknowledged(1000)
        assert not losses.single
    assert losses.ended(2, 10, certain=True)
