"""What a signal handler that raises does to a connection of kombu: Ctrl-C, a time limit, or a step of the program."""

# kombu has no types
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import asyncio
import gc
import json
import select
import socket
import weakref
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("kombu", reason="the extra celery is not installed")
import kombu
from interrupting import Interrupt
from kombu.transport.virtual.base import BrokerState

import pyjmsack.kombu.channel
from pyjmsack import BytesMessage, Message, TextMessage
from pyjmsack.kombu.channel import Channel
from pyjmsack.kombu.connection import Connection
from pyjmsack.kombu.receiving import Delivery
from pyjmsack.kombu.window import Window


class Over(Exception):
    """The time limit of a program, which a signal handler raises."""


class Outcomes:
    """A message that notes its outcome."""

    __slots__ = ()
    outcomes: list[str]

    def accept(self) -> None:
        self.outcomes.append("accept")

    def reject(self) -> None:
        self.outcomes.append("reject")

    def release(self) -> None:
        self.outcomes.append("release")


class Noted(Outcomes, BytesMessage):
    """A task."""

    __slots__ = ("outcomes",)

    def __init__(self, number: int) -> None:
        super().__init__(json.dumps(number).encode())
        self.properties["kombu_content_type"] = "application/json"
        self.outcomes = []


class NotedText(Outcomes, TextMessage):
    """A text."""

    __slots__ = ("outcomes",)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.outcomes = []


class Local(Connection):
    """A connection without a broker, whose loop runs when the test says so."""

    def __init__(self) -> None:
        self.client = SimpleNamespace(transport_options={}, cycle=None)
        self.settings: Any = SimpleNamespace(largest=10_000_000)
        self.state = BrokerState()
        self.channels = []
        self._used_channel_ids = array("H")
        self._ready = deque()
        self.posted: deque[Callable[[], Any]] = deque()
        self._requeued = OrderedDict()
        self._signalled = self._told = self.owes = False
        self.error, self.closed = None, False
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)

    def post(self, call: Callable[..., Any], *arguments: Any) -> None:
        self.posted.append(partial(call, *arguments))

    def turn(self) -> None:
        while self.posted:
            self.posted.popleft()()

    def settle(self, delivery: Delivery, outcome: str) -> None:
        self.post(self._settle, delivery, outcome)

    def consume(self, owner: Any, tag: str, queue: str, window: Window, keep: Callable[[Any], None]) -> None:
        keep(SimpleNamespace(owner=owner, tag=tag, queue=queue, window=window))

    def arrive(self, message: Message | None = None, owner: Any = None) -> Delivery:
        feed = SimpleNamespace(owner=SimpleNamespace(deliver=lambda _: True)) if owner is None else owner.feed
        window = Window() if owner is None else feed.window
        window.held += 1
        delivery = Delivery("tasks", message or Noted(0), window, feed)  # type: ignore[arg-type]
        self.arrived(delivery)
        return delivery

    @property
    def readable(self) -> bool:
        poll = select.poll()  # which takes any descriptor, and other tests may have opened a thousand
        poll.register(self, select.POLLIN)
        return bool(poll.poll(0))

    def end(self) -> None:
        self.closed = True
        self._reader.close()
        self._writer.close()


def with_a_task(make: Callable[[], Local]) -> tuple[Local, Program, Noted]:
    """Return a connection where a task has arrived for a program."""
    connection = make()
    program, message = Program(connection), Noted(7)
    connection.arrive(message, program)
    return connection, program, message


@pytest.fixture
def make() -> Iterator[Callable[[], Local]]:
    """Makes connections."""
    made: list[Local] = []

    def new() -> Local:
        made.append(Local())
        return made[-1]

    yield new
    for one in made:
        one.end()


class Program:
    """A consumer of a program on a channel of its own."""

    def __init__(self, connection: Local, *, no_ack: bool = False) -> None:
        self.channel = Channel(connection)
        self.got: list[Any] = []
        consumer = kombu.Consumer(self.channel, [], callbacks=[lambda body, _: self.got.append(body)])
        self.channel.basic_consume("tasks", no_ack, consumer._receive_callback, "tag")
        self.feed = self.channel._feeds["tag"][0]


def each_step(scene: Callable[[], Callable[[], object]]) -> Iterator[int]:
    """Make a call again and again, with an interrupt one step later each time. Yield the step after each call."""
    step, left = 0, 0
    while left <= 0:
        step += 1
        interrupt = Interrupt(step)
        interrupt.run(scene())
        left = interrupt.left
        yield step
    assert step > 5


def test_a_message_after_an_interrupt_wakes_the_program(make: Callable[[], Local]) -> None:
    """The interrupt came when the byte was read and the note of it was still there, so no byte was written again, and
    ``drain_events`` waited for ever."""
    connections: list[Local] = []

    def scene() -> Callable[[], object]:
        connections.append(make())
        connections[-1].arrive()
        return lambda: connections[-1].drain(0)

    for step in each_step(scene):
        connection = connections[-1]
        while connection.has_more:
            connection.drain(0)
        with pytest.raises(TimeoutError):
            connection.drain(0)
        assert not connection.readable
        connection.arrive()
        assert connection.readable, f"after an interrupt at step {step}"


class Between:
    """The reading end of a connection, with a message that arrives before or after each read."""

    def __init__(self, connection: Local, moment: str) -> None:
        self._connection, self._inner, self._moment = connection, connection._reader, moment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def recv(self, size: int, *flags: int) -> bytes:
        if self._moment == "before":
            self._connection.arrive()
        try:
            return self._inner.recv(size, *flags)
        finally:
            if self._moment == "after":
                self._connection.arrive()


@pytest.mark.parametrize("earlier", [0, 1])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_message_that_arrives_while_the_signal_is_cleared_leaves_no_wrong_note(
    moment: str, earlier: int, make: Callable[[], Local]
) -> None:
    """The message behind it wakes the program."""
    connection = make()
    for _ in range(earlier):
        connection.arrive()
    inner = connection._reader
    connection._reader = Between(connection, moment)  # type: ignore[assignment]
    connection.clear_signal()
    connection._reader = inner
    while connection.deliver():
        pass
    connection.clear_signal()  # of the next call
    assert not connection.deliver()
    connection.arrive()
    assert connection.readable


@pytest.mark.parametrize("no_ack", [False, True], ids=["acknowledged", "no_ack"])
def test_a_message_whose_delivery_is_interrupted_comes_again_unless_the_program_has_it(
    no_ack: bool, make: Callable[[], Local]
) -> None:
    """Nobody had it, and it kept its place in the prefetch count for ever."""
    scenes: list[tuple[Local, Program, Delivery]] = []

    def scene() -> Callable[[], object]:
        connection = make()
        program = Program(connection, no_ack=no_ack)
        scenes.append((connection, program, connection.arrive(Noted(7), program)))
        connection.arrive(Noted(8), program)
        return connection.deliver

    for step in each_step(scene):
        connection, program, delivery = scenes[-1]
        assert delivery.given == (len(connection._ready) == 1), f"step {step}"
        if not delivery.given:
            assert connection.readable
            connection.deliver()
            assert program.got == [7], f"step {step}"
        connection.deliver()
        assert program.got[-1] == 8
        assert len(program.got) == len({*program.got})
        assert len(program.channel.qos._delivered) == (0 if no_ack else 2)


def test_an_interrupt_while_a_lane_is_woken_comes_when_the_program_has_the_message(make: Callable[[], Local]) -> None:
    """The message stayed unacknowledged, and the program did not have it."""

    def struck(call: Callable[..., Any], *arguments: Any) -> None:
        raise Over

    connection = make()
    program = Program(connection)
    connection.arrive(Noted(7), program)
    connection.post = struck  # type: ignore[method-assign]
    program.feed.window.blocked = True
    with pytest.raises(Over):
        connection.deliver()
    assert (program.got, connection.has_more) == ([7], False)


def test_the_error_of_a_signal_handler_makes_no_dead_letter(
    make: Callable[[], Local], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time limit ended while a good message was decoded. The message became a dead letter, and the program did not
    learn of its limit."""
    connection, program, message = with_a_task(make)
    read = pyjmsack.kombu.channel.from_jms

    def struck(message: Message) -> Any:
        monkeypatch.setattr(pyjmsack.kombu.channel, "from_jms", read)
        raise Over

    monkeypatch.setattr(pyjmsack.kombu.channel, "from_jms", struck)
    with pytest.raises(Over):
        connection.deliver()
    assert (message.outcomes, program.got) == ([], [])
    assert connection.deliver()
    assert (message.outcomes, program.got) == ([], [7])


def test_a_message_that_cannot_be_read_is_a_dead_letter_although_a_limit_ended_its_first_reading(
    make: Callable[[], Local], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, program, message = with_a_task(make)
    errors: list[Exception] = [Over(), ValueError(), ValueError(), ValueError()]

    def bad(message: Message) -> Any:
        raise errors.pop(0)

    monkeypatch.setattr(pyjmsack.kombu.channel, "from_jms", bad)
    with pytest.raises(Over):
        connection.deliver()
    assert message.outcomes == []
    assert connection.deliver()
    connection.turn()
    assert (message.outcomes, program.got, connection.has_more) == (["reject"], [], False)


def test_a_dead_letter_does_not_keep_its_message_in_memory(
    make: Callable[[], Local], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to 36 bodies of 1 MB waited for the garbage collector."""
    connection, program, message = with_a_task(make)

    def bad(message: Message) -> Any:
        raise ValueError

    monkeypatch.setattr(pyjmsack.kombu.channel, "from_jms", bad)
    kept = weakref.ref(message)
    del message
    gc.disable()
    try:
        assert connection.deliver()
        connection.turn()
        assert kept() is None
    finally:
        gc.enable()
    assert program.got == []


def test_nested_data_that_fails_by_different_errors_at_different_depths_is_a_dead_letter(
    make: Callable[[], Local],
) -> None:
    """At one depth the second reading, which had one more call above it, failed by another error. So the message was
    taken for a good one, and stayed the next one for ever."""
    connection = make()
    program = Program(connection)
    for depth in range(800, 1000):
        message = NotedText("[" * depth + "]" * depth)
        message.properties["kombu_envelope"] = 1
        connection.arrive(message, program)
        assert connection.deliver()
        connection.turn()
        assert message.outcomes == ["reject"], f"depth {depth}"
    assert program.got == []


def test_two_different_errors_of_one_message_do_not_keep_it_the_next_one_for_ever(
    make: Callable[[], Local], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, program, message = with_a_task(make)
    errors = cycle([Over, ValueError])

    def bad(message: Message) -> Any:
        raise next(errors)

    monkeypatch.setattr(pyjmsack.kombu.channel, "from_jms", bad)
    with pytest.raises(Over):
        connection.deliver()
    assert connection.deliver()
    connection.turn()
    assert (message.outcomes, program.got, connection.has_more) == (["reject"], [], False)


def test_a_message_is_no_dead_letter_because_its_channel_was_closed_while_it_was_read(
    make: Callable[[], Local], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, program, message = with_a_task(make)
    read = pyjmsack.kombu.channel.from_jms

    def closed_meanwhile(message: Message) -> Any:
        program.channel.closed = True  # by another thread
        return read(message)

    monkeypatch.setattr(pyjmsack.kombu.channel, "from_jms", closed_meanwhile)
    connection.deliver()
    connection.turn()
    assert message.outcomes == []


def test_a_message_of_a_closed_channel_goes_back_and_no_other_channel_gets_an_error(
    make: Callable[[], Local],
) -> None:
    """``drain_events`` of a healthy channel raised the error of the closed one."""
    connection, program, message = with_a_task(make)
    program.channel._feeds.clear()
    program.channel.closed = True
    connection.deliver()
    connection.turn()
    assert (message.outcomes, program.got, connection.has_more) == (["release"], [], False)


def test_a_message_whose_body_an_interrupt_left_undecoded_comes_again(
    make: Callable[[], Local], monkeypatch: pytest.MonkeyPatch
) -> None:
    """kombu had it, and the program did not. With a prefetch count of 1 the consumer got no other message."""
    connection, program, message = with_a_task(make)
    decode, errors = pyjmsack.kombu.channel.Received.decode, [Over]

    def struck(self: Any) -> Any:
        if errors:
            raise errors.pop()
        return decode(self)

    monkeypatch.setattr(pyjmsack.kombu.channel.Received, "decode", struck)
    with pytest.raises(Over):
        connection.deliver()
    assert (program.got, program.channel.qos._delivered) == ([], {})
    assert connection.deliver()
    assert (program.got, message.outcomes) == ([7], [])


@pytest.mark.parametrize("no_ack", [False, True], ids=["acknowledged", "no_ack"])
def test_a_message_that_an_interrupted_basic_get_received_goes_back(no_ack: bool, make: Callable[[], Local]) -> None:
    """It kept its place in the prefetch count until the channel was closed."""
    scenes: list[tuple[Local, Delivery, list[Any]]] = []

    def scene() -> Callable[[], object]:
        connection = make()
        channel, hands = Channel(connection), list[Any]()
        delivery = Delivery("tasks", Noted(7), Window() if no_ack else channel.qos.window)
        scenes.append((connection, delivery, hands))

        def get(queue: str, window: Window, hand: list[Delivery]) -> None:
            hands.append(hand)
            hand.append(delivery)

        connection.get = get  # type: ignore[method-assign]
        return lambda: channel.basic_get("tasks", no_ack)

    for step in each_step(scene):
        connection, delivery, hands = scenes[-1]
        connection.turn()
        if hands and hands[0] and not delivery.given and not no_ack:
            assert delivery.message.outcomes == ["release"], f"step {step}"  # type: ignore[attr-defined]
        assert len(delivery.message.outcomes) <= 1, f"step {step}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("verb", ["ack", "reject"])
def test_an_interrupted_acknowledgement_is_lost_at_no_step_and_can_be_repeated(
    verb: str, make: Callable[[], Local]
) -> None:
    """The message kept its place in the prefetch count for ever, and a second call did nothing."""
    scenes: list[tuple[Local, Program, Noted]] = []
    outcome = "accept" if verb == "ack" else "reject"

    def scene() -> Callable[[], object]:
        connection, message = make(), Noted(7)
        program = Program(connection)
        connection.arrive(message, program)
        connection.deliver()
        scenes.append((connection, program, message))
        (tag,) = program.channel.qos._delivered
        return lambda: getattr(program.channel.qos, verb)(tag)

    for step in each_step(scene):
        connection, program, message = scenes[-1]
        for tag in [*program.channel.qos._delivered]:
            getattr(program.channel.qos, verb)(tag)
        connection.turn()
        assert message.outcomes == [outcome], f"step {step}"
        assert (program.channel.qos.window.held, program.channel.qos._delivered) == (0, {})


def test_an_acknowledgement_whose_wait_is_interrupted_reaches_the_broker(make: Callable[[], Local]) -> None:
    """It was cancelled before it began."""

    def struck(coroutine: Coroutine[Any, Any, Any]) -> Any:
        coroutine.close()
        raise Over

    connection, message = make(), Noted(7)
    program = Program(connection)
    connection.arrive(message, program)
    connection.deliver()
    connection.call = struck  # type: ignore[method-assign]
    connection.settle = partial(Connection.settle, connection)  # type: ignore[method-assign]
    (tag,) = program.channel.qos._delivered
    with pytest.raises(Over):
        program.channel.basic_ack(tag)
    connection.turn()
    assert (message.outcomes, program.channel.qos.window.held) == (["accept"], 0)


class Ending(Local):
    """A connection that notes which consumers have ended."""

    alive = True  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[str] = []
        self.queues: Any = SimpleNamespace(is_temporary=lambda _: False)

    def cancel(self, feeds: Any) -> None:
        self.ended += [feed.tag for feed in feeds]


def test_the_end_of_a_consumer_that_was_interrupted_can_be_repeated() -> None:
    """Neither a second ``cancel`` nor the close of the channel found the consumer, which went on to take messages."""
    scenes: list[tuple[Ending, Program]] = []

    def scene() -> Callable[[], object]:
        connection = Ending()
        program = Program(connection)
        scenes.append((connection, program))
        return lambda: program.channel.basic_cancel("tag")

    for step in each_step(scene):
        connection, program = scenes[-1]
        program.channel.basic_cancel("tag")
        assert connection.ended in (["tag"], ["tag", "tag"]), f"step {step}"
        assert (program.channel.consumed, program.channel._consumers) == ([], set())
        connection.end()


def test_a_consumer_whose_start_was_interrupted_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The channel did not know it, and it took messages until the connection was closed."""

    def struck(self: Ending, *arguments: Any) -> None:
        Local.consume(self, *arguments)
        raise Over

    monkeypatch.setattr(Ending, "consume", struck)
    connection = Ending()
    channel = Channel(connection)
    with pytest.raises(Over):
        channel.basic_consume("tasks", False, print, "tag")
    channel.close()
    assert connection.ended == ["tag"]
    connection.end()


def test_a_channel_ends_its_consumers_at_the_same_time() -> None:
    """At a broker that stands still the end of each takes ten seconds."""
    connection = Ending()
    calls: list[list[str]] = []
    connection.cancel = lambda feeds: calls.append([feed.tag for feed in feeds])  # type: ignore[method-assign]
    channel = Channel(connection)
    for tag in ("one", "two"):
        channel.basic_consume("tasks", False, print, tag)
    channel.close()
    assert (calls, channel.consumed) == ([["one", "two"]], [])
    connection.end()


def test_the_end_of_a_consumer_goes_on_if_nobody_waits_for_it_any_more(make: Callable[[], Local]) -> None:
    """It stopped half-way: the consumer stayed open, and its messages waited for nobody."""
    connection, message = make(), Noted(7)
    program = Program(connection)
    connection.arrive(message, program)

    async def run() -> list[str]:
        may_go_on, closed = asyncio.Event(), list[str]()
        connection._closing = set()

        async def close() -> None:
            await may_go_on.wait()
            closed.append("tag")

        program.feed.close = close
        waiting = asyncio.get_running_loop().create_task(connection._cancel([program.feed]))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        may_go_on.set()
        await asyncio.gather(*connection._closing)
        return closed

    assert asyncio.run(run()) == ["tag"]
    assert (message.outcomes, connection.has_more) == (["release"], False)


def test_an_interrupted_close_ends_the_loop_of_the_connection() -> None:
    """The connection stayed open with all its messages, and a second call did nothing."""
    stopped: list[float] = []

    def struck(*_: object) -> None:
        raise Over

    connection = Local()
    connection._hubs = []
    connection._jms = SimpleNamespace(close=int)  # type: ignore[assignment]
    connection._loop = SimpleNamespace(foreign=False, call=struck, stop=stopped.append)  # type: ignore[assignment]
    with pytest.raises(Over):
        connection.close()
    assert len(stopped) == 1
