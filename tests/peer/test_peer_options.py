"""Options of a URL or a destination that other tests do not look at, seen on the line."""

from __future__ import annotations

import threading

import pytest
from peer_faces import Face, SyncFace, Told
from stomp_peer import ARTEMIS, CLASSIC, start

from pyjmsack import IllegalStateException, Queue, Topic, UnsupportedFeatureException

Q = Queue("q")


@pytest.mark.option("broker", "amqp")
def test_over_amqp_the_broker_is_what_the_url_says(face: Face) -> None:
    """S119: Classic takes a name without its prefix for a queue."""
    peer = face.peer()
    face.session(peer, "broker=classic-6").create_producer(Topic("t"))
    assert (peer.all("attach")[0].terminus("target") or {})["address"] == "topic://t"


@pytest.mark.option("broker", "stomp")
def test_over_stomp_the_broker_is_what_the_url_says(face: Face) -> None:
    """S119."""
    peer = start(face, ARTEMIS)
    face.session(peer, "broker=classic-6").create_consumer(Q)
    assert peer.wait("SUBSCRIBE")[0].headers["destination"] == "/queue/q"


@pytest.mark.option("broker.scheduler", "amqp")
def test_over_amqp_a_delay_is_sent_to_a_classic_with_a_scheduler(face: Face) -> None:
    """S157."""
    with pytest.raises(UnsupportedFeatureException):
        face.session(face.peer(), "broker=classic-6").create_producer(Q).send("x", delivery_delay=5)
    peer = face.peer()
    face.session(peer, "broker=classic-6", "broker.scheduler=true").create_producer(Q).send("x", delivery_delay=5)
    (sent,) = peer.wait_transfers(1)
    assert "x-opt-delivery-time" in sent.message.annotations


@pytest.mark.option("broker.scheduler", "stomp")
def test_over_stomp_a_delay_is_sent_to_a_classic_with_a_scheduler(face: Face) -> None:
    """S157."""
    with pytest.raises(UnsupportedFeatureException):
        face.session(start(face, CLASSIC)).create_producer(Q).send("x", delivery_delay=5)
    peer = start(face, CLASSIC)
    face.session(peer, "broker.scheduler=true").create_producer(Q).send("x", delivery_delay=5)
    assert "AMQ_SCHEDULED_DELAY" in peer.wait("SEND")[0].headers


@pytest.mark.option("producer.duplicateDetection", "stomp")
def test_over_stomp_a_send_has_a_duplicate_mark_if_its_destination_says_so(face: Face) -> None:
    """S106."""
    peer = start(face, ARTEMIS)
    session = face.session(peer)
    for options in ("", "?producer.duplicateDetection=true"):
        session.create_producer(Queue(f"q{options}")).send("x")
    assert ["_AMQ_DUPL_ID" in frame.headers for frame in peer.wait("SEND", 2)] == [False, True]


@pytest.mark.option("producer.duplicateDetection", "amqp")
def test_over_amqp_a_send_has_a_duplicate_mark_if_its_destination_says_so(face: Face) -> None:
    """S106."""
    peer = face.peer()
    session = face.session(peer, "broker=artemis")
    for options in ("", "?producer.duplicateDetection=true"):
        session.create_producer(Queue(f"q{options}")).send("x")
    sent = peer.wait_transfers(2)
    assert ["_AMQ_DUPL_ID" in (transfer.message.properties or {}) for transfer in sent] == [False, True]


def test_a_duplicate_mark_that_the_broker_would_ignore_is_refused(face: Face) -> None:
    """S106, S119."""
    for session in (face.session(face.peer(), "broker=classic-6"), face.session(start(face, CLASSIC))):
        producer = session.create_producer(Queue("q?producer.duplicateDetection=true"))
        with pytest.raises(UnsupportedFeatureException, match=r"q: producer\.duplicateDetection=true"):
            producer.send("x")
        session.create_producer(Queue("q?producer.duplicateDetection=false")).send("x")


@pytest.mark.option("amqp.engine", "amqp")
@pytest.mark.parametrize(("name", "engine"), [("python", "PythonEngine"), ("proton", "ProtonEngine")])
def test_the_engine_is_that_of_the_url(sync: SyncFace, name: str, engine: str, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--amqp-engine") not in (None, name):
        pytest.skip("this run has chosen the other engine for all connections")
    connection = sync.connect(sync.peer(), f"amqp.engine={name}")
    assert type(connection._core.channel.provider._engine).__name__ == engine


@pytest.mark.option("amqp.channelMax", "amqp")
def test_the_open_frame_has_the_channel_max_of_the_url(face: Face) -> None:
    peer = face.peer()
    face.connect(peer, "amqp.channelMax=5")
    assert peer.all("open")[0]["channel-max"] == 5


@pytest.mark.option("consumer.noLocal", "stomp")
def test_over_stomp_no_local_is_a_header(face: Face) -> None:
    """S147."""
    peer = start(face, CLASSIC)
    face.session(peer).create_consumer(Topic("t?consumer.noLocal=true"))
    assert peer.wait("SUBSCRIBE")[0].headers["activemq.noLocal"] == "true"


def test_over_stomp_no_local_with_a_selector_that_artemis_would_refuse_is_not_sent(face: Face) -> None:
    """S147: the broker refused the client's own prefix, and ended the connection of everybody."""
    peer = start(face, ARTEMIS)
    session = face.session(peer)
    for selector in ("n > 1", "flag = TRUE", "convert_string_expressions:a = 'x'"):
        with pytest.raises(UnsupportedFeatureException, match="S147"):
            session.create_consumer(Topic("t"), selector, no_local=True)
    session.create_consumer(Topic("t"), "a = 'x' OR a = 'y'", no_local=True)
    (frame,) = peer.wait("SUBSCRIBE")
    assert (frame.headers["selector"], frame.headers["no-local"]) == ("(a = 'x' OR a = 'y')", "true")


@pytest.mark.option("jms.awaitClientID", "stomp")
def test_over_stomp_too_the_client_id_is_that_of_the_start_with_await_client_id_off(sync: SyncFace) -> None:
    """S121."""
    peer = start(sync)
    connection = sync.connect(peer, "jms.awaitClientID=false", start=False)
    with pytest.raises(IllegalStateException):
        connection.client_id = "late"
    assert len(peer.all("CONNECT")) == 1


@pytest.mark.option("jms.useDaemonThread", "stomp")
def test_over_stomp_too_an_open_connection_keeps_the_process_alive_if_the_url_says_so(sync: SyncFace) -> None:
    connection = sync.connect(start(sync), "jms.useDaemonThread=false")
    (keeper,) = [thread for thread in threading.enumerate() if thread.name == "pyjmsack-keeper"]
    assert not keeper.daemon
    connection.close()
    keeper.join(60)
    assert not keeper.is_alive()


def test_a_close_that_ctrl_c_cuts_does_not_keep_the_process_alive_s123(
    sync: SyncFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(timeout: float | None) -> None:
        raise KeyboardInterrupt

    connection = sync.connect(start(sync), "jms.useDaemonThread=false")
    (keeper,) = [thread for thread in threading.enumerate() if thread.name == "pyjmsack-keeper"]
    monkeypatch.setattr(connection._runtime, "flush_out", cut)
    with pytest.raises(KeyboardInterrupt):
        connection.close()
    keeper.join(60)
    assert not keeper.is_alive()
    monkeypatch.undo()
    connection.close()


@pytest.mark.option("jms.exclusiveConsumer", "amqp")
@pytest.mark.option("jms.useRetroactiveConsumer", "amqp")
def test_over_amqp_a_consumer_is_refused_whose_connection_wants_what_the_broker_does_not_honour(face: Face) -> None:
    """S119."""
    peer = face.peer()
    session = face.session(peer, "broker=artemis", "jms.exclusiveConsumer=true", "jms.useRetroactiveConsumer=true")
    with pytest.raises(UnsupportedFeatureException, match=r"consumer\.exclusive"):
        session.create_consumer(Q)
    with pytest.raises(UnsupportedFeatureException, match=r"consumer\.retroactive"):
        session.create_consumer(Topic("t"))


@pytest.mark.option("jms.listenerErrorOutcome", "stomp")
def test_over_stomp_a_message_on_which_the_listener_raised_comes_again_uncounted_if_the_url_says_so(face: Face) -> None:
    """S18."""
    counts: list[int] = []

    def listener(message: object) -> None:
        counts.append(message.delivery_count)  # type: ignore[attr-defined]  # a message of either face
        if len(counts) == 1:
            raise ValueError("poison")

    peer = start(face, ARTEMIS, messages=["x"])
    session = face.session(peer, "jms.listenerErrorOutcome=released")
    session.create_consumer(Q).message_listener = Told(listener)
    peer.wait("ACK")
    assert counts == [1, 1]
