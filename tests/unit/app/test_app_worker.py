"""What a worker does with an error that is no ``Exception``."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from pyjmsack import (
    App,
    ConnectionLostException,
    Destination,
    Header,
    InvalidDestinationException,
    JMSException,
    JsonConverter,
    Message,
    MessageFormatException,
    Queue,
    RequestTimedOutException,
    ResourceAllocationException,
    Retry,
    TemporaryQueue,
    TemporaryTopic,
    TextMessage,
    TransactionRolledBackException,
    aio,
)
from pyjmsack.app import converters
from pyjmsack.app.worker import Worker


@dataclass
class Part:
    """A type of a body."""

    number: int


def worker_of(app: Any, mock: type[MagicMock], *messages: Any, name: str = "orders") -> tuple[Worker, Any]:
    """Return a worker of a listener of the app, and a connection that has these messages for it, or one message."""
    session = mock()
    consumer = session.create_consumer.return_value
    consumer.receive.side_effect = [*(messages or [TextMessage("body")]), None]
    consumer.stats.buffered = 0
    consumer._processing = MagicMock(return_value=None)
    connection = mock()
    connection.create_session.return_value = session
    listener = app.listeners[name]
    return Worker(app._face, listener, lambda: False, lambda: None, lambda: None, None), connection


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, BaseException])
def test_no_error_of_a_listener_or_its_on_error_ends_a_worker(error: type[BaseException]) -> None:
    app = App("amqp://localhost:1")
    told: list[BaseException] = []

    def on_error(raised: BaseException, _: Any) -> None:
        told.append(raised)
        raise error

    @app.listener("orders", on_error=on_error)
    def order(body: str) -> None:
        raise error

    worker, connection = worker_of(app, MagicMock)
    app._face.run(worker.run(connection))
    assert [type(each) for each in told] == [error]
    assert worker.counts.failed == 1
    assert worker.error is None
    connection.create_session.return_value.rollback.assert_called_once_with()


def test_the_log_shortens_an_error_that_quotes_a_body(caplog: pytest.LogCaptureFixture) -> None:
    """The error was logged whole with each delivery: 60 MB for a message of 20 MB."""
    app = App("amqp://localhost:1")

    @app.listener("orders")
    def order(body: str) -> None:
        raise ValueError(f"no order: {body}")

    worker, connection = worker_of(app, MagicMock, TextMessage("x" * 100_000))
    with caplog.at_level("INFO", "pyjmsack.app"):
        app._face.run(worker.run(connection))
    (line,) = [line for line in caplog.messages if "failed with" in line]
    assert "no order: xxx" in line
    assert len(line) < 9000


def test_an_error_whose_text_raises_leaves_its_message_with_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """S127: the text of an error is a method of the program."""

    class Textless(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    app = App("amqp://localhost:1")

    @app.listener("orders")
    def order(body: str) -> None:
        raise Textless

    monkeypatch.setattr("logging.raiseExceptions", False)
    worker, connection = worker_of(app, MagicMock)
    app._face.run(worker.run(connection))
    assert worker.counts.failed == 1
    assert worker.error is None
    connection.create_session.return_value.rollback.assert_called_once_with()


def test_a_cancelled_future_that_a_listener_awaited_is_an_error_of_the_listener() -> None:
    app = aio.App("amqp://localhost:1")

    @app.listener("orders")
    async def order(body: str) -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    worker, connection = worker_of(app, AsyncMock)
    asyncio.run(app._face.run(worker.run(connection)))
    assert worker.counts.failed == 1
    assert worker.error is None
    connection.create_session.return_value.rollback.assert_awaited_once_with()


def test_after_a_message_that_was_not_done_the_next_one_gets_a_new_producer() -> None:
    """A producer that the broker closed fails every transaction, and each failure counts a delivery."""
    app = App("amqp://localhost:1")

    @app.listener("orders")
    def order(body: str) -> None: ...

    worker, connection = worker_of(app, MagicMock)
    session = connection.create_session.return_value
    producers = [MagicMock(), MagicMock()]
    session.create_producer.side_effect = producers
    session.create_consumer.return_value.receive.side_effect = [
        TextMessage("1"),
        TextMessage("1"),
        TextMessage("2"),
        None,
    ]
    session.commit.side_effect = [TransactionRolledBackException("refused"), None, None]
    app._face.run(worker.run(connection))
    assert (worker.counts.rolled_back, worker.counts.succeeded) == (1, 2)
    assert session.create_producer.call_count == 2, "one more, and not one for each message"
    producers[0].close.assert_called_once_with()


def requests(number: int, reply_to: Destination | None) -> list[Message]:
    """Return as many deliveries of one request."""
    found: list[Message] = []
    for _ in range(number):
        message = TextMessage("1")
        message.reply_to, message._message_id, message._delivery = reply_to, "ID:1", MagicMock(heavy=False, size=1)
        message._delivery.identity.return_value = b"1"
        found.append(message)
    return found


def rolled_back(cause: Exception, *sent: str, in_doubt: bool = False) -> TransactionRolledBackException:
    error = TransactionRolledBackException("one of its sends failed", sent=("ID:a", *sent), in_doubt=in_doubt)
    error.__cause__ = cause
    return error


REFUSED = JMSException("the destination temp-queue://ID:2 does not exist")


@pytest.mark.parametrize(
    ("error", "reply_to", "late"),
    [
        (rolled_back(REFUSED), TemporaryQueue("ID:2"), True),
        (rolled_back(REFUSED), TemporaryTopic("ID:2"), True),
        (rolled_back(REFUSED), Queue("answers"), False),
        (rolled_back(ConnectionLostException("lost")), TemporaryQueue("ID:2"), False),
        (rolled_back(RequestTimedOutException("late")), TemporaryQueue("ID:2"), False),
        (rolled_back(REFUSED, in_doubt=True), TemporaryQueue("ID:2"), False),
        (rolled_back(ResourceAllocationException("full")), TemporaryQueue("ID:2"), False),
        (rolled_back(REFUSED, "ID:b"), TemporaryQueue("ID:2"), False),
    ],
    ids=["queue", "topic", "not temporary", "lost", "timed out", "in doubt", "full", "another send"],
)
def test_an_answer_that_the_broker_refused_is_sent_behind_the_commit_if_nobody_may_wait_for_it(
    error: TransactionRolledBackException, reply_to: Destination, late: bool
) -> None:
    """On Classic one requester that had left stopped its listener: each commit failed with the answer, for ever."""
    app = App("amqp://localhost:1")

    @app.listener("orders")
    def order(body: int) -> int:
        return body

    worker, connection = worker_of(app, MagicMock, *requests(2, reply_to))
    session = connection.create_session.return_value
    session.commit.side_effect = [error, None, rolled_back(REFUSED)]
    session.create_producer.return_value.send.side_effect = lambda message, *_: setattr(message, "_message_id", "ID:a")
    app._face.run(worker.run(connection))
    steps = [call[0] for call in session.mock_calls if call[0] in ("commit", "create_producer().send")]
    again = ["commit", "create_producer().send", "commit"] if late else ["create_producer().send", "commit"]
    assert steps == ["create_producer().send", "commit", *again]
    assert (worker.counts.rolled_back, worker.counts.succeeded, worker.counts.failed) == (1, 1, 0)
    assert worker.error is None
    assert not worker._listener.unanswered


def test_a_large_message_of_one_worker_does_not_hold_up_another_one() -> None:
    """All workers of a listener shared one thread: 5 KB waited for 8 s behind 10 MB."""
    app = aio.App("amqp://localhost:1")

    @app.listener("orders")
    async def order(body: str) -> None: ...

    workers = [worker_of(app, AsyncMock)[0] for _ in range(2)]
    begun, go_on = threading.Event(), threading.Event()

    def takes_long() -> bool:
        begun.set()
        return go_on.wait(60)

    async def main() -> None:
        slow = asyncio.ensure_future(workers[0]._away(takes_long)())
        assert await workers[1]._away(lambda: begun.wait(60))()
        go_on.set()
        assert await slow

    asyncio.run(main())


def test_the_send_timeout_of_an_app_limits_each_wait_of_its_sender_unless_the_url_does() -> None:
    limits = [
        App(url, send_timeout=seconds)._patience()
        for url, seconds in (
            ("failover:(amqp://a:1)", 1.5),
            ("amqp://a:1?jms.sendTimeout=5", 1.5),
            ("amqp://a:1?jms.requestTimeout=5", 90),
        )
    ]
    assert limits == [
        {"jms.sendTimeout": 1500, "jms.requestTimeout": 1500, "jms.closeTimeout": 1500},
        {},
        {"jms.sendTimeout": 90_000, "jms.closeTimeout": 60_000},
    ]


@pytest.mark.parametrize("connection", [None, "one"])
def test_a_stop_in_which_a_connection_does_not_end_is_not_reported_as_finished(connection: str | None) -> None:
    """A connection that was only being made has no listener at work."""
    app = App("amqp://localhost:1")
    task = MagicMock()
    task.join.return_value = False
    finished = app._face.run(app._joined(MagicMock(connection=connection), task, 0.0, 0.0))
    assert finished is (connection is None)
    task.abandon.assert_called_once_with()


# -- Retry(then="drop") counts the errors of the function for each message ---------------------------------------------


class Received(TextMessage):
    """A message whose methods can be replaced."""


def delivered(identity: bytes | None, *, delivery: int = 1, message_id: str = "ID:1", heavy: bool = False) -> Any:
    """Return a received message whose id is in use for other messages too, as some senders do."""
    message: Any = Received("body")
    message._message_id = message_id
    message._destination = Queue("orders")
    message._redelivery_count = delivery - 1
    message._delivery = SimpleNamespace(identity=lambda: identity, heavy=heavy, size=4)
    message.accept, message.modify = MagicMock(), MagicMock()
    return message


def outcomes(app: Any, *messages: Any) -> list[str]:
    """Let the app's only listener take the messages, and return what happened to each."""
    worker, connection = worker_of(app, MagicMock, *messages)
    app._face.run(worker.run(connection))
    assert worker.error is None
    return ["accepted" if each.accept.called else "given back" for each in messages]


def failing(*, limit: int, mode: str = "individual") -> App:
    """Return an app whose listener fails whenever it gets a message."""
    app = App("amqp://localhost:1")

    @app.listener("orders", mode=mode, retry=Retry(limit, delay=0, then="drop"))
    def order(body: str) -> None:
        raise ValueError("no")

    return app


def test_the_errors_of_a_message_do_not_count_for_another_message_with_its_id() -> None:
    """Some senders begin with the id 1 at each start. The second message was acknowledged after its first error."""
    first, other = delivered(b"a"), delivered(b"b")
    again = delivered(b"a", delivery=2)
    assert outcomes(failing(limit=1), first, other, again) == ["given back", "given back", "accepted"]


def test_a_message_that_was_dropped_or_succeeded_leaves_no_count_behind() -> None:
    assert outcomes(failing(limit=1), *[delivered(b"a", delivery=1 + number % 2) for number in range(4)]) == [
        "given back",
        "accepted",
        "given back",
        "accepted",
    ]
    app, fails = App("amqp://localhost:1"), iter([True, False, True])

    @app.listener("orders", mode="individual", retry=Retry(1, delay=0, then="drop"))
    def order(body: str) -> None:
        if next(fails):
            raise ValueError("no")

    messages = [delivered(b"a"), delivered(b"a", delivery=2), delivered(b"a")]
    assert outcomes(app, *messages) == ["given back", "accepted", "given back"]


def test_a_function_that_sends_its_message_on_changes_neither_the_count_nor_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A send writes a new id and destination into the message. So each error counted for another message."""
    app = App("amqp://localhost:1")

    @app.listener("orders", mode="individual", retry=Retry(1, delay=0, then="drop"))
    def order(message: Message) -> None:
        message._message_id, message._destination, message._redelivery_count = "ID:new", Queue("elsewhere"), 0
        raise ValueError("no")

    assert outcomes(app, delivered(b"a"), delivered(b"a", delivery=2)) == ["given back", "accepted"]
    assert "gives up ID:1 after 2 deliveries: drop" in caplog.text
    assert "failed with ID:1, delivery 2" in caplog.text
    assert "ID:new" not in caplog.text


def test_an_answer_has_the_id_of_the_request_although_the_function_sent_the_request_on() -> None:
    app = App("amqp://localhost:1")

    @app.listener("orders", reply_to="answers")
    def order(message: Message) -> str:
        message._message_id = "ID:new"
        return "done"

    worker, connection = worker_of(app, MagicMock, delivered(b"a"))
    app._face.run(worker.run(connection))
    producer = connection.create_session.return_value.create_producer.return_value
    ((answer, where),) = [call.args for call in producer.send.call_args_list]
    assert (answer.correlation_id, where) == ("ID:1", Queue("answers"))


@pytest.mark.parametrize("mode", ["individual", "transacted"])
def test_a_message_without_an_identity_is_never_dropped_nor_said_to_be(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S113: in a transacted session, the log said that the message is given up, but the message came again."""
    messages = [delivered(None, delivery=1 + number) for number in range(3)]
    assert outcomes(failing(limit=0, mode=mode), *messages) == ["given back"] * 3
    assert "gives up" not in caplog.text


class Unreadable(Received):
    """A message whose headers cannot be decoded."""

    @property
    def message_id(self) -> str | None:
        raise MessageFormatException("a header line has no colon")


def test_a_message_whose_headers_cannot_be_decoded_costs_itself_alone() -> None:
    """S166: a producer of Java may give a property a name with a line feed. The worker ended, and so did the next."""
    app, seen = App("amqp://localhost:1"), list[str]()

    @app.listener("orders", mode="individual")
    def order(message: Message) -> None:
        seen.append(str(message.body))
        assert message.message_id

    bad: Any = Unreadable("bad")
    bad._delivery, bad.modify, bad.accept = SimpleNamespace(heavy=False, size=4), MagicMock(), MagicMock()
    assert outcomes(app, bad, delivered(b"a")) == ["given back", "accepted"]
    assert seen == ["bad", "body"]


def test_in_asyncio_a_thread_computes_the_identity_of_a_large_message() -> None:
    app, threads = aio.App("amqp://localhost:1"), []

    @app.listener("orders", mode="individual", retry=Retry(0, then="drop"))
    async def order(body: str) -> None:
        raise ValueError("no")

    message = delivered(b"a", heavy=True)
    message.accept = AsyncMock()
    message._delivery.identity = lambda: threads.append(threading.current_thread())
    worker, connection = worker_of(app, AsyncMock, message)
    message.modify = AsyncMock()
    asyncio.run(app._face.run(worker.run(connection)))
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


class Noting(JsonConverter):
    """A converter that notes the thread on which it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[int] = []

    def from_message(self, message: Message, wanted: Any) -> Any:
        self.threads.append(threading.get_ident())
        return super().from_message(message, wanted)


@pytest.mark.parametrize(("size", "own", "on_loop"), [(4096, False, True), (4097, False, False), (4097, True, True)])
def test_large_json_is_read_on_a_thread_so_that_the_loop_goes_on(
    size: int, own: bool, on_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JSON of one message of 20 MB stood a loop still for five seconds. A converter of the program, such as a
    subclass, stays on the loop."""
    converter = Noting()
    if not own:
        monkeypatch.setattr(converters, "JsonConverter", Noting)
    app = aio.App("amqp://localhost:1", converter=converter)
    got: list[Any] = []

    @app.listener("orders")
    async def order(body: dict[str, int], of: Annotated[str, Header("of")]) -> None:
        got.append((body, of, threading.get_ident()))

    message = TextMessage('{"a": 1}')
    message.properties["of"] = "x"
    message._delivery = SimpleNamespace(size=size, identity=lambda: None)
    worker, connection = worker_of(app, AsyncMock, message)
    asyncio.run(app._face.run(worker.run(connection)))
    assert got == [({"a": 1}, "x", threading.get_ident())]
    assert (converter.threads == [threading.get_ident()]) is on_loop


@pytest.mark.parametrize(
    ("wanted", "types", "largest"),
    [
        *((each, {}, 65_536) for each in (Any, object, dict, list, str, bytes, int, None)),
        *((each, {}, 4096) for each in (list[int], dict[str, int], Part, Part | None, Annotated[list[int], []])),
        (Any, {"part": Part}, 4096),
    ],
)
def test_json_that_is_built_as_a_type_is_read_on_a_thread_from_a_smaller_size_on(
    wanted: Any, types: dict[str, type], largest: int
) -> None:
    """60 KB of JSON for a list of dataclasses stood a loop still for 0.3 seconds."""
    converter = JsonConverter("_type" if types else None, types)
    message = TextMessage("[]")
    for size, on_thread in ((largest, False), (largest + 1, True)):
        message._delivery = SimpleNamespace(size=size)
        assert converters.reads_on_thread(converter, message, wanted) is on_thread


@pytest.mark.parametrize("error", [StopIteration, SystemExit, ValueError])
def test_an_error_of_a_type_that_is_made_on_a_thread_is_one_of_its_message_s127(error: type[BaseException]) -> None:
    """A ``StopIteration`` of a thread never came back, and its worker stood still for ever."""

    @dataclass
    class Body:
        a: int

        def __post_init__(self) -> None:
            raise error("no body")

    app = aio.App("amqp://localhost:1")

    async def order(body: Any) -> None:
        raise AssertionError("there is no body")

    order.__annotations__["body"] = Body  # a local class has no name for an annotation
    app.listener("orders")(order)
    message = TextMessage('{"a": 1}')
    message._delivery = SimpleNamespace(size=100_000, heavy=False, identity=lambda: None)
    worker, connection = worker_of(app, AsyncMock, message)
    asyncio.run(app._face.run(worker.run(connection)))
    assert (worker.counts.failed, worker.error) == (1, None)


def test_the_threads_of_the_loop_may_all_be_busy_while_large_json_is_read() -> None:
    """They belong to the program, and no listener got a large message while the program kept them busy."""
    app = aio.App("amqp://localhost:1")
    got: list[Any] = []

    @app.listener("orders")
    async def order(body: Any) -> None:
        got.append(body)

    message = TextMessage('{"a": 1}')
    message._delivery = SimpleNamespace(size=100_000, identity=lambda: None)
    worker, connection = worker_of(app, AsyncMock, message)
    over = threading.Event()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, over.wait)
        await app._face.run(worker.run(connection))
        over.set()
        await busy

    asyncio.run(main())
    assert got == [{"a": 1}]


def test_a_listener_does_not_wait_for_the_large_json_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """All apps of a process shared two threads: 20 messages of 7 MB held up those of other listeners for 111 s."""
    over, got = threading.Event(), []

    def read(text: str, most: int, **how: Any) -> Any:
        return over.wait() if text == "[]" else json.loads(text)

    monkeypatch.setattr(converters, "read_json", read)
    app = aio.App("amqp://localhost:1")

    @app.listener("slow")
    async def slow(body: Any) -> None: ...

    @app.listener("orders")
    async def order(body: Any) -> None:
        got.append((body, over.is_set()))

    async def main() -> None:
        workers = [worker_of(app, AsyncMock, large("[]"), name="slow") for _ in range(3)]
        slow = [asyncio.create_task(app._face.run(worker.run(connection))) for worker, connection in workers]
        await asyncio.sleep(0)
        worker, connection = worker_of(app, AsyncMock, large('{"a": 1}'))
        await app._face.run(worker.run(connection))
        over.set()
        await asyncio.gather(*slow)

    asyncio.run(main())
    assert got == [({"a": 1}, False)]


def large(text: str) -> TextMessage:
    message = TextMessage(text)
    message._delivery = SimpleNamespace(size=100_000, identity=lambda: None)
    return message


def test_a_child_process_made_by_fork_has_threads_of_its_own() -> None:
    """The threads of the parent do not exist in the child, which waited for them for ever."""
    source = """
import asyncio, os
from pyjmsack.aio import App
away = App("amqp://localhost:1")._face.away("reader")
asyncio.run(away(os.getpid)())
if (child := os.fork()) == 0:
    os._exit(asyncio.run(away(lambda: 7)()))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == ["7"]


@pytest.mark.parametrize(
    ("error", "length", "done"),
    [
        (InvalidDestinationException("refused here (S67)"), 10, True),
        (MessageFormatException("the correlation id is too long"), 70_000, True),
        (MessageFormatException("the body of the answer"), 2_000, False),
        (InvalidDestinationException("not now", error_code="amqp:not-found"), 10, False),
        (ResourceAllocationException("full"), 70_000, False),
    ],
)
def test_what_a_requester_wrote_fails_its_answer_only_and_what_the_listener_wrote_fails_the_message(
    error: JMSException, length: int, done: bool
) -> None:
    """One request with an id that Classic cannot store stopped the listener for ever."""
    app = App("amqp://localhost:1")
    app.listener("orders")(lambda body: "answer")
    request = TextMessage("body")
    request.reply_to, request.correlation_id = Queue("answers"), "c" * length
    worker, connection = worker_of(app, MagicMock, request)
    session = connection.create_session.return_value
    session.create_producer.return_value.send.side_effect = error
    app._face.run(worker.run(connection))
    assert (worker.counts.succeeded, worker.counts.failed) == ((1, 0) if done else (0, 1))
    assert (session.commit.call_count, session.rollback.call_count) == ((1, 0) if done else (0, 1))
