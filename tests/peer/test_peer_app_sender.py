"""The sender of an app, and a broker that does not answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from peer import Peer, accepted, in_turn, unanswered
from peer_faces import PATIENCE, Face

from pyjmsack import RequestTimedOutException, SendTimedOutException, TransactionRolledBackException

Started = Callable[[str], Any]


@pytest.fixture
def started(face: Face) -> Iterator[Started]:
    """Start an app with a URL."""
    apps: list[Any] = []

    def start(url: str) -> Any:
        apps.append(face.module.App(url, send_timeout=1.0))
        face.call(apps[-1].start)
        return apps[-1]

    yield start
    for app in apps:
        face.call(app.stop)


def call(face: Face, app: Any, name: str, *arguments: Any) -> Any:
    """Call a method of the sender beside the test, because a call that never ends must not stop the tests."""
    return face.background(face.call, getattr(app.sender, name), *arguments).result(PATIENCE)


@pytest.mark.parametrize("url", ["{}", "failover:({})"])
def test_a_call_of_the_sender_ends_although_the_broker_stands_still(face: Face, started: Started, url: str) -> None:
    """A close of the session waited for a minute after a send, and a new session was awaited without an end."""
    peer = face.peer()
    app = started(url.format(peer.url))
    call(face, app, "send", "q", "x")
    peer.pause()
    with pytest.raises(SendTimedOutException, match="may have been stored"):
        call(face, app, "send", "q", "x")
    for name, body in (("send", "x"), ("send_many", ["x"]), ("request", "x")):
        with pytest.raises(RequestTimedOutException, match=r"creating a session: no answer within jms\.requestTimeout"):
            call(face, app, name, "q", body)
    peer.resume()
    call(face, app, "send", "q", "y")
    assert [transfer.message.body for transfer in peer.transfers] == ["x", "x", "y"]


@pytest.mark.parametrize("url", ["{}", "failover:({})"])
def test_a_batch_whose_commit_has_no_answer_in_time_is_in_doubt(face: Face, started: Started, url: str) -> None:
    peer: Peer = face.peer(on_discharge=in_turn(unanswered, accepted))
    app = started(url.format(peer.url))
    with pytest.raises(TransactionRolledBackException) as caught:
        call(face, app, "send_many", "q", ["a", "b"])
    assert caught.value.in_doubt
    call(face, app, "send_many", "q", ["c"])


@pytest.mark.parametrize("url", ["{}", "failover:({})"])
def test_a_batch_whose_sends_have_no_answer_in_time_is_not_committed(face: Face, started: Started, url: str) -> None:
    peer: Peer = face.peer(on_transfer=unanswered)
    app = started(url.format(peer.url))
    with pytest.raises(SendTimedOutException):
        call(face, app, "send_many", "q", ["a", "b"])
    rolled_back = [discharge.body[1][1] for discharge in peer.discharges]
    assert rolled_back
    assert all(rolled_back)
