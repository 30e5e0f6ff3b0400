"""A transfer asks once for each message where the message goes."""

from __future__ import annotations

import json
import re
from concurrent.futures import Future
from contextlib import closing
from typing import Any
from unittest.mock import MagicMock, PropertyMock

import pytest
from click.testing import CliRunner

from pyjmsack import (
    AckMode,
    ConnectionLostException,
    InvalidDestinationException,
    JMSException,
    Message,
    MessageFormatException,
    Queue,
    ResourceAllocationException,
    SendTimedOutException,
    TextMessage,
    TransactionRolledBackException,
    UnsupportedFeatureException,
)
from pyjmsack.cli import transfer
from pyjmsack.cli.dlq.moving import Round, run_rounds
from pyjmsack.cli.errors import Failure
from pyjmsack.cli.existing import Checked
from pyjmsack.cli.move import copy
from pyjmsack.cli.resending import DUPLICATE_ID, renewed
from pyjmsack.cli.stopping import Stop, stop_on_signals
from pyjmsack.cli.transfer import Pace, Transfer, check_apart

UNSENDABLE = [InvalidDestinationException, MessageFormatException, UnsupportedFeatureException]


class _Received(TextMessage):
    """A message that takes an acknowledgement, although no session gave it. The broker noted nothing about its past."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.reply_to = Queue("replies")
        self._delivery = MagicMock(lossy=False)
        self._delivery.original_destination.return_value = None

    def acknowledge(self) -> None:
        """Do nothing."""


def takes(producer: MagicMock, send: Any) -> None:
    """Let a producer give each message to ``send``, whichever of its methods gets the message."""
    producer.send.side_effect = send

    def send_async(*message: Any, **how: Any) -> MagicMock:
        producer.send(*message, **how)
        return MagicMock()

    producer.send_async.side_effect = send_async


def broker_with(messages: list[Any], guarantee: str) -> tuple[Any, MagicMock]:
    """Return the login of a broker that has these messages, and the session of each connection."""
    login: Any = MagicMock()
    connection = login.factory.return_value.create_connection.return_value.__enter__.return_value
    connection.metadata.transaction_guarantee = guarantee
    connection.metadata.capabilities = ()
    session = connection.create_session.return_value.__enter__.return_value
    session.create_consumer.return_value.receive.side_effect = messages
    session.create_consumer.return_value.stats.poisoned = 0
    return login, session


@pytest.mark.parametrize("guarantee", ["atomic", "none"], ids=["in transactions", "one by one"])
def test_each_message_goes_where_the_one_question_said(guarantee: str) -> None:
    messages = [_Received(text) for text in ("a", "b")]
    asked: list[Message] = []

    def target(message: Message) -> Queue:
        asked.append(message)
        return Queue(f"place {len(asked)}")

    login, session = broker_with(messages, guarantee)
    with closing(Stop()) as stop:
        assert Transfer("source", target, limit=2).run(login, Pace(None, stop), stop, lambda count, note: None) == 2
    producer = session.create_producer.return_value
    # each copy is confirmed before its original is acknowledged, also if the message is not persistent
    sends = (producer.send if guarantee == "atomic" else producer.send_async).call_args_list
    assert [call.args for call in sends] == [(messages[0], Queue("place 1")), (messages[1], Queue("place 2"))]
    assert asked == messages


@pytest.mark.parametrize(("limit", "prefetch"), [(None, 8), (3, 3)], ids=["all", "limited"])
def test_a_transaction_does_not_fill_the_window_of_its_consumer(limit: int | None, prefetch: int) -> None:
    """The log warned that the consumer holds as many as it may. A limited move takes no more than its limit."""
    login, session = broker_with([None], "atomic")
    session.create_consumer.return_value.receive_nowait.return_value = None
    with closing(Stop()) as stop:
        Transfer("source", lambda _: Queue("t"), limit=limit, batch=7).run(login, Pace(None, stop), stop, MagicMock())
    assert login.factory.call_args.kwargs["jms__prefetchPolicy__queuePrefetch"] == prefetch


@pytest.mark.parametrize("guarantee", ["atomic", "none"], ids=["in transactions", "one by one"])
def test_a_transfer_to_one_target_has_a_producer_that_is_bound_to_it(guarantee: str) -> None:
    """Classic found no target in some odd messages of a producer that was not bound."""
    messages = [_Received("a"), _Received("b")]
    login, session = broker_with(messages, guarantee)
    job = Transfer("source", lambda _: Queue("t"), limit=2, only_target=Queue("t"))
    with closing(Stop()) as stop:
        assert job.run(login, Pace(None, stop), stop, lambda count, note: None) == 2
    session.create_producer.assert_called_once_with(Queue("t"))
    producer = session.create_producer.return_value
    sends = (producer.send if guarantee == "atomic" else producer.send_async).call_args_list
    assert [call.args for call in sends] == [(message,) for message in messages]


@pytest.mark.parametrize("error", UNSENDABLE)
@pytest.mark.parametrize("guarantee", ["atomic", "none"], ids=["in transactions", "one by one"])
def test_a_message_that_cannot_be_sent_stays_and_the_others_are_moved(
    guarantee: str, error: type[JMSException], capsys: pytest.CaptureFixture[str]
) -> None:
    """It stopped all others, and each try counted a delivery of them, up to the dead-letter queue."""
    first, second = ([_Received(text) for text in ("a", "bad", "b", "bad")] for _ in range(2))
    tries = [*first[:2], *second, None] if guarantee == "atomic" else [*second, None]
    sent: list[str | None] = []

    def send(message: TextMessage, target: Queue, **how: Any) -> None:
        if message.text == "bad":
            raise error("too odd")
        sent.append(message.text)

    login: Any = MagicMock()
    connection = login.factory.return_value.create_connection.return_value.__enter__.return_value
    connection.metadata.transaction_guarantee = guarantee
    connection.metadata.capabilities = ()
    session = connection.create_session.return_value.__enter__.return_value
    connection.create_session.return_value.__exit__.return_value = None
    session.create_consumer.return_value.receive.side_effect = tries
    session.create_consumer.return_value.stats.poisoned = 0
    session.create_consumer.return_value.receive_nowait.return_value = None
    takes(session.create_producer.return_value, send)
    with closing(Stop()) as stop:
        job = Transfer("source", lambda _: Queue("t"))
        moved = job.run(login, Pace(None, stop), stop, lambda count, note: None)
    assert moved == 2
    assert sent[-2:] == ["a", "b"]
    session.commit.assert_not_called()
    said = capsys.readouterr().err
    assert "A message stays in source: too odd" in said
    assert job.reasons() == ["2 messages had to stay in source, because this protocol or broker cannot carry them"]


@pytest.mark.parametrize("code", ["amqp:not-found", None])
def test_a_target_that_the_broker_refuses_ends_the_run_also_for_messages_with_a_reply_to(code: str | None) -> None:
    """Otherwise each message would stay, one after the other."""
    message = _Received("a")
    if code is None:
        message.reply_to = None
    login: Any = MagicMock()
    login.factory.return_value.create_connection.return_value.__exit__.return_value = None
    connection = login.factory.return_value.create_connection.return_value.__enter__.return_value
    connection.metadata.transaction_guarantee = "atomic"
    session = connection.create_session.return_value.__enter__.return_value
    connection.create_session.return_value.__exit__.return_value = None
    session.create_consumer.return_value.receive.side_effect = [message]
    session.create_consumer.return_value.stats.poisoned = 0
    takes(session.create_producer.return_value, InvalidDestinationException("no such queue", error_code=code))
    with closing(Stop()) as stop, pytest.raises(InvalidDestinationException):
        Transfer("source", lambda _: Queue("t")).run(login, Pace(None, stop), stop, lambda count, note: None)


@pytest.mark.parametrize("refused_at", ["send", "commit"])
def test_a_letter_that_the_broker_refuses_for_its_queue_stays_and_the_others_go(
    refused_at: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stopped all others, each time."""
    first, second = ([_Received(text) for text in ("a", "full", "b")] for _ in range(2))
    sent: list[str | None] = []
    sessions: list[Any] = []

    def send(message: TextMessage, target: Queue, **how: Any) -> None:
        if message.text == "full" and (refused_at == "send" or len(sessions) > 1):
            raise ResourceAllocationException("the queue is full")
        sent.append(message.text)

    def session(mode: AckMode) -> Any:
        made = MagicMock()
        made.__enter__.return_value = made
        made.__exit__.return_value = None
        made.create_consumer.return_value.receive.side_effect = [*(second if sessions else first), None]
        made.create_consumer.return_value.stats.poisoned = 0
        made.create_consumer.return_value.receive_nowait.return_value = None
        takes(made.create_producer.return_value, send)
        made.commit.side_effect = TransactionRolledBackException("a send failed")
        sessions.append(made)
        return made

    login: Any = MagicMock()
    connection = login.factory.return_value.create_connection.return_value.__enter__.return_value
    connection.metadata.transaction_guarantee = "atomic"
    connection.metadata.capabilities = ()
    connection.create_session.side_effect = session
    job = Transfer("source", lambda message: Queue("t"), each_its_own=True)
    with closing(Stop()) as stop:
        assert job.run(login, Pace(None, stop), stop, lambda count, note: None) == 2
    assert sent[-2:] == ["a", "b"]
    assert sessions[1].create_producer.call_count == 2, "a broker that refuses a message may have ended its link"
    said = capsys.readouterr().err
    assert "A message stays in source: the queue is full" in said
    assert job.reasons() == ["1 message had to stay in source, because they cannot be sent"]


def test_a_copy_that_is_not_confirmed_in_time_ends_the_run_and_its_original_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S66: one by one, also for a message that is not persistent."""
    acknowledged: list[Message] = []
    monkeypatch.setattr(_Received, "acknowledge", acknowledged.append)
    login: Any = MagicMock()
    factory = login.factory.return_value
    factory._url.connection.send_timeout = 0.01
    factory.create_connection.return_value.__exit__.return_value = None
    connection = factory.create_connection.return_value.__enter__.return_value
    connection.metadata.transaction_guarantee = "none"
    connection.metadata.capabilities = ()
    session = connection.create_session.return_value.__enter__.return_value
    connection.create_session.return_value.__exit__.return_value = None
    session.create_consumer.return_value.receive.side_effect = [_Received("a")]
    session.create_consumer.return_value.stats.poisoned = 0
    session.create_producer.return_value.send_async.return_value = Future()
    with closing(Stop()) as stop, pytest.raises(SendTimedOutException, match=r"jms\.sendTimeout \(0\.01 s\)"):
        Transfer("source", lambda _: Queue("t")).run(login, Pace(None, stop), stop, lambda count, note: None)
    assert acknowledged == []


@pytest.mark.parametrize("each_its_own", [True, False])
def test_a_lost_connection_or_a_target_of_all_that_is_refused_ends_the_run(each_its_own: bool) -> None:
    error = ConnectionLostException("lost") if each_its_own else ResourceAllocationException("the queue is full")
    login: Any = MagicMock()
    connection = login.factory.return_value.create_connection.return_value.__enter__.return_value
    connection.metadata.transaction_guarantee = "atomic"
    session = connection.create_session.return_value.__enter__.return_value
    connection.create_session.return_value.__exit__.return_value = None
    login.factory.return_value.create_connection.return_value.__exit__.return_value = None
    session.create_consumer.return_value.receive.side_effect = [_Received("a")]
    session.create_consumer.return_value.stats.poisoned = 0
    takes(session.create_producer.return_value, error)
    job = Transfer("source", lambda message: Queue("t"), each_its_own=each_its_own)
    with closing(Stop()) as stop, pytest.raises(type(error)):
        job.run(login, Pace(None, stop), stop, lambda count, note: None)


def test_letters_that_nobody_can_send_are_not_said_to_be_held_by_another_consumer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: Transfer, *ignored: Any) -> int:
        self.unsendable = 2
        return 3

    monkeypatch.setattr(Transfer, "run", run)
    job, rounds = Transfer("DLQ", lambda message: None), [Round("x > 1")]
    login: Any = None
    with stop_on_signals() as stop:
        assert run_rounds(job, rounds, login, None, stop, "Retrying", 5) == 3
        assert job.unsendable == 2
        assert "another consumer" not in capsys.readouterr().err
        assert run_rounds(job, rounds, login, None, stop, "Retrying", 6) == 3
    assert "1 of 6 were not moved, because another consumer of DLQ" in capsys.readouterr().err


@pytest.mark.parametrize("error", UNSENDABLE)
def test_a_copy_leaves_out_what_cannot_be_sent_and_fails_at_the_end(
    error: type[JMSException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stopped there, again and again."""
    sent: list[str | None] = []

    def send(message: TextMessage, **how: Any) -> None:
        if message.text == "bad":
            raise error("too odd")
        sent.append(message.text)

    factory = MagicMock()
    connection = factory.return_value.create_connection.return_value.__enter__.return_value
    connection.metadata.broker = "artemis"
    session = connection.create_session.return_value
    session.__enter__.return_value.create_producer.return_value.send.side_effect = send
    browser = session.create_browser.return_value
    browser.__iter__.return_value = iter([_Received(text) for text in ("a", "bad", "b", "bad")])
    browser.unreadable = 0
    monkeypatch.setattr("pyjmsack.cli.options.Login.factory", factory)
    monkeypatch.setattr("pyjmsack.cli.move.check_queue", lambda *asked: Checked("source", "nobody says"))
    monkeypatch.setattr("pyjmsack.cli.move.check_target", MagicMock())
    result = CliRunner().invoke(copy, ["source", "target", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["copied"] == 2
    assert sent == ["a", "b"]
    assert "A message of source is not copied: too odd" in result.stderr
    assert (
        "2 messages of source could not be copied, because this protocol or broker cannot carry them" in result.stderr
    )


def test_properties_that_no_program_can_set_are_sent_as_they_came() -> None:
    """A sender over AMQP may choose any name and value."""
    message = _Received("a")
    message._properties = {"": 1, "a.b-c": b"x", "JMSCorrelationID": [1], DUPLICATE_ID: "old"}
    message._properties_readonly = True
    assert renewed(message, "new")._properties == {"": 1, "a.b-c": b"x", "JMSCorrelationID": [1], DUPLICATE_ID: "new"}


@pytest.mark.parametrize(
    ("broker", "source", "target", "same"),
    [
        ("artemis", "a::q", "q", True),
        ("artemis", "q", "b::q", True),
        ("artemis", "q", "q?consumer.prefetchSize=1", True),
        ("artemis", "q::a", "q::b", False),
        ("classic-6", "q::q", "q", False),
        ("classic-6", "q", "q", True),
    ],
)
def test_two_spellings_of_one_queue_are_refused(broker: str, source: str, target: str, same: bool) -> None:
    """The copies would come back to the source for ever. On Classic the colons are a part of the name."""
    connection: Any = MagicMock()
    connection.metadata.broker = broker
    if same:
        with pytest.raises(Failure, match="are the same queue, q; expected two queues"):
            check_apart(connection, source, target)
    else:
        check_apart(connection, source, target)


@pytest.mark.parametrize(
    ("source", "target", "covered"),
    [
        ("orders.>", "orders.failed", True),
        ("orders.>", "orders", True),
        ("orders.*", "orders.failed", True),
        ("orders.*.eu", "orders.failed.eu", True),
        (">", "failed", True),
        ("paid, failed", "failed", True),
        ("orders.*", "orders.failed.eu", False),
        ("orders.>", "failed", False),
        ("orders.>", "ordersfailed", False),
    ],
)
def test_a_pattern_of_classic_that_covers_the_target_is_refused(source: str, target: str, covered: bool) -> None:
    """The messages would come back to the source for ever. On Artemis a queue may have such a name."""
    connection: Any = MagicMock()
    connection.metadata.broker = "artemis"
    check_apart(connection, source, target)
    connection.metadata.broker = "classic-6"
    if covered:
        with pytest.raises(Failure, match=f"SOURCE {re.escape(source)} covers TARGET {target}"):
            check_apart(connection, source, target)
    else:
        check_apart(connection, source, target)


def test_messages_that_the_consumer_refused_are_told_and_counted_once() -> None:
    """Nobody can decode them. They stayed in the source, and the exit code was 0. A second consumer refuses the same
    messages, after a transaction that was rolled back."""
    login, session = _rolled_back([_Received("a"), None])
    refused = [MagicMock(poisoned=2), MagicMock(poisoned=3)]
    type(session.create_consumer.return_value).stats = PropertyMock(side_effect=refused)
    job = Transfer("source", lambda _: Queue("t"))
    with closing(Stop()) as stop:
        assert job.run(login, Pace(None, stop), stop, lambda count, note: None) == 1
    assert (job.refused, job.not_sent) == (3, 3)
    assert job.reasons() == [
        "3 messages of source could not be moved, because nobody can decode them, or they were delivered too often"
    ]


def test_messages_that_the_consumers_of_several_rounds_refused_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Transfer, *ignored: Any) -> int:
        self.refused += 2
        return 3

    monkeypatch.setattr(Transfer, "run", run)
    job = Transfer("DLQ", lambda message: None)
    login: Any = None
    with stop_on_signals() as stop:
        run_rounds(job, [Round("x > 1"), Round("x < 1")], login, None, stop, "Moving", 0)
    assert job.not_sent == 4


def _rolled_back(later: list[Any]) -> tuple[Any, Any]:
    """Return a login whose broker refuses a transaction of one message, and then gives ``later``; and the session."""
    login: Any = MagicMock()
    connection = login.factory.return_value.create_connection.return_value.__enter__.return_value
    connection.metadata.transaction_guarantee = "atomic"
    connection.metadata.capabilities = ()
    session = connection.create_session.return_value.__enter__.return_value
    consumer = session.create_consumer.return_value
    consumer.receive.side_effect = [_Received("a"), *later]
    consumer.stats.poisoned = 0
    consumer.receive_nowait.return_value = None
    session.create_producer.return_value.send.side_effect = MessageFormatException("not in a transaction")
    return login, session


def test_a_message_that_was_rolled_back_is_waited_for_because_its_queue_may_delay_it() -> None:
    """With ``redelivery-delay`` the queue looked empty, and the command ended without a word."""
    login, session = _rolled_back([None, None, None, _Received("a"), None])
    with closing(Stop()) as stop:
        assert (
            Transfer("source", lambda _: Queue("t")).run(login, Pace(None, stop), stop, lambda count, note: None) == 1
        )
    assert session.create_consumer.return_value.receive.call_count == 6


def test_a_message_that_was_rolled_back_and_does_not_come_again_is_told_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(transfer, "_RETURN", -1.0)
    login, _ = _rolled_back([None])
    with closing(Stop()) as stop:
        assert (
            Transfer("source", lambda _: Queue("t")).run(login, Pace(None, stop), stop, lambda count, note: None) == 0
        )
    assert "1 message went back to source and did not come again within -1 s, because" in capsys.readouterr().err
