"""A program that ends without closing its connection: its sends and acknowledgements have two seconds to leave."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

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
TAKES = START.replace("101", "pyjmsack.AckMode.NO_ACKNOWLEDGE") + (
    "connection.start(); consumer = session.create_consumer(pyjmsack.Queue('q')); consumer.receive()"
)
RECEIVES = (
    "import atexit; atexit.register(lambda: producer.send(consumer.receive(60).text))"
    + START
    + "connection.start(); consumer = session.create_consumer(pyjmsack.Queue('q'))"
)

LISTENS = """
import asyncio, sys, threading, pyjmsack.aio
async def listener(message):
    print(message.text, flush=True)
    started.set()
    await asyncio.sleep(3600)
async def main():
    global started
    started = asyncio.Event()
    connection = await pyjmsack.aio.ConnectionFactory(sys.argv[1]).create_connection()
    session = await connection.create_session(MODE)
    consumer = await session.create_consumer(pyjmsack.Queue("q"))
    consumer.message_listener = listener
    await connection.start()
    await started.wait()
    END
"""
CATCHES = """
    try:
        await asyncio.sleep(1)
    except asyncio.CancelledError:
        pass
"""
WAITS_FOR_A_THREAD = "asyncio.get_running_loop().run_in_executor(None, threading.Event().wait, 2.5)"
RUN = "asyncio.run(main())"
NOT_RUN = "loop = asyncio.new_event_loop(); loop.run_until_complete(main()); loop.close()"


def program(source: str, url: str, **how: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", source, url], stderr=subprocess.PIPE, text=True, **how)


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


def test_a_consumer_without_acknowledgements_is_not_drained_when_the_program_ends(sync: SyncFace) -> None:
    """S36: nobody takes the settled messages that a drain brings, and the credit after it brings still more."""
    peer = sync.peer(messages=[text("one")])
    child = program(TAKES, peer.url)
    ends_well(child)
    assert not [frame for frame in peer.frames if frame.name == "flow" and frame["drain"]]
    assert len([frame for frame in peer.frames if frame.name == "flow" and frame["handle"] is not None]) == 1


def test_a_function_that_runs_after_ours_may_still_receive(sync: SyncFace) -> None:
    """The functions for the end of a program that were registered before the import of pyjmsack run after ours."""
    peer = sync.peer()
    child = program(RECEIVES, peer.url)
    peer.wait_frames("flow")
    peer.deliver(text("one"))
    peer.wait_transfers(1)
    ends_well(child)


@pytest.mark.parametrize("mode", [1, 2, 101])
@pytest.mark.parametrize(
    "end", [WAITS_FOR_A_THREAD, "sys.exit()", "pass"], ids=["waits for a thread", "exit", "return"]
)
def test_no_listener_of_asyncio_starts_after_the_end_of_the_program_s127(sync: SyncFace, mode: int, end: str) -> None:
    """``asyncio.run`` ended the listener, and a second later, while it waited for a thread, the library started the
    listener for the next message. It was destroyed with the loop, which led to four tracebacks."""
    peer = sync.peer(messages=[text(str(number)) for number in range(5)])
    child = program(LISTENS.replace("MODE", str(mode)).replace("END", end) + RUN, peer.url, stdout=subprocess.PIPE)
    printed, errors = child.communicate(timeout=PATIENCE)
    assert (child.returncode, printed.split()) == (0, ["0"])
    assert errors.count("the listener of q raised\n") == 1, errors
    assert not re.search("RuntimeError|ValueError|GeneratorExit|destroyed|never awaited", errors), errors


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_listener_that_catches_its_cancellation_does_not_keep_the_program_alive_s127(
    sync: SyncFace, concurrency: int
) -> None:
    """``asyncio.run`` did not return as long as messages came, and each message started the listener. One more may
    begin, and is cancelled too."""
    peer = sync.peer(messages=[text(str(number)) for number in range(20)])
    source = LISTENS.replace("MODE", "1").replace("END", "pass") + RUN
    source = source.replace("    await asyncio.sleep(3600)\n", CATCHES)
    set_listener = f"consumer.set_message_listener(listener, concurrency={concurrency})"
    source = source.replace("consumer.message_listener = listener", set_listener)
    child = program(source, peer.url, stdout=subprocess.PIPE)
    printed, errors = child.communicate(timeout=PATIENCE)
    assert (child.returncode, errors) == (0, "")
    assert len(printed.split()) <= 2 * concurrency


@pytest.mark.parametrize("mode", [1, 2, 101])
def test_a_listener_that_is_destroyed_with_its_loop_raised_no_error_s127(sync: SyncFace, mode: int) -> None:
    """The program closes its loop without the end of the tasks. Only asyncio itself says so. The message was reported
    as failed, and a timer and an outcome were left to the closed loop."""
    peer = sync.peer(messages=[text(str(number)) for number in range(5)])
    source = LISTENS.replace("MODE", str(mode)).replace("END", "pass") + NOT_RUN
    child = program(source, peer.url, stdout=subprocess.PIPE)
    printed, errors = child.communicate(timeout=PATIENCE)
    assert (child.returncode, printed.split()) == (0, ["0"])
    assert "destroyed but it is pending" in errors
    assert not re.search("RuntimeError|ValueError|GeneratorExit|raised|never awaited", errors), errors
    assert not peer.all("disposition"), "the message was given an outcome"
