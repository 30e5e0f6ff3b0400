"""The table of calls in the guide for Java programmers names what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pyjmsack

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "from-java.md"
TABLE = PAGE.read_text(encoding="utf-8").partition("## 60 calls")[2]
ROWS = re.findall(r"^\| (`.*) \| (.*) \|$", TABLE, re.MULTILINE)
OWNERS = {
    "factory": pyjmsack.ConnectionFactory,
    "connection": pyjmsack.Connection,
    "session": pyjmsack.Session,
    "producer": pyjmsack.MessageProducer,
    "consumer": pyjmsack.MessageConsumer,
    "temporary_queue": pyjmsack.TemporaryQueue,
    "queue": pyjmsack.TemporaryQueue,  # its name is set by the object, with a slot of its own
    "message": pyjmsack.MapMessage,
}


def test_each_python_call_of_the_table_exists() -> None:
    assert len(ROWS) >= 60
    named = [found for _, python in ROWS for found in re.findall(r"\b([a-z_]+)\.([a-z_]+)\b", python)]
    assert len(named) >= 55
    wrong = [
        f"{owner}.{name}"
        for owner, name in named
        if not hasattr(OWNERS[owner], name) and not (owner == "message" and hasattr(pyjmsack.TextMessage, name))
    ]
    assert not wrong
