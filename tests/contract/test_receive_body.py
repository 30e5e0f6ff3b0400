"""Receiving the body alone (S176)."""

from __future__ import annotations

import pytest

from contract.harness import PATIENCE, Jms, nothing, take, texts
from pyjmsack import AckMode, MessageFormatException

AUTOMATIC = [AckMode.AUTO_ACKNOWLEDGE, AckMode.DUPS_OK_ACKNOWLEDGE]


@pytest.mark.parametrize(("body", "kind"), [("text", str), ("", str), (b"bytes", bytes)])
async def test_the_body_is_returned_as_the_type_asked_for(jms: Jms, body: str | bytes, kind: type[str | bytes]) -> None:
    """S176."""
    session = await jms.session()
    await (await session.create_producer(jms.queue)).send(body)
    consumer = await session.create_consumer(jms.queue)
    assert await consumer.receive_body(kind, timeout=PATIENCE) == body
    assert await consumer.receive_body(kind, timeout=0) is None
    await jms.left()


async def test_a_message_without_a_body_has_none_for_any_type(jms: Jms) -> None:
    """S176."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    await producer.send(session.create_text_message(None))
    assert await (await session.create_consumer(jms.queue)).receive_body(bytes, timeout=PATIENCE) is None
    await jms.left()


@pytest.mark.parametrize("mode", AUTOMATIC)
async def test_in_the_automatic_modes_a_wrong_type_leaves_the_message_for_the_next_receive(
    jms: Jms, mode: AckMode
) -> None:
    """S176: unacknowledged, at the head, uncounted."""
    await jms.send("a", "b")
    consumer = await jms.consumer(mode)
    for _ in range(3):
        with pytest.raises(MessageFormatException, match="bytes"):
            await consumer.receive_body(bytes, timeout=PATIENCE)
    assert await consumer.receive_body(str, timeout=PATIENCE) == "a"
    assert texts(await take(consumer, 1)) == ["b"]
    await nothing(consumer)


@pytest.mark.parametrize("mode", AUTOMATIC)
async def test_in_the_automatic_modes_a_wrong_type_acknowledges_nothing(jms: Jms, mode: AckMode) -> None:
    """S176."""
    await jms.send("a")
    consumer = await jms.consumer(mode, options={"jms.prefetchPolicy.all": 0})
    with pytest.raises(MessageFormatException):
        await consumer.receive_body(bytes, timeout=PATIENCE)
    (message,) = await jms.left("a")
    assert [message.delivery_count] == jms.ways.counted(1)


@pytest.mark.parametrize("mode", [AckMode.CLIENT_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED])
async def test_in_the_other_modes_a_wrong_type_counts_as_delivered(jms: Jms, mode: AckMode) -> None:
    """S176."""
    await jms.send("a")
    session = await jms.session(mode)
    consumer = await session.create_consumer(jms.queue)
    with pytest.raises(MessageFormatException):
        await consumer.receive_body(bytes, timeout=PATIENCE)
    await nothing(consumer)
    await (session.rollback() if mode is AckMode.SESSION_TRANSACTED else session.recover())
    assert await consumer.receive_body(str, timeout=PATIENCE) == "a"


async def test_get_body_refuses_a_type_that_does_not_fit(jms: Jms) -> None:
    """S176."""
    await jms.send("a")
    (message,) = await take(await jms.consumer(), 1)
    assert message.get_body(str) == "a"
    assert message.is_body_assignable_to(str)
    assert not message.is_body_assignable_to(bytes)
    with pytest.raises(MessageFormatException):
        message.get_body(bytes)
