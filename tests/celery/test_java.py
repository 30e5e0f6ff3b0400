"""A Java program sends a task as a plain JMS text message, a Python worker runs the task, Java gets the result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interop.agent import JavaMissingError, started
from shared_brokers import Served

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "interop" / "java" / "src" / "main" / "java" / "hello" / "AskWorker.java"


@pytest.mark.whole_tier("Maven builds the Java program first; the form of the messages has unit tests")
@pytest.mark.timeout(300)
def test_a_java_program_sends_a_task_and_gets_its_result(any_broker: Served, side: Callable[..., Any]) -> None:
    """``envelope="jms"``: the results are JMS messages, too, and go to the ``JMSReplyTo`` of the task."""
    own = side(any_broker.amqp_url, broker_transport_options={"envelope": "jms"})
    own.start("prefork")
    queue = own.tasks.app.conf.task_default_queue
    good = answer(any_broker.amqp_url, queue, "celery_tasks.add", '[[2], {"right": 3}, {}]')
    assert (good["status"], good["result"]) == ("SUCCESS", 5)
    bad = answer(any_broker.amqp_url, queue, "celery_tasks.fail", "[[], {}, {}]")
    assert (bad["status"], bad["result"]["exc_type"]) == ("FAILURE", "ValueError")


def answer(*arguments: str) -> dict[str, Any]:
    """Return the result that the Java program got."""
    try:
        program = started([], "hello.AskWorker", *arguments)
    except JavaMissingError as missing:
        pytest.skip(f"no Java end: {missing}")
    said, _ = program.communicate(timeout=100)
    assert program.returncode == 0
    found: dict[str, Any] = json.loads(said)
    return found


def test_the_page_shows_the_java_program() -> None:
    page = (ROOT / "docs" / "howto" / "celery.md").read_text(encoding="utf-8")
    _, _, shown = PROGRAM.read_text(encoding="utf-8").partition("\n\n")
    assert f"```java\n{shown}```" in page
