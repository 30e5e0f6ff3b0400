"""Sessions and connections of our AMQP engine: windows, channels, close, idle time-outs (AMQP 1.0 2.4, 2.5)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from engine_support import LARGE, Wire, condition_of, sending

from pyjmsack.providers.amqp.engine import StateError
from pyjmsack.providers.amqp.engine.deliveries import SERIAL_MASK
from pyjmsack.providers.amqp.engine.events import BEGUN, CLOSED, DELIVERY, ENDED, FAILED, OPENED
from pyjmsack.providers.amqp.engine.frames import EMPTY_FRAME, frame
from pyjmsack.providers.amqp.engine.idle import LEAST_INTERVAL
from pyjmsack.providers.amqp.engine.performatives import (
    Attach,
    Begin,
    Close,
    End,
    Error,
    Flow,
    Open,
    Target,
    Transfer,
    encode,
)


def windows(received: int, window: int, **fields: Any) -> Flow:
    return Flow(next_incoming_id=received, incoming_window=window, next_outgoing_id=0, outgoing_window=LARGE, **fields)


# -- windows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first_id", [0, SERIAL_MASK], ids=["0", "wrapping"])
def test_no_more_transfers_leave_than_the_peer_s_window_has_room_for(first_id: int) -> None:
    """2.5.6; also across the end of the transfer-ids, and within a message."""
    wire = Wire()
    session = wire.session(first_id=first_id, window=0)
    link = session.attach_sender(sending())
    wire.say(Attach(link_name="s", handle=0, role=True, target=Target()))
    wire.credit(link, 10, next_incoming_id=first_id, window=1)
    wire.said()
    for context in range(3):
        link.send(b"x" * 700, context)
    payloads: list[bytes] = []
    for step in range(1, 7):
        said = wire.said()
        assert [type(performative) for performative, _ in said] == [Transfer]
        payloads.extend(payload for _, payload in said)
        wire.say(windows((first_id + step) & SERIAL_MASK, 1))
    assert wire.said() == []
    assert b"".join(payloads) == b"x" * 2100


def shut_sender(wire: Wire) -> Any:
    """Return a link with credit, whose session has a window for one transfer."""
    session = wire.session(window=0)
    link = session.attach_sender(sending())
    wire.say(Attach(link_name="s", handle=0, role=True, target=Target()))
    wire.credit(link, 10, next_incoming_id=0, window=1)
    wire.said()
    return link


def test_a_settled_message_has_left_when_the_window_took_its_last_transfer() -> None:
    """2.5.6: a send without an outcome is done then, and not before."""
    wire = Wire()
    link = shut_sender(wire)
    left: list[str] = []
    for name in ("first", "second"):
        link.send(b"x" * 700, name, left=partial(left.append, name))
    steps = []
    for received in range(1, 5):
        steps.append([*left])
        wire.say(windows(received, 1))
    assert steps == [[], ["first"], ["first"], ["first", "second"]]
    assert link.abandon() == []


def test_a_settled_message_that_its_link_keeps_back_for_ever_is_given_back() -> None:
    """2.5.6: the link ends while the window is shut. The caller has to learn that the message was dropped."""
    wire = Wire()
    link = shut_sender(wire)
    left: list[None] = []
    for name in ("gone", "kept back"):
        link.send(b"m", name, left=lambda: left.append(None))
    link.detach(closed=True)
    assert (len(left), link.abandon()) == (1, ["kept back"])


@pytest.mark.parametrize("window", [2**31, 2**32 - 1])
def test_a_window_may_be_more_than_half_of_the_serial_numbers(window: int) -> None:
    """2.5.6: it is a number of transfers, and no serial number. Sends would wait for ever."""
    wire = Wire()
    link = wire.sender(wire.session())
    wire.say(windows(0, window))
    link.send(b"m", None)
    assert [type(performative) for performative, _ in wire.said()] == [Transfer]


def test_a_window_of_one_is_opened_again_after_each_transfer() -> None:
    """2.5.6: ours, in a Flow."""
    wire = Wire()
    session = wire.session(incoming_window=1)
    link = wire.receiver(session)
    for number in range(3):
        assert wire.transfer(number) == [(DELIVERY, link, number, b"m", False)]
        flow = wire.one(Flow)
        assert (flow.next_incoming_id, flow.incoming_window) == (number + 1, 1)


def test_a_window_is_opened_again_when_it_is_half_used() -> None:
    wire = Wire()
    wire.receiver(wire.session(incoming_window=10))
    flows = []
    for number in range(20):
        wire.transfer(number)
        flows.append(len(wire.said()))
    assert flows == [0, 0, 0, 0, 1] * 4


def test_a_transfer_beyond_our_window_is_a_violation() -> None:
    """2.8.18 window-violation; a peer that does not wait for the Flow."""
    wire = Wire()
    session = wire.session(incoming_window=2)
    wire.receiver(session)
    session.end()
    wire.transfer(0)
    wire.transfer(1)
    assert condition_of(wire.transfer(2)) == "amqp:session:window-violation"


def test_an_echo_is_answered() -> None:
    """2.7.4"""
    wire = Wire()
    session = wire.session()
    wire.receiver(session, credit=7)
    wire.say(windows(0, LARGE, echo=True))
    assert wire.one(Flow).handle is None
    wire.say(windows(0, LARGE, echo=True, handle=0, delivery_count=0))
    flow = wire.one(Flow)
    assert (flow.handle, flow.link_credit) == (0, 7)


def test_echoes_of_a_peer_that_does_not_read_are_answered_once_for_each_end() -> None:
    """2.7.4: an answer for each filled the memory. The answer says what is true when the peer reads."""
    wire = Wire()
    session = wire.session()
    link = wire.receiver(session, credit=7)
    wire.said()
    for _ in range(1000):
        wire.say(windows(0, LARGE, echo=True))
        wire.say(windows(0, LARGE, echo=True, handle=0, delivery_count=0))
    link.grant(3)
    flows = [performative for performative, _ in wire.said() if isinstance(performative, Flow)]
    assert [(flow.handle, flow.link_credit) for flow in flows] == [(0, 10), (None, None), (0, 10)]


def test_an_echo_for_a_session_that_ended_meanwhile_is_not_answered() -> None:
    """2.5.5"""
    wire = Wire()
    session = wire.session()
    wire.said()
    wire.say(windows(0, LARGE, echo=True))
    session.end()
    assert [type(performative).__name__ for performative, _ in wire.said()] == ["End"]


# -- channels ---------------------------------------------------------------------------------------------------


def test_a_channel_is_used_again_only_after_the_peer_s_end() -> None:
    """2.5.5"""
    wire = Wire()
    first = wire.session()
    first.end()
    assert wire.connection.begin().channel == 1
    assert wire.say(End()) == [(ENDED, first)]
    assert wire.connection.begin().channel == 0


def test_all_65536_channels_can_be_used_and_no_more() -> None:
    """2.7.1 channel-max; each is found by its number."""
    wire = Wire()
    wire.say(Open(container_id="peer"))
    sessions = [wire.connection.begin(number) for number in range(10)]
    wire.connection._sessions.update(dict.fromkeys(range(10, 65535), sessions[0]))
    assert wire.connection.begin().channel == 65535
    with pytest.raises(StateError, match="all 65536 channels"):
        wire.connection.begin()


def test_no_more_channels_than_the_peer_allows() -> None:
    wire = Wire()
    wire.say(Open(container_id="peer", channel_max=1))
    wire.connection.begin()
    wire.connection.begin()
    with pytest.raises(StateError, match="all 2 channels"):
        wire.connection.begin()


def test_the_peer_s_channel_is_its_own() -> None:
    """2.5.1: the answer to a Begin names ours, and comes on any."""
    wire = Wire()
    session = wire.connection.begin()
    wire.say(Open(container_id="peer"))
    begin = Begin(remote_channel=0, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    assert wire.say(begin, channel=42) == [(BEGUN, session)]
    assert wire.say(End(error=Error(condition="c")), channel=42) == [(ENDED, session)]
    assert session.remote_error == Error(condition="c")
    assert [type(performative) for performative, _ in wire.said()] == [Open, Begin, End]


@pytest.mark.parametrize(
    ("performative", "channel", "condition"),
    [
        (Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), 1, "amqp:not-allowed"),
        (Begin(remote_channel=9, next_outgoing_id=0, incoming_window=1, outgoing_window=1), 1, "amqp:not-allowed"),
        (Begin(remote_channel=0, next_outgoing_id=0, incoming_window=1, outgoing_window=1), 0, "amqp:illegal-state"),
        (Begin(remote_channel=0, next_outgoing_id=0, incoming_window=1, outgoing_window=1), 1, "amqp:not-allowed"),
        (Open(container_id="again"), 0, "amqp:illegal-state"),
        (End(), 7, "amqp:not-allowed"),
        (Transfer(handle=0, delivery_id=0), 7, "amqp:not-allowed"),
        (Error(condition="no performative"), 0, "amqp:not-allowed"),
    ],
)
def test_a_frame_that_fits_no_session_ends_the_connection(performative: Any, channel: int, condition: str) -> None:
    wire = Wire()
    wire.session()
    assert condition_of(wire.say(performative, channel=channel)) == condition


@pytest.mark.parametrize("fields", [{}, {"handle": 0, "delivery_count": 1, "link_credit": 0}], ids=["session", "link"])
def test_a_flow_that_fits_no_session_is_ignored(fields: dict[str, Any]) -> None:
    """Artemis 2.56 answers a drain after the end of its session, on channel 65535."""
    wire = Wire()
    session = wire.session()
    wire.said()
    wire.say(windows(0, 1, **fields), channel=0xFFFF)
    wire.say(windows(0, 1, echo=True, **fields), channel=0xFFFF)
    assert wire.said() == []
    assert not session.ended


# -- open and close ---------------------------------------------------------------------------------------------


def test_header_and_open_leave_first_and_say_what_is_set() -> None:
    """2.2, 2.4.1"""
    wire = Wire(max_frame_size=4096, channel_max=9, idle_timeout=3.0)
    ((found, _),) = wire.said()  # its reader expects the header
    assert found == Open(container_id="ours", max_frame_size=4096, channel_max=9, idle_time_out=1500)


@pytest.mark.parametrize("performative", [Begin(next_outgoing_id=0, incoming_window=0, outgoing_window=0), End()])
def test_nothing_comes_before_the_open(performative: Any) -> None:
    assert condition_of(Wire().say(performative)) == "amqp:illegal-state"


def test_a_max_frame_size_below_512_is_a_violation() -> None:
    """2.7.1"""
    assert condition_of(Wire().say(Open(container_id="peer", max_frame_size=511))) == "amqp:invalid-field"


def test_a_close_is_answered_and_nothing_is_read_after_it() -> None:
    """2.4.3"""
    wire = Wire()
    session = wire.session()
    wire.said()
    error = Error(condition="amqp:connection:forced", description="maintenance")
    assert wire.say(Close(error=error)) == [(CLOSED, error)]
    assert wire.one(Close).error is None
    assert wire.say(End()) == []
    session.end()
    assert wire.said() == []


def test_after_our_close_what_is_on_its_way_is_still_read() -> None:
    wire = Wire()
    wire.session()
    wire.connection.close()
    wire.connection.close()
    wire.one(Close)
    assert wire.say(windows(0, 5, echo=True)) == []
    assert wire.say(Close()) == [(CLOSED, None)]
    assert wire.said() == []


def test_verbs_before_the_open_and_after_the_close_are_refused() -> None:
    wire = Wire()
    with pytest.raises(StateError, match="open already"):
        wire.connection.open(Open(container_id="again"))
    link = wire.sender(wire.session())
    wire.connection.close()
    with pytest.raises(StateError, match="not open"):
        wire.connection.begin()
    with pytest.raises(StateError, match="no credit"):
        link.send(b"m", None)


@pytest.mark.parametrize("size", [512, 4096])
def test_a_violation_with_a_long_text_is_told_in_a_frame_that_the_peer_accepts(size: int) -> None:
    """The text has the name of the link that the peer chose. In a frame of 512 bytes it raised StateError."""
    wire = Wire()
    wire.connection.begin()
    wire.say(Open(container_id="peer", max_frame_size=size))
    wire.say(Begin(remote_channel=0, next_outgoing_id=0, incoming_window=9, outgoing_window=9))
    wire.said()
    name = "\U0001f600" * 200
    events = wire.say(Attach(link_name=name, handle=5, role=False))
    assert condition_of(events) == "amqp:not-allowed"
    assert name in events[-1][1].description  # the caller learns everything
    close = wire.one(Close)
    assert len(frame(0, encode(close))) <= size
    assert close.error.condition == "amqp:not-allowed"
    assert events[-1][1].description.startswith(close.error.description)
    assert len(close.error.description) > 100


def test_bytes_behind_a_performative_that_has_no_payload_are_a_violation() -> None:
    wire = Wire()
    wire.session()
    assert condition_of(wire.say(windows(0, 1), b"x")) == "amqp:connection:framing-error"


# -- idle time-outs ---------------------------------------------------------------------------------------------


def test_a_peer_that_is_silent_is_given_up_in_time_and_not_early() -> None:
    """2.4.5"""
    wire = Wire(idle_timeout=4.0)
    wire.session()
    now, events = 100.0, []
    while not events:
        deadline, events = wire.connection.tick(now)
        if events:
            break
        assert deadline is not None
        now = deadline
    assert 104.0 <= now <= 105.0
    assert events[0][0] == FAILED
    assert wire.one(Close).error.condition == "amqp:resource-limit-exceeded"
    assert wire.connection.tick(now + 1) == (None, [])


def test_a_peer_that_sends_empty_frames_is_alive() -> None:
    wire = Wire(idle_timeout=1.0)
    wire.session()
    for quarter in range(100):
        if quarter % 4 == 0:
            wire.bytes(EMPTY_FRAME)
        assert wire.connection.tick(quarter / 4)[1] == []


def test_a_process_that_was_stopped_looks_at_the_socket_before_it_gives_the_peer_up() -> None:
    wire = Wire(idle_timeout=1.0)
    wire.session()
    wire.connection.tick(0.0)
    assert wire.connection.tick(60.0)[1] == []
    assert [wire.connection.tick(60.0 + quarter / 4)[1] != [] for quarter in range(1, 5)] == [False, False, False, True]


def test_an_idle_client_writes_in_each_third_of_the_peer_s_time_out() -> None:
    """2.4.5; a client that writes anyway adds nothing."""
    wire = Wire()
    assert wire.say(Open(container_id="peer", idle_time_out=3000))[0][0] == OPENED
    wire.connection.data_to_send()
    written = []
    for now in range(5):
        assert wire.connection.tick(float(now)) == (now + 1.0, [])
        written.append(wire.connection.data_to_send())
    assert written == [b"", *[EMPTY_FRAME] * 4]
    wire.connection.begin()
    assert wire.connection.data_to_send() != b""
    wire.connection.tick(5.0)
    assert wire.connection.data_to_send() == b""


def test_a_peer_cannot_make_us_write_without_end() -> None:
    """A time-out of 1 ms: no more frames than the floor allows."""
    wire = Wire()
    wire.say(Open(container_id="peer", idle_time_out=1))
    assert wire.connection.tick(0.0)[0] == LEAST_INTERVAL


def test_without_time_outs_there_is_no_deadline() -> None:
    wire = Wire()
    wire.say(Open(container_id="peer"))
    assert wire.connection.tick(0.0) == (None, [])
