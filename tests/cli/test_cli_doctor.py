"""``pyjmsack doctor`` and ``pyjmsack explain``."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from cli_support import Cli, put

from pyjmsack.cli.probing import wrong_port


def test_the_doctor_names_the_broker_and_what_it_can_do(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["a", "b"])
    report = json.loads(cli.ok("doctor", "--queue", queue_name, "--json"))
    assert report["broker"].startswith("apache-activemq-artemis 2.")
    assert (report["treated as"], report["encrypted"], report["prefetch unit"]) == ("artemis", "no", "messages")
    assert report["queue"] == f"{queue_name}: 2 messages"
    assert report["features"]["browser"] == {"level": "native", "note": ""}
    assert report["features"]["exclusive-consumer"]["level"] == "refused"
    table = cli.ok("doctor")
    assert "exclusive-consumer" in table
    assert "atomic" in table


def test_the_doctor_fails_with_the_next_step_when_nobody_answers(cli: Cli) -> None:
    result = cli.run("doctor", "--url", "amqp://127.0.0.1:1")
    assert result.exit_code == 1
    assert "pyjmsack broker" in result.output


@pytest.fixture
def port_that_answers() -> Iterator[Callable[[bytes, bytes], int]]:
    """``port(wanted, answer)``: a port that answers so if the first bytes begin as wanted, and says nothing else."""
    with ExitStack() as opened:

        def port(wanted: bytes, answer: bytes) -> int:
            class Handler(socketserver.BaseRequestHandler):
                def handle(self) -> None:
                    if self.request.recv(512).startswith(wanted):
                        self.request.sendall(answer)
                    while self.request.recv(512):
                        pass  # until the client has gone

            server = opened.enter_context(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler))
            serving = threading.Thread(target=server.serve_forever)
            serving.start()
            opened.callback(serving.join)
            opened.callback(server.shutdown)
            return int(server.server_address[1])

        yield port


@pytest.mark.parametrize(
    ("scheme", "wanted", "answer", "spoken"),
    [
        ("amqp", b"", b"\0\0\1\x10\1ActiveMQ\0\0\0\x0c", "OpenWire"),
        ("amqp", b"CONNECT\n", b"CONNECTED\nversion:1.2\n\n\0", "STOMP"),
        ("stomp", b"AMQP", b"AMQP\3\1\0\0", "AMQP"),
        ("amqp", b"HEAD", b"HTTP/1.0 200 OK\r\n\r\n", "HTTP"),
        ("stomp", b"HEAD", b"-ERR unknown command 'HEAD'\r\n", "Redis"),
        ("amqp", b"\x10", b"\x20\2\0\5", "MQTT"),
        ("amqp", b"\x16", b"\x15\3\3\0\2\2\x28", "TLS"),
        ("amqps", b"AMQP", b"AMQP\3\1\0\0", "AMQP"),
        ("stomp+ssl", b"CONNECT", b"ERROR\nmessage:no\n\n\0", "STOMP"),
    ],
)
def test_the_doctor_names_the_protocol_of_a_wrong_port(
    port_that_answers: Callable[[bytes, bytes], int], scheme: str, wanted: bytes, answer: bytes, spoken: str
) -> None:
    """Also where the port is silent until it hears its own protocol."""
    port = port_that_answers(wanted, answer)
    expected = "TLS" if scheme in ("amqps", "stomp+ssl") else scheme.upper()
    result = Cli(f"{scheme}://127.0.0.1:{port}").run("doctor")
    assert result.exit_code == 1
    assert f"{scheme}://127.0.0.1:{port} speaks {spoken}, not {expected}: " in result.stderr


@pytest.mark.parametrize("password", ["s3cret/x", "12/s3cret", "/s3cret", "s3cret?x"])
def test_the_doctor_finds_the_port_behind_a_login_of_any_characters_and_shows_no_login(
    port_that_answers: Callable[[bytes, bytes], int], password: str
) -> None:
    """It ended with a traceback that showed the password, or asked a port of another host."""
    port = port_that_answers(b"", b"\0\0\1\x10\1ActiveMQ\0\0\0\x0c")
    result = Cli(f"amqp://bob:{password}@127.0.0.1:{port}?jms.allowUserInfo=true").run("doctor")
    assert result.exit_code == 1
    assert f"amqp://127.0.0.1:{port} speaks OpenWire" in result.stderr
    assert "s3cret" not in f"{result.output}{result.exception!r}"


def test_a_busy_port_for_several_protocols_is_not_called_a_wrong_one() -> None:
    """Such a port was late once, and answered in another protocol before it answered in the one of its URL."""
    late = threading.Semaphore(1)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            heard = self.request.recv(512)
            if heard.startswith(b"AMQP") and not late.acquire(blocking=False):
                self.request.sendall(b"AMQP\3\1\0\0")
            elif heard.startswith(b"CONNECT"):
                self.request.sendall(b"CONNECTED\nversion:1.2\n\n\0")
            while self.request.recv(512):
                pass  # until the client has gone

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            port = server.server_address[1]
            assert wrong_port(f"amqp://127.0.0.1:{port}") is None
        finally:
            server.shutdown()
            serving.join()


def test_the_doctor_of_a_failover_url_tells_of_each_broker_and_ends(cli: Cli) -> None:
    address = cli.url.partition("?")[0]
    result = cli.run("doctor", "--url", f"failover:(amqp://127.0.0.1:1,{address})?failover.maxReconnectDelay=100")
    assert result.exit_code == 1
    assert "apache-activemq-artemis 2." in result.stdout
    assert "cannot connect to amqp://127.0.0.1:1" in result.stderr
    assert result.stderr.endswith("Error: 1 of 2 brokers cannot be used\n")
    assert cli.run("doctor", "--url", f"failover:({address})").exit_code == 0


def test_a_queue_that_fails_is_reported_with_the_rest_and_by_the_exit_code(cli: Cli) -> None:
    result = cli.run("doctor", "--queue", "")
    assert result.exit_code == 1


def test_explain_says_who_acknowledges_and_what_comes_again(cli: Cli) -> None:
    text = cli.ok("explain", "orders?consumer.prefetchSize=10", "--mode", "client")
    assert "message.acknowledge()" in text
    assert "10 of them come again, from number 1 on" in text
    text = cli.ok("explain", "orders", "--mode", "auto")
    assert "6 of them come again, from number 5 on" in text
    assert "nothing comes again" in cli.ok("explain", "--mode", "no-ack")


def test_explain_takes_the_options_of_the_url(cli: Cli) -> None:
    report = json.loads(
        cli.ok("explain", "--json", "--url", "amqp://a?jms.optimizeAcknowledge=true&jms.prefetchPolicy.all=100")
    )
    assert (report["mode"], report["batch"], report["prefetch"]) == ("AUTO_ACKNOWLEDGE", 65, 100)
    assert {"about", "text", "rules"} == set(report["facts"][0])


def test_explain_refuses_a_wrong_url_as_usage(cli: Cli) -> None:
    result = cli.run("explain", "--url", "amqp://a?jms.optimiseAcknowledge=true")
    assert result.exit_code == 2
    assert "did you mean jms.optimizeAcknowledge" in result.output


@pytest.mark.parametrize("url", ["amqp://bob:s3cret/x@localhost:1", "failover:(amqp://bob:s3cret#x@localhost:1)"])
def test_the_doctor_does_not_show_the_password_of_a_url_that_is_wrong(cli: Cli, url: str) -> None:
    """The port of such a URL is a part of the password."""
    found = cli.run("doctor", "--url", url)
    assert found.exit_code == 2
    assert "user and password before the host are refused" in found.stderr
    assert "s3cret" not in found.output + repr(found.exception)
