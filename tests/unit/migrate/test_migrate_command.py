"""`pyjmsack migrate`: its exit codes, its JSON, its words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pyjmsack.cli.main import cli


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["migrate", *map(str, arguments)])


@pytest.mark.parametrize(
    ("argument", "code"),
    [
        ("tcp://h:61616", 0),
        ("tcp://h:61616?jms.clientID=c", 0),
        ("tcp://h:61616?minLargeMessageSize=1", 0),
        ("tcp://h:61616?producerMaxRate=1", 1),
        ("vm://localhost", 1),
        ("tcp://h:0", 2),
        ("no/such/folder.xml", 2),
    ],
)
def test_the_exit_code_says_whether_something_is_left_to_do(argument: str, code: int) -> None:
    assert run(argument).exit_code == code
    assert run("--json", argument).exit_code == code


def test_without_an_input_the_usage_is_told() -> None:
    result = run()
    assert result.exit_code == 2
    assert "give a broker URL, a file or a folder" in result.output


def test_json_has_a_row_with_verdict_and_reason_for_each_key(tmp_path: Path) -> None:
    file = tmp_path / "application.properties"
    file.write_text("spring.artemis.broker-url=tcp://h:61616?ha=true\nspring.artemis.password=s3cret\n")
    result = run("--json", file)
    document = json.loads(result.stdout)
    assert all(row["verdict"] and (row["why"] or row["python"]) for row in document["rows"])
    assert [row["line"] for row in document["rows"] if row["key"] == "spring.artemis.password"] == [2]
    assert document["factories"][0]["url"] == "amqp://h:5672?profile=artemis"
    assert "s3cret" not in result.output


def test_json_has_the_schedules(tmp_path: Path) -> None:
    file = tmp_path / "T.java"
    file.write_text("import jakarta.jms.*;\nclass T {\n@Scheduled(fixedRate = 1500)\nvoid tick() {}\n}")
    (found,) = json.loads(run("--json", file).stdout)["schedules"]
    assert found == {"function": "tick", "place": f"{file}:3", "seconds": 1.5, "delay": 0.0}


def test_what_explain_says_of_each_listener_is_part_of_the_report(tmp_path: Path) -> None:
    (tmp_path / "application.properties").write_text("spring.activemq.broker-url=tcp://h:61616\n")
    (tmp_path / "A.java").write_text('import jakarta.jms.*;\n@JmsListener(destination = "orders")\nvoid f() {}\n')
    result = run(tmp_path)
    assert "orders (SESSION_TRANSACTED on " in result.output
    assert "nothing of the open transaction has happened" in result.output
    assert json.loads(run("--json", tmp_path).stdout)["explanations"][0]["facts"]


def test_only_the_code_is_printed_when_it_is_asked_for() -> None:
    assert run("--emit", "py", "tcp://h:61616").stdout.startswith('"""Made by')
    assert run("--emit", "env", "tcp://h:61616").stdout == "PYJMSACK_URL='amqp://h:5672?profile=activemq'\n"
    assert run("--emit", "toml", "tcp://h:61616").stdout.startswith("[factories.connection_factory]")


def test_a_stranger_who_wrote_the_file_does_not_control_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "jndi.properties"
    file.write_text("java.naming.factory.initial=x\\u001b[2J\nqueue.a\\u001b[2J=b\\u001b]0;x\\u0007\n")
    assert "\x1b" not in run(file).output
    assert "\x1b" not in run("--json", file).output


def test_check_says_that_nobody_answers_and_fails() -> None:
    result = run("--check", "--port", "61616=1", "tcp://127.0.0.1:61616")
    assert result.exit_code == 1
    assert "cannot connect" in result.output


def test_check_takes_a_user_that_no_file_names_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYJMSACK_PASSWORD", "x")
    monkeypatch.delenv("PYJMSACK_USER", raising=False)
    file = tmp_path / "application.properties"
    file.write_text("spring.artemis.broker-url=tcp://127.0.0.1:61616\nspring.artemis.password=s3cret\n")
    assert "not tried: set PYJMSACK_USER" in run("--check", file).output
    monkeypatch.setenv("PYJMSACK_USER", "shop")
    assert "cannot connect" in run("--check", "--port", "61616=1", file).output


def test_check_tries_nothing_without_the_variables_of_the_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYJMSACK_PASSWORD", raising=False)
    result = run("--check", "tcp://u:p@h:61616")
    assert "not tried: set PYJMSACK_PASSWORD" in result.output
    assert result.exit_code == 1
