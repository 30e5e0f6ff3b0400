"""The failover proof: what docs/failover.md promises, wherever a connection is lost.

``docs/generate_proof.py`` writes ``docs/failover-proof.md`` from a run of this module.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from contract.brokers import TARGETS, Target
from contract.faces import AIO, SYNC, Face
from contract.harness import Jms, take, texts
from shared_brokers import Served

from faults.proof_cases import CASES
from faults.proof_support import Moment, Proof
from pyjmsack import AckMode

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def jms(face: Face, target: Target, broker: Served, queue_name: str, no_leaks: None) -> Jms:
    """What a cell works with: the broker itself, not by way of the wire."""
    return Jms(face, getattr(broker, f"{target.protocol}_url"), queue_name, target)


@pytest.mark.parametrize("moment", Moment, ids=lambda moment: moment.name.lower())
@pytest.mark.parametrize("case", CASES)
async def test_what_is_promised_holds_wherever_the_connection_is_lost(
    jms: Jms, case: str, moment: Moment, record_property: Callable[[str, object], None]
) -> None:
    """S90-S101, S105, S106: each case of docs/failover.md."""
    promise = CASES[case].promise(moment, jms.target)
    record_property("cell", cell_of(case, moment, jms.target, jms.face))
    await CASES[case].scenario(Proof(jms, moment), promise)
    record_property("promise", promise)


def cell_of(case: str, moment: Moment, target: Target, face: Face) -> str:
    """Return what a test stands for in the table."""
    number, title, *_ = CASES[case]
    return "|".join((number, title, moment.value, target.protocol, target.broker, face.name))


def test_the_page_of_the_proof_is_what_the_cells_prove() -> None:
    """Rows, columns and promises are those of the cases."""
    spec = importlib.util.spec_from_file_location("generate_proof", DOCS / "generate_proof.py")
    assert spec is not None
    assert spec.loader is not None
    generator: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    results = {
        cell_of(case, moment, target, face): CASES[case].promise(moment, target)
        for case in CASES
        for moment in Moment
        for target in TARGETS
        for face in (SYNC, AIO)
    }
    assert {*results.values()} == {*generator.PROMISES}
    assert {moment.value for moment in Moment} == {*generator.MOMENTS}
    page = (DOCS / "failover-proof.md").read_text(encoding="utf-8")
    assert page == generator.page(results), "run: python docs/generate_proof.py"


async def test_a_message_that_was_processed_is_known_again_whatever_its_type(jms: Jms) -> None:
    """S105: brokers may encode it anew when they deliver it again."""
    proof = Proof(jms, Moment.BEFORE)
    session = await proof.session(AckMode.CLIENT_ACKNOWLEDGE)
    producer = await session.create_producer(proof.queue)
    consumer = await session.create_consumer(proof.queue)
    for content in ("", "short", "long" * 100, b"bytes", b"bytes" * 100, {"key": 1, "other": "x" * 300}):
        await producer.send(content)
    stream = session.create_stream_message()
    stream.write_int(7)
    stream.write_string("seven")
    await producer.send(stream)
    await producer.send(session.create_object_message([1, "two"]))
    received = await take(consumer, 8)

    async def acknowledge() -> None:
        received[-1].acknowledge()

    await proof.lose_unanswered(acknowledge)
    await producer.send("new")
    assert texts(await take(consumer, 1)) == ["new"]
    assert consumer.stats.duplicates_skipped == 8
