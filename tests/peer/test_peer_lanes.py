"""A listener with lanes: whoever stops or closes waits for all that its lanes have in hand (S120, S124)."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from peer import PATIENCE, text
from peer_faces import Face

from pyjmsack import AckMode, Queue


@pytest.mark.parametrize("verb", ["stop", "close"])
def test_what_waits_in_a_lane_is_heard_before_the_end(face: Face, verb: str) -> None:
    """Two messages of a group have one lane, where the second waits in hand: it is not given back, nor heard later."""
    peer = face.peer(messages=[text("a", group_id="g"), text("b", group_id="g")])
    connection = face.connect(peer, start=False)
    session = connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
    consumer = session.create_consumer(Queue("q"))
    heard: list[str] = []
    entered, leave = threading.Event(), threading.Event()

    def listener(message: Any) -> Any:
        entered.set()
        if face.name == "aio":
            return later(message)
        leave.wait(PATIENCE)
        return hear(message)

    async def later(message: Any) -> None:
        await asyncio_wait(leave)
        await hear(message)

    def hear(message: Any) -> Any:
        heard.append(message.text)
        return message.accept()

    face.call(lambda: getattr(consumer, "_target", consumer).set_message_listener(listener, concurrency=2))
    connection.start()
    assert entered.wait(PATIENCE)
    core = getattr(consumer, "_target", consumer)._core
    face.until(lambda: len(core.unsettled.delivered) == 2)
    ending = face.background(getattr(connection if verb == "stop" else session, verb))
    face.until(lambda: not core.session.started)
    leave.set()
    ending.result(PATIENCE)
    assert heard == ["a", "b"]

    def accepted() -> int:
        frames = [frame for frame in peer.all("disposition") if frame["role"] and frame.state[0] == 0x24]
        return sum((frame["last"] or frame["first"]) - frame["first"] + 1 for frame in frames)

    peer.wait(lambda: accepted() == 2, "both accepted")


async def asyncio_wait(event: threading.Event) -> None:
    """Wait for an event of another thread."""
    import asyncio

    await asyncio.get_running_loop().run_in_executor(None, event.wait, PATIENCE)


def test_closing_a_consumer_waits_for_its_listener_up_to_close_timeout_s124(face: Face) -> None:
    """A listener that did not return held up ``consumer.close()`` for ever."""
    peer = face.peer(messages=[text("a")])
    session = face.connect(peer, "jms.closeTimeout=100").create_session()
    consumer = session.create_consumer(Queue("q"))
    entered, leave = threading.Event(), threading.Event()

    def listener(message: Any) -> Any:
        entered.set()
        return asyncio_wait(leave) if face.name == "aio" else leave.wait(PATIENCE)

    consumer.message_listener = listener
    assert entered.wait(PATIENCE)
    consumer.close()
    assert not peer.all("disposition"), "the listener has not returned yet"
    leave.set()
    peer.wait(lambda: any(frame["role"] for frame in peer.all("disposition")), "the message accepted")
