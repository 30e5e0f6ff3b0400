"""Session modes and illegal combinations (S1-S7, S11, S37)."""

from __future__ import annotations

import pytest

from contract.brokers import alike, not_on
from contract.harness import Jms, counts, take, texts
from pyjmsack import (
    AckMode,
    IllegalStateException,
    InvalidDestinationException,
    InvalidURLException,
    JMSException,
    Queue,
)

THE_CORE_S = alike("modes are checked before anything is sent")
NOT_TRANSACTED = [mode for mode in AckMode if mode is not AckMode.SESSION_TRANSACTED]


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 100, 101, 257])
async def test_every_mode_of_the_list_is_accepted_as_a_number(jms: Jms, number: int) -> None:
    """S1, S2, S6."""
    session = await jms.session(number)
    assert session.acknowledge_mode == number
    assert session.transacted is (number == 0)
    kept = "at-least-once" if jms.target.named("stomp-artemis") else "atomic"
    assert session.transaction_guarantee == (kept if number == 0 else "none")


@THE_CORE_S
async def test_a_session_without_arguments_acknowledges_automatically(jms: Jms) -> None:
    """S6."""
    assert (await (await jms.connection()).create_session()).acknowledge_mode is AckMode.AUTO_ACKNOWLEDGE


@THE_CORE_S
@pytest.mark.parametrize("mode", [*AckMode, -1, 99])
async def test_transacted_true_wins_over_any_mode(jms: Jms, mode: int) -> None:
    """S3."""
    session = await (await jms.connection()).create_session(mode, transacted=True)
    assert session.transacted
    assert session.acknowledge_mode is AckMode.SESSION_TRANSACTED


@THE_CORE_S
@pytest.mark.parametrize("mode", NOT_TRANSACTED)
async def test_transacted_false_keeps_the_mode(jms: Jms, mode: AckMode) -> None:
    """S1."""
    assert (await (await jms.connection()).create_session(mode, transacted=False)).acknowledge_mode is mode


@THE_CORE_S
@pytest.mark.parametrize("transacted", [None, False])
@pytest.mark.parametrize("mode", [-1, 5, 99, 102, 258])
async def test_a_mode_outside_the_list_is_refused(jms: Jms, mode: int, transacted: bool | None) -> None:
    """S5."""
    with pytest.raises(JMSException, match=str(mode)):
        await (await jms.connection()).create_session(mode, transacted=transacted)


@THE_CORE_S
async def test_mode_zero_contradicts_transacted_false(jms: Jms) -> None:
    """S4."""
    with pytest.raises(JMSException, match="transacted"):
        await (await jms.connection()).create_session(0, transacted=False)


@THE_CORE_S
@pytest.mark.parametrize("java", [True, False])
async def test_the_java_call_gets_an_error_that_shows_the_python_one(jms: Jms, java: bool) -> None:
    """S3-S6."""
    with pytest.raises(TypeError, match=r"create_session\(AckMode\."):
        await (await jms.connection()).create_session(java)


@THE_CORE_S
@pytest.mark.parametrize("mode", NOT_TRANSACTED)
async def test_commit_and_rollback_need_a_transacted_session(jms: Jms, mode: AckMode) -> None:
    """S7."""
    session = await jms.session(mode)
    for call in (session.commit, session.rollback):
        with pytest.raises(IllegalStateException, match="transacted"):
            await call()
    await session.recover()


@THE_CORE_S
async def test_recover_is_not_for_transacted_sessions(jms: Jms) -> None:
    """S7."""
    session = await jms.session(AckMode.SESSION_TRANSACTED)
    with pytest.raises(IllegalStateException, match="rollback"):
        await session.recover()


@THE_CORE_S
async def test_a_negative_prefetch_is_refused_on_the_factory(jms: Jms) -> None:
    """S11."""
    for name in ("queuePrefetch", "topicPrefetch", "queueBrowserPrefetch", "durableTopicPrefetch", "all"):
        with pytest.raises(InvalidURLException, match=name):
            jms.factory(options={f"jms.prefetchPolicy.{name}": -1})


@THE_CORE_S
async def test_a_negative_prefetch_is_refused_on_the_destination(jms: Jms) -> None:
    """S11."""
    session = await jms.session()
    with pytest.raises(InvalidDestinationException, match=r"consumer\.prefetchSize"):
        await session.create_consumer(Queue(f"{jms.queue.name}?consumer.prefetchSize=-1"))


async def test_presettlement_is_ignored_for_consumers_of_a_transacted_session(jms: Jms) -> None:
    """S37."""
    await jms.send("a")
    session = await jms.session(AckMode.SESSION_TRANSACTED, options={"jms.presettlePolicy.presettleConsumers": "true"})
    consumer = await session.create_consumer(jms.queue)
    await take(consumer, 1)
    await session.rollback()
    messages = await take(consumer, 1)
    assert texts(messages) == ["a"]
    assert counts(messages) == [2]


@not_on("stomp-artemis", "STOMP: `ack:auto`, a close right behind a message returns it")
async def test_presettled_consumers_outside_transactions_leave_nothing_to_acknowledge(jms: Jms) -> None:
    """S36, S37."""
    await jms.send("a")
    session = await jms.session(AckMode.CLIENT_ACKNOWLEDGE, options={"jms.presettlePolicy.presettleConsumers": "true"})
    await take(await session.create_consumer(jms.queue), 1)
    await jms.left()
