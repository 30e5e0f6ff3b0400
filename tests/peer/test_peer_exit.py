"""A program that ends without closing its connection: its sends and acknowledgements have two seconds to leave."""

from __future__ import annotations

import subprocess
import sys

import pytest
from peer import text
from peer_faces import PATIENCE, SyncFace
from stomp_peer import start

START = """
import sys, pyjmsack
connection = pyjmsack.ConnectionFactory(sys.argv[1]).create_connection()
session = connection.create_session(101)
producer = session.create_producer(pyjmsack.Queue("q"))
"""
SENDS = START + "for number in range(100): producer.send_async(str(number))"
CHILD = f"""
import multiprocessing, sys, pyjmsack
child = multiprocessing.get_context({{!r}}).Process(target=exec, args=({SENDS!r}, {{{{}}}}))
child.start()
child.join()
sys.exit(child.exitcode)
"""
LARGE = START + "for number in range(40): producer.send_async(bytes(1 << 20))"
LATE = "import atexit; atexit.register(lambda: producer.send('late'))" + START
ACCEPTS = START + (
    "connection.start(); consumer = session.create_consumer(pyjmsack.Queue('q')); consumer.receive().accept()"
)
RECEIVES = (
    "import atexit; atexit.register(lambda: producer.send(consumer.receive(60).text))"
    + START
    + "connection.start(); consumer = session.create_consumer(pyjmsack.Queue('q'))"
)


def program(source: str, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", source, url], stderr=subprocess.PIPE, text=True)


def ends_well(child: subprocess.Popen[str]) -> None:
    _, errors = child.communicate(timeout=PATIENCE)
    assert (child.returncode, errors) == (0, "")


@pytest.mark.parametrize("engine", ["python", "proton"])
def test_sends_that_wait_for_credit_leave_before_the_program_ends(sync: SyncFace, engine: str) -> None:
    """The broker grants ten messages at a time, so the program must wait nine times for more."""
    peer = sync.peer(credit=10)
    child = program(SENDS, f"{peer.url}?amqp.engine={engine}")
    for number in range(10, 100, 10):
        peer.wait_transfers(number)
        peer.grant(10)
    peer.wait_transfers(100)
    ends_well(child)


@pytest.mark.parametrize("options", ["", "?jms.presettlePolicy.presettleAll=true"], ids=["confirmed", "unconfirmed"])
def test_sends_in_a_write_buffer_leave_before_the_program_ends(sync: SyncFace, options: str) -> None:
    """40 MiB are more than the sockets hold. Without a RECEIPT only the buffer tells whether a frame has left."""
    peer = start(sync)
    child = program(LARGE, peer.url + options)
    peer.wait("SEND", 40)
    ends_well(child)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_of_multiprocessing_waits_too(sync: SyncFace, method: str) -> None:
    """Such a process ends without the functions of ``atexit``, and lost up to 980 of 1,000 sends that had returned."""
    peer = sync.peer(credit=10)
    child = program(CHILD.format(method), peer.url)
    for number in range(10, 100, 10):
        peer.wait_transfers(number)
        peer.grant(10)
    peer.wait_transfers(100)
    ends_well(child)


def test_proton_still_works_for_a_function_that_runs_after_ours(sync: SyncFace) -> None:
    """proton freed its objects at the end of the program, and the next event aborted the process."""
    peer = sync.peer()
    child = program(LATE, f"{peer.url}?amqp.engine=proton")
    peer.wait_transfers(1)
    ends_well(child)


def test_consumers_are_drained_before_the_program_ends(sync: SyncFace) -> None:
    """ActiveMQ Classic drops acknowledgements that it did not read before a write to the ended program fails. The
    answer to a drain shows that it has read them."""
    peer = sync.peer(messages=[text("one")])
    child = program(ACCEPTS, peer.url)
    ends_well(child)
    names = [frame.name for frame in peer.frames if frame.name == "disposition" or frame["drain"]]
    assert names[:2] == ["disposition", "flow"]
    assert {*names[2:]} <= {"flow"}, "a drain that is answered late on a busy machine is repeated"


def test_a_function_that_runs_after_ours_may_still_receive(sync: SyncFace) -> None:
    """The functions for the end of a program that were registered before the import of pyjmsack run after ours."""
    peer = sync.peer()
    child = program(RECEIVES, peer.url)
    peer.wait_frames("flow")
    peer.deliver(text("one"))
    peer.wait_transfers(1)
    ends_well(child)
