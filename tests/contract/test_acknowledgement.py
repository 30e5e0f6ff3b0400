"""Who acknowledges, when, and what comes again (S16-S38)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from polling import eventually

from contract.brokers import alike, not_on, only_on
from contract.harness import Gate, Heard, Jms, counts, nothing, take, texts
from pyjmsack import (
    AckMode,
    IllegalStateException,
    JMSException,
    Message,
    Outcome,
    UnsupportedFeatureException,
    aio,
)

AUTO, CLIENT, DUPS_OK = AckMode.AUTO_ACKNOWLEDGE, AckMode.CLIENT_ACKNOWLEDGE, AckMode.DUPS_OK_ACKNOWLEDGE
TRANSACTED, INDIVIDUAL = AckMode.SESSION_TRANSACTED, AckMode.INDIVIDUAL_ACKNOWLEDGE
AUTOMATIC = pytest.mark.parametrize("mode", [AUTO, DUPS_OK])
EITHER_INDIVIDUAL = pytest.mark.parametrize("mode", [AckMode.ACTIVEMQ_INDIVIDUAL_ACKNOWLEDGE, INDIVIDUAL])
EITHER_NO_ACK = pytest.mark.parametrize("mode", [AckMode.ARTEMIS_PRE_ACKNOWLEDGE, AckMode.NO_ACKNOWLEDGE])
STYLES = pytest.mark.parametrize("style", ["receive", "listener"])
PROPERTY = "JMS_AMQP_ACK_TYPE"


class BoomError(Exception):
    """What a listener raises here."""


async def deliver(consumer: aio.MessageConsumer, style: str, act: Callable[[Message], Any]) -> None:
    """Do something with the next message, after ``receive`` or inside a listener, which then closes its consumer."""
    if style == "receive":
        act(*await take(consumer, 1))
        return
    heard = Heard[Exception | None]()

    async def listener(message: Message) -> None:
        try:
            act(message)
        except Exception as error:
            heard(error)
            raise
        await consumer.close()  # or what was handed back would come here again
        heard(None)

    consumer.message_listener = listener
    assert await heard.next() is None


# -- AUTO and DUPS_OK -----------------------------------------------------------------------------------------------


@AUTOMATIC
async def test_what_receive_returned_is_acknowledged(jms: Jms, mode: AckMode) -> None:
    """S16, S48."""
    await jms.send("a", "b", "c")
    consumer = await jms.consumer(mode)
    assert texts(await take(consumer, 2)) == ["a", "b"]
    await jms.left("c")


@AUTOMATIC
async def test_what_the_listener_took_is_acknowledged(jms: Jms, mode: AckMode) -> None:
    """S17."""
    heard = Heard[Message]()
    (await jms.consumer(mode)).message_listener = heard
    await jms.send("a", "b")
    assert texts(await heard.take(2)) == ["a", "b"]
    await jms.left()


@AUTOMATIC
async def test_what_the_listener_raised_on_comes_again_counted(jms: Jms, mode: AckMode) -> None:
    """S18."""
    heard = Heard[Message]()

    def listener(message: Message) -> None:
        heard(message)
        if message.body == "bad" and message.delivery_count < 3:
            raise BoomError

    (await jms.consumer(mode)).message_listener = listener
    await jms.send("bad", "good")
    messages = await heard.take(4)
    bad = [message for message in messages if message.body == "bad"]
    assert counts(bad) == [1, 2, 3]
    assert [message.redelivered for message in bad] == [False, True, True]
    assert counts([message for message in messages if message.body == "good"]) == [1]
    await jms.left()


@pytest.mark.option("jms.listenerErrorOutcome", "amqp")
async def test_the_outcome_released_does_not_count_what_the_listener_raised_on(jms: Jms) -> None:
    """S18, jms.listenerErrorOutcome."""
    heard = Heard[Message]()
    raised = Gate()

    def listener(message: Message) -> None:
        heard(message)
        if not raised.is_open():
            raised.open()
            raise BoomError

    consumer = await jms.consumer(AUTO, options={"jms.listenerErrorOutcome": "released"})
    consumer.message_listener = listener
    await jms.send("a")
    assert counts(await heard.take(2)) == [1, 1]


async def test_an_exception_caught_inside_the_listener_is_success(jms: Jms) -> None:
    """S19."""
    heard = Heard[Message]()

    def listener(message: Message) -> None:
        try:
            raise BoomError
        except BoomError:
            heard(message)

    (await jms.consumer(AUTO)).message_listener = listener
    await jms.send("a", "b")
    assert counts(await heard.take(2)) == [1, 1]
    await jms.left()


# -- CLIENT ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [CLIENT, TRANSACTED])
async def test_after_a_listener_raised_the_next_message_is_delivered_and_the_error_reported(
    jms: Jms, mode: AckMode
) -> None:
    """S20."""
    heard, errors = Heard[Message](), Heard[JMSException]()

    def listener(message: Message) -> None:
        heard(message)
        if message.body == "bad":
            raise BoomError

    connection = await jms.connection()
    connection.exception_listener = errors
    session = await connection.create_session(mode)
    (await session.create_consumer(jms.queue)).message_listener = listener
    await jms.send("bad", "good")
    assert texts(await heard.take(2)) == ["bad", "good"]
    assert isinstance((await errors.next()).__cause__, BoomError)
    assert counts(await jms.left("bad", "good"))[:1] == jms.ways.counted(2)


async def test_one_acknowledge_covers_what_all_consumers_of_the_session_delivered(jms: Jms) -> None:
    """S25."""
    session = await jms.session(CLIENT)
    one = await session.create_consumer(jms.queue, "JMSPriority = 1")
    two = await session.create_consumer(jms.queue, "JMSPriority = 2")
    await jms.send("a", "b", priority=1)
    await jms.send("c", priority=2)
    (message,) = await take(one, 1)
    await take(two, 1)
    message.acknowledge()
    assert counts(await jms.left("b")) == jms.ways.counted(1)


async def test_session_acknowledge_covers_all_consumers_and_consumer_acknowledge_only_its_own(jms: Jms) -> None:
    """S25."""
    session = await jms.session(CLIENT)
    one = await session.create_consumer(jms.queue, "JMSPriority = 1")
    two = await session.create_consumer(jms.queue, "JMSPriority = 2")
    await jms.send("a", "d", priority=1)
    await jms.send("b", "e", priority=2)
    await take(one, 1)
    await take(two, 1)
    await session.acknowledge()
    await take(one, 1)
    await take(two, 1)
    await one.acknowledge()
    assert counts(await jms.left("e")) == jms.ways.counted(2)


@pytest.mark.parametrize("which", [0, 1, 2])
async def test_acknowledge_covers_older_and_newer_messages_but_none_that_was_only_prefetched(
    jms: Jms, which: int
) -> None:
    """S25, S26, S27."""
    await jms.send("a", "b", "c", "prefetched")
    consumer = await jms.consumer(CLIENT)
    messages = await take(consumer, 3)
    await eventually(lambda: consumer.stats.buffered == 1)
    messages[which].acknowledge()
    assert counts(await jms.left("prefetched")) == jms.ways.counted(1)


async def test_a_second_acknowledge_of_the_same_message_does_nothing(jms: Jms) -> None:
    """S28."""
    await jms.send("a", "b")
    consumer = await jms.consumer(CLIENT)
    (first,) = await take(consumer, 1)
    first.acknowledge()
    await take(consumer, 1)
    first.acknowledge()
    assert counts(await jms.left("b")) == jms.ways.counted(2)


async def test_a_second_outcome_of_the_same_message_does_nothing_and_is_told_of(
    jms: Jms, caplog: pytest.LogCaptureFixture
) -> None:
    """S28: the caller may believe that the message is a dead letter now."""
    await jms.send("a", "b")
    consumer = await jms.consumer(INDIVIDUAL)
    for message in await take(consumer, 2):
        message.accept()
        message.accept()
        assert ("has an outcome already" in caplog.text) == (message.body == "b")
        message.reject()
        message.release()
    assert caplog.text.count("has an outcome already, so REJECTED has no effect (S28)") == 1
    assert caplog.text.count("has an outcome already") == 1
    await jms.left()
    await jms.dead()


async def test_unacknowledged_messages_return_in_order_counted_and_prefetched_ones_uncounted(jms: Jms) -> None:
    """S30, S31."""
    await jms.send("a", "b", "c", "d")
    session = await jms.session(CLIENT)
    consumer = await session.create_consumer(jms.queue)
    await take(consumer, 2)
    await eventually(lambda: consumer.stats.buffered == 2)
    await session.close()
    assert counts(await jms.left("a", "b", "c", "d")) == jms.ways.counted(2, 2, 1, 1)


@pytest.mark.parametrize("session_closed", [False, True], ids=["consumer closed", "session closed"])
async def test_acknowledge_works_after_the_consumer_is_closed_and_not_after_the_session_is(
    jms: Jms, session_closed: bool
) -> None:
    """S29."""
    await jms.send("a", "b")
    session = await jms.session(CLIENT)
    consumer = await session.create_consumer(jms.queue)
    (message,) = await take(consumer, 1)
    await (session if session_closed else consumer).close()
    if session_closed:
        with pytest.raises(IllegalStateException):
            message.acknowledge()
    else:
        message.acknowledge()
    await jms.left(*(["a", "b"] if session_closed else ["b"]))


# -- recover --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
async def test_recover_brings_back_only_what_is_unacknowledged_in_order_before_newer(jms: Jms, mode: AckMode) -> None:
    """S32."""
    await jms.send("a", "b", "c", "d")
    session = await jms.session(mode)
    consumer = await session.create_consumer(jms.queue)
    (acknowledged,) = await take(consumer, 1)
    acknowledged.acknowledge()
    await take(consumer, 2)
    await session.recover()
    messages = await take(consumer, 3)
    assert texts(messages) == ["b", "c", "d"]
    assert counts(messages) == [2, 2, 1]
    assert [message.redelivered for message in messages] == [True, True, False]


async def test_recover_again_and_again_raises_the_count_each_time(jms: Jms) -> None:
    """S32, and S30 for the count that the broker hears in the end."""
    await jms.send("a")
    session = await jms.session(CLIENT)
    consumer = await session.create_consumer(jms.queue)
    for count in (1, 2, 3):
        assert counts(await take(consumer, 1)) == [count]
        await session.recover()
    (message,) = await jms.left("a")
    assert message.redelivered == (jms.ways.counted(2) == [2])


async def test_closing_after_recover_counts_each_message_once_and_untouched_ones_not(jms: Jms) -> None:
    """S30, S31, S32."""
    await jms.send("a", "b", "c", "d")
    session = await jms.session(CLIENT)
    consumer = await session.create_consumer(jms.queue)
    await take(consumer, 3)
    await eventually(lambda: consumer.stats.buffered == 1)
    await session.recover()
    assert texts(await take(consumer, 1)) == ["a"]
    assert counts(await jms.left("a", "b", "c", "d")) == jms.ways.counted(2, 2, 2, 1)


async def test_recover_hands_back_what_a_closed_consumer_had_delivered(jms: Jms) -> None:
    """S29, S32: another consumer gets it, counted."""
    await jms.send("a", "b")
    session = await jms.session(CLIENT)
    consumer = await session.create_consumer(jms.queue)
    await take(consumer, 1)
    await consumer.close()
    await session.recover()
    messages = await take(await session.create_consumer(jms.queue), 2)
    messages.sort(key=lambda message: str(message.body))
    assert (texts(messages), counts(messages)) == (["a", "b"], jms.ways.counted(2, 1, here=True))


@pytest.mark.parametrize("mode", [AUTO, DUPS_OK, CLIENT, INDIVIDUAL])
async def test_recover_inside_a_listener_brings_the_message_in_hand_again(jms: Jms, mode: AckMode) -> None:
    """S32, S33."""
    heard = Heard[Message]()
    session = await jms.session(mode)

    async def listener(message: Message) -> None:
        if message.delivery_count < 3:
            await session.recover()
        elif mode in (CLIENT, INDIVIDUAL):
            message.acknowledge()
        heard(message)

    (await session.create_consumer(jms.queue)).message_listener = listener
    await jms.send("a", "b")
    messages = await heard.take(6)
    assert texts(messages) == ["a", "a", "a", "b", "b", "b"]
    assert counts(messages) == [1, 2, 3, 1, 2, 3]
    await jms.left()


# -- individual -----------------------------------------------------------------------------------------------------


@EITHER_INDIVIDUAL
async def test_individual_acknowledge_in_any_order_covers_exactly_those_messages(jms: Jms, mode: AckMode) -> None:
    """S34, S35."""
    await jms.send("a", "b", "c", "d", "e")
    consumer = await jms.consumer(mode)
    messages = await take(consumer, 5)
    messages[3].acknowledge()
    messages[1].acknowledge()
    messages[1].acknowledge()
    assert counts(await jms.left("a", "c", "e")) == jms.ways.counted(2, 2, 2)


@EITHER_INDIVIDUAL
async def test_an_individual_message_whose_listener_raised_comes_again_alone(jms: Jms, mode: AckMode) -> None:
    """S21."""
    heard = Heard[Message]()

    def listener(message: Message) -> None:
        heard(message)
        if message.body == "bad" and message.delivery_count == 1:
            raise BoomError
        message.acknowledge()

    (await jms.consumer(mode)).message_listener = listener
    await jms.send("good", "bad", "other")
    delivered = sorted((m.body, m.delivery_count) for m in await heard.take(4))
    assert delivered == [("bad", 1), ("bad", 2), ("good", 1), ("other", 1)]
    await jms.left()


# -- no acknowledgement ---------------------------------------------------------------------------------------------


@EITHER_NO_ACK
async def test_without_acknowledgement_the_broker_forgets_what_it_dispatched(jms: Jms, mode: AckMode) -> None:
    """S36."""
    await jms.send("a", "b", "c")
    session = await jms.session(mode)
    consumer = await session.create_consumer(jms.queue)
    (message,) = await take(consumer, 1)
    message.acknowledge()
    await session.recover()
    await eventually(lambda: consumer.stats.buffered == 2)
    await jms.left()


@EITHER_NO_ACK
async def test_without_acknowledgement_recover_brings_nothing_back(jms: Jms, mode: AckMode) -> None:
    """S36."""
    await jms.send("a")
    session = await jms.session(mode)
    consumer = await session.create_consumer(jms.queue)
    await take(consumer, 1)
    await session.recover()
    await nothing(consumer)


# -- one message, one outcome ---------------------------------------------------------------------------------------

CALLS: dict[Outcome, Callable[[Message], Any]] = {
    Outcome.ACCEPTED: lambda message: message.accept(),
    Outcome.REJECTED: lambda message: message.reject(),
    Outcome.RELEASED: lambda message: message.release(),
    Outcome.MODIFIED_FAILED: lambda message: message.modify(),
    Outcome.MODIFIED_FAILED_UNDELIVERABLE: lambda message: message.modify(undeliverable_here=True),
}
COMES_AGAIN = {
    Outcome.RELEASED: 1,
    Outcome.MODIFIED_FAILED: 2,
    Outcome.MODIFIED_FAILED_UNDELIVERABLE: 2,
}
"""The delivery count with which a broker that keeps it delivers the message again."""
UNDELIVERABLE = Outcome.MODIFIED_FAILED_UNDELIVERABLE
REFUSED_THERE = [
    not_on("amqp-classic", "10: Classic dead-letters such a message; refused, see test_classic.py"),
    not_on("stomp", "STOMP: no frame says so; refused, see the next test"),
]
OUTCOMES = [each if each is not UNDELIVERABLE else pytest.param(each, marks=REFUSED_THERE) for each in Outcome]


@STYLES
@pytest.mark.parametrize("how", ["method", "property"])
@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_each_outcome_of_one_message_reaches_the_broker(jms: Jms, outcome: Outcome, how: str, style: str) -> None:
    """S38, S118."""

    def settle(message: Message) -> None:
        if how == "method":
            CALLS[outcome](message)
        else:
            message.properties[PROPERTY] = outcome.value
            message.acknowledge()

    await jms.send("a")
    consumer = await jms.consumer(INDIVIDUAL if how == "method" else CLIENT)
    await deliver(consumer, style, settle)
    if outcome is Outcome.MODIFIED_FAILED_UNDELIVERABLE and style == "receive":
        await nothing(consumer)
    if outcome in COMES_AGAIN:
        assert counts(await jms.left("a")) == jms.ways.counted(COMES_AGAIN[outcome])
    else:
        await jms.left()
        await jms.dead(*(["a"] if outcome is Outcome.REJECTED else []))


@only_on("stomp", "over AMQP see test_classic.py")
@pytest.mark.parametrize("how", ["method", "property"])
async def test_an_outcome_that_stomp_does_not_have_is_refused_and_the_message_stays_unsettled(
    jms: Jms, how: str
) -> None:
    """S118, S119."""
    await jms.send("a")
    consumer = await jms.consumer(INDIVIDUAL)
    (message,) = await take(consumer, 1)
    if how == "property":
        message.properties[PROPERTY] = UNDELIVERABLE.value
    refused = CALLS[UNDELIVERABLE] if how == "method" else Message.acknowledge
    with pytest.raises(UnsupportedFeatureException, match="not deliver the message to this consumer again"):
        refused(message)
    message.accept()
    await jms.left()


async def test_in_client_mode_an_outcome_method_concerns_its_message_alone(jms: Jms) -> None:
    """S38."""
    await jms.send("a", "b", "c")
    consumer = await jms.consumer(CLIENT)
    messages = await take(consumer, 3)
    messages[1].accept()
    assert counts(await jms.left("a", "c")) == jms.ways.counted(2, 2)


@alike("numbers of outcomes are checked before anything is sent")
@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
@pytest.mark.parametrize("value", [0, 6, -1])
async def test_an_unknown_outcome_number_is_refused_at_acknowledge(jms: Jms, mode: AckMode, value: int) -> None:
    """S38."""
    await jms.send("a")
    consumer = await jms.consumer(mode)
    (message,) = await take(consumer, 1)
    message.properties[PROPERTY] = value
    with pytest.raises(JMSException, match=PROPERTY):
        message.acknowledge()
    await jms.left("a")


@pytest.mark.parametrize("mode", [AUTO, DUPS_OK, TRANSACTED, AckMode.NO_ACKNOWLEDGE])
async def test_modes_without_outcomes_refuse_them_and_ignore_acknowledge(jms: Jms, mode: AckMode) -> None:
    """S12, S38."""
    await jms.send("a")
    consumer = await jms.consumer(mode)
    (message,) = await take(consumer, 1)
    message.acknowledge()
    for call in CALLS.values():
        with pytest.raises(IllegalStateException):
            call(message)
    with pytest.raises(IllegalStateException):
        message.properties[PROPERTY] = 1
