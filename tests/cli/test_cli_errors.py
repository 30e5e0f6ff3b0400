"""Every failure is one clear line with the next step, and no secret is ever shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import Cli
from shared_brokers import Served

from pyjmsack import ConnectionLostException, JMSSecurityException, TransactionRolledBackException
from pyjmsack.cli.errors import explain

ABSENT = "amqp://127.0.0.1:1"
PASSWORD = "not-to-be-shown"


@pytest.mark.parametrize("command", [("send", "q"), ("receive", "q"), ("browse", "q"), ("demo",)], ids=lambda c: c[0])
def test_an_absent_broker_says_how_to_start_one(command: tuple[str, ...]) -> None:
    result = Cli(ABSENT).run(*command, stdin="x\n")
    assert result.exit_code == 1
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith(f"Error: cannot connect to {ABSENT}")
    assert "start one with `pyjmsack broker`" in line
    assert result.stdout == ""


def test_a_jolokia_that_cannot_be_used_is_no_reason_to_start_a_broker_or_to_log_in_there() -> None:
    """The next step was that of the broker, which had nothing to do with the failure."""
    result = Cli(ABSENT).run("stat", "--jolokia", "http://name:pass@127.0.0.1:1/api/jolokia")
    assert result.exit_code == 1
    assert "--jolokia" in result.stderr
    assert "pyjmsack broker" not in result.stderr
    refused = "Jolokia at http://127.0.0.1:1/ refuses this login (HTTP 401)"
    assert explain(JMSSecurityException(refused)) == refused


@pytest.mark.parametrize("url", ["tcp://localhost:61616", "amqp://localhost?jms.nonsense=1", "nonsense"])
def test_a_wrong_url_is_a_usage_error(url: str) -> None:
    assert Cli(url).run("browse", "q").exit_code == 2


def test_debug_shows_the_traceback() -> None:
    assert isinstance(Cli(ABSENT).run("--debug", "browse", "q").exception, ConnectionLostException)


def test_a_wrong_selector_shows_a_right_one(cli: Cli, queue_name: str) -> None:
    result = cli.run("receive", queue_name, "--selector", "a = = b")
    assert result.exit_code == 1
    assert "a selector looks like" in result.stderr


def test_a_login_works_from_environment_and_file(secured_broker: Served, queue_name: str, tmp_path: Path) -> None:
    secured = Cli(secured_broker.amqp_url)
    sent = secured.run("send", queue_name, "--user", "alice", stdin="secret\n", PYJMSACK_PASSWORD="wonderland")
    assert sent.exit_code == 0, sent.output
    (tmp_path / "password").write_text("wonderland\n")
    arguments = ("receive", queue_name, "--user", "alice", "--password-file", tmp_path / "password")
    assert secured.ok(*arguments) == "secret\n"


def test_a_refused_login_names_the_options_and_hides_the_password(secured_broker: Served, queue_name: str) -> None:
    secured = Cli(secured_broker.amqp_url)
    for arguments in (("--user", "alice"), ()):
        result = secured.run("browse", queue_name, *arguments, PYJMSACK_PASSWORD=PASSWORD)
        assert result.exit_code == 1
        assert "PYJMSACK_PASSWORD or --password-file" in result.stderr
        assert PASSWORD not in result.output


def test_a_refused_certificate_is_not_answered_with_the_options_for_a_password() -> None:
    refused = JMSSecurityException("the broker ended TLS", error_code="tls:certificate")
    assert explain(refused) == "the broker ended TLS"


def test_a_password_in_the_url_is_hidden() -> None:
    result = Cli(f"amqp://u:{PASSWORD}@127.0.0.1:1").run("browse", "q")
    assert result.exit_code in (1, 2)
    assert PASSWORD not in result.output


def test_a_url_in_the_wrong_place_is_not_shown_as_it_may_hold_a_password() -> None:
    result = Cli(ABSENT).run("doctor", f"amqp://h?jms.username=u&jms.password={PASSWORD}")
    assert result.exit_code == 2
    assert "--url" in result.stderr
    assert PASSWORD not in result.output


def test_nobody_is_told_to_repeat_a_commit_in_doubt_unseen() -> None:
    """S94."""
    known, in_doubt = (explain(TransactionRolledBackException("it", in_doubt=doubt)) for doubt in (False, True))
    assert "nothing of this transaction took effect" in known
    assert "the transaction may have taken effect" in in_doubt


def test_a_user_without_a_password_is_a_usage_error(cli: Cli, queue_name: str) -> None:
    result = cli.run("browse", queue_name, "--user", "alice")
    assert result.exit_code == 2
    assert "--password-file" in result.stderr


@pytest.mark.parametrize("arguments", [("--version",), ("--help",)])
def test_the_module_runs_as_a_program(arguments: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", "pyjmsack", *arguments], capture_output=True, text=True, check=True)
    assert "pyjmsack" in done.stdout or "Usage" in done.stdout


def test_an_unknown_command_is_a_usage_error(cli: Cli) -> None:
    assert cli.run("sned").exit_code == 2


def test_a_directory_that_cannot_be_made_and_a_full_disk_are_one_line_and_nothing_is_taken(
    cli: Cli, queue_name: str, tmp_path: Path
) -> None:
    """They ended the command with a traceback."""
    cli.ok("send", queue_name, stdin="a\n")
    (tmp_path / "file").touch()
    result = cli.run("receive", queue_name, "--format", "file", "--output-dir", tmp_path / "file" / "x")
    assert (result.exit_code, result.stderr) == (1, f"Error: {tmp_path}/file/x: Not a directory\n")
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "pyjmsack", "receive", queue_name, "--url", cli.url]
        said = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (said.returncode, said.stderr) == (1, "Error: standard output: No space left on device\n")
    assert isinstance(
        cli.run("--debug", "receive", queue_name, "--format", "file", "--output-dir", "/dev/null/x").exception, OSError
    )
    assert cli.ok("receive", queue_name) == "a\n"


@pytest.mark.parametrize("command", ["receive", "export"])
def test_a_file_that_finds_no_room_is_named_and_no_message_is_taken(
    cli: Cli, queue_name: str, tmp_path: Path, command: str
) -> None:
    """The error did not say which file. The limit for the size of a file stands for a full disk."""
    cli.ok("send", queue_name, stdin="x" * 2000)
    place = tmp_path / "place"
    more = ("--format", "file", "--output-dir", place) if command == "receive" else (place, "--take")
    limited = "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "
    limited += "runpy.run_module('pyjmsack', run_name='__main__')"
    arguments = [sys.executable, "-B", "-c", limited, command, queue_name, *map(str, more), "--url", cli.url]
    said = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert (said.returncode, said.stderr) == (1, f"Error: {place}: File too large\n")
    assert cli.ok("receive", queue_name) == "x" * 2000 + "\n"


def test_a_password_file_that_is_no_text_shows_nothing_of_itself(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"s3cret\xe4\n")
    result = Cli(ABSENT).run("stat", "--user", "alice", "--password-file", file)
    assert result.exit_code == 2
    assert "expected text in UTF-8" in result.stderr
    assert "s3cret" not in result.output


@pytest.mark.parametrize(
    "options",
    [["--max-dept", "4"], ["--context", "nobody"], ["--user", "alice"], ["--password-file", "/absent", "--user", "a"]],
    ids=lambda options: options[0],
)
def test_a_probe_that_cannot_look_says_unknown_and_neither_critical_nor_warning(options: list[str]) -> None:
    """A wrong option was the exit code 2, which means critical."""
    assert Cli(ABSENT).run("check", "queue", "orders", *options).exit_code == 3
