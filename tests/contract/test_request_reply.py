"""Request and reply on a real broker, with the requestor and without (S130, S163)."""

from __future__ import annotations

import asyncio

import pytest

from contract.brokers import not_on
from contract.harness import Heard, Jms, nothing, take, texts
from pyjmsack import AckMode, InvalidDestinationException, Message, Queue, RequestTimedOutException, aio


async def service(jms: Jms, mode: int = AckMode.AUTO_ACKNOWLEDGE) -> aio.MessageConsumer:
    """Answer each request with its text in capitals, until the end of the test; in a transaction if wanted."""
    session = await jms.session(mode)
    consumer, producer = await session.create_consumer(jms.queue), await session.create_producer()

    async def on_request(request: Message) -> None:
        await producer.reply(request, str(request.body).upper())
        if session.transacted:
            await session.commit()

    consumer.message_listener = on_request
    return consumer


@pytest.mark.parametrize("mode", [AckMode.AUTO_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED])
async def test_many_requests_at_a_time_each_get_their_own_reply(jms: Jms, mode: AckMode) -> None:
    """Whoever asks: tasks in asyncio, threads in the blocking face."""
    await service(jms, mode)
    async with (await jms.session()).create_requestor(jms.queue) as requestor:
        questions = [f"question {number}" for number in range(40)]
        answers = await asyncio.gather(*(requestor.request(question, 15) for question in questions))
        assert texts(answers) == [question.upper() for question in questions]


@pytest.mark.parametrize("mode", AckMode)
async def test_the_mode_of_the_session_that_makes_it_does_not_matter(jms: Jms, mode: AckMode) -> None:
    """It has a session of its own: a request leaves without a commit, a reply needs no acknowledgement."""
    await service(jms)
    session = await jms.session(mode)
    requestor = await session.create_requestor(jms.queue)
    assert (await requestor.request("a", 15)).body == "A"
    await session.close()
    assert (await requestor.request("b", 15)).body == "B"
    await requestor.close()


@pytest.mark.parametrize("prefetch", [0, 1])
async def test_replies_come_with_any_prefetch(jms: Jms, prefetch: int) -> None:
    """S50: nobody would pull."""
    await service(jms)
    session = await jms.session(options={"jms.prefetchPolicy.all": prefetch})
    async with session.create_requestor(jms.queue) as requestor:
        assert [(await requestor.request(text, 15)).body for text in "abc"] == ["A", "B", "C"]


@pytest.mark.parametrize("kind", ["UUID", "UUID_STRING", "PREFIXED_UUID_STRING"])
async def test_a_reply_is_found_by_a_message_id_of_any_type(jms: Jms, kind: str) -> None:
    """S159, jms.messageIDPolicy.messageIDType."""
    await service(jms)
    session = await jms.session(options={"jms.messageIDPolicy.messageIDType": kind})
    async with session.create_requestor(jms.queue) as requestor:
        assert [(await requestor.request(text, 15)).body for text in "ab"] == ["A", "B"]


async def test_a_reply_is_found_by_the_correlation_id_of_a_request_that_got_none(jms: Jms) -> None:
    """A service of another protocol may see a new message id, but it sees the correlation id that was sent."""
    session = await jms.session()
    requests, producer = await session.create_consumer(jms.queue), await session.create_producer()
    async with (await jms.session()).create_requestor(jms.queue) as requestor:
        asking = asyncio.ensure_future(requestor.request("a", 15))
        (request,) = await take(requests, 1)
        assert request.correlation_id is not None
        answer = session.create_text_message("A")
        answer.correlation_id = request.correlation_id
        await producer.send(answer, request.reply_to)
        assert (await asking).body == "A"


async def test_a_listener_may_ask_and_wait(jms: Jms) -> None:
    """S8, S15: its own session is busy with it, the requestor's is not."""
    await service(jms)
    session = await jms.session()
    requestor = await session.create_requestor(jms.queue)
    inbox = session.create_queue(f"{jms.queue.name}.inbox")
    heard: Heard[object] = Heard()

    async def on_message(message: Message) -> None:
        heard((await requestor.request(message.body, 15)).body)

    (await session.create_consumer(inbox)).message_listener = on_message
    await (await (await jms.session()).create_producer(inbox)).send("a")
    assert await heard.next() == "A"
    await requestor.close()


async def test_a_late_reply_is_dropped_and_the_next_request_gets_its_own(jms: Jms) -> None:
    """Never one for the other."""
    answering = await jms.session()
    requests, producer = await answering.create_consumer(jms.queue), await answering.create_producer()
    requestor = await (await jms.session()).create_requestor(jms.queue)
    with pytest.raises(RequestTimedOutException):
        await requestor.request("first", 0.01)
    await producer.reply((await take(requests, 1))[0], "late")
    asking = asyncio.ensure_future(requestor.request("second", 15))
    await producer.reply((await take(requests, 1))[0], "in time")
    assert (await asking).body == "in time"
    await requestor.close()


@not_on("stomp-classic", "STOMP: a temporary destination has another name for all but its creator")
async def test_closing_a_requestor_deletes_its_queue_and_the_reply_goes_nowhere(jms: Jms) -> None:
    """S68: in this process the name is known to be gone; what another process sends there the broker drops."""
    answering = await jms.session()
    requests = await answering.create_consumer(jms.queue)
    requestor = await (await jms.session()).create_requestor(jms.queue)
    reply_to = requestor.reply_to
    with pytest.raises(RequestTimedOutException):
        await requestor.request("a", 0.01)
    await requestor.close()
    request = (await take(requests, 1))[0]
    assert request.reply_to == reply_to
    producer = await answering.create_producer()
    with pytest.raises(InvalidDestinationException, match="deleted"):
        await producer.send("x", reply_to)
    await nothing(await answering.create_consumer(answering.create_queue(reply_to.name)))


async def test_a_context_makes_requestors_that_work_at_once(jms: Jms) -> None:
    """S150: it starts the connection."""
    await service(jms)
    async with jms.factory().create_context() as context, context.create_requestor(jms.queue) as requestor:
        assert (await requestor.request("a", 15)).body == "A"


async def test_a_request_to_a_topic_gets_the_first_reply(jms: Jms) -> None:
    """As JMS' TopicRequestor; later replies to the same request are dropped."""
    session = await jms.session()
    topic = session.create_topic(f"topic-of-{jms.queue.name}")
    subscribers = [await (await jms.session()).create_consumer(topic) for _ in range(2)]
    producer = await (await jms.session()).create_producer()
    requestor = await session.create_requestor(topic)
    for turn in ("a", "b"):
        asking = asyncio.ensure_future(requestor.request(turn, 15))
        received = [(await take(subscriber, 1))[0] for subscriber in subscribers]
        for number, request in enumerate(received):
            await producer.reply(request, f"{request.body}{number}")
        assert (await asking).body == f"{turn}0"
    await requestor.close()


@pytest.mark.parametrize("options", ["producer.windowSize=many", "producer.duplicateDetection=false", "no.option=1"])
async def test_what_a_request_says_behind_its_reply_to_is_a_part_of_the_name(jms: Jms, options: str) -> None:
    """S160: who asks cannot configure, nor stop, who answers."""
    name = f"{jms.queue.name}.replies?{options}"
    replies = await (await jms.session()).create_consumer(Queue._literal(name))
    session = await jms.session()
    question = session.create_text_message("a")
    question.reply_to = Queue._literal(name)
    await (await session.create_producer(jms.queue)).send(question)
    (request,) = await take(await session.create_consumer(jms.queue), 1)
    assert request.reply_to is not None
    assert request.reply_to.name.partition("?")[0] == f"{jms.queue.name}.replies"
    assert not request.reply_to.options
    producer = await session.create_producer()
    await producer.reply(request, "A")
    await producer.send("B", destination=request.reply_to)
    if not jms.target.named("amqp-artemis"):  # which cuts the address of a consumer at the "?"
        assert texts(await take(replies, 2)) == ["A", "B"]
