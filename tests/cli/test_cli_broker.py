"""``pyjmsack broker``: a broker in the foreground."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import WAIT, Cli, first_lines, put, rest, take_all

from pyjmsack import ConnectionFactory

FREE_PORTS = ("--amqp-port", "0", "--stomp-port", "0")


def started(cli: Cli, *options: object) -> tuple[subprocess.Popen[bytes], dict[str, object]]:
    """Start a broker on free ports and wait until it says where."""
    process = cli.start("broker", *FREE_PORTS, "--json", *options)
    return process, json.loads(first_lines(process, 1)[0])


@pytest.mark.parametrize(
    "signum",
    [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.whole_tier("one handler takes both signals"))],
)
def test_messages_survive_a_stop_by_signal(cli: Cli, queue_name: str, tmp_path: Path, signum: signal.Signals) -> None:
    for texts in (["kept"], []):
        process, told = started(cli, "--data-dir", tmp_path)
        url = str(told["amqp"])
        if texts:
            put(url, queue_name, texts)
        else:
            assert take_all(url, queue_name) == [("kept", False)]
        process.send_signal(signum)
        assert rest(process)[2] == 0
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) != 0


def test_it_prints_its_urls_and_an_example(cli: Cli) -> None:
    process = cli.start("broker", *FREE_PORTS)
    lines = first_lines(process, 4)
    process.send_signal(signal.SIGINT)
    assert rest(process)[2] == 0
    url = lines[0].split()[1]
    assert url.startswith("amqp://127.0.0.1:")
    assert lines[1].split()[1].startswith("stomp://127.0.0.1:")
    assert f"pyjmsack send --url {url}" in lines[3]


def test_a_broker_that_dies_is_a_failure_and_ends_a_waiting_send(cli: Cli, queue_name: str) -> None:
    process, told = started(cli)
    url = str(told["amqp"])
    sender = Cli(url).start("send", queue_name, stdin=subprocess.PIPE)
    receiver = Cli(url).start("receive", queue_name, "--follow")
    assert sender.stdin is not None
    sender.stdin.write(b"hello\n")
    sender.stdin.flush()
    assert first_lines(receiver, 1) == ["hello"]
    os.kill(int(str(told["pid"])), signal.SIGKILL)
    for client in (process, sender, receiver):
        assert client.wait(WAIT) == 1
        _, err, _ = rest(client)
        assert err.splitlines()[-1].startswith("Error: ")
        assert "Traceback" not in err


@pytest.mark.parametrize(("kind", "version"), [("artemis", "2.56.0"), ("activemq", "5.18.3")])
def test_the_kind_and_its_version_can_be_chosen(cli: Cli, kind: str, version: str) -> None:
    process, told = started(cli, "--kind", kind, "--version", version)
    with ConnectionFactory(str(told["amqp"])).create_connection() as connection:
        assert connection.metadata.broker_version == version
    process.send_signal(signal.SIGINT)
    assert rest(process)[2] == 0


@pytest.mark.parametrize("kind", ["artemis", "activemq"])
def test_the_urls_of_a_broker_with_tls_are_complete(cli: Cli, queue_name: str, kind: str) -> None:
    """Who copies a URL has all options that a client needs. The files are gone when the broker is."""
    process, told = started(cli, "--kind", kind, "--mutual-tls")
    amqp, stomp = str(told["amqp"]), str(told["stomp"])
    assert (amqp.partition(":")[0], stomp.partition(":")[0]) == ("amqps", "stomp+ssl")
    put(stomp, queue_name, ["secret"])
    assert take_all(amqp, queue_name, wait_for=1) == [("secret", False)]
    files = [Path(str(told[name])) for name in ("trust", "client_certificate")]
    assert [str(file) in amqp for file in files] == [True, True]
    process.send_signal(signal.SIGTERM)
    assert rest(process)[2] == 0
    assert [file.exists() for file in files] == [False, False]


def test_the_example_for_tls_can_be_pasted_into_a_shell(cli: Cli, tmp_path: Path) -> None:
    """Directories of users have spaces in their names, and an ampersand of a URL ends a command."""
    process = cli.start("broker", *FREE_PORTS, "--tls", "--data-dir", tmp_path / "my broker")
    lines = first_lines(process, 5)
    assert lines[2] == f"Trust  {tmp_path / 'my broker' / 'tls' / 'trust.pem'}"
    example = lines[4].partition("In another terminal: ")[2].replace("pyjmsack", f"{sys.executable} -m pyjmsack", 1)
    done = subprocess.run(["sh", "-c", example], capture_output=True, text=True, timeout=WAIT)
    assert (done.returncode, done.stderr.partition(" (")[0]) == (0, "Sent 1, confirmed 1")
    process.send_signal(signal.SIGINT)
    assert rest(process)[2] == 0


def test_an_unknown_version_is_one_clear_line(cli: Cli) -> None:
    result = cli.run("broker", *FREE_PORTS, "--kind", "activemq", "--version", "4.0")
    assert result.exit_code == 1
    assert "ActiveMQ 4.0 cannot be fetched. Give one of these versions: 6.3.1, 5.18.3" in result.stderr


def test_a_port_in_use_is_one_clear_line(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = cli.run("broker", "--amqp-port", port, "--stomp-port", 0)
    assert result.exit_code == 1
    assert f"Port {port}" in result.stderr
