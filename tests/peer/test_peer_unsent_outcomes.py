"""An error that keeps an outcome from being sent ends the connection, because nobody may take the outcome for sent
(S95)."""

from __future__ import annotations

from typing import Any

import pytest
from peer import text
from peer_faces import Face
from stomp_peer import start

from pyjmsack import AckMode, ConnectionLostException, Queue, TransactionRolledBackException
from pyjmsack.providers.amqp.provider import AmqpProvider
from pyjmsack.providers.stomp.provider import StompProvider

Q = Queue("q")


@pytest.fixture(params=["amqp", "stomp"])
def peer(request: pytest.FixtureRequest, face: Face, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A broker with one message, and a client that has no memory when it sends the first outcome."""
    left = [MemoryError("no memory for the outcome")]

    def fails_once(settle: Any) -> Any:
        def failing(*arguments: Any) -> None:
            if left:
                raise left.pop()
            settle(*arguments)

        return failing

    for provider in (AmqpProvider, StompProvider):
        monkeypatch.setattr(provider, "settle", fails_once(provider.settle))
    return face.peer(messages=[text("a")]) if request.param == "amqp" else start(face, messages=["a"])


@pytest.mark.parametrize("mode", [AckMode.CLIENT_ACKNOWLEDGE, AckMode.INDIVIDUAL_ACKNOWLEDGE])
def test_a_consumer_is_told_that_an_outcome_was_not_sent_s95(face: Face, peer: Any, mode: AckMode) -> None:
    """Otherwise ``acknowledge()`` succeeds, the connection goes on, and the message comes again later."""
    consumer = face.session(peer, mode=mode).create_consumer(Q)
    consumer.receive(timeout=60).acknowledge()
    with pytest.raises(ConnectionLostException, match="no memory for the outcome"):
        consumer.receive(timeout=60)


def test_a_commit_fails_if_an_outcome_was_not_sent_s95(face: Face, peer: Any) -> None:
    """Otherwise the commit succeeds without this message."""
    session = face.session(peer, mode=AckMode.SESSION_TRANSACTED)
    session.create_consumer(Q).receive(timeout=60)
    with pytest.raises((TransactionRolledBackException, ConnectionLostException)):
        session.commit()
