"""Ctrl-C at every line of the blocking face's verbs: afterwards the session works or can be closed, and nothing hangs.

Each verb runs once to see which lines it has, and then once for each of them, with a ``KeyboardInterrupt`` there.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from linecache import getline
from pathlib import Path
from types import CodeType, FrameType, SimpleNamespace
from typing import Any, NamedTuple

import pytest
from peer import Peer, text
from peer_faces import SyncFace, Told
from stomp_peer import StompPeer, start

import pyjmsack
from pyjmsack import AckMode, JMSContext, JMSException, Queue, Topic

PACKAGE = str(Path(pyjmsack.__file__).parent)
PATIENCE = 60.0
Line = tuple[CodeType, int]


class Verb(NamedTuple):
    """A call of the blocking face."""

    name: str
    call: Callable[[Any], Any]
    mode: AckMode = AckMode.CLIENT_ACKNOWLEDGE
    message: bool = False
    """Whether it needs a message to receive; else it sends one first."""


TRANSACTED = AckMode.SESSION_TRANSACTED
VERBS = [
    Verb("send", lambda o: o.producer.send("x")),
    Verb("send in a transaction", lambda o: o.producer.send("x"), TRANSACTED),
    Verb("send_async", lambda o: o.producer.send_async("x")),
    Verb("send with a listener", lambda o: o.producer.send("x", completion_listener=o.told)),
    Verb("receive", lambda o: o.consumer.receive(60), message=True),
    Verb("receive in a transaction", lambda o: o.consumer.receive(60), TRANSACTED, message=True),
    Verb("acknowledge", lambda o: (o.consumer.receive(60), o.session.acknowledge()), message=True),
    Verb("recover", lambda o: (o.consumer.receive(60), o.session.recover()), message=True),
    Verb("commit", lambda o: o.session.commit(), TRANSACTED),
    Verb("rollback", lambda o: o.session.rollback(), TRANSACTED),
    Verb("create_session", lambda o: o.connection.create_session()),
    Verb("create_producer", lambda o: o.session.create_producer(Queue("q"))),
    Verb("create_consumer", lambda o: o.session.create_consumer(Queue("q"))),
    Verb("create_temporary_queue", lambda o: o.session.create_temporary_queue()),
    Verb("create_requestor", lambda o: o.session.create_requestor(Queue("service"))),
    Verb("close consumer", lambda o: o.consumer.close()),
    Verb("close producer", lambda o: o.producer.close()),
    Verb("close session", lambda o: o.session.close()),
    Verb("close connection", lambda o: o.connection.close()),
]


class Tracer:
    """Notes the lines of the package that a call runs, or interrupts it before one of them."""

    def __init__(self, target: Line | None = None) -> None:
        self.lines: dict[Line, None] = {}
        self._target = target

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            line = frame.f_code, frame.f_lineno
            if line == self._target:
                self._target = None
                raise KeyboardInterrupt
            self.lines[line] = None
        return self

    def run(self, call: Callable[[Any], Any], o: Any) -> bool:
        """Make the call; return whether it was interrupted."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            call(o)
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False


def made(sync: SyncFace, peer: Peer, verb: Verb, connection: Any) -> SimpleNamespace:
    """Return a session with all that a verb needs."""
    session = connection.create_session(verb.mode)
    producer, consumer = session.create_producer(Queue("q")), session.create_consumer(Queue("q"))
    if verb.message:
        sync.until(lambda: len(peer.consumers) > 0 and peer.consumers[-1].link.credit > 0)
        peer.deliver(text("for us"), consumer=-1)
    else:
        producer.send("before")
    return SimpleNamespace(
        connection=connection, session=session, producer=producer, consumer=consumer, told=Told(), verb=verb
    )


def afterwards(o: SimpleNamespace) -> None:
    """Use the session, as far as it is open, and close it, from another thread."""
    problem = ""
    try:
        if o.verb.mode is TRANSACTED:
            o.session.rollback()
        else:
            o.session.recover()
        o.producer.send("after")
        if o.verb.mode is TRANSACTED:
            o.session.commit()
    except JMSException as error:
        problem = str(error)
    assert "S15" not in problem
    assert "under way" not in problem, "no message would flow any more, and no send would be possible"
    if o.verb.name == "receive":
        message = o.consumer.receive(60)
        assert message is not None
        assert message.text == "for us"
    o.session.close()


IN_FULL_TIER = ("send in a transaction", "send with a listener", "receive in a transaction", "recover", "rollback")
"""Verbs that have most of their lines in common with another verb, and take seconds."""


@pytest.fixture(
    params=[
        pytest.param(verb, id=verb.name, marks=pytest.mark.full_tier("has a like") if verb.name in IN_FULL_TIER else ())
        for verb in VERBS
    ]
)
def verb(request: pytest.FixtureRequest) -> Verb:
    """Each of them."""
    verb: Verb = request.param
    return verb


@pytest.fixture
def opened(sync: SyncFace) -> Iterator[Callable[[Peer], Any]]:
    """Return a function that connects; what it made is forgotten when it is closed."""
    before = sys.gettrace()  # that of a measurement of coverage, which would end here for all tests behind this one
    yield lambda peer: sync.connect(peer, "jms.closeTimeout=1000", "jms.requestTimeout=10000")
    sys.settrace(before)


def interruptible(line: Line) -> bool:
    """Return whether a signal handler may run before this line. Python runs none before ``try:``, and there the trace
    would leave a lock taken, because no exception table covers this line."""
    return getline(line[0].co_filename, line[1]).strip() != "try:"


def of_the_core(line: Line) -> bool:
    """Return whether this is a line of the core."""
    return Path(line[0].co_filename).parent.name == "core"


def test_ctrl_c_at_any_line_leaves_a_session_that_works_or_closes(
    sync: SyncFace, verb: Verb, opened: Callable[[Peer], Any]
) -> None:
    """S15: and no other thread is told that the session is in use."""
    peer = sync.peer()
    connection = opened(peer)
    tracer = Tracer()
    o = made(sync, peer, verb, connection)
    assert not tracer.run(verb.call, o)
    sync.background(afterwards, o).result(PATIENCE)
    assert len(tracer.lines) > 3
    missed = 0
    for line in filter(interruptible, tracer.lines):
        if verb.name == "close connection":
            connection = opened(peer)
        o = made(sync, peer, verb, connection)
        interrupted = Tracer(line).run(verb.call, o)
        missed += not interrupted
        where = f"{line[0].co_filename}:{line[1]}"
        try:
            sync.background(afterwards, o).result(PATIENCE)
        except TimeoutError:
            pytest.fail(f"something hangs after Ctrl-C before {where}")
        except AssertionError as error:
            pytest.fail(f"after Ctrl-C before {where}: {error}")
        if verb.name == "close connection":
            sync.background(connection.close).result(PATIENCE)
    assert missed <= len(tracer.lines) // 2, "most of the lines are run each time"
    if verb.name != "close connection":
        session = connection.create_session()
        session.create_producer(Queue("q")).send("last")
        connection.close()


def given_back(peer: Peer) -> int:
    """Return how many deliveries the client has released or modified."""
    frames = [frame for frame in peer.all("disposition") if frame["state"] is not None]
    return sum((f["last"] or f["first"]) - f["first"] + 1 for f in frames if f["state"][0] in (0x26, 0x27))


@pytest.mark.parametrize(
    "call", [lambda o: o.consumer.close(), lambda o: o.session.rollback()], ids=["close", "rollback"]
)
def test_prefetched_messages_go_back_if_a_call_that_ctrl_c_ended_is_made_again(
    sync: SyncFace, opened: Callable[[Peer], Any], call: Callable[[Any], Any]
) -> None:
    """S31, S83: some messages were nowhere between the inbox and the outcome, until the session was closed."""
    peer = sync.peer()
    connection = opened(peer)

    def prepared() -> SimpleNamespace:
        session = connection.create_session(TRANSACTED)
        consumer = session.create_consumer(Queue("q"))
        sync.until(lambda: peer.consumers[-1].link.credit > 0)
        peer.deliver(*[text(str(number)) for number in range(6)], consumer=-1)
        assert consumer.receive(60) is not None
        sync.until(lambda: consumer.stats.buffered == 5)
        return SimpleNamespace(session=session, consumer=consumer)

    tracer = Tracer()
    assert not tracer.run(call, prepared())
    lines = [*tracer.lines]
    assert len(lines) > 20
    for line in lines:
        o, before = prepared(), given_back(peer)
        Tracer(line).run(call, o)
        sync.background(call, o).result(PATIENCE)
        try:
            sync.until(lambda before=before: given_back(peer) - before >= 5)  # type: ignore[misc]  # as in a loop
        except AssertionError:
            pytest.fail(f"messages are nowhere after Ctrl-C before {line[0].co_filename}:{line[1]}")
        sync.background(o.session.close).result(PATIENCE)


def open_at(peer: Peer | StompPeer) -> int:
    """Return how many sessions, links and subscriptions the client has opened and not ended."""
    if isinstance(peer, StompPeer):
        return len(peer.all("SUBSCRIBE")) - len(peer.all("UNSUBSCRIBE"))
    left: set[tuple[int, int, Any]] = set()
    for frame in [*peer.frames]:
        channel = (frame.connection, frame.channel)
        if frame.name in ("begin", "attach"):
            left.add((*channel, frame["handle"]))
        elif frame.name == "detach":
            left.discard((*channel, frame["handle"]))
        elif frame.name == "end":
            left = {each for each in left if each[:2] != channel}
    return len(left)


CREATES: dict[str, Callable[[Any], Any]] = {
    # the face's objects of these are made last, take no messages and end with the connection
    "session": lambda o: o.connection._run(o.connection._core.create_session(1, None)),
    "transacted session": lambda o: o.connection._run(o.connection._core.create_session(TRANSACTED, None)),
    "producer": lambda o: o.connection._run(o.session._core.create_producer(Queue("q"))),
    "consumer": lambda o: o.session.create_consumer(Queue("q")),
    "durable consumer": lambda o: o.session.create_durable_consumer(Topic("t"), "name"),
    "consumer of a context": lambda o: o.context.create_consumer(Queue("q")),
    "temporary queue": lambda o: o.session.create_temporary_queue(),
    "requestor": lambda o: o.session.create_requestor(Queue("service")),
}


@pytest.mark.parametrize("name", CREATES)
@pytest.mark.parametrize("failover", [False, True], ids=["plain", "failover"])
@pytest.mark.parametrize("stomp", [False, True], ids=["amqp", "stomp"])
def test_a_create_that_ctrl_c_ended_leaves_nothing_open_at_the_broker(
    sync: SyncFace, name: str, stomp: bool, failover: bool
) -> None:
    """A consumer that nobody had kept the messages of its queue, over STOMP until the connection was closed."""
    peer: Any = start(sync) if stomp else sync.peer()
    connect = sync.failover if failover else sync.connect
    connection = connect(peer, client_id="us")
    o = SimpleNamespace(connection=connection, session=connection.create_session(), made=[])
    o.context = JMSContext(connection, AckMode.AUTO_ACKNOWLEDGE, owner=False)
    producer = o.session.create_producer(Queue("q"))

    def create(o: Any) -> None:
        o.made.append(CREATES[name](o))

    def end() -> None:
        for each in o.made:
            steps = each.delete() if name == "temporary queue" else each.close()
            if steps is not None:  # an object of the core
                connection._run(steps)
        o.made.clear()

    before = sys.gettrace()
    tracer = Tracer()
    try:
        create(o)  # because the first one of a connection opens what the next ones share
        end()
        least = open_at(peer)
        assert not tracer.run(create, o)
        end()
        # Python looks for signals when a function begins and behind calls: not where ``run`` returns its result
        lines = [line for line in tracer.lines if line[0].co_name != "run"]
        assert len(lines) > 20
        for line in lines:
            Tracer(line).run(create, o)
            end()
            producer.send("x")  # the broker has all that was written before
            try:
                sync.until(lambda: open_at(peer) == least)
            except AssertionError:
                pytest.fail(
                    f"{open_at(peer)} are open, not {least}, after Ctrl-C before {line[0].co_filename}:{line[1]}"
                )
    finally:
        sys.settrace(before)


def listening(connection: Any) -> Any:
    """Return a session whose listeners for messages and for sends have run, each on its thread."""
    session, told = connection.create_session(), Told()
    session.create_consumer(Queue("q")).message_listener = print
    session.create_producer(Queue("q")).send("x", completion_listener=told)
    told.wait(1)
    return session


def stays(threads: set[threading.Thread]) -> list[str]:
    """Return the names of the threads of listeners and of guards that were started since, and have not ended."""
    names = [thread.name for thread in {*threading.enumerate()} - threads]
    return [name for name in names if name.startswith(("pyjmsack-session", "pyjmsack-events", "pyjmsack-guard"))]


def test_ctrl_c_at_any_line_of_a_session_close_leaves_no_thread_behind(
    sync: SyncFace, opened: Callable[[Peer], Any]
) -> None:
    """S123: the threads of its listeners stayed for ever, also after a second close."""
    connection = opened(sync.peer())
    tracer = Tracer()
    assert not tracer.run(lambda session: session.close(), listening(connection))
    for line in tracer.lines:
        before = {*threading.enumerate()}
        session = listening(connection)
        Tracer(line).run(lambda session: session.close(), session)
        sync.background(session.close).result(PATIENCE)
        try:
            sync.until(lambda before=before: not stays(before))  # type: ignore[misc]  # as in a loop
        except AssertionError:
            pytest.fail(f"{stays(before)} after Ctrl-C before {line[0].co_filename}:{line[1]}")


def test_ctrl_c_at_any_line_of_a_connection_close_leaves_nothing_of_its_sessions_behind(
    sync: SyncFace, opened: Callable[[Peer], Any], tmp_path: Path
) -> None:
    """S123: sessions stayed open, each with its threads and with the file of its guard, also after a second close."""
    peer = sync.peer()
    guard = f"failover.duplicateGuard=sqlite:{tmp_path / 'ids'}"

    def prepared() -> SimpleNamespace:
        connection = sync.failover(peer, options=guard)
        connection.add_connection_listener(SimpleNamespace(on_connection_established=bool))
        return SimpleNamespace(connection=connection, sessions=[listening(connection) for _ in range(2)])

    tracer = Tracer()
    assert not tracer.run(lambda o: o.connection.close(), prepared())
    for line in filter(of_the_core, filter(interruptible, tracer.lines)):
        before = {*threading.enumerate()}
        o = prepared()
        Tracer(line).run(lambda o: o.connection.close(), o)
        sync.background(o.connection.close).result(PATIENCE)
        try:
            sync.until(lambda before=before: not stays(before))  # type: ignore[misc]  # as in a loop
        except AssertionError:
            pytest.fail(f"{stays(before)} after Ctrl-C before {line[0].co_filename}:{line[1]}")
        assert all(session._core.closed for session in o.sessions)
