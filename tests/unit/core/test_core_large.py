"""Large messages are decoded on a thread if callers run on the loop, and keep their place in the inbox meanwhile."""

from __future__ import annotations

import pytest
from core_fakes import Bench, FakeInbound, FakeRuntime

from pyjmsack.core.browsing import Browser
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.requestor import Requestor
from pyjmsack.destination import Destination, Queue
from pyjmsack.errors import RequestTimedOutException
from pyjmsack.message import Message, TextMessage
from pyjmsack.spi.envelope import LARGE
from pyjmsack.types import Outcome


class Large(FakeInbound):
    """A message with so many bytes that it is decoded on a thread."""

    def __init__(self, name: str, *, broken: bool = False, correlation_id: str | None = None) -> None:
        super().__init__(name, broken=broken)
        self.size = LARGE + 1
        self.quick = False
        self.correlation_id = correlation_id
        self.decoded = 0

    def to_message(self, destination: Destination, /) -> Message:
        self.decoded += 1
        return super().to_message(destination)


def bench(*options: str, callers_on_loop: bool = True) -> Bench:
    runtime = FakeRuntime()
    runtime.callers_on_loop = callers_on_loop
    return Bench(*options, runtime=runtime)


def receive(bench: Bench, consumer: Consumer, timeout: float | None = 1) -> str | None:
    message = bench.run(consumer.receiving.receive(timeout))
    assert message is None or isinstance(message, TextMessage)
    return None if message is None else message.text


@pytest.mark.parametrize("timeout", [None, 0, 1])
def test_receive_waits_until_a_thread_has_decoded_a_large_message_s166(timeout: float | None) -> None:
    it = bench()
    consumer, large = it.consumer(), Large("large")
    it.arrive(consumer, large, "small")
    assert consumer.receiving.receive_now() is None
    assert large.decoded == 0
    it.runtime.meanwhile.append(it.runtime.work_off)
    assert receive(it, consumer, timeout) == "large"
    assert large.decoded == 1
    assert receive(it, consumer, timeout) == "small"
    assert it.outcomes() == [("large", Outcome.ACCEPTED), ("small", Outcome.ACCEPTED)]


def test_the_blocking_face_decodes_on_the_thread_of_the_caller() -> None:
    it = bench(callers_on_loop=False)
    consumer, large = it.consumer(), Large("large")
    it.arrive(consumer, large)
    assert receive(it, consumer) == "large"
    assert not it.runtime.work


def test_a_large_text_needs_no_thread_because_it_is_quickly_decoded() -> None:
    it = bench()
    consumer, large = it.consumer(), Large("large")
    large.quick = True
    it.arrive(consumer, large)
    assert receive(it, consumer) == "large"
    assert not it.runtime.work


class WithProperties(Large):
    """A message whose properties are decoded when somebody reads one."""

    loaded = 0

    def to_message(self, destination: Destination, /) -> Message:
        message = TextMessage.__new__(TextMessage)
        message._lazy, message._body = self, self.name
        return message

    def load_properties(self) -> dict[str, object]:
        self.loaded += 1
        return {"region": "north"}

    def load_header(self, slot: str) -> None:
        """Return nothing: the message has no headers."""


def test_the_properties_of_a_large_message_are_decoded_on_the_thread_as_well_s166() -> None:
    """A property of 90 MB in Java's modified UTF-8 stopped the loop for 47 s when the program read any property."""
    it = bench()
    consumer, large = it.consumer(), WithProperties("large")
    it.arrive(consumer, large)
    assert consumer.receiving.receive_now() is None
    assert large.loaded == 0
    it.runtime.work_off()
    assert large.loaded == 1
    message = consumer.receiving.receive_now()
    assert message is not None
    assert message.get_string_property("region") == "north"
    assert large.loaded == 1


def test_only_the_next_message_is_decoded_because_decoded_messages_take_much_memory() -> None:
    it = bench()
    consumer, first, second = it.consumer(), Large("first"), Large("second")
    it.arrive(consumer, first, second)
    it.runtime.meanwhile.append(it.runtime.work_off)
    assert receive(it, consumer) == "first"
    assert second.decoded == 0


def test_a_receive_that_gives_up_leaves_the_message_at_the_head_of_the_inbox_s22() -> None:
    it = bench("jms.requestTimeout=1000")
    consumer = it.consumer()
    it.arrive(consumer, Large("large"), "small")
    with pytest.raises(RequestTimedOutException, match="large"):
        receive(it, consumer)
    it.runtime.work_off()
    assert [receive(it, consumer), receive(it, consumer)] == ["large", "small"]


def test_a_receive_with_a_timeout_ends_although_nobody_decides_whether_its_message_may_be_handed_out_s22(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guard's file that could not be opened made ``receive(3)`` wait for ever."""
    monkeypatch.setattr("pyjmsack.core.receiving._PATIENCE", 1.0)
    it = bench()
    consumer = it.consumer()
    it.arrive(consumer, Large("large"))
    with pytest.raises(RequestTimedOutException, match="duplicateGuard does not answer"):
        receive(it, consumer, 3)
    it.runtime.work_off()
    assert receive(it, consumer) == "large"


def test_a_message_that_is_decoded_when_its_consumer_closes_goes_back_to_the_broker_s84() -> None:
    it = bench()
    consumer = it.consumer()
    it.arrive(consumer, Large("large"))
    assert consumer.receiving.receive_now() is None
    it.run(consumer.close())
    it.runtime.work_off()
    assert it.outcomes() == [("large", Outcome.RELEASED)]


def test_after_a_loss_another_delivery_is_decoded_and_the_old_one_is_forgotten_s101() -> None:
    it = bench()
    consumer, old, new = it.consumer(), Large("old"), Large("new")
    it.arrive(consumer, old)
    assert consumer.receiving.receive_now() is None
    consumer.interrupted()
    it.arrive(consumer, new)
    assert consumer.receiving.receive_now() is None
    work, then = it.runtime.work.popleft()
    work()
    then()
    assert consumer.stalled, "the new delivery is not decoded yet"
    it.runtime.work_off()
    assert receive(it, consumer) == "new"
    assert new.decoded == 1


def test_who_waits_for_a_large_message_that_is_gone_after_a_loss_is_woken_s101() -> None:
    """The message went to another consumer, and a ``receive`` waited for ever, whatever its timeout was."""
    it = bench()
    consumer = it.consumer()
    it.arrive(consumer, Large("old"))
    assert consumer.receiving.receive_now() is None
    arrival = consumer.inbox.expect()
    consumer.interrupted()
    it.runtime.work_off()
    assert arrival.done


def test_a_large_message_that_cannot_be_decoded_is_refused_as_a_small_one_s166() -> None:
    it = bench()
    consumer = it.consumer()
    it.arrive(consumer, Large("bad", broken=True), "good")
    it.runtime.meanwhile.append(it.runtime.work_off)
    assert receive(it, consumer) == "good"
    assert it.outcomes() == [("bad", Outcome.MODIFIED_FAILED_UNDELIVERABLE), ("good", Outcome.ACCEPTED)]


def test_an_error_of_a_codec_on_the_thread_comes_when_the_body_is_read() -> None:
    """It held up the message and everything behind it for ever."""

    class Unprepared(TextMessage):
        def _prepare(self) -> None:
            raise SystemExit

    class Odd(Large):
        def to_message(self, destination: Destination, /) -> Message:
            super().to_message(destination)
            return Unprepared("odd")

    it = bench()
    consumer = it.consumer()
    it.arrive(consumer, Odd("odd"), "small")
    it.runtime.meanwhile.append(it.runtime.work_off)
    assert [receive(it, consumer), receive(it, consumer)] == ["odd", "small"]


def test_a_large_message_waits_once_for_its_local_redelivery_s83() -> None:
    """A message that goes back to the broker after its delay was delayed again behind the thread."""
    it = bench("jms.redeliveryPolicy.maxRedeliveries=1", "jms.redeliveryPolicy.outcome=RELEASED")
    consumer, large = it.consumer(), Large("large")
    large.redelivery_count = 2
    it.arrive(consumer, large)
    for _ in range(3):
        assert consumer.receiving.receive_now() is None
        it.runtime.work_off()
    (timer,) = it.runtime.timers
    timer[1]()
    it.runtime.turn()
    for _ in range(3):
        consumer.receiving.receive_now()
        it.runtime.work_off()
    assert len(it.runtime.timers) == 1
    assert [outcome for _, outcome in it.outcomes()] == [Outcome.RELEASED]


def test_a_listener_gets_a_large_message_when_it_is_decoded() -> None:
    it = bench()
    session = it.session()
    consumer, got = it.consumer(session), []
    consumer.listening.set(got.append, 1)
    it.arrive(consumer, Large("large"), "small")
    assert consumer.take_for_listener() is None
    consumer.listening.unscheduled()
    it.runtime.work_off()
    assert consumer.listening._scheduled
    taken = [consumer.take_for_listener(), consumer.take_for_listener()]
    assert [message.text for message in taken if isinstance(message, TextMessage)] == ["large", "small"]


def test_a_browser_waits_for_a_large_message_s134() -> None:
    it = bench()
    consumer = it.run(it.session().create_consumer(Queue("q"), None, False, browser=True))
    it.arrive(consumer, Large("large"))
    it.runtime.meanwhile.append(it.runtime.work_off)
    message = it.run(Browser(consumer).next())
    assert isinstance(message, TextMessage)
    assert message.text == "large"


def test_each_of_several_large_replies_is_decoded_on_the_thread() -> None:
    it = bench()
    it.provider.create_temporary = lambda info, named: named.succeed("replies")
    steps = Requestor.open(it.connection, it.session(), Queue("service"), it.run)
    requestor: Requestor = it.run(steps)
    requests = [requestor.send(TextMessage("?"), None, None, None, None) for _ in range(2)]
    replies = [Large(f"reply {number}", correlation_id=f"asked {number}") for number in range(2)]
    strange = Large("nobody asked", correlation_id="nobody")
    broken = Large("broken", broken=True, correlation_id="asked 0")
    for number, request in enumerate(requests):
        requestor._requests[f"asked {number}"] = request
    it.arrive(requestor._consumer, strange, broken, *replies)
    it.runtime.work_off()
    assert [len(request.replies) for request in requests] == [2, 1]
    assert [reply.decoded for reply in replies] == [1, 1]
    for number, request in enumerate(requests):
        message = it.run(requestor.wait(request, 1))
        assert isinstance(message, TextMessage)
        assert message.text == f"reply {number}"
    assert [reply.decoded for reply in replies] == [1, 1], "a reply was decoded again, on the loop"
    assert strange.decoded == 0, "a reply that nobody wants held up the others"
