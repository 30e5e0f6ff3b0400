"""Our AMQP engine beside proton's: random legal scripts with proton as the peer, the same script on both, and noise."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from engine_support import LARGE, Wire, condition_of, receiving, sending
from hypothesis import given, settings
from hypothesis import strategies as st
from proton import Delivery
from proton_support import ProtonPeer

from pyjmsack.errors import JMSException
from pyjmsack.providers.amqp.engine import Connection
from pyjmsack.providers.amqp.engine.events import CREDIT, DELIVERY, DETACHED, FAILED, OUTCOME
from pyjmsack.providers.amqp.engine.frames import frame
from pyjmsack.providers.amqp.engine.performatives import (
    ACCEPTED,
    RELEASED,
    Attach,
    Close,
    Composite,
    Flow,
    Modified,
    Open,
    Rejected,
    Source,
    Target,
    encode,
)
from pyjmsack.providers.amqp.engines import AmqpEngine, EngineOptions
from pyjmsack.providers.amqp.proton_engine import ProtonEngine
from pyjmsack.providers.amqp.python_engine import PythonEngine

STATES = [ACCEPTED, RELEASED, Rejected(), Modified(delivery_failed=True)]
CODES = {type(state): state.code for state in STATES}


def body(number: int, size: int) -> bytes:
    """Return a payload that no other has."""
    return (b"%d:" % number).ljust(size, b".")


# -- random scripts against proton ------------------------------------------------------------------------------


@dataclass
class Run:
    """One connection of our engine with proton at the other end, and what should have happened so far."""

    ours: Connection
    peer: ProtonPeer
    sender: Any
    receiver: Any
    sent: list[bytes] = field(default_factory=list)
    expected: list[bytes] = field(default_factory=list)
    outcomes: Counter[Any] = field(default_factory=Counter)
    got: list[tuple[int, bytes, bool]] = field(default_factory=list)
    settled: list[int] = field(default_factory=list)
    numbers: int = 0

    def absorb(self) -> None:
        """Let everything arrive, and note what our engine tells."""
        for event in self.peer.pump():
            assert event[0] != FAILED, event
            if event[0] == DELIVERY:
                self.got.append(event[2:])
            elif event[0] == OUTCOME:
                self.outcomes[event[2]] += 1


def begun(ours_frame: int, peer_frame: int, window: int, first_id: int, step: int) -> Run:
    ours = Connection(max_frame_size=ours_frame)
    ours.open(Open(container_id="ours"))
    peer = ProtonPeer(ours, max_frame_size=peer_frame)
    peer.step = step
    session = ours.begin(incoming_window=window, first_id=first_id)
    sender, receiver = session.attach_sender(sending()), session.attach_receiver(receiving())
    peer.pump()
    return Run(ours, peer, sender, receiver)


def grant_peer(run: Run, number: int) -> None:
    run.peer.links["s"].flow(number)


def send(run: Run, number: int) -> None:
    if run.sender.credit > 0:
        run.numbers += 1
        payload = body(run.numbers, number * 97)
        run.sent.append(payload)
        run.sender.send(payload, run.numbers)


def peer_drains(run: Run, number: int) -> None:
    run.peer.links["s"].drain(number)
    run.absorb()
    run.sender.drained()
    run.absorb()
    run.peer.links["s"].drain_mode = False


def grant(run: Run, number: int) -> None:
    run.receiver.grant(number)


def peer_sends(run: Run, number: int) -> None:
    link = run.peer.links["r"]
    if link.credit > 0:
        run.numbers += 1
        payload = body(run.numbers, number * 97)
        run.expected.append(payload)
        run.peer.send("r", payload, settled=number % 5 == 0)


def we_drain(run: Run, number: int) -> None:
    run.receiver.start_drain()
    run.absorb()
    run.peer.links["r"].drained()
    run.absorb()
    assert run.receiver.credit == 0


def settle(run: Run, number: int) -> None:
    open_ones = [delivery for delivery, _, settled in run.got if not settled and delivery not in run.settled]
    for delivery in open_ones[:number]:
        run.settled.append(delivery)
        run.receiver.settle(delivery, encode(STATES[number % len(STATES)]))


def arrive(run: Run, number: int) -> None:
    run.absorb()


VERBS: list[Callable[[Run, int], None]] = [
    grant_peer,
    send,
    send,
    peer_drains,
    grant,
    peer_sends,
    peer_sends,
    we_drain,
    settle,
    arrive,
]


@settings(max_examples=60)
@given(
    script=st.lists(st.tuples(st.sampled_from(VERBS), st.integers(1, 20)), max_size=40),
    frames=st.tuples(st.sampled_from([512, 600, 65536]), st.sampled_from([512, 4096])),
    window=st.sampled_from([1, 2, LARGE]),
    first_id=st.sampled_from([0, 2**32 - 3]),
    step=st.sampled_from([0, 1, 7]),
)
def test_whatever_is_done_nothing_is_lost_doubled_or_out_of_order(
    script: list[tuple[Any, int]], frames: tuple[int, int], window: int, first_id: int, step: int
) -> None:
    run = begun(*frames, window, first_id, step)
    for verb, number in script:
        verb(run, number)
    run.absorb()
    settle(run, 10**6)
    run.absorb()
    assert run.peer.received == run.sent
    assert [payload for _, payload, _ in run.got] == run.expected
    assert sum(run.outcomes.values()) == len(run.sent)
    assert set(run.outcomes.values()) <= {1}
    assert len(run.peer.outcomes) == sum(not settled for _, _, settled in run.got)
    assert run.sender.unsettled == {}
    assert run.receiver.unsettled == set()
    run.sender.detach(closed=True)
    run.receiver.detach(closed=False)
    run.absorb()
    assert run.peer.detached == 2


@pytest.mark.parametrize("chunk", [512, 1 << 14, 1 << 20])
def test_a_large_message_arrives_whole_in_frames_of_any_size(chunk: int) -> None:
    """8 MB both ways."""
    run = begun(chunk, max(512, min(chunk, 1 << 16)), LARGE, 0, 0)
    grant_peer(run, 1)
    run.receiver.grant(1)
    run.absorb()
    payload = random.Random(1).randbytes(8 << 20)
    run.sender.send(payload, "large")
    run.absorb()
    assert run.peer.received == [payload]
    run.peer.send("r", payload)
    run.absorb()
    assert [found for _, found, _ in run.got] == [payload]


def test_an_abort_of_proton_is_no_message() -> None:
    """2.6.14"""
    run = begun(512, 512, LARGE, 0, 0)
    run.receiver.grant(3)
    run.absorb()
    link = run.peer.links["r"]
    delivery = link.delivery("aborted")
    link.stream(bytes(2000))
    run.absorb()
    delivery.abort()
    events = run.peer.pump()
    assert [event[0] for event in events] == [CREDIT]
    run.peer.send("r", b"whole")
    run.absorb()
    assert [payload for _, payload, _ in run.got] == [b"whole"]


def test_handles_go_round_while_proton_has_others_open() -> None:
    ours = Connection()
    ours.open(Open(container_id="ours"))
    peer = ProtonPeer(ours)
    session = ours.begin()
    kept = session.attach_sender(sending("kept"))
    for turn in range(20):
        link = session.attach_receiver(receiving(f"r{turn}"))
        peer.pump()
        assert link.handle == 1
        link.detach(closed=True)
        assert [event[0] for event in peer.pump()] == [DETACHED]
    assert not kept.detached


# -- the same script on both engines ----------------------------------------------------------------------------


class Listener:
    """Hears of the connection."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_ready(self) -> None:
        pass

    def on_remote_open(self) -> None:
        self.heard.append("open")

    def on_failure(self, error: JMSException) -> None:
        self.heard.append(type(error).__name__)

    def on_burst_end(self) -> None:
        pass


class Owner:
    """Hears of a session or link."""

    def __init__(self, name: str, heard: list[Any]) -> None:
        self._name = name
        self._heard = heard
        self.deliveries: list[Any] = []

    def on_remote_open(self) -> None:
        self._heard.append((self._name, "open"))

    def on_remote_close(self) -> None:
        self._heard.append((self._name, "close"))

    def on_flow(self) -> None:
        pass

    def on_message(self, delivery: Any, payload: bytes, settled: bool) -> None:
        if not settled:  # else it is the engine's no more
            self.deliveries.append(delivery)
        self._heard.append((self._name, payload, settled))

    def on_outcome(self, context: Any, state: Composite | None) -> None:
        self._heard.append((self._name, context, state))


class Bytes:
    """Gives the engine's bytes to :class:`ProtonPeer` as a connection of ours would."""

    def __init__(self, engine: AmqpEngine) -> None:
        self.data_to_send = engine.data_to_send
        self._engine = engine

    def receive(self, data: bytes) -> list[Any]:
        self._engine.receive_data(data)
        return []


class Silent:
    """A stream that writes when it is asked."""

    encrypted = False

    def flush(self) -> None:
        pass

    retick = close = abort = flush


def told(kind: type[ProtonEngine] | type[PythonEngine], seed: int) -> list[Any]:
    """Run a script, and return all that owners and peer heard, in order for each of them; but for the outcomes that one
    turn brings the peer, which proton tells in another order."""
    dice, listener = random.Random(seed), Listener()
    engine = kind(listener, None, EngineOptions(max_frame_size=1024, channel_max=9))
    engine.connection_made(Silent())
    engine.open(Open(container_id="ours", properties={"product": "p"}))
    peer = ProtonPeer(Bytes(engine), max_frame_size=1024)  # type: ignore[arg-type]  # as much of one as it needs
    heard: dict[str, list[Any]] = {name: [] for name in ("session", "s", "r")}
    session = engine.begin(Owner("session", heard["session"]))
    receiver_owner = Owner("r", heard["r"])
    sender = session.attach_sender(sending(), Owner("s", heard["s"]))
    receiver = session.attach_receiver(receiving(), receiver_owner)
    peer.pump()
    peer.links["s"].flow(50)
    receiver.grant(50)
    peer.pump()
    for number in range(40):
        _step(dice, number, sender, receiver, receiver_owner, peer)
    peer.pump()
    sender.detach(closed=True)
    receiver.detach(closed=False)
    peer.pump()
    session.end()
    peer.pump()
    engine.close_connection()
    peer.pump()
    return [listener.heard, heard, peer.received, sorted(peer.outcomes)]


def _step(dice: random.Random, number: int, sender: Any, receiver: Any, owner: Owner, peer: ProtonPeer) -> None:
    choice = dice.randrange(5)
    payload = body(number, dice.choice([5, 400, 3000]))
    if choice == 0 and sender.credit > 0:
        outcome = dice.choice([Delivery.ACCEPTED, Delivery.RELEASED])
        peer.answers.append(lambda delivery: delivery.update(outcome))
        sender.send(payload, number)
    elif choice == 1 and peer.links["r"].credit > 0:
        peer.send("r", payload, settled=dice.random() < 0.2)
    elif choice == 2 and owner.deliveries:
        receiver.settle(owner.deliveries.pop(0), encode(dice.choice(STATES)))
    else:
        peer.pump()


@pytest.mark.parametrize("seed", range(30))
def test_both_engines_tell_the_same_of_the_same_script(seed: int) -> None:
    ours, protons = told(PythonEngine, seed), told(ProtonEngine, seed)
    assert ours == protons
    assert ours[0] == ["open", "ConnectionLostException"]


# -- noise ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_damaged_frames_end_in_a_violation_or_are_survived_with_bounded_state(seed: int) -> None:
    """Legal frames with some of their bytes changed: no exception but the engine's own, and no state without end."""
    dice = random.Random(seed)
    for _ in range(25):
        wire = Wire(max_frame_size=4096)
        session = wire.session()
        sender, receiver = wire.sender(session), wire.receiver(session, credit=20, max_message_size=5000)
        sender.send(b"m", "context")
        for number in range(10):
            events = wire.bytes(_damaged(dice, number))
            if events and events[-1][0] == FAILED:
                assert condition_of(events).startswith("amqp:")
                assert wire.connection.closed
                assert wire.bytes(frame(0, encode(Close()))) == []
                break
        wire.connection.data_to_send()
        assert len(receiver.unsettled) <= 20
        assert len(sender.unsettled) <= 1


def _damaged(dice: random.Random, number: int) -> bytes:
    flow = Flow(
        next_incoming_id=0, incoming_window=9, next_outgoing_id=0, outgoing_window=9, handle=0, delivery_count=0
    )
    samples: list[bytes] = [
        encode(flow),
        b"\x00\x53\x14\xc0\x0d\x06\x43\x52" + bytes((number,)) + b"\xa0\x01t\x43\x42\x42" + b"payload",
        b"\x00\x53\x15\xc0\x09\x05\x41\x43\x43\x41\x00\x53\x24\x45",
        encode(Attach(link_name="x", handle=3, role=True, source=Source(), target=Target())),
        encode(Close()),
    ]
    sample = bytearray(frame(0, dice.choice(samples)))
    for _ in range(dice.randrange(3)):
        sample[dice.randrange(len(sample))] = dice.choice([0, 1, 0x40, 0x41, 0x52, 0x70, 0xC0, 0xD0, 0xFF])
    return bytes(sample)
