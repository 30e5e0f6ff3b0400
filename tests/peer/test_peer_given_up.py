"""A call that its caller gives up ends alone: its connection, its neighbours and the next call of its kind go on.

The broker stands still while the call waits. The caller goes, another one asks for the same, and then come all answers,
in order.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from failover_support import Events
from peer import Peer, text
from peer_faces import AioFace, Face
from peer_frames import Frame
from stomp_peer import StompPeer, start

from pyjmsack import AckMode, InvalidDestinationException, JMSException, Queue, Topic
from pyjmsack.providers.amqp.engine.frames import frame as engine_frame
from pyjmsack.providers.amqp.engine.performatives import Flow, encode

NEWS = Topic("news")
LIMIT = 1000
"""Milliseconds that a call may take: enough for the second one to be asked, and answered, in time."""


class Verb(NamedTuple):
    """A call that waits for the broker."""

    name: str
    call: Callable[[Any], Any]
    frame: str
    """What it sends first, in AMQP,"""
    stomp: str | None = None
    """and in STOMP; ``None`` if nothing is asked there."""
    prepare: Callable[[Any], Any] | None = None
    """Makes what one call needs, and one other; the call takes one off ``ready``."""
    opens: bool = False
    """Whether something is open when it succeeds."""
    in_turn: bool = False
    """Whether the second call asks nothing before the first is answered."""
    raises: bool = True
    """Whether a time-out is an error; a close goes on."""
    check: Callable[[Any], Any] | None = None
    """What else must work afterwards."""


def transaction(o: Any) -> Any:
    session = o.connection.create_session(AckMode.SESSION_TRANSACTED)
    session.create_producer(Queue("work")).send("x")
    return session


def subscribe(kind: str) -> Callable[[Any], Any]:
    return lambda o: getattr(o.session, kind)(NEWS, "name")


def browse(o: Any) -> Any:
    browser = o.session.create_browser(Queue("q"))
    return looked(browser) if hasattr(browser, "__await__") else [*browser]


async def looked(browser: Any) -> list[Any]:
    return [message async for message in await browser]


def works(o: Any) -> None:
    session = o.used
    session.create_producer(Queue("work")).send("y")
    session.commit()


VERBS = [
    Verb("create_session", lambda o: o.connection.create_session(), "begin", opens=True),
    Verb("transacted session", lambda o: o.connection.create_session(AckMode.SESSION_TRANSACTED), "begin", opens=True),
    Verb("create_producer", lambda o: o.session.create_producer(Queue("q")), "attach", opens=True),
    Verb("create_consumer", lambda o: o.session.create_consumer(Queue("q")), "attach", "SUBSCRIBE", opens=True),
    Verb("durable", subscribe("create_durable_consumer"), "attach", "SUBSCRIBE", opens=True, in_turn=True),
    Verb("shared", subscribe("create_shared_consumer"), "attach", opens=True),
    Verb("shared durable", subscribe("create_shared_durable_consumer"), "attach", opens=True),
    Verb("browse", browse, "attach"),
    Verb("temporary queue", lambda o: o.session.create_temporary_queue(), "attach", opens=True),
    Verb("temporary topic", lambda o: o.session.create_temporary_topic(), "attach", opens=True),
    Verb("delete", lambda o: o.ready.pop().delete(), "detach", prepare=lambda o: o.session.create_temporary_queue()),
    Verb("requestor", lambda o: o.session.create_requestor(Queue("service")), "begin", opens=True),
    Verb("unsubscribe", lambda o: o.session.unsubscribe("gone"), "attach", "UNSUBSCRIBE", in_turn=True),
    Verb("send", lambda o: o.producer.send("x"), "transfer", "SEND"),
    Verb("commit", lambda o: o.ready.pop().commit(), "transfer", "COMMIT", transaction, check=works),
    Verb("rollback", lambda o: o.ready.pop().rollback(), "transfer", "ABORT", transaction, check=works),
    Verb(
        "receive",
        lambda o: o.ready.pop().receive(0.01),
        "flow",
        "ABORT",
        lambda o: o.session.create_consumer(Queue("q")),
    ),
    Verb(
        "drain",
        lambda o: o.ready.pop().drain(1),
        "flow",
        None,
        lambda o: o.session.create_consumer(Queue("q")),
        raises=False,
    ),
    Verb(
        "close consumer",
        lambda o: o.ready.pop().close(),
        "flow",
        "UNSUBSCRIBE",
        lambda o: o.session.create_consumer(Queue("q")),
        raises=False,
    ),
    Verb(
        "close producer",
        lambda o: o.ready.pop().close(),
        "detach",
        None,
        lambda o: o.session.create_producer(Queue("q")),
        raises=False,
    ),
    Verb(
        "close session",
        lambda o: o.ready.pop().close(),
        "end",
        None,
        lambda o: o.connection.create_session(),
        raises=False,
    ),
]


def raw(o: SimpleNamespace) -> SimpleNamespace:
    """Return the same without the blocking views."""
    return SimpleNamespace(**{name: _raw(value) for name, value in vars(o).items()})


def _raw(value: Any) -> Any:
    return [_raw(each) for each in value] if isinstance(value, list) else getattr(value, "_target", value)


def begin(face: Face, call: Callable[[Any], Any], o: SimpleNamespace) -> Future[Any]:
    """Start a call; in asyncio the future can be cancelled."""
    if not isinstance(face, AioFace):
        return face.background(call, o)

    async def run() -> Any:
        result = call(o)
        return await result if hasattr(result, "__await__") else result

    return asyncio.run_coroutine_threadsafe(run(), face.loop)


def made(face: Face, peer: Peer | StompPeer) -> SimpleNamespace:
    """Open what the calls work on."""
    amqp = isinstance(peer, Peer)
    limits = (f"jms.{limit}Timeout={LIMIT}" for limit in ("request", "send", "close"))
    connection = face.connect(peer, *limits, f"{'amqp' if amqp else 'stomp'}.drainTimeout={LIMIT}", client_id="me")
    session = connection.create_session()
    producer, consumer = session.create_producer(Queue("neighbour")), session.create_consumer(Queue("neighbour"))
    return SimpleNamespace(connection=connection, session=session, producer=producer, consumer=consumer, ready=[])


def frames(peer: Peer | StompPeer, name: str) -> list[Any]:
    return [f for f in peer.frames if (f.name if isinstance(f, Frame) else f.command) == name]


def give_up(face: Face, peer: Peer | StompPeer, verb: Verb, frame: str, way: str, o: SimpleNamespace) -> Frame:
    """Make a call that is not answered, and leave it; return its first frame."""
    before = len(frames(peer, frame))
    call = begin(face, verb.call, o)
    if isinstance(peer, Peer):
        peer.wait(lambda: len(frames(peer, frame)) > before, f"the {frame} of {verb.name}")
    else:
        peer.wait(frame, before + 1)
    if way == "cancelled":
        call.cancel()
        with pytest.raises(CancelledError):
            call.result(60)
    elif verb.raises:
        with pytest.raises(JMSException):
            call.result(60)
    else:
        call.result(60)
    found: Frame = frames(peer, frame)[before]
    return found


def prove(face: Face, peer: Peer | StompPeer, verb: Verb, frame: str, way: str) -> None:
    """The whole story of one call."""
    o = made(face, peer)
    failures: list[Any] = []
    o.connection.exception_listener = failures.append
    if verb.prepare is not None:
        o.ready = [verb.prepare(o) for _ in range(2)]
        o.used = o.ready[-1]
    bare = raw(o) if isinstance(face, AioFace) else o
    peer.pause()
    first = give_up(face, peer, verb, frame, way, bare)
    before = len(frames(peer, frame))
    again = begin(face, verb.call, bare)
    if not verb.in_turn:
        if isinstance(peer, Peer):
            peer.wait(lambda: len(frames(peer, frame)) > before, f"the second {verb.name}")
        else:
            peer.wait(frame, before + 1)
    peer.resume()
    if verb.name == "unsubscribe" and isinstance(peer, Peer):  # the first call took effect
        with pytest.raises(InvalidDestinationException):
            again.result(60)
    else:
        again.result(60)
    o.producer.send("neighbour")
    o.connection.create_session().create_producer(Queue("new")).send("new")
    if verb.check is not None:
        verb.check(o)
    if isinstance(peer, Peer) and verb.opens:
        peer.wait(lambda: undone(peer, first), f"the end of {first}; {peer.names()}")
    if isinstance(peer, Peer):
        peer.deliver(text("for the neighbour"))
    else:
        lane = peer.all("SUBSCRIBE")[0].headers["id"]
        peer.deliver(lane, "1", "for the neighbour")
    if not (
        verb.name == "receive" and way == "timed out" and isinstance(peer, Peer)
    ):  # a link without answer is closed
        assert o.consumer.receive(60).text == "for the neighbour"
    assert failures == []
    if isinstance(peer, Peer):
        assert len(peer.connections) == 1
        assert peer.connections[0].alive


def undone(peer: Peer, first: Frame) -> bool:
    """Whether what a Begin or Attach opened is ended; a handle counts within its session only."""
    later = peer.frames[peer.frames.index(first) + 1 :]
    ends = [f for f in later if f.name == "end" and f.channel == first.channel]
    return bool(ends) or any(f.name == "detach" and f.link is first for f in later)


@pytest.fixture(params=["sync, timed out", "aio, timed out", "aio, cancelled"])
def left(request: pytest.FixtureRequest) -> tuple[Face, str]:
    """A face, and a way to leave a call; how Ctrl-C takes a thread away is tested in test_peer_interrupted.py."""
    face, _, way = request.param.partition(", ")
    return request.getfixturevalue(face), way


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_call_that_is_given_up_over_amqp_ends_alone(left: tuple[Face, str], verb: Verb) -> None:
    """Channels and handles are used again only when the broker has answered."""
    face, way = left
    prove(face, face.peer(), verb, verb.frame, way)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb.stomp is not None], ids=lambda verb: verb.name)
def test_a_call_that_is_given_up_over_stomp_ends_alone(left: tuple[Face, str], verb: Verb) -> None:
    """Receipts and subscriptions have numbers of their own, for the life of the connection."""
    assert verb.stomp is not None
    face, way = left
    peer = start(face)
    prove(face, peer, verb, verb.stomp, way)
    receipts = [frame.headers["receipt"] for frame in peer.frames if "receipt" in frame.headers]
    subscriptions = [frame.headers["id"] for frame in peer.all("SUBSCRIBE")]
    assert len({*receipts}) == len(receipts)
    assert len({*subscriptions}) == len(subscriptions)


def test_a_connect_that_is_given_up_leaves_the_next_one_alone(left: tuple[Face, str]) -> None:
    """S120: and its socket is closed."""
    face, way = left
    peer = face.peer()
    factory = face.factory(peer, f"jms.connectTimeout={LIMIT}")
    bare = SimpleNamespace(factory=_raw(factory))
    peer.pause()
    call = begin(face, lambda o: o.factory.create_connection(), bare)
    peer.wait(lambda: peer.frames, "a connection")
    if way == "cancelled":
        call.cancel()
    with pytest.raises((CancelledError, JMSException)):
        call.result(60)
    peer.wait(lambda: not peer.connections[0].alive, "the end of the socket")
    peer.resume()
    connection = factory.create_connection()
    connection.create_session().create_producer(Queue("q")).send("x")
    connection.close()


def test_setting_the_client_id_can_be_given_up_and_done_again(aio: AioFace) -> None:
    """S122: meanwhile every other call says that the connection is not open."""
    peer = aio.peer()
    connection = aio.connect(peer, start=False)
    peer.pause()
    call = begin(aio, lambda o: o.connection.set_client_id("one"), raw(SimpleNamespace(connection=connection)))
    peer.wait_frames("close")
    call.cancel()
    with pytest.raises(CancelledError):
        call.result(60)
    peer.resume()
    with pytest.raises(JMSException, match="set the client id again, or close the connection"):
        connection.create_session()
    assert connection.client_id is None
    connection.set_client_id("two")
    connection.create_session().create_producer(Queue("q")).send("x")
    assert connection.client_id == "two"
    peer.drop()  # which somebody still hears: the end of the first connection was not taken for that of this one
    aio.until(lambda: _raw(connection)._core.channel.failure is not None)


@pytest.mark.parametrize("verb", [v for v in VERBS if v.opens], ids=lambda verb: verb.name)
@pytest.mark.parametrize("late", [True, False], ids=["answered", "lost"])
def test_what_is_given_up_is_not_opened_at_the_next_broker(aio: AioFace, verb: Verb, late: bool) -> None:
    """S103: whether the broker answered before it was lost, or not. A consumer that nobody has would take messages."""
    first, second = aio.peer(), aio.peer()
    connection = aio.failover(first, second, client_id="me")
    events = Events(connection)
    events.wait("established")
    o = SimpleNamespace(connection=connection, session=connection.create_session())
    bare = raw(o)
    first.pause()
    give_up(aio, first, verb, verb.frame, "cancelled", bare)
    if late:
        first.resume()
        first.wait(lambda: undone(first, frames(first, verb.frame)[-1]), f"the end of {verb.name}")
        aio.barrier(first, o.session)
    first.stop_listening()
    first.drop()
    events.wait("established", "interrupted", "restored")
    o.session.create_producer(Queue("q")).send("x")
    begins, attaches = second.all("begin"), second.all("attach")
    assert (len(begins), len(attaches) - 2 * late) == (2, 1), second.names()  # the barrier's two are open


@pytest.mark.parametrize("mode", [AckMode.AUTO_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED], ids=["auto", "transacted"])
def test_closing_a_connection_ends_all_sessions_before_it_waits_for_one(face: Face, mode: AckMode) -> None:
    """S123: one round trip for any number of sessions."""
    peer = face.peer()
    connection = face.connect(peer)
    for _ in range(30):
        connection.create_session(mode).create_producer(Queue("q"))
    peer.pause()
    closing = face.background(connection.close)
    if mode is AckMode.SESSION_TRANSACTED:  # they roll back, all at once
        peer.wait(lambda: [f for f in peer.frames if f.name == "transfer"][59:], "30 declares and 30 discharges")
    else:
        peer.wait_frames("end", 30)
    peer.resume()
    closing.result(60)
    assert len(peer.wait_frames("end", 30)) == 30


def test_closing_a_connection_whose_broker_stands_still_takes_one_close_time_out(face: Face) -> None:
    """S123: not one for each session."""
    peer = face.peer()
    connection = face.connect(peer, "jms.closeTimeout=500")
    for _ in range(60):
        connection.create_session()
    peer.pause()
    face.background(connection.close).result(60)


@pytest.mark.parametrize("engine", ["python", "proton"])
@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_a_flow_for_a_session_that_has_ended_costs_nobody_the_connection(face: Face, engine: str, piece: int) -> None:
    """S128, and a call that is given up ends alone: Artemis 2.56 answers the drain of a ``receive`` that was given up
    after the end of its session, on channel 65535."""
    peer = face.peer(messages=[text("a"), text("b")])
    connection = face.connect(peer, f"amqp.engine={engine}", "jms.prefetchPolicy.all=1")
    consumer = connection.create_session().create_consumer(Queue("q"))
    session = connection.create_session()
    session.close()
    late = Flow(next_incoming_id=2, incoming_window=100, next_outgoing_id=1, outgoing_window=100, drain=True)
    data = engine_frame(0xFFFF, encode(late)) * 2
    for begin in range(0, len(data), piece):
        peer.do(partial(peer.connections[0].write_raw, data[begin : begin + piece]))
    assert [consumer.receive(60).text, consumer.receive(60).text] == ["a", "b"]
    connection.create_session().create_producer(Queue("q")).send("the connection stays")


def test_ended_sessions_leave_no_proton_object_to_the_garbage_collector(face: Face) -> None:
    """The collector lets go of proton's objects in any order, and proton frees some of them twice: the process dies."""
    before = gc.get_threshold()
    gc.set_threshold(20, 2, 2)  # it runs all the time
    try:
        for _ in range(3):
            peer = face.peer()
            connection = face.connect(peer)
            for _ in range(10):
                connection.create_session(0).create_consumer(Queue("q"))
            connection.close()
            peer.drop()
    finally:
        gc.set_threshold(*before)


@pytest.mark.parametrize("gives_up", [True, False], ids=["cancelled", "waiting"])
def test_a_session_ends_after_the_answers_to_its_attaches(aio: AioFace, gives_up: bool) -> None:
    """S123: Artemis wrote nothing more to the connection if the End frame overtook the answer to an Attach."""
    peer = aio.peer()
    connection = aio.connect(peer)
    session = connection.create_session()
    o = raw(SimpleNamespace(connection=connection, session=session))
    peer.pause()
    calls = [begin(aio, lambda o: o.session.create_consumer(Queue("q")), o) for _ in range(2)]
    attaches = peer.wait_frames("attach", 2)
    if gives_up:
        for call in calls:
            call.cancel()
    closing = begin(aio, lambda o: o.session.close(), o)
    neighbour = begin(aio, lambda o: o.connection.create_session(), o)
    peer.wait_frames("begin", 3)  # behind whatever the close sent
    assert "end" not in peer.names()
    peer.resume()
    closing.result(60)
    neighbour.result(60)
    for call in calls:
        with pytest.raises((CancelledError, JMSException)):
            call.result(60)
    assert [end.channel for end in peer.wait_frames("end")] == [attaches[0].channel]
