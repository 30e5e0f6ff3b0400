"""``send`` and ``receive``: what goes in comes out, in every format, mode and option."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import Cli, put, take_all

from pyjmsack.ledger import read_ledgers


def test_lines_come_out_as_they_went_in(cli: Cli, queue_name: str) -> None:
    text = "first\n\n  indented\twith tab\nlåst\n"
    sent = cli.run("send", queue_name, stdin=text)
    assert (sent.exit_code, sent.stdout) == (0, "")
    assert "Sent 4, confirmed 4" in sent.stderr
    assert cli.ok("receive", queue_name) == text


def test_files_are_sent_in_order_and_a_last_line_without_end_counts(cli: Cli, queue_name: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\r\n2")
    (tmp_path / "b").write_bytes(b"3\n")
    result = cli.ok("send", queue_name, tmp_path / "a", tmp_path / "b", "--json")
    assert json.loads(result) == {"sent": 3, "confirmed": 3, "error": None}
    assert cli.ok("receive", queue_name) == "1\n2\n3\n"


def test_json_lines_keep_headers_properties_and_their_types(cli: Cli, queue_name: str) -> None:
    sent = {
        "body": "hi",
        "correlation_id": "c-1",
        "type": "greeting",
        "reply_to": "answers",
        "priority": 7,
        "persistent": False,
        "properties": {"small": 5, "big": 1 << 40, "long": 6, "ratio": 0.5, "name": "x", "flag": True},
        "property_types": {"small": "short", "long": "long"},
    }
    cli.ok("send", queue_name, "--format", "jsonl", stdin=json.dumps(sent) + "\n")
    received = json.loads(cli.ok("receive", queue_name, "--format", "jsonl"))
    assert {name: received[name] for name in sent} == sent
    assert (received["redelivered"], received["delivery_count"]) == (False, 1)


def test_received_json_lines_can_be_sent_again(cli: Cli, queue_name: str) -> None:
    documents = '{"body": "text"}\n{"text": "also text"}\n{"body_base64": "AAEC"}\n{"properties": {"only": 1}}\n'
    cli.ok("send", queue_name, "--format", "jsonl", stdin=documents)
    once = cli.ok("receive", queue_name, "--format", "jsonl")
    cli.ok("send", queue_name, "--format", "jsonl", stdin=once)
    twice = cli.ok("receive", queue_name, "--format", "jsonl")
    stamped = ("message_id", "timestamp")
    unstamped = [
        [{k: v for k, v in json.loads(line).items() if k not in stamped} for line in lines.splitlines()]
        for lines in (once, twice)
    ]
    assert unstamped[0] == unstamped[1]
    assert len(unstamped[0]) == 4


@pytest.mark.parametrize("flag", [(), ("--bytes",)], ids=["text", "bytes"])
def test_whole_files_keep_name_and_content(cli: Cli, queue_name: str, tmp_path: Path, flag: tuple[str, ...]) -> None:
    content = bytes(range(256)) if flag else b"several\nlines\n"
    (tmp_path / "report.dat").write_bytes(content)
    out = tmp_path / "out"
    for _ in range(2):
        cli.ok("send", queue_name, tmp_path / "report.dat", "--format", "file", *flag)
        cli.ok("receive", queue_name, "--format", "file", "--output-dir", out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {
        "000001-report.dat": content,
        "000002-report.dat": content,
    }


def test_a_file_name_cannot_leave_the_output_directory(cli: Cli, queue_name: str, tmp_path: Path) -> None:
    documents = [{"body": "x", "properties": {"file_name": name}} for name in ("../../evil", "/abs", "..", "a\nb")]
    cli.ok("send", queue_name, "--format", "jsonl", stdin="".join(json.dumps(d) + "\n" for d in documents))
    cli.ok("receive", queue_name, "--format", "file", "--output-dir", tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["000001-evil", "000002-abs", "000003.txt", "000004-a_b"]


def test_options_reach_the_message(cli: Cli, queue_name: str) -> None:
    properties = ("--property", "region=EU", "--property", "n:long=5", "--property", "on:boolean=true")
    cli.ok("send", queue_name, *properties, "--priority", 9, "--ttl", 600, "--non-persistent", stdin="x\n")
    message = json.loads(cli.ok("browse", queue_name, "--json"))
    assert message["properties"] == {"region": "EU", "n": 5, "on": True}
    assert (message["priority"], message["persistent"], "expiration" in message) == (9, False, True)
    assert message["property_types"] == {"n": "long"}


def test_a_delayed_message_is_not_here(cli: Cli, queue_name: str) -> None:
    cli.ok("send", queue_name, "--delay", 600, stdin="later\n")
    assert cli.ok("receive", queue_name) == ""


@pytest.mark.parametrize("option", ["amount:int=much", "amount:decimal=1", "no-equals", "=5", "flag:boolean=perhaps"])
def test_a_wrong_property_is_a_usage_error(cli: Cli, queue_name: str, option: str) -> None:
    result = cli.run("send", queue_name, "--property", option, stdin="x\n")
    assert result.exit_code == 2
    assert option in result.stderr


def test_count_ends_both_commands(cli: Cli, queue_name: str) -> None:
    cli.ok("send", queue_name, "--count", 3, stdin="1\n2\n3\n4\n")
    assert cli.ok("receive", queue_name, "--count", 2) == "1\n2\n"
    assert take_all(cli.url, queue_name) == [("3", False)]


def test_too_few_messages_are_a_failure(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["only"])
    result = cli.run("receive", queue_name, "--count", 2, "--timeout", 0.3)
    assert (result.exit_code, result.stdout) == (1, "only\n")
    assert "1 of 2 messages arrived" in result.stderr


def test_a_selector_leaves_the_others(cli: Cli, queue_name: str) -> None:
    cli.ok("send", queue_name, "--property", "region=EU", stdin="eu\n")
    cli.ok("send", queue_name, "--property", "region=US", stdin="us\n")
    assert cli.ok("receive", queue_name, "--selector", "region = 'US'") == "us\n"
    assert take_all(cli.url, queue_name) == [("eu", False)]


@pytest.mark.parametrize("mode", ["auto", "2", "DUPS_OK_ACKNOWLEDGE", "4", "individual", "100", "no-ack"])
def test_every_mode_takes_everything(cli: Cli, queue_name: str, mode: str) -> None:
    texts = [str(number) for number in range(250)]
    put(cli.url, queue_name, texts)
    assert cli.ok("receive", queue_name, "--ack-mode", mode).splitlines() == texts
    assert take_all(cli.url, queue_name) == []


def test_transactions_commit_the_last_incomplete_batch_too(cli: Cli, queue_name: str) -> None:
    lines = "".join(f"{number}\n" for number in range(25))
    cli.ok("send", queue_name, "--transaction", 10, stdin=lines)
    assert cli.ok("receive", queue_name, "--transaction", 10) == lines
    assert take_all(cli.url, queue_name) == []


@pytest.mark.parametrize("mode", ["0", "7", "sometimes"])
def test_an_unknown_mode_is_a_usage_error(cli: Cli, queue_name: str, mode: str) -> None:
    result = cli.run("receive", queue_name, "--ack-mode", mode)
    assert result.exit_code == 2
    assert mode in result.stderr


@pytest.mark.parametrize(
    "options",
    [("--follow", "--timeout", "1"), ("--format", "file"), ("--output-dir", "x"), ("--format", "xml")],
)
def test_options_that_contradict_are_usage_errors(cli: Cli, queue_name: str, options: tuple[str, ...]) -> None:
    assert cli.run("receive", queue_name, *options).exit_code == 2


def test_a_bad_line_is_named_and_what_was_before_is_sent(cli: Cli, queue_name: str) -> None:
    result = cli.run(
        "send", queue_name, "--format", "jsonl", stdin='{"body": "good"}\n{"body": 1}\n{"body": "never"}\n'
    )
    assert result.exit_code == 1
    assert "standard input, line 2: body: expected a string" in result.stderr
    assert take_all(cli.url, queue_name) == [("good", False)]


def test_a_bad_line_rolls_its_transaction_back(cli: Cli, queue_name: str) -> None:
    lines = [json.dumps({"body": str(number)}) for number in range(5)]
    result = cli.run("send", queue_name, "--format", "jsonl", "--transaction", 3, stdin="\n".join([*lines, "oops"]))
    assert result.exit_code == 1
    assert "line 6" in result.stderr
    assert "confirmed 3" in result.stderr
    assert [text for text, _ in take_all(cli.url, queue_name)] == ["0", "1", "2"]


def test_text_that_is_not_utf_8_is_refused_with_the_way_out(cli: Cli, queue_name: str) -> None:
    result = cli.run("send", queue_name, stdin=b"\xff\xfe\n")
    assert result.exit_code == 1
    assert "--bytes" in result.stderr
    cli.ok("send", queue_name, "--bytes", stdin=b"\xff\xfe\n")
    assert cli.run("receive", queue_name).stdout_bytes == b"\xff\xfe\n"


@pytest.mark.parametrize("options", [(), ("--transaction", 5)], ids=["pipelined", "transacted"])
def test_a_refused_send_names_its_line(cli: Cli, queue_name: str, options: tuple[object, ...]) -> None:
    result = cli.run("send", f"limited.{queue_name}", *options, stdin="1\n2\n3\n4\n5\n")
    assert result.exit_code == 1
    assert "standard input, line 3: " in result.stderr


def test_an_unreadable_file_is_a_failure(cli: Cli, queue_name: str, tmp_path: Path) -> None:
    result = cli.run("send", queue_name, tmp_path / "absent")
    assert result.exit_code == 1
    assert (
        "absent: No such file or directory; FILE is the name of a file; to send a text, pipe it: echo" in result.stderr
    )


def test_map_stream_and_object_bodies_keep_their_java_types(cli: Cli, queue_name: str) -> None:
    java = {"serialized": ["application/x-java-serialized-object", "rO0ABQ=="]}
    documents: list[dict[str, object]] = [
        {"body_map": {"name": "bolt", "count": {"short": 10}, "raw": {"bytes": "AAE="}, "none": None}},
        {"body_stream": [{"char": "x"}, {"float": 1.5}, True]},
        {"body_object": {"list": [{"map": [[{"int": 1}, "one"]]}]}},
        {"body_object": java},
        {"body_object": None},
    ]
    cli.ok("send", queue_name, "--format", "jsonl", stdin="".join(json.dumps(d) + "\n" for d in documents))
    browsed = cli.ok("browse", queue_name, "--json")
    received = cli.ok("receive", queue_name, "--format", "jsonl")
    for lines in (browsed, received):
        bodies = [{k: v for k, v in json.loads(line).items() if k.startswith("body")} for line in lines.splitlines()]
        assert bodies == documents


def test_map_stream_and_object_bodies_are_lines_of_json(cli: Cli, queue_name: str) -> None:
    lines = ['{"body_map": {"a": 5}}', '{"body_stream": [5, "x"]}', '{"body_object": 2.5}', '{"body": "text"}']
    cli.ok("send", queue_name, "--format", "jsonl", stdin="\n".join(lines) + "\n")
    table = cli.ok("browse", queue_name)
    assert '{"a":{"int":5}}' in table
    assert cli.ok("receive", queue_name).splitlines() == [
        '{"a":{"int":5}}',
        '[{"int":5},"x"]',
        '{"double":2.5}',
        "text",
    ]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('{"body_map": []}', "expected a dict"),
        ('{"body_map": {"a": {"ubyte": 1}}}', "unknown type 'ubyte'"),
        ('{"body_map": {"a": {"list": []}}}', "field 'a'"),
        ('{"body": [1]}', "body_stream"),
    ],
)
def test_a_wrong_body_in_json_is_named(cli: Cli, queue_name: str, line: str, named: str) -> None:
    result = cli.run("send", queue_name, "--format", "jsonl", stdin=line + "\n")
    assert result.exit_code != 0
    assert "line 1" in result.stderr
    assert named in result.stderr


def test_both_commands_write_the_ledger_that_is_named(cli: Cli, queue_name: str, tmp_path: Path) -> None:
    cli.ok("send", queue_name, "--ledger", tmp_path, stdin="a\nb\n")
    cli.ok("receive", queue_name, "--ledger", tmp_path)
    files = read_ledgers([tmp_path])
    sent, received = (files.table(name).to_pylist() for name in ("sends", "receives"))
    assert [row["send_outcome"] for row in sent] == ["confirmed"] * 2
    assert [row["ack_outcome"] for row in received] == ["accepted"] * 2
    assert {row["message_id"] for row in sent} == {row["message_id"] for row in received}
