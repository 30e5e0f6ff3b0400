"""Browsing (S134, S135)."""

from __future__ import annotations

import pytest

from contract.brokers import not_on
from contract.harness import Heard, Jms, counts, take, texts
from pyjmsack import AckMode, IllegalStateException, InvalidDestinationException, InvalidSelectorException, Message, aio

pytestmark = not_on("stomp-artemis", "STOMP: `browser:true` is ignored, so a browser is refused")


async def seen(browser: aio.QueueBrowser) -> list[object]:
    """Return the bodies of one look."""
    return [message.body async for message in browser]


@pytest.mark.parametrize("count", [0, 1, 25])
@pytest.mark.parametrize("prefetch", [0, 1, 3, 1000])
async def test_a_browser_shows_everything_in_order_ends_and_takes_nothing(jms: Jms, prefetch: int, count: int) -> None:
    """S134: with any prefetch; each look starts at the head."""
    bodies = [str(number) for number in range(count)]
    await jms.send(*bodies)
    session = await jms.session(options={"jms.prefetchPolicy.all": prefetch})
    browser = await session.create_browser(jms.queue)
    assert await seen(browser) == bodies
    assert await seen(browser) == bodies
    await browser.close()
    assert counts(await jms.left(*bodies)) == jms.ways.counted(*[1] * count)


@pytest.mark.parametrize("mode", AckMode)
async def test_a_browser_works_in_every_mode(jms: Jms, mode: AckMode) -> None:
    """S134."""
    await jms.send("a")
    session = await jms.session(mode)
    assert await seen(await session.create_browser(jms.queue)) == ["a"]
    await jms.left("a")


@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_a_browser_leaves_the_work_of_a_transaction_alone(jms: Jms, end: str) -> None:
    """S134."""
    await jms.send("a", "b")
    session = await jms.session(AckMode.SESSION_TRANSACTED)
    consumer = await session.create_consumer(jms.queue_with("consumer.prefetchSize=0"))
    producer = await session.create_producer(jms.queue)
    await take(consumer, 1)
    await producer.send("c")
    assert await seen(await session.create_browser(jms.queue)) in (["a", "b"], ["b"])
    await getattr(session, end)()
    # Classic sends "b" ahead over STOMP, even with prefetch 0; what the consumer gives back at its close may come last
    in_order = jms.target.protocol != "stomp" or jms.target.broker == "artemis"
    await jms.left(*(["b", "c"] if end == "commit" else ["a", "b"]), in_order=in_order)


async def test_a_browser_locks_nothing(jms: Jms) -> None:
    """S134: a consumer takes the messages while they are looked at."""
    await jms.send("a", "b", "c")
    browser = await (await jms.session(options={"jms.prefetchPolicy.all": 1})).create_browser(jms.queue)
    looking = aiter(browser)
    assert (await anext(looking)).body == "a"
    consumer = await jms.consumer()
    assert texts(await take(consumer, 3)) == ["a", "b", "c"]
    await browser.close()


async def test_a_browser_sees_what_came_since_the_last_look(jms: Jms) -> None:
    """S134."""
    browser = await (await jms.session()).create_browser(jms.queue)
    assert await seen(browser) == []
    for expected in (["a"], ["a", "b"]):
        await jms.send(expected[-1])
        assert await seen(browser) == expected


async def test_a_browser_with_a_selector_skips_and_keeps_the_order(jms: Jms) -> None:
    """S134, S189."""
    await jms.send("a", "b", priority=3)
    await jms.send("c", priority=5)
    await jms.send("d", priority=3)
    browser = await (await jms.session()).create_browser(jms.queue, "JMSPriority = 3")
    assert await seen(browser) == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("selector", "error"), [("a BETWEN 1 AND 2", InvalidSelectorException), (None, InvalidDestinationException)]
)
async def test_a_browser_that_cannot_look_is_refused_when_it_is_made(
    jms: Jms, selector: str | None, error: type[Exception]
) -> None:
    """S134, S187: not at the first look."""
    session = await jms.session()
    with pytest.raises(error):
        await session.create_browser(jms.queue if selector else jms.queue.name, selector)


async def test_on_a_stopped_connection_a_browser_shows_nothing(jms: Jms) -> None:
    """S135."""
    await jms.send("a")
    connection = await jms.connection(started=False)
    browser = await (await connection.create_session()).create_browser(jms.queue)
    assert await seen(browser) == []
    await connection.start()
    assert await seen(browser) == ["a"]
    await connection.stop()
    assert await seen(browser) == []


async def test_a_look_ends_with_an_error_where_next_has_nothing(jms: Jms) -> None:
    """S135."""
    browser = await (await jms.session()).create_browser(jms.queue)
    looking = aiter(browser)
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            await anext(looking)


async def test_a_closed_browser_shows_nothing_more(jms: Jms) -> None:
    """S125, S135."""
    await jms.send("a", "b", "c")
    session = await jms.session(options={"jms.prefetchPolicy.all": 1})
    browser = await session.create_browser(jms.queue)
    looking = aiter(browser)
    await anext(looking)
    await browser.close()
    await browser.close()
    assert [message.body async for message in looking] == []
    assert await _refused_or_empty(browser)
    await jms.left("a", "b", "c")


async def _refused_or_empty(browser: aio.QueueBrowser) -> bool:
    try:
        return await seen(browser) == []
    except IllegalStateException:
        return True


async def test_a_browser_may_be_used_while_a_listener_is_at_work_in_the_session(jms: Jms) -> None:
    """S134: only receive() is refused then (S8)."""
    await jms.send("a", priority=1)
    session = await jms.session()
    heard = Heard[Message]()
    (await session.create_consumer(jms.queue, "JMSPriority = 9")).message_listener = heard
    assert await seen(await session.create_browser(jms.queue)) == ["a"]


async def test_browsed_messages_have_nothing_to_acknowledge(jms: Jms) -> None:
    """S134, S36."""
    await jms.send("a")
    session = await jms.session(AckMode.CLIENT_ACKNOWLEDGE)
    async for message in await session.create_browser(jms.queue):
        message.acknowledge()
        with pytest.raises(IllegalStateException):
            message.reject()
    await jms.left("a")
