"""Whether a queue is empty, over STOMP, which has no drain: a pause, a question, whose answer it is."""

from __future__ import annotations

import threading
from typing import Any

from peer_faces import Face
from stomp_peer import Received, StompPeer, ignore, start

from pyjmsack import Queue

QUEUE = Queue("q")
STALL = 0.2
"""Seconds that the broker stands still; a healthy one answers in a few milliseconds, and gets 50 to deliver."""
MOMENT = 0.02
"""For a call to begin that shows in no frame. Too short a time would only hide a fault."""
QUESTION = "ABORT"


def pause(seconds: float) -> None:
    """Let the client's clock go on."""
    threading.Event().wait(seconds)


def answer(peer: StompPeer, question: Received) -> None:
    """Answer one of its questions."""
    peer.send("RECEIPT", receipt_id=question.headers["receipt"])


def asking(face: Face, peer: StompPeer) -> Any:
    """Return a consumer of an empty queue that has asked whether it is, and what it will answer."""
    consumer = face.session(peer).create_consumer(QUEUE)
    receiving = face.background(consumer.receive, 0)
    peer.wait(QUESTION)
    return consumer, receiving


def test_a_broker_that_stood_still_gets_its_time_to_deliver_again(face: Face) -> None:
    """Catalogue 24: a process that was stopped answers first and delivers then."""
    peer = start(face, rule=ignore(QUESTION))
    _, receiving = asking(face, peer)
    pause(STALL)
    answer(peer, peer.all(QUESTION)[0])
    peer.wait(QUESTION, 2)
    peer.deliver("s1", "1", "late")
    assert receiving.result(60).text == "late"


def test_a_broker_that_is_slow_as_a_rule_is_asked_twice_and_no_more(face: Face) -> None:
    """Catalogue 24: the line may be long."""
    peer = start(face, rule=ignore(QUESTION))
    _, receiving = asking(face, peer)
    for number in range(2):
        question = peer.wait(QUESTION, number + 1)[number]
        pause(STALL)
        answer(peer, question)
    assert receiving.result(10) is None
    assert len(peer.all(QUESTION)) == 2


def test_an_answer_to_an_earlier_question_does_not_count(face: Face) -> None:
    """Catalogue 24: a message ended the first drain before its answer; the second one has a question of its own."""
    peer = start(face, rule=ignore(QUESTION))
    consumer, receiving = asking(face, peer)
    peer.deliver("s1", "1", "first")
    assert receiving.result(60).text == "first"
    receiving = face.background(consumer.receive, 0)
    pause(MOMENT)
    answer(peer, peer.all(QUESTION)[0])
    peer.wait(QUESTION, 2)
    peer.deliver("s1", "2", "second")
    assert receiving.result(60).text == "second"
