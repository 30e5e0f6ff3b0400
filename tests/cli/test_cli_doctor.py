"""``pyjmsack doctor`` and ``pyjmsack explain``."""

from __future__ import annotations

import json

from cli_support import Cli, put


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


def test_a_queue_that_fails_is_reported_with_the_rest_and_by_the_exit_code(cli: Cli) -> None:
    result = cli.run("doctor", "--queue", "")
    assert result.exit_code == 1


def test_explain_says_who_acknowledges_and_what_comes_again(cli: Cli) -> None:
    text = cli.ok("explain", "orders?consumer.prefetchSize=10", "--mode", "client")
    assert "message.acknowledge()" in text
    assert "10 of them, from number 1 on, comes again" in text
    text = cli.ok("explain", "orders", "--mode", "auto")
    assert "6 of them, from number 5 on, comes again" in text
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
