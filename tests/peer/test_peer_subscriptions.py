"""Named subscriptions and temporary destinations on the wire (S130-S132, S141-S148)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from peer import Peer, text
from peer_faces import Face
from peer_frames import Frame
from proton import Condition, Terminus

from pyjmsack import (
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
    Queue,
    RequestTimedOutException,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
    UnsupportedFeatureException,
)

NEWS = Topic("news")
DURABLE, SHARED, SHARED_DURABLE = "create_durable_consumer", "create_shared_consumer", "create_shared_durable_consumer"
UNSETTLED_STATE = 2
OWN, NO_ID = {"client_id": "me"}, dict[str, str]()
ARTEMIS = {"product": "apache-activemq-artemis", "version": "2.56.0"}


def subscribe(session: Any, kind: str, name: str = "sub", **how: Any) -> Any:
    return getattr(session, kind)(NEWS, name, **how)


def source(peer: Peer) -> dict[str, Any]:
    found = peer.wait_frames("attach")[-1].terminus("source")
    assert found is not None
    return found


def detaches(peer: Peer, number: int) -> list[Frame]:
    return peer.wait_frames("detach", number)


def closed(frame: Frame) -> bool:
    return bool(frame["closed"])


def not_found(link: Any) -> Condition | None:
    return Condition("amqp:not-found", "no such thing")


# -- names and sources ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("login", "kind", "names"),
    [
        (OWN, DURABLE, ["sub"]),
        (OWN, SHARED_DURABLE, ["sub", "sub|2", "sub|3"]),
        (NO_ID, SHARED_DURABLE, ["sub|global", "sub|global2", "sub|global3"]),
        (OWN, SHARED, ["sub|volatile1", "sub|volatile2"]),
        (NO_ID, SHARED, ["sub|global-volatile1", "sub|global-volatile2"]),
    ],
)
def test_links_have_the_names_that_qpid_jms_gives(face: Face, login: Any, kind: str, names: list[str]) -> None:
    """S145: a Java and a Python subscriber share, and each link of a connection has its own name."""
    peer = face.peer()
    session = face.session(peer, **login)
    for _ in names:
        subscribe(session, kind)
    assert [frame["name"] for frame in peer.wait_frames("attach", len(names))] == names


def test_a_number_is_given_again_only_when_nobody_uses_the_name(face: Face) -> None:
    """S145: a link name must not meet a link that is still there."""
    peer = face.peer()
    session = face.session(peer)
    first, second = subscribe(session, SHARED), subscribe(session, SHARED)
    first.close()
    third = subscribe(session, SHARED)
    second.close()
    third.close()
    subscribe(session, SHARED)
    names = [frame["name"].removeprefix("sub|global-volatile") for frame in peer.wait_frames("attach", 4)]
    assert names == ["1", "2", "3", "1"]


@pytest.mark.parametrize(
    ("login", "kind", "capabilities"),
    [
        (OWN, DURABLE, ["topic"]),
        (OWN, SHARED, ["topic", "shared"]),
        (NO_ID, SHARED, ["topic", "shared", "global"]),
        (OWN, SHARED_DURABLE, ["topic", "shared"]),
        (NO_ID, SHARED_DURABLE, ["topic", "shared", "global"]),
    ],
)
def test_sources_say_what_the_subscription_is(face: Face, login: Any, kind: str, capabilities: list[str]) -> None:
    """S145: durable ones keep their state for ever, and copy."""
    peer = face.peer()
    subscribe(face.session(peer, **login), kind)
    found = source(peer)
    assert found["address"] == "news"
    words = found["capabilities"]
    assert (words if isinstance(words, list) else [words]) == capabilities  # one alone may be an array or not (1.4)
    durable = kind != SHARED
    assert found.get("durable", 0) == (UNSETTLED_STATE if durable else 0)
    assert (found.get("expiry-policy") == "never") is durable
    assert (found.get("distribution-mode") == "copy") is durable


# -- detach or close --------------------------------------------------------------------------------------------


def end_consumer(consumer: Any, session: Any) -> None:
    consumer.close()


def end_session(consumer: Any, session: Any) -> None:
    session.close()


@pytest.mark.parametrize("end", [end_consumer, end_session])
@pytest.mark.parametrize("kind", [DURABLE, SHARED, SHARED_DURABLE])
def test_a_durable_subscriber_detaches_and_any_other_closes(
    face: Face, kind: str, end: Callable[[Any, Any], None]
) -> None:
    """S141, S148: a close would delete the subscription and what it keeps."""
    peer = face.peer()
    session = face.session(peer, **OWN)
    end(subscribe(session, kind), session)
    assert closed(detaches(peer, 1)[0]) is (kind == SHARED)


def test_a_durable_link_that_the_broker_closes_is_answered_with_a_detach(face: Face) -> None:
    """S141: so that the subscription stays, whatever the broker makes of a close."""
    peer = face.peer()
    session = face.session(peer, **OWN)
    consumer = subscribe(session, DURABLE)
    peer.close_link(peer.consumers[0], "amqp:resource-limit-exceeded")
    assert not closed(detaches(peer, 1)[0])
    with pytest.raises(JMSException, match="resource-limit"):
        consumer.receive(timeout=60)


def test_a_durable_link_that_answers_no_drain_is_detached(face: Face) -> None:
    """Catalogue 24, S141."""
    peer = face.peer(silent={"drain"})
    consumer = subscribe(face.session(peer, "amqp.drainTimeout=50", **OWN), DURABLE)
    with pytest.raises(RequestTimedOutException):
        consumer.receive(timeout=0.01)
    assert not closed(detaches(peer, 1)[0])


# -- one active -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (DURABLE, DURABLE, "active consumer"),
        (DURABLE, SHARED_DURABLE, "exclude each other"),
        (SHARED_DURABLE, DURABLE, "exclude each other"),
    ],
)
def test_a_name_in_use_is_refused_before_anything_is_sent(face: Face, first: str, second: str, why: str) -> None:
    """S141, S143: in any session of the connection."""
    peer = face.peer()
    connection = face.connect(peer, **OWN)
    subscribe(connection.create_session(), first)
    other = connection.create_session()
    with pytest.raises(IllegalStateException, match=why):
        subscribe(other, second)
    subscribe(other, SHARED)  # volatile ones have names of their own
    assert len(peer.wait_frames("attach", 2)) == 2


@pytest.mark.parametrize("kind", [SHARED, SHARED_DURABLE])
def test_the_subscribers_of_a_shared_name_keep_topic_and_selector(face: Face, kind: str) -> None:
    """S143; another name, or the same one when all have left, may have others."""
    peer = face.peer()
    session = face.session(peer)
    active = subscribe(session, kind, selector="a = 1")
    with pytest.raises(IllegalStateException, match="selector 'a = 1'"):
        subscribe(session, kind, selector="a = 2")
    with pytest.raises(IllegalStateException, match="topic news"):
        getattr(session, kind)(Topic("olds"), "sub", "a = 1")
    subscribe(session, kind, selector="a = 1").close()
    active.close()
    subscribe(session, kind, selector="a = 2")
    assert len(peer.wait_frames("attach", 3)) == 3


def test_a_name_is_free_again_once_the_broker_has_answered_the_detach(face: Face) -> None:
    """S141: until then a new consumer waits, bounded by jms.requestTimeout."""
    peer = face.peer(silent={"detach"})
    session = face.session(peer, "jms.closeTimeout=10", "jms.requestTimeout=1000", **OWN)
    subscribe(session, DURABLE).close()
    with pytest.raises(RequestTimedOutException, match="the end of another consumer of sub"):
        subscribe(session, DURABLE)
    waiting = face.background(subscribe, session, DURABLE)
    peer.script.silent.clear()
    peer.do(lambda: peer.consumers[0].link.detach())
    waiting.result(60)
    assert len(peer.wait_frames("attach", 2)) == 2


def test_a_closed_consumer_with_unacknowledged_messages_still_has_the_name(face: Face) -> None:
    """S29, S141: its link stays for them; the acknowledgement ends it."""
    peer = face.peer()
    session = face.session(peer, mode=2, **OWN)
    consumer = subscribe(session, DURABLE)
    peer.deliver(text("a"))
    message = consumer.receive(timeout=60)
    consumer.close()
    with pytest.raises(IllegalStateException, match="not acknowledged"):
        subscribe(session, DURABLE)
    message.acknowledge()
    subscribe(session, DURABLE)
    assert [frame["name"] for frame in peer.wait_frames("attach", 2)] == ["sub", "sub"]


@pytest.mark.parametrize("kind", [DURABLE, SHARED, SHARED_DURABLE])
def test_a_refused_attach_frees_the_name(face: Face, kind: str) -> None:
    """S144."""
    peer = face.peer(refuse_attach=not_found)
    session = face.session(peer, **OWN)
    with pytest.raises(InvalidDestinationException):
        subscribe(session, kind)
    peer.script.refuse_attach = lambda link: None
    subscribe(session, kind)
    names = [frame["name"] for frame in peer.wait_frames("attach", 2)]
    assert names[0] == names[1]


# -- what is refused before a frame -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SHARED, SHARED_DURABLE])
def test_shared_subscriptions_need_a_broker_that_offers_them(face: Face, kind: str) -> None:
    """S144: nothing is sent, and the name stays free."""
    peer = face.peer(capabilities=["ANONYMOUS-RELAY"])
    session = face.session(peer, **OWN)
    with pytest.raises(UnsupportedFeatureException, match="SHARED-SUBS"):
        subscribe(session, kind)
    subscribe(session, DURABLE)
    assert [frame["name"] for frame in peer.wait_frames("attach")] == ["sub"]


@pytest.mark.option("consumer.noLocal", "amqp")
@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda s: s.create_durable_consumer(NEWS, ""), JMSException),
        (lambda s: s.create_durable_consumer(NEWS, " "), JMSException),
        (lambda s: s.create_shared_consumer(NEWS, "a|b"), JMSException),
        (lambda s: s.create_shared_durable_consumer(NEWS, None), JMSException),
        (lambda s: s.unsubscribe("a|b"), JMSException),
        (lambda s: s.create_durable_consumer(Queue("q"), "sub"), InvalidDestinationException),
        (lambda s: s.create_shared_consumer("news", "sub"), InvalidDestinationException),
        (lambda s: s.create_durable_consumer(TemporaryTopic("t"), "sub"), InvalidDestinationException),
        (lambda s: s.create_durable_consumer(NEWS, "sub"), IllegalStateException),
        (lambda s: s.create_shared_consumer(Topic("t?consumer.noLocal=true"), "sub"), UnsupportedFeatureException),
        (lambda s: s.create_consumer(TemporaryQueue("foreign")), InvalidDestinationException),
        (lambda s: s.create_consumer(Queue("q?consumer.exclusive=true")), UnsupportedFeatureException),
        (lambda s: s.create_consumer(Queue("q?consumer.priority=1")), UnsupportedFeatureException),
        (lambda s: s.create_consumer(Topic("t?consumer.retroactive=true")), UnsupportedFeatureException),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(
    face: Face, make: Callable[[Any], Any], error: type[JMSException]
) -> None:
    """S130, S141, S143, S147: names, topics, a client id of the user's, and features this broker does not have."""
    peer = face.peer()
    session = face.session(peer)
    with pytest.raises(error) as caught:
        make(session)
    assert type(caught.value) is error
    assert peer.all("attach") == []


def test_the_priority_of_a_consumer_is_a_property_of_its_link(face: Face) -> None:
    """A.4 consumer.priority, for Artemis."""
    peer = face.peer(properties=ARTEMIS)
    face.session(peer).create_consumer(Queue("q?consumer.priority=7"))
    assert peer.wait_frames("attach")[-1]["properties"] == {"priority": 7}


# -- unsubscribe ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("login", "name", "desired"), [(OWN, "sub", None), (NO_ID, "sub|global", ["shared", "global"])]
)
def test_unsubscribing_attaches_without_a_source_and_closes(
    face: Face, login: Any, name: str, desired: list[str] | None
) -> None:
    """S141: the broker knows the subscription by the link's name; a global one only by what the link desires."""
    peer = face.peer()
    face.session(peer, **login).unsubscribe("sub")
    for attach in peer.wait_frames("attach", 2):  # the second one sees that it is gone
        assert (attach["name"], attach["source"], attach["desired-capabilities"]) == (name, None, desired)
    assert closed(detaches(peer, 1)[0])


def test_unsubscribing_what_the_broker_keeps_raises_and_deletes_nothing_later(face: Face) -> None:
    """S141: Artemis says nothing if another connection has a consumer; the second look only detaches."""
    peer = face.peer(keeps_subscriptions=True)
    session = face.session(peer)
    with pytest.raises(IllegalStateException, match="on another connection"):
        session.unsubscribe("sub")
    assert [closed(frame) for frame in detaches(peer, 2)] == [True, False]


def test_unsubscribing_an_unknown_name_raises_and_one_in_use_sends_nothing(face: Face) -> None:
    """S141."""
    peer = face.peer(
        refuse_attach=lambda link: not_found(link) if link.remote_source.type == Terminus.UNSPECIFIED else None
    )
    session = face.session(peer, **OWN)
    with pytest.raises(InvalidDestinationException, match="no durable subscription 'sub'"):
        session.unsubscribe("sub")
    subscribe(session, DURABLE)
    before = len(peer.wait_frames("attach", 2))
    with pytest.raises(IllegalStateException):
        session.unsubscribe("sub")
    assert len(peer.all("attach")) == before


# -- temporary destinations -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TemporaryQueue, TemporaryTopic])
def test_a_temporary_destination_is_a_dynamic_node_deleted_on_close(face: Face, kind: type) -> None:
    """S132: the name is the broker's; deleting it closes the link that made it."""
    peer = face.peer()
    session = face.session(peer)
    word = "queue" if kind is TemporaryQueue else "topic"
    destination = getattr(session, f"create_temporary_{word}")()
    target = peer.wait_frames("attach")[-1].terminus("target")
    assert target is not None
    assert (type(destination), destination.name) == (kind, "dynamic-1")
    assert (target["dynamic"], target["capabilities"]) == (True, f"temporary-{word}")
    assert target["dynamic-node-properties"] == {"lifetime-policy": (0x2B, [])}
    assert "address" not in target
    session.create_consumer(destination)
    assert (source(peer)["address"], source(peer)["capabilities"]) == ("dynamic-1", f"temporary-{word}")


def test_a_refused_temporary_destination_says_why(face: Face) -> None:
    """S129."""
    peer = face.peer(refuse_attach=lambda link: Condition("amqp:resource-limit-exceeded", "too many"))
    with pytest.raises(JMSException, match=r"a temporary queue: .*too many"):
        face.session(peer).create_temporary_queue()


@pytest.mark.parametrize("name", [None, " "])
def test_a_broker_that_gives_a_temporary_queue_no_name_gets_one_error(face: Face, name: str | None) -> None:
    """It was an AttributeError; the session goes on."""
    peer = face.peer(dynamic_name=lambda number: name)
    session = face.session(peer)
    with pytest.raises(JMSException, match="the broker gave the destination no name"):
        session.create_temporary_queue()
    session.create_producer(Queue("q")).send("goes on")
    assert [transfer.message.body for transfer in peer.wait_transfers(1)] == ["goes on"]
