"""Messages that wait for the end of their consumer, and copies of dead letters, over AMQP: a sender or a broker decides
how many there are, so each has a limit."""

from __future__ import annotations

import pytest
from peer import accepted, text, unanswered
from peer_faces import Face, Told
from test_peer_ack import ACCEPTED, each
from test_peer_aside import low_limits, rejected  # noqa: F401 - the fixture is used by its name
from test_peer_dead_letters import volatile

from pyjmsack import AckMode, JMSException, Queue

pytestmark = pytest.mark.usefixtures("low_limits")
INDIVIDUAL = AckMode.INDIVIDUAL_ACKNOWLEDGE


@pytest.mark.parametrize("broker", ["artemis", "classic-6"])
def test_an_amqp_consumer_with_too_many_messages_aside_ends_and_its_inbox_is_handed_out(
    face: Face, broker: str
) -> None:
    """S166, S126: the broker kept each of them in its memory, without end."""
    peer = face.peer(messages=[text(body) for body in ("a", "b", "c", "good")])
    session = face.session(peer, f"broker={broker}", mode=INDIVIDUAL)
    consumer = session.create_consumer(Queue("DLQ" if broker == "artemis" else "ActiveMQ.DLQ"))
    for _ in range(3):
        consumer.receive(60).reject()
    message = consumer.receive(60)
    assert message.text == "good"
    message.acknowledge()
    with pytest.raises(JMSException, match="could neither hand out nor remove 3 messages"):
        consumer.receive(60)
    consumer.close()
    assert each(peer) == [(3, ACCEPTED)]
    session.create_producer(Queue("other")).send("the connection stays")


@pytest.mark.parametrize("prefetch", [0, 1])
def test_an_amqp_consumer_asks_for_no_more_while_many_copies_are_on_their_way(face: Face, prefetch: int) -> None:
    """S118: a broker that takes no copies made the client keep copies without end."""
    peer = face.peer(messages=[volatile(body) for body in "abcdef"], on_transfer=unanswered)
    options = ("broker=classic-6", f"jms.prefetchPolicy.all={prefetch}")
    consumer = face.session(peer, *options, mode=INDIVIDUAL).create_consumer(Queue("q"))
    taken = rejected(consumer, at_least=2)
    assert taken in (["a", "b"], ["a", "b", "c"]), "credit for the third may have been granted earlier"
    peer.wait_transfers(len(taken))
    for number in range(6):
        if number == len(taken):
            taken += rejected(consumer)
        peer.wait_transfers(number + 1)
        peer.answer(number, accepted)
    assert taken == [*"abcdef"]


def test_a_listener_gets_what_comes_after_copies_that_were_confirmed_while_it_had_credit(face: Face) -> None:
    """S118, S53: the broker got credit no more, and the listener no message, although the queue was not empty."""
    prefetch = 25  # the client looks at its credit after each second message: last when it has credit for one
    peer = face.peer(on_transfer=unanswered)
    session = face.session(peer, "broker=classic-6", f"jms.prefetchPolicy.all={prefetch}", mode=INDIVIDUAL)
    told = Told(lambda message: message.reject() if message.text == "bad" else message.acknowledge())
    session.create_consumer(Queue("q")).set_message_listener(told)
    for number in range(1, prefetch):
        peer.deliver(volatile("bad"))
        peer.wait_transfers(number)
    for number in range(1, prefetch):
        peer.answer(number - 1, accepted)
    face.barrier(peer, session)
    peer.deliver(*[text("good")] * 30)
    assert [message.text for (message,) in told.wait(prefetch + 29)][prefetch - 1 :] == ["good"] * 30
