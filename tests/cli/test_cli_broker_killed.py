"""The broker is killed in the middle of a command: what was done is said, nothing is lost, no traceback is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from cli_support import Cli, put, rest, take_all
from contract.brokers import Embedded
from polling import wait_until


def depth(cli: Cli, queue: str) -> int:
    """Count by browsing, as Classic is not managed. An Artemis that has no such queue yet fails."""
    result = cli.run("stat", queue, "--json")
    return int(json.loads(result.stdout)["queues"][0]["messages"]) if result.exit_code == 0 else 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", ["move", "copy"])
@pytest.mark.parametrize("kind", ["artemis", "classic-6"])
def test_a_broker_that_is_killed_in_the_middle_leaves_a_count_and_an_error(
    mortal_brokers: Callable[[str], Embedded], queue_name: str, kind: str, command: str
) -> None:
    """It said nothing of what was done before."""
    broker, target = mortal_brokers(kind), f"{queue_name}.target"
    cli = Cli(broker.amqp_url)
    put(cli.url, queue_name, [str(number) for number in range(300)])
    process = cli.start(command, queue_name, target, "--create", "--rate", 8, "--transaction", 4)
    try:
        wait_until(lambda: depth(cli, target) >= 8, patience=90)
    finally:
        broker.kill()
        _, said, code = rest(process)
        broker.restart()
    assert (code, "Traceback" in said) == (1, False)
    assert re.search(r"^The error came after [\d,]+ messages? .*had been", said, re.MULTILINE)
    assert "Error: " in said.splitlines()[-1]
    missing = set(map(str, range(300))) - {text for name in (queue_name, target) for text, _ in take_all(cli.url, name)}
    assert missing == set()
