"""Links on the wire: addresses, capabilities, settle modes, filters, refusals (S36, S37, S129, S165)."""

from __future__ import annotations

from typing import Any

import pytest
from peer import Peer, text
from peer_faces import Face
from peer_frames import Frame
from proton import Condition, Link

from pyjmsack import (
    Destination,
    IllegalStateException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    JMSSecurityException,
    Queue,
    RequestTimedOutException,
    ResourceAllocationException,
    Topic,
    UnsupportedFeatureException,
)

SETTLED, UNSETTLED = 1, 0


def attach(peer: Peer) -> Frame:
    return peer.wait_frames("attach")[-1]


def refusing(name: str, description: str = "says the broker") -> dict[str, Any]:
    return {"refuse_attach": lambda link: Condition(name, description)}


# -- what is sent -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("destination", "capability"), [(Queue("a.b"), "queue"), (Topic("a.b"), "topic")])
def test_source_and_target_always_carry_the_routing_capability(
    face: Face, destination: Destination, capability: str
) -> None:
    """S165: without it Artemis makes a topic and drops what is sent."""
    peer = face.peer()
    session = face.session(peer)
    session.create_consumer(destination)
    session.create_producer(destination)
    consumer, producer = peer.wait_frames("attach", 2)
    assert consumer.terminus("source")["capabilities"] == capability
    assert producer.terminus("target")["capabilities"] == capability
    assert (consumer.terminus("source")["address"], producer.terminus("target")["address"]) == ("a.b", "a.b")


def test_an_anonymous_producer_attaches_to_the_relay_and_names_the_address_in_to(face: Face) -> None:
    """S67: a target without an address."""
    peer = face.peer()
    producer = face.session(peer).create_producer()
    target = attach(peer).terminus("target")
    assert target is not None
    assert target.get("address") is None
    producer.send("x", Queue("there"))
    assert peer.wait_transfers(1)[0].message.address == "there"


@pytest.mark.option("jms.queuePrefix", "amqp")
@pytest.mark.option("jms.topicPrefix", "amqp")
def test_prefixes_of_the_url_are_put_before_names(face: Face) -> None:
    peer = face.peer()
    session = face.session(peer, "jms.queuePrefix=dev.q.", "jms.topicPrefix=dev.t.")
    session.create_consumer(Queue("a"))
    session.create_producer(Topic("a"))
    consumer, producer = peer.wait_frames("attach", 2)
    assert consumer.terminus("source")["address"] == "dev.q.a"
    assert producer.terminus("target")["address"] == "dev.t.a"


def test_a_selector_and_no_local_travel_as_registered_filters(face: Face) -> None:
    """Broker facts 13: recognised by the codes."""
    peer = face.peer()
    face.session(peer).create_consumer(Topic("t"), "a > 1", no_local=True)
    filters = attach(peer).terminus("source")["filter"]
    assert {value[0] for value in filters.values()} == {0x0000468C00000004, 0x0000468C00000003}
    assert (0x0000468C00000004, "a > 1") in filters.values()


def test_only_topics_of_artemis_get_a_selector_with_the_names_of_the_broker(face: Face) -> None:
    """S149: Artemis translates the selector of a queue itself, and Classic knows the names of JMS."""
    selector, own = "JMSPriority > 3 OR a = 1", "AMQPriority > 3 OR a = 1"
    for broker, expected in [("artemis", [selector, own, f"({own})"]), ("classic-6", [selector] * 3)]:
        peer = face.peer()
        session = face.session(peer, f"broker={broker}")
        consumer = session.create_consumer(Queue("q"), selector)
        assert consumer.selector == selector
        session.create_consumer(Topic("t"), selector)
        session.create_consumer(Topic("t"), selector, no_local=True)
        filters = [frame.terminus("source")["filter"] for frame in peer.wait_frames("attach", 3)]
        assert [dict(each.values())[0x0000468C00000004] for each in filters] == expected


def test_no_filter_is_sent_without_a_selector(face: Face) -> None:
    peer = face.peer()
    face.session(peer).create_consumer(Queue("q"), "  ")
    assert attach(peer).terminus("source").get("filter") in (None, {})


def test_a_browser_copies_and_settles_nothing(face: Face) -> None:
    """S134: distribution mode copy, and no outcome goes back."""
    peer = face.peer()
    session = face.session(peer)
    peer.messages.extend([text("a"), text("b")])
    assert [message.text for message in session.create_browser(Queue("q"))] == ["a", "b"]
    assert attach(peer).terminus("source")["distribution-mode"] == "copy"
    session.create_producer(Queue("q"))
    assert peer.all("disposition") == []


def test_a_browser_counts_the_messages_that_nobody_can_decode(face: Face) -> None:
    """S134: who copies or empties a queue must know that it holds more than was shown."""
    peer = face.peer()
    session = face.session(peer)
    wrong_order = b"\x00\x53\x74\xc1\x01\x00" + b"\x00\x53\x73\x45"  # application properties, then properties
    peer.messages.extend([text("a"), wrong_order, text("b")])
    browser = session.create_browser(Queue("q"))
    assert [message.text for message in browser] == ["a", "b"]
    assert browser.unreadable == 1


# -- settle modes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transacted", [False, True], ids=["plain", "transacted"])
@pytest.mark.parametrize("kind", ["queue", "topic", "anonymous"])
@pytest.mark.parametrize("switch", ["", "All", "Producers", "QueueProducers", "TopicProducers", "TransactedProducers"])
def test_presettle_switches_of_producers_set_the_mode_of_link_and_transfers(
    sync: Face, switch: str, kind: str, transacted: bool
) -> None:
    """A.1 jms.presettlePolicy."""
    destination = {"queue": Queue("d"), "topic": Topic("d"), "anonymous": None}[kind]
    expected = switch in ("All", "Producers") or (
        kind != "anonymous"
        and (switch == f"{kind.capitalize()}Producers" or (switch == "TransactedProducers" and transacted))
    )
    peer = sync.peer()
    options = [f"jms.presettlePolicy.presettle{switch}=true"] if switch else []
    producer = sync.session(peer, *options, mode=0 if transacted else 1).create_producer(destination)
    producer.send("x", destination or Queue("d"))
    assert attach(peer)["snd-settle-mode"] == (SETTLED if expected else UNSETTLED)
    peer.wait_transfers(1)
    assert bool(peer.all("transfer")[0]["settled"]) is expected


@pytest.mark.parametrize("transacted", [False, True], ids=["plain", "transacted"])
@pytest.mark.parametrize("kind", ["queue", "topic"])
@pytest.mark.parametrize("switch", ["", "All", "Consumers", "QueueConsumers", "TopicConsumers"])
def test_presettle_switches_of_consumers_are_ignored_in_transactions(
    sync: Face, switch: str, kind: str, transacted: bool
) -> None:
    """S37."""
    peer = sync.peer()
    options = [f"jms.presettlePolicy.presettle{switch}=true"] if switch else []
    sync.session(peer, *options, mode=0 if transacted else 1).create_consumer(
        {"queue": Queue, "topic": Topic}[kind]("d")
    )
    expected = not transacted and switch in ("All", "Consumers", f"{kind.capitalize()}Consumers")
    assert attach(peer)["snd-settle-mode"] == (SETTLED if expected else UNSETTLED)


@pytest.mark.parametrize("mode", [100, 257])
def test_a_no_acknowledge_consumer_asks_for_settled_and_sends_nothing_back(face: Face, mode: int) -> None:
    """S36: acknowledge and recover do nothing."""
    peer = face.peer(messages=[text("a"), text("b")])
    session = face.session(peer, mode=mode)
    consumer = session.create_consumer(Queue("q"))
    message = consumer.receive(60)
    message.acknowledge()
    session.recover()
    assert consumer.receive(60).text == "b"
    assert attach(peer)["snd-settle-mode"] == SETTLED
    session.close()
    peer.wait_frames("end")
    assert peer.all("disposition") == []


def test_messages_that_arrive_settled_unasked_get_no_outcome(face: Face) -> None:
    """S36: the broker has forgotten them."""
    peer = face.peer(messages=[text("a")], presettled=True)
    session = face.session(peer, mode=2)
    session.create_consumer(Queue("q")).receive(60).acknowledge()
    session.close()
    peer.wait_frames("end")
    assert peer.all("disposition") == []


@pytest.mark.parametrize("mode", [0, 1, 2, 3, 4, 101])
def test_every_other_mode_asks_for_unsettled_and_settles_first(face: Face, mode: int) -> None:
    """S1: the receiver settles at once, with its outcome."""
    peer = face.peer()
    face.session(peer, mode=mode).create_consumer(Queue("q"))
    assert (attach(peer)["snd-settle-mode"], attach(peer)["rcv-settle-mode"] or 0) == (UNSETTLED, 0)


# -- refused ----------------------------------------------------------------------------------------------------

REFUSALS = [
    ("amqp:not-found", InvalidDestinationException),
    ("amqp:resource-deleted", InvalidDestinationException),
    ("amqp:unauthorized-access", JMSSecurityException),
    ("amqp:resource-limit-exceeded", ResourceAllocationException),
    ("amqp:illegal-state", IllegalStateException),
    ("amqp:not-implemented", UnsupportedFeatureException),
    ("amqp:invalid-field", JMSException),
    ("vendor:whatever", JMSException),
]


@pytest.mark.parametrize(("name", "error"), REFUSALS)
@pytest.mark.parametrize("what", ["consumer", "producer"])
def test_a_refused_attach_raises_by_its_condition(face: Face, what: str, name: str, error: type[JMSException]) -> None:
    """S129."""
    peer = face.peer(**refusing(name))
    session = face.session(peer)
    create = session.create_consumer if what == "consumer" else session.create_producer
    with pytest.raises(error, match="says the broker") as caught:
        create(Queue("q"))
    assert caught.value.error_code == name
    assert not isinstance(caught.value, InvalidSelectorException)
    peer.wait_frames("detach")


@pytest.mark.parametrize("code", ["AMQ229032", "AMQ229213"])
def test_a_permission_that_is_missing_is_a_security_error_whatever_the_condition(face: Face, code: str) -> None:
    """S129: so Artemis answers if it would have to create the queue of a link, and the user may not create one."""
    peer = face.peer(
        **refusing("amqp:internal-error", f"{code}: User: alice does not have permission='CREATE_ADDRESS'")
    )
    with pytest.raises(JMSSecurityException, match="alice") as caught:
        face.session(peer).create_producer(Queue("q"))
    assert caught.value.error_code == "amqp:internal-error"


@pytest.mark.option("jms.validateSelector", "amqp")
def test_a_refused_selector_is_an_invalid_selector(face: Face) -> None:
    """S187, broker facts 9: both brokers say amqp:invalid-field."""
    peer = face.peer(**refusing("amqp:invalid-field"))
    with pytest.raises(InvalidSelectorException, match="a >") as caught:
        face.session(peer, "jms.validateSelector=false").create_consumer(Queue("q"), "a >")
    assert caught.value.error_code == "amqp:invalid-field"


WRONG = "a BETWEN 1 AND 2"
SELECTING = {
    "consumer": lambda session: session.create_consumer(Queue("q"), WRONG),
    "browser": lambda session: session.create_browser(Queue("q"), WRONG),
    "durable": lambda session: session.create_durable_consumer(Topic("t"), "name", WRONG),
    "option": lambda session: session.create_consumer(Queue("q?consumer.selector=a%20BETWEN%201%20AND%202")),
}


@pytest.mark.parametrize("how", SELECTING)
def test_a_wrong_selector_sends_no_attach(face: Face, how: str) -> None:
    """S187: whatever is to be selected from, the broker is not asked."""
    peer = face.peer()
    session = face.session(peer, "jms.clientID=c")
    with pytest.raises(InvalidSelectorException, match="BETWEEN for BETWEN"):
        SELECTING[how](session)
    assert not peer.all("attach")
    session.create_consumer(Queue("q"), "a BETWEEN 1 AND 2")
    assert attach(peer).terminus("source")["filter"]


def test_a_refused_link_leaves_session_and_connection_in_use(face: Face) -> None:
    """Catalogue 49."""
    peer = face.peer(**refusing("amqp:unauthorized-access"))
    connection = face.connect(peer)
    heard: list[Any] = []
    connection.exception_listener = heard.append
    session = connection.create_session()
    for create in (session.create_consumer, session.create_producer):
        with pytest.raises(JMSSecurityException):
            create(Queue("forbidden"))
    peer.script.refuse_attach = lambda link: None
    session.create_producer(Queue("q")).send("x")
    peer.wait_transfers(1)
    assert heard == []


def test_an_attach_that_is_never_answered_times_out(face: Face) -> None:
    """A.1 jms.requestTimeout."""
    peer = face.peer(silent={"attach"})
    session = face.session(peer, "jms.requestTimeout=1500")
    with pytest.raises(RequestTimedOutException, match=r"jms\.requestTimeout"):
        session.create_consumer(Queue("q"))
    with pytest.raises(RequestTimedOutException):
        session.create_producer(Queue("q"))


def test_a_begin_that_is_never_answered_times_out(face: Face) -> None:
    peer = face.peer()
    connection = face.connect(peer, "jms.requestTimeout=1500")
    peer.script.silent.add("begin")
    with pytest.raises(RequestTimedOutException, match=r"jms\.requestTimeout"):
        connection.create_session()


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize(
    ("name", "error"),
    [("amqp:unauthorized-access", JMSSecurityException), ("amqp:resource-limit-exceeded", ResourceAllocationException)],
)
def test_a_refused_session_raises_by_its_condition(face: Face, name: str, error: type[JMSException], mode: int) -> None:
    """S129: a Begin followed by an End; at the latest the first thing done with the session says so."""
    peer = face.peer(refuse_begin=lambda number: Condition(name) if number else None)
    connection = face.connect(peer)
    with pytest.raises(error):
        connection.create_session(mode).create_producer(Queue("q"))
    peer.script.refuse_begin = lambda number: None
    connection.create_session().create_producer(Queue("q")).send("x")


def test_a_consumer_whose_attach_timed_out_gets_no_message_later(face: Face) -> None:
    """A late answer must not leave a link that swallows messages."""
    held: list[Link] = []
    peer = face.peer()
    session = face.session(peer, "jms.requestTimeout=1500")
    peer.script.silent.add("attach")
    peer.script.refuse_attach = lambda link: held.append(link)  # never called: silent comes first
    with pytest.raises(RequestTimedOutException):
        session.create_consumer(Queue("q"))
    peer.script.silent.clear()
    session.create_producer(Queue("q"))
    assert peer.all("flow") == []


@pytest.mark.parametrize("engine", ["python", "proton"])
def test_a_consumer_whose_selector_the_broker_ignores_is_refused(face: Face, engine: str) -> None:
    """It got every message (3.5.3: the answer has the filters that are in place)."""
    peer = face.peer(ignores=("filter",), messages=[text("of another")])
    session = face.session(peer, f"amqp.engine={engine}")
    with pytest.raises(UnsupportedFeatureException, match="the broker ignores the selector of the consumer of q"):
        session.create_consumer(Queue("q"), "a = 1")
    assert peer.all("flow") == []
    with pytest.raises(UnsupportedFeatureException, match="the broker ignores no_local of the consumer of q"):
        session.create_consumer(Queue("q"), no_local=True)  # S147: Artemis ignores it for queues
    assert session.create_consumer(Queue("q")).receive(60).text == "of another"


@pytest.mark.parametrize("engine", ["python", "proton"])
def test_a_browser_that_would_remove_the_messages_is_refused(face: Face, engine: str) -> None:
    peer = face.peer(ignores=("mode",), messages=[text("kept")])
    session = face.session(peer, f"amqp.engine={engine}")
    with pytest.raises(UnsupportedFeatureException, match="the broker ignores the mode of a browser"):
        list(session.create_browser(Queue("q")))
    assert peer.all("flow") == []
