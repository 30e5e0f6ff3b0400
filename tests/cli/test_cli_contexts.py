"""Named brokers, completion, and the commands of operators where nobody may manage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import Cli, put, take_all
from shared_brokers import Served

from pyjmsack.cli.main import cli as commands

ABSENT = "amqp://127.0.0.1:1"


def in_context(text: str, directory: Path, **more: str) -> dict[str, str]:
    """Write the file of contexts; return the variables of a command."""
    file = directory / "contexts.toml"
    file.write_text(text)
    return {"PYJMSACK_CONTEXTS": str(file), **more}


def test_a_context_has_the_url_and_the_login(secured_broker: Served, queue_name: str, tmp_path: Path) -> None:
    variables = in_context(
        f"""[prod]\nurl = "{secured_broker.amqp_url}"\nuser = "alice"\npassword-env = "PROD" """, tmp_path
    )
    secured = Cli(ABSENT)
    sent = secured.run("send", queue_name, "--context", "prod", stdin="x\n", PROD="wonderland", **variables)
    assert sent.exit_code == 0, sent.output
    missing = secured.run("send", queue_name, "--context", "prod", stdin="x\n", **variables)
    assert missing.exit_code == 2
    assert "PROD is not set" in missing.stderr
    given = secured.run("browse", queue_name, "--context", "prod", "--url", ABSENT, PROD="wonderland", **variables)
    assert f"cannot connect to {ABSENT}" in given.stderr


HERE, THERE = "http://127.0.0.1:1/here", "http://127.0.0.1:1/there"


@pytest.mark.parametrize(
    ("options", "variables", "used"),
    [
        (["--context", "plain"], {"PYJMSACK_JOLOKIA": THERE}, None),
        (["--context", "managed"], {"PYJMSACK_JOLOKIA": THERE}, HERE),
        (["--context", "managed", "--jolokia", THERE], {}, THERE),
        (["--context", "managed", "--url", "amqp://127.0.0.1:2"], {}, None),
        (["--context", "managed", "--url", ABSENT], {}, HERE),
        (["--url", "amqp://127.0.0.1:2"], {"PYJMSACK_CONTEXT": "managed"}, None),
        (["--url", "amqp://127.0.0.1:2"], {"PYJMSACK_JOLOKIA": THERE}, None),
        (["--url", ABSENT], {"PYJMSACK_JOLOKIA": THERE}, THERE),
        ([], {"PYJMSACK_JOLOKIA": THERE}, THERE),
        ([], {"PYJMSACK_CONTEXT": "login only", "PYJMSACK_JOLOKIA": THERE}, THERE),
        ([], {"PYJMSACK_CONTEXT": "plain", "PYJMSACK_JOLOKIA": THERE}, None),
    ],
    ids=lambda given: " ".join(given) or "-" if isinstance(given, list) else None,
)
def test_a_command_never_changes_another_broker_than_that_of_its_url(
    tmp_path: Path, options: list[str], variables: dict[str, str], used: str | None
) -> None:
    """`purge --context test` destroyed the messages of the broker whose Jolokia stood in a variable."""
    text = f"""
        [plain]\nurl = "{ABSENT}"\n[managed]\nurl = "{ABSENT}"\njolokia = "{HERE}"\n["login only"]\nuser = "alice"
    """
    environment = in_context(text, tmp_path, PYJMSACK_PASSWORD="x", **variables)
    said = Cli(ABSENT).run("purge", "orders", "--yes", *options, **environment).stderr
    assert [each for each in (HERE, THERE) if f"Jolokia at {each}" in said] == ([] if used is None else [used]), said
    url = options[options.index("--url") + 1] if "--url" in options else ABSENT
    assert used is not None or f"cannot connect to {url}" in said


def test_a_login_that_a_variable_chose_is_not_sent_to_another_broker(
    secured_broker: Served, broker_url: str, tmp_path: Path
) -> None:
    """With `PYJMSACK_CONTEXT=prod` in the environment, `--url` of a test broker got the password of prod."""
    text = f"""[prod]\nurl = "{broker_url}"\nuser = "alice"\npassword-env = "PROD" """
    variables = in_context(text, tmp_path, PROD="wonderland")
    command = ["browse", "DLQ", "--url", secured_broker.amqp_url]
    assert "alice" not in (refused := Cli(ABSENT).run(*command, PYJMSACK_CONTEXT="prod", **variables)).output
    assert refused.exit_code == 1
    chosen = Cli(ABSENT).run(*command, "--context", "prod", **variables)
    assert chosen.exit_code == 0, chosen.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[prod]\npassword = 's3cret'\n", "password-env"),
        ("[prod]\njolokia = 'http://a:s3cret@h/'\n", "jolokia-env"),
        ("[prod]\njolokia = 'http://a:/s3cret@h/'\n", "jolokia-env"),
        ("[prod]\njolokia = 'http://a:1?s3cret@h/'\n", "jolokia-env"),
        ("[prod]\njolokia = 'http://a:[s3cret@h/'\n", "jolokia-env"),
        ("[test]\nurl = 'amqp://h'\n", "it has these contexts: test"),
        ("[prod\nurl = 's3cret'\n", "is not a valid TOML file"),
        ("[prod]\nurl = 5\n", "url must be a string"),
    ],
)
def test_a_wrong_context_is_a_usage_error_that_shows_no_secret(tmp_path: Path, text: str, said: str) -> None:
    result = Cli(ABSENT).run("stat", "--context", "prod", **in_context(text, tmp_path))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "s3cret" not in result.output


@pytest.mark.parametrize("text", [b"[prod]\nurl = '\xff'\n", b"a = " + b"[" * 100_000], ids=["not UTF-8", "deep"])
def test_a_file_of_contexts_that_cannot_be_read_is_a_usage_error(tmp_path: Path, text: bytes) -> None:
    variables = in_context("", tmp_path)
    (file,) = tmp_path.rglob("contexts.toml")
    file.write_bytes(text)
    result = Cli(ABSENT).run("stat", "--context", "prod", **variables)
    assert result.exit_code == 2
    assert "is not a valid TOML file" in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_a_shell(shell: str) -> None:
    printed = Cli(ABSENT).ok("completion", shell)
    assert "_PYJMSACK_COMPLETE" in printed


def test_every_command_of_operators_has_help_with_an_example_and_json() -> None:
    for name in ("stat", "move", "copy", "purge", "pause", "resume", "consumers", "connections", "export", "import"):
        command = commands.commands[name]
        assert f"pyjmsack {name}" in (command.help or ""), name
        assert "--json" in {option for each in command.params for option in each.opts}, name


def test_what_nobody_may_manage_is_refused_with_the_permission_or_done_by_the_client(
    guarded: Cli, queue_name: str
) -> None:
    login = {"PYJMSACK_PASSWORD": "wonderland"}
    sent = guarded.run("send", queue_name, "--user", "alice", stdin="a\nb\n", **login)
    assert sent.exit_code == 0, sent.output
    refused = guarded.run("purge", queue_name, "--yes", "--user", "alice", **login)
    assert refused.exit_code == 1
    assert "permissions manage" in refused.stderr
    assert guarded.run("check", "queue", queue_name, "--user", "alice", **login).exit_code == 3
    counted = guarded.run("stat", queue_name, "--json", "--user", "alice", **login)
    assert json.loads(counted.stdout)["queues"][0]["messages"] == 2
    assert "Without management" in counted.stderr
    moved = guarded.run("move", queue_name, f"{queue_name}.2", "--json", "--user", "alice", **login)
    assert json.loads(moved.stdout) | {"moved": 2, "by": "client"} == json.loads(moved.stdout)


def test_classic_is_operated_by_jolokia_and_by_the_client(classic: tuple[str, str], queue_name: str) -> None:
    url, jolokia = classic
    managed = plain = Cli(url)
    put(url, queue_name, ["a", "b", "c"])
    (status,) = json.loads(managed.ok("stat", queue_name, "--json", "--jolokia", jolokia))["queues"]
    assert status["messages"] == 3
    assert managed.run("check", "queue", queue_name, "--max-depth", 2, "--jolokia", jolokia).exit_code == 2
    assert managed.run("check", "queue", queue_name, "--max-age", "1d", "--jolokia", jolokia).exit_code == 0
    assert plain.run("check", "queue", queue_name).exit_code == 3
    assert json.loads(plain.ok("stat", queue_name, "--json"))["queues"][0]["messages"] == 3
    moved = json.loads(plain.ok("move", queue_name, f"{queue_name}.2", "--limit", 1, "--json"))
    assert (moved["moved"], moved["by"]) == (1, "client")
    moved = json.loads(managed.ok("move", queue_name, f"{queue_name}.2", "--json", "--jolokia", jolokia))
    assert (moved["moved"], moved["by"]) == (2, "broker")
    assert [text for text, _ in take_all(url, f"{queue_name}.2")] == ["a", "b", "c"]
