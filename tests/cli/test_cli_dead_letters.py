"""``pyjmsack dlq``, ``export`` and ``import``: nothing is lost or doubled, also after a kill in the middle."""

from __future__ import annotations

import json
import os
import time
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_support import Cli, put, rest, take_all
from dead_letters import wait_for_dead_letters
from polling import wait_until
from test_cli_operating import depth, killed_when

from pyjmsack import (
    AckMode,
    Char,
    ConnectionFactory,
    Double,
    Float,
    Long,
    MapMessage,
    Message,
    MessageFormatException,
    ObjectMessage,
    Queue,
    Short,
    StreamMessage,
    TextMessage,
    Topic,
)
from pyjmsack.cli.dlq.letters import dead_letter_queue
from pyjmsack.cli.receive_output import as_document, exact_line
from pyjmsack.cli.send_input import check_exported
from pyjmsack.cli.values import restore_properties, set_properties
from pyjmsack.management import Manager
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.wire_types import ULong


def give_up(url: str, queue: str, texts: list[str]) -> None:
    """Send texts, with duplicate ids, and let the broker make dead letters of them."""
    with ConnectionFactory(url).create_connection() as connection:
        connection.start()
        session = connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
        producer = session.create_producer(Queue(queue))
        answers = []
        for text in texts:
            message = session.create_text_message(text)
            message.properties["_AMQ_DUPL_ID"] = f"{queue}-{text}"
            message.properties["n"] = 1
            answers.append(producer.send_async(message))
        for answer in answers:
            answer.result()
        consumer = session.create_consumer(Queue(queue))
        for _ in texts:
            received = consumer.receive(60)
            assert received is not None
            received.reject()
        dead = dead_letter_queue(connection, None)
    wait_for_dead_letters(url, dead, f"_AMQ_DUPL_ID LIKE '{queue}-%'", len(texts))


def test_dead_letters_are_listed_by_origin_and_shown(cli: Cli, queue_name: str) -> None:
    give_up(cli.url, queue_name, ["a", "b"])
    (group,) = json.loads(cli.ok("dlq", "ls", "--origin", queue_name, "--json"))["groups"]
    assert (group["origin"], group["messages"]) == (queue_name, 2)
    assert "2 dead letters" in cli.ok("dlq", "ls", "--origin", queue_name)
    (message,) = json.loads(cli.ok("dlq", "show", "--origin", queue_name, "--limit", 1, "--json"))["messages"]
    assert (message["body"], message["origin"]) == ("a", queue_name)
    lines = cli.ok("browse", "DLQ", "--selector", f"_AMQ_ORIG_QUEUE = '{queue_name}'", "--json")
    notes = [json.loads(line)["dead_letter"] for line in lines.splitlines()]
    assert [(each["_AMQ_ORIG_QUEUE"], each["_AMQ_ORIG_ADDRESS"]) for each in notes] == [(queue_name, queue_name)] * 2
    again = cli.ok("send", f"{queue_name}.again", "--format", "jsonl", stdin=lines)
    assert "error" not in again


@pytest.mark.parametrize("options", [[], ["--transaction", "2"], ["--limit", "2"]], ids=["broker", "client", "limit"])
def test_a_retry_sends_each_back_to_where_it_came_from(cli: Cli, queue_name: str, options: list[str]) -> None:
    other = f"{queue_name}.other"
    give_up(cli.url, queue_name, ["a", "b"])
    give_up(cli.url, other, ["c"])
    dry = json.loads(cli.ok("dlq", "retry", "--origin", queue_name, "--dry-run", "--json"))
    assert dry["targets"] == {queue_name: 2}
    assert json.loads(cli.ok("dlq", "retry", "--origin", queue_name, "--yes", "--json", *options))["retried"] == 2
    assert sorted(text for text, _ in take_all(cli.url, queue_name, wait_for=2)) == ["a", "b"]
    assert depth(cli.url, other) == 0
    assert json.loads(cli.ok("dlq", "purge", "--origin", other, "--yes", "--json"))["removed"] == 1


def test_a_retry_of_letters_whose_queue_was_deleted_says_that_they_stay(cli: Cli, queue_name: str) -> None:
    """It said "Sent 2 dead letters back", and they were where they had been."""
    give_up(cli.url, queue_name, ["a", "b"])
    with Manager(ConnectionFactory(cli.url)) as manager:
        manager.delete_queue(queue_name)
    result = cli.run("dlq", "retry", "--origin", queue_name)
    assert "Sent 0 dead letters back from DLQ, by the broker." in result.stdout
    assert "After the retry, DLQ has 2 of the chosen dead letters" in result.stderr
    assert result.exit_code == 1
    assert "Sent 2 dead" in cli.ok("dlq", "retry", "--origin", queue_name, "--transaction", 10)
    assert [text for text, _ in take_all(cli.url, queue_name)] == ["a", "b"]


@pytest.mark.timeout(120)
def test_a_retry_loses_no_dead_letter_of_a_topic(classic: tuple[str, str], queue_name: str) -> None:
    """ActiveMQ Classic sent it to the topic, and its subscription dropped it as a copy."""
    url, jolokia = classic
    topic = Topic(f"topic-{queue_name}")
    with ConnectionFactory(url, client_id=queue_name).create_connection() as connection:
        connection.start()
        session = connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
        consumer = session.create_durable_consumer(topic, "subscription")
        session.create_producer(topic).send("a")
        message = consumer.receive(60)
        assert message is not None
        message.reject()
    selector = f"JMSMessageID = '{message.message_id}'"
    letters = lambda: Cli(url).ok("dlq", "export", "--selector", selector)  # noqa: E731 - one expression
    wait_until(lambda: letters() != "")
    result = Cli(url).run("dlq", "retry", "--jolokia", jolokia)
    assert result.exit_code == 1, result.output
    assert "Sent back by this process, because ActiveMQ Classic loses the dead letters of a topic" in result.stderr
    assert letters() != ""
    Cli(url).ok("dlq", "purge", "--selector", selector, "--yes")


def test_dead_letters_are_moved_exported_and_destroyed(cli: Cli, queue_name: str, tmp_path: Path) -> None:
    give_up(cli.url, queue_name, ["a", "b", "c"])
    file = tmp_path / "dead.jsonl"
    cli.ok("dlq", "export", file, "--origin", queue_name)
    assert [json.loads(line)["body"] for line in file.read_text().splitlines()] == ["a", "b", "c"]
    cli.ok("dlq", "move", f"{queue_name}.parked", "--create", "--origin", queue_name, "--limit", 1)
    assert [text for text, _ in take_all(cli.url, f"{queue_name}.parked", wait_for=1)] == ["a"]
    refused = cli.run("dlq", "purge", "--origin", queue_name, stdin="")
    assert refused.exit_code == 2
    assert json.loads(cli.ok("dlq", "purge", "--origin", queue_name, "--dry-run", "--json"))["found"] == 2
    assert json.loads(cli.ok("dlq", "purge", "--origin", queue_name, "--yes", "--json"))["removed"] == 2
    assert json.loads(cli.ok("dlq", "ls", "--origin", queue_name, "--json"))["groups"] == []


def test_older_letters_are_chosen_by_the_time_they_were_sent(cli: Cli, queue_name: str) -> None:
    give_up(cli.url, queue_name, ["a"])
    assert json.loads(cli.ok("dlq", "ls", "--origin", queue_name, "--older-than", "1h", "--json"))["groups"] == []
    assert json.loads(cli.ok("dlq", "purge", "--origin", queue_name, "--cause", "failed", "--yes", "--json"))["removed"]


def test_the_cause_of_a_letter_is_shown_as_it_is_chosen(cli: Cli, queue_name: str) -> None:
    """On Artemis the cause was empty, though `--cause` knew it."""
    give_up(cli.url, queue_name, ["failed"])
    with ConnectionFactory(cli.url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        session.create_producer(Queue(queue_name)).send("expired", time_to_live=0.05)
        consumer = session.create_consumer(Queue(queue_name), "JMSPriority = 0")
        wait_until(lambda: consumer.receive_nowait() is None and expired(cli, queue_name) != [])
    (letter,) = expired(cli, queue_name)
    assert (letter["cause"], letter["body"]) == ("expired", "expired")
    assert int(letter["dead_letter"]["_AMQ_ACTUAL_EXPIRY"]) > 0
    (group,) = json.loads(cli.ok("dlq", "ls", "--origin", queue_name, "--json"))["groups"]
    assert group["cause"] == "failed"


def expired(cli: Cli, origin: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        cli.ok("dlq", "show", "--queue", "ExpiryQueue", "--origin", origin, "--json")
    )["messages"]
    return found


@pytest.mark.parametrize("command", ["move", "retry"])
def test_letters_of_a_sender_whose_clock_is_ahead_are_taken_once(
    cli: Cli, queue_name: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were left: only letters with a time stamp up to now were chosen, by the clock of this process."""
    give_up(cli.url, queue_name, ["a", "b", "c"])
    behind = SimpleNamespace(time=lambda: time.time() - 3600)
    monkeypatch.setattr("pyjmsack.cli.dlq.moving.time", behind)
    target = f"{queue_name}.parked" if command == "move" else queue_name
    arguments = [command, *([target, "--create"] if command == "move" else ["--yes"])]
    for number in (2, 1):
        cli.ok("dlq", *arguments, "--origin", queue_name, "--limit", 2, "--transaction", 1)
        assert len(take_all(cli.url, target, wait_for=number)) == number
    assert json.loads(cli.ok("dlq", "ls", "--origin", queue_name, "--json"))["groups"] == []


@pytest.mark.timeout(300)
def test_a_retry_that_is_killed_and_repeated_loses_and_doubles_nothing(cli: Cli, queue_name: str) -> None:
    """The old duplicate ids are not sent again: Artemis remembers them and would drop the messages."""
    texts = [f"message {number}" for number in range(120)]
    give_up(cli.url, queue_name, texts)
    process = cli.start("dlq", "retry", "--origin", queue_name, "--rate", 8, "--transaction", 7)
    killed_when(process, lambda: depth(cli.url, queue_name) >= 20)
    assert depth(cli.url, queue_name) < len(texts), "the retry ended before it was killed"
    count = 0
    while count < len(texts) and depth(cli.url, queue_name) < len(texts):  # the broker gives back what was under way
        count += json.loads(cli.ok("dlq", "retry", "--origin", queue_name, "--transaction", 20, "--json"))["retried"]
    assert sorted(text for text, _ in take_all(cli.url, queue_name)) == sorted(texts)
    assert json.loads(cli.ok("dlq", "ls", "--origin", queue_name, "--json"))["groups"] == []


def typed_messages(session: Any) -> list[Message]:
    """Return messages in which every type that JSON does not know occurs."""
    first = session.create_text_message("text")
    first.properties.update({"short": Short(1), "long": Long(2), "float": Float(1.5), "double": 2.5, "flag": True})
    first.correlation_id, first.type, first.reply_to = "c", "t", Topic("answers")
    empty, bare = session.create_text_message(None), session.create_message()
    items = session.create_map_message({"bytes": b"\x00\xff", "long": Long(5), "none": None})
    stream = session.create_stream_message([Short(3), "x", b"y"])
    return [first, empty, bare, items, stream, session.create_bytes_message(b"\x00\x01")]


def test_a_queue_that_is_exported_and_imported_is_the_same_with_all_its_types(
    cli: Cli, queue_name: str, tmp_path: Path
) -> None:
    file, back = tmp_path / "queue.jsonl", f"{queue_name}.back"
    with ConnectionFactory(cli.url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        for message in typed_messages(session):
            session.create_producer(Queue(queue_name)).send(message, priority=7, delivery_mode=1)
        cli.ok("export", queue_name, file)
        assert cli.run("export", queue_name, file).exit_code == 1, "an export replaces no file"
        assert json.loads(cli.ok("import", back, file, "--json"))["sent"] == 6
        consumers = [session.create_consumer(Queue(name)) for name in (queue_name, back)]
        for _ in range(6):
            one, two = (consumer.receive(60) for consumer in consumers)
            assert one is not None
            assert two is not None
            assert type(one) is type(two)
            assert content(one) == content(two)


def content(message: Message) -> list[object]:
    """Return what must not change, with the types of its values."""
    properties = [(name, type(value), value) for name, value in message.properties.items()]
    body = message.body
    values = [*body.items()] if isinstance(message, MapMessage) else body
    typed = [(type(each), each) for each in values] if isinstance(values, list) else values
    headers = (message.correlation_id, message.type, message.reply_to, message.priority, message.delivery_mode)
    kind = type(message.reply_to)
    return [properties, typed, headers, kind, isinstance(message, TextMessage) and message.text is None]


ODD = {"list": [1, Long(2), [b"x"]], "bytes": b"\x00\xff", "map": {Long(1): "a"}, "a-b": 1, "": "x", "JMSType": 5}
"""Properties that a sender over AMQP may choose, and that no program of JMS can set."""


def put_odd(url: str, queue: str, properties: dict[str, Any], body: str = "odd") -> None:
    """Send a message with any properties, as other AMQP clients do."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        message = session.create_text_message(body)
        message._properties = dict(properties)
        message.reply_to = Queue._literal("answers?to=me")
        session.create_producer(Queue(queue)).send(message)


def test_properties_that_no_program_can_set_come_back_by_an_import_as_they_were(
    cli: Cli, queue_name: str, tmp_path: Path
) -> None:
    """Bytes became the text of their Python form, and a list stopped the import."""
    file, back = tmp_path / "queue.jsonl", f"{queue_name}.back"
    put_odd(cli.url, queue_name, ODD)
    cli.ok("export", queue_name, file, "--take")
    cli.ok("import", back, file)
    with ConnectionFactory(cli.url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        message = session.create_consumer(Queue(back)).receive(60)
    assert message is not None
    assert dict(message.properties) == ODD
    assert [type(each) for each in message.properties["list"]] == [int, Long, list]
    assert str(message.reply_to) == "answers?to=me"


@pytest.mark.parametrize("take", [[], ["--take"]], ids=["look", "take"])
def test_a_message_that_a_line_cannot_keep_stays_in_the_queue_and_the_export_fails(
    cli: Cli, queue_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: list[str]
) -> None:
    """Its Python form was written as a text, and the message was taken."""

    def odd(message: Message) -> bytes:
        if message.body == "b":
            raise MessageFormatException("too odd")
        return exact_line(message)

    put(cli.url, queue_name, ["a", "b", "c"])
    monkeypatch.setattr("pyjmsack.cli.export.exact_line", odd)
    file = tmp_path / "queue.jsonl"
    result = cli.run("export", queue_name, file, *take)
    assert result.exit_code == 1
    assert "too odd" in result.stderr
    assert "Exported 2 messages. 1 message of" in result.stderr
    assert [json.loads(line)["body"] for line in file.read_text().splitlines()] == ["a", "c"]
    left = [text for text, _ in take_all(cli.url, queue_name, wait_for=1)]
    assert left == (["b"] if take else ["a", "b", "c"])


@pytest.mark.parametrize(
    "command", ["export", "export --take", "dlq export", "copy", "move --transaction 9", "dlq move"]
)
def test_a_message_that_nobody_can_decode_makes_the_command_fail(
    cli: Cli, queue_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """So ``export && purge`` destroys nothing that the file lacks, and ``move a b && delete a`` nothing that was not
    moved. The command said that it was done."""
    to_message = AmqpInbound.to_message

    def decode(self: AmqpInbound, destination: Queue) -> Message:
        message = to_message(self, destination)
        if message.body == "b":
            raise MessageFormatException("nobody can read this")
        return message

    put(cli.url, queue_name, ["a", "b", "c"])
    monkeypatch.setattr(AmqpInbound, "to_message", decode)
    to_file = "export" in command
    target = tmp_path / "queue.jsonl" if to_file else f"{queue_name}.copy"
    source = ["--queue", queue_name] if command.startswith("dlq") else [queue_name]
    result = cli.run(*command.split(), *source, target, *([] if to_file else ["--create"]))
    assert result.exit_code == 1
    assert f"1 message of {queue_name}" in result.stderr
    assert "because nobody can decode" in result.stderr


def test_bodies_that_no_program_can_set_come_back_by_an_import_as_they_were(
    cli: Cli, queue_name: str, tmp_path: Path
) -> None:
    """A list of AMQP with a list in it is a stream with a list, which stopped the import of all lines behind it."""
    file, back = tmp_path / "queue.jsonl", f"{queue_name}.back"
    bodies: list[tuple[type[StreamMessage | MapMessage], Any]] = [
        (StreamMessage, [1, [2, "x"]]),
        (MapMessage, {"m": {"n": 1}}),
    ]
    with ConnectionFactory(cli.url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        producer = session.create_producer(Queue(queue_name))
        for kind, body in bodies:
            message = kind()
            message._body = body
            producer.send(message)
        cli.ok("export", queue_name, file, "--take")
        cli.ok("import", back, file)
        consumer = session.create_consumer(Queue(back))
        received = [consumer.receive(60) for _ in bodies]
    assert [(type(each), each.body) for each in received if each is not None] == bodies


@pytest.mark.parametrize("kind", [Float, Double])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_property_that_is_no_number_in_json_is_a_text_with_a_type(number: str, kind: type[float]) -> None:
    """Strict parsers refused the bare words ``NaN`` and ``Infinity``. An import and a send read the number."""
    message = TextMessage("a")
    message.properties["ratio"] = kind(number)
    document = as_document(message)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["properties"] == {"ratio": number}
    assert document["property_types"] == {"ratio": kind.__name__.lower()}
    for set_all in (restore_properties, set_properties):
        again = Message()
        set_all(again, document["properties"], document["property_types"])
        assert type(again.properties["ratio"]) is kind
        assert repr(again.properties["ratio"]) == repr(message.properties["ratio"])


def test_properties_that_are_no_numbers_in_json_come_back_by_an_import_as_they_were(
    cli: Cli, queue_name: str, tmp_path: Path
) -> None:
    file, back = tmp_path / "queue.jsonl", f"{queue_name}.back"
    texts = {"nan": "nan", "inf": "inf", "minus_inf": "-inf"}
    numbers = {f"{kind.__name__}_{name}": kind(text) for kind in (Float, float) for name, text in texts.items()}
    with ConnectionFactory(cli.url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        message = session.create_text_message("a")
        for name, number in numbers.items():
            message.properties[name] = number
        session.create_producer(Queue(queue_name)).send(message)
        for line in cli.ok("browse", queue_name, "--json").splitlines():
            json.loads(line, parse_constant=pytest.fail)
        shown = cli.ok("dlq", "show", "--queue", queue_name, "--json")
        json.loads(shown, parse_constant=pytest.fail)
        cli.ok("export", queue_name, file, "--take")
        json.loads(file.read_text(), parse_constant=pytest.fail)
        cli.ok("import", back, file)
        received = session.create_consumer(Queue(back)).receive(60)
    assert received is not None
    found = {name: received.properties[name] for name in numbers}
    assert repr(found) == repr(numbers), "the types, too: NaN is not equal to itself"


def test_a_property_that_no_import_can_send_keeps_its_message_in_the_queue() -> None:
    message = Message()
    message._properties = {"size": (1 << 64) - 1}
    assert as_document(message)["properties"] == {"size": "18446744073709551615"}, "to look at"
    with pytest.raises(MessageFormatException, match="64 bits"):
        exact_line(message)


def test_values_without_a_type_in_jms_are_written_exactly_or_not_at_all() -> None:
    message = MapMessage({"v": 1})
    message._body["v"] = ULong((1 << 64) - 1)
    assert as_document(message)["body"] == "{'v': 18446744073709551615}", "to look at"
    with pytest.raises(MessageFormatException, match="64 bits"):
        exact_line(message)


EMOJI = AmqpInbound(b"\0\x53\x77\x73\0\x01\xf6\0").to_message().body
"""A char of AMQP above U+FFFF, which no char of Java can be."""


@pytest.mark.parametrize(
    ("kind", "body", "properties"),
    [
        (ObjectMessage, EMOJI, {}),
        (ObjectMessage, {"list": [EMOJI]}, {}),
        (MapMessage, {"a": EMOJI}, {}),
        (MapMessage, {Char("a"): 1}, {}),
        (StreamMessage, [1, "half \ud800"], {}),
        (Message, None, {"k": EMOJI}),
        (Message, None, {"k": [EMOJI]}),
        (Message, None, {"k": "\ud83d"}),
        (Message, [1], {}),
        (Message, "text", {}),
    ],
)
def test_an_export_writes_no_line_that_an_import_refuses_or_changes(
    kind: type[Message], body: object, properties: dict[str, object]
) -> None:
    """With ``--take`` the message was gone, and the import stopped at its line."""
    message = kind()
    if body is not None:
        message._body = body
    message._properties = dict(properties)
    as_document(message)  # to look at
    with pytest.raises(MessageFormatException):
        exact_line(message)


def test_a_char_comes_back_as_a_char_everywhere() -> None:
    """As a property it became a text."""
    message = ObjectMessage([Char("x"), Char("\ud800")])
    message._properties = {"c": Char("y")}
    back = check_exported(json.loads(exact_line(message)))
    assert repr(back.body) == repr(message.body)
    assert repr(back.properties["c"]) == "Char('y')"


@pytest.mark.parametrize("name", ["region", "_AMQ_ORIG_QUEUE", "_AMQ_ORIG_ADDRESS", "dlqDeliveryFailureCause"])
def test_a_property_of_any_type_stops_no_command_that_shows_messages(cli: Cli, queue_name: str, name: str) -> None:
    """A list ended each of them at that message."""
    put_odd(cli.url, queue_name, {name: [1, 2], "b": b"x"})
    put(cli.url, queue_name, ["last"])
    for command in (
        ["browse", queue_name],
        ["browse", queue_name, "--json"],
        ["tail", queue_name, "--count", 2, "--format", f"%p{{{name}}} %p %b"],
        ["tail", queue_name, "--count", 2, "--json"],
        ["dlq", "ls", "--queue", queue_name],
        ["dlq", "show", "--queue", queue_name, "--json"],
        ["dlq", "show", "--queue", queue_name],
        ["export", queue_name],
        ["receive", queue_name, "--format", "jsonl"],
    ):
        said = cli.ok(*command)
        assert "last" in said or command[1] == "ls", command
    assert depth(cli.url, queue_name) == 0


def test_an_import_and_a_copy_leave_out_what_the_protocol_cannot_carry_and_fail_at_the_end(
    brokers: Any, queue_name: str, tmp_path: Path
) -> None:
    """Both stopped there, again and again."""
    served = brokers("artemis")
    over_amqp, over_stomp, back = Cli(served.amqp_url), Cli(served.stomp_url), f"{queue_name}.back"
    file, progress = tmp_path / "queue.jsonl", tmp_path / "progress"
    for text, properties in (("a", {}), ("odd", {"list": [1]}), ("b", {})):
        put_odd(over_amqp.url, queue_name, properties, text)
    over_amqp.ok("export", queue_name, file)
    said = over_stomp.run("import", back, file, "--resume", progress, "--json")
    assert said.exit_code == 1
    assert (json.loads(said.stdout)["sent"], json.loads(progress.read_text())["done"]) == (2, True)
    assert "1 message left out, because this protocol or broker cannot carry them: " in said.stderr
    assert f"{file}, line 2: " in said.stderr
    assert [text for text, _ in take_all(over_amqp.url, back)] == ["a", "b"]


def test_an_export_that_takes_leaves_the_queue_empty(cli: Cli, queue_name: str, tmp_path: Path) -> None:
    put(cli.url, queue_name, ["a", "b"])
    cli.ok("export", queue_name, tmp_path / "x.jsonl", "--take")
    assert take_all(cli.url, queue_name) == []
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == 2


def test_the_name_of_the_file_is_on_the_disk_before_a_message_is_acknowledged(
    cli: Cli, queue_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash of the machine the file was gone, and so were the messages."""
    synced: list[str] = []
    monkeypatch.setattr("os.fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    put(cli.url, queue_name, ["a"])
    cli.ok("export", queue_name, tmp_path / "x.jsonl", "--take")
    assert synced == [str(tmp_path), str(tmp_path / "x.jsonl")]


def test_a_message_that_expired_since_the_export_is_left_out_and_told(cli: Cli, queue_name: str) -> None:
    line = json.dumps({"kind": "text", "body": "old", "expiration": "2020-01-01T00:00:00+00:00"})
    said = cli.run("import", queue_name, stdin=line)
    assert "1 left out because they expired" in said.stderr
    cli.ok("import", queue_name, "--ignore-expiry", stdin=line)
    assert [text for text, _ in take_all(cli.url, queue_name)] == ["old"]


def test_a_line_that_is_no_json_is_said_so_with_its_place(cli: Cli, queue_name: str) -> None:
    said = cli.run("import", queue_name, stdin='{"body": "a"}\nno json\n').stderr
    assert "standard input, line 2: not JSON: Expecting value, at column 1" in said


@pytest.mark.timeout(300)
def test_an_import_that_is_killed_and_repeated_loses_and_doubles_nothing(
    cli: Cli, queue_name: str, tmp_path: Path
) -> None:
    """The broker recognises the lines of the batch that was under way; those before are not sent again."""
    texts = [f"message {number}" for number in range(150)]
    file, progress = tmp_path / "lines.jsonl", tmp_path / "progress"
    file.write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    arguments = ("import", queue_name, file, "--resume", progress, "--transaction", 10)
    process = cli.start(*arguments, "--rate", 8)
    killed_when(process, lambda: depth(cli.url, queue_name) >= 25)
    assert depth(cli.url, queue_name) < len(texts), "the import ended before it was killed"
    known = json.loads(progress.read_text())
    progress.write_text(json.dumps(known | {"lines": known["lines"] - 10}))  # as if killed before it was written
    cli.ok(*arguments)
    assert [text for text, _ in take_all(cli.url, queue_name)] == texts
    assert cli.run(*arguments).exit_code == 1, "a second import by mistake would be dropped by the broker"


@pytest.mark.parametrize("begun", [True, False], ids=["goes on", "begins"])
def test_a_second_import_with_the_same_file_is_refused(cli: Cli, queue_name: str, tmp_path: Path, begun: bool) -> None:
    """It would send the lines twice, because each of the two saves its own progress."""
    file, progress = tmp_path / "lines.jsonl", tmp_path / "progress"
    file.write_text("".join(json.dumps({"body": str(number)}) + "\n" for number in range(100)))
    arguments = ("import", queue_name, file, "--resume", progress, "--transaction", 1)
    if begun:
        killed_when(cli.start(*arguments, "--rate", 20), lambda: depth(cli.url, queue_name) >= 1)
    before = depth(cli.url, queue_name)
    process = cli.start(*arguments, "--rate", 5)
    try:
        wait_until(lambda: depth(cli.url, queue_name) > before)
        said = cli.run(*arguments)
    finally:
        process.kill()
        rest(process)
    assert said.exit_code == 1
    assert f"another import uses {progress} now" in said.stderr.replace("\n", " ")
    cli.ok(*arguments)
    assert [text for text, _ in take_all(cli.url, queue_name)] == [str(number) for number in range(100)]
    assert [one.name for one in tmp_path.iterdir() if one not in (file, progress)] == []


def test_a_line_that_was_changed_before_the_import_went_on_is_imported(
    cli: Cli, queue_name: str, tmp_path: Path
) -> None:
    """The broker knows the lines of the batch that was under way. A line that took the place of another is no copy."""
    file, progress = tmp_path / "lines.jsonl", tmp_path / "progress"
    arguments = ("import", queue_name, file, "--resume", progress)
    file.write_text('{"body": "a"}\n{"body": "b"}\n')
    cli.ok(*arguments)
    progress.write_text(json.dumps(json.loads(progress.read_text()) | {"lines": 0, "done": False}))  # as if killed
    file.write_text('{"body": "a"}\n{"body": "mended"}\n')
    cli.ok(*arguments)
    assert [text for text, _ in take_all(cli.url, queue_name)] == ["a", "b", "mended"]


def test_a_long_queue_of_classic_is_looked_at_as_a_whole_if_its_broker_says_how_long_it_is(
    classic: tuple[str, str], queue_name: str, tmp_path: Path
) -> None:
    """`dlq ls` and `export` failed with 400 messages and more, whatever the browser had shown. An operator with many
    dead letters saw none of them."""
    url, jolokia = classic
    cli, file = Cli(url), tmp_path / "all.jsonl"
    put(url, queue_name, ["a"] * 450)
    cli.ok("export", queue_name, file, "--jolokia", jolokia)
    assert len(file.read_text().splitlines()) == 450
    looking = ("dlq", "ls", "--queue", queue_name, "--json")
    assert json.loads(cli.ok(*looking, "--jolokia", jolokia))["groups"][0]["messages"] == 450
    cli.ok(*looking, "--origin", "nobody", "--jolokia", jolokia)
    unsure = cli.run(*looking)
    assert unsure.exit_code == 1
    assert json.loads(unsure.stdout)["groups"][0]["messages"] >= 400, "what was found is shown before the error"
    assert "may not be all" in unsure.stderr


@pytest.mark.parametrize("command", ["dlq move", "dlq retry", "move", "copy"])
def test_a_letter_that_died_of_age_does_not_die_again(classic: tuple[str, str], queue_name: str, command: str) -> None:
    """S156: ActiveMQ Classic leaves the expiry in a dead letter; a copy with it died at once, and was moved again."""
    cli, target = Cli(classic[0]), queue_name if command == "dlq retry" else f"{queue_name}.target"
    with ConnectionFactory(cli.url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        message = session.create_text_message("old")
        session.create_producer(Queue(queue_name)).send(message, time_to_live=0.05)
        expiration = message.expiration
        assert expiration is not None
        wait_until(lambda: datetime.now(timezone.utc) > expiration)
        consumer = session.create_consumer(Queue(queue_name))  # the broker looks for expired messages when it delivers
        letters = lambda: json.loads(cli.ok("dlq", "ls", "--origin", queue_name, "--json"))["groups"]  # noqa: E731
        wait_until(lambda: consumer.receive_nowait() is None and letters() != [])
    places = {"dlq move": [target], "dlq retry": [], "move": ["ActiveMQ.DLQ", target], "copy": ["ActiveMQ.DLQ", target]}
    done = json.loads(cli.ok(*command.split(), *places[command], "--transaction", 1, "--json"))
    assert 1 in done.values()
    assert [text for text, _ in take_all(cli.url, target)] == ["old"]
    assert take_all(cli.url, "ActiveMQ.DLQ") == ([("old", False)] if command == "copy" else [])
