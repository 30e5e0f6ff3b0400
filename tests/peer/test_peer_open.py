"""What a connection says of itself, and how it ends when the broker refuses it or is silent (S119-S123, S129)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from peer import Peer
from peer_faces import Face, SyncFace
from proton import Condition, symbol

from pyjmsack import (
    ConnectionLostException,
    IllegalStateException,
    InvalidClientIDException,
    JMSException,
    JMSSecurityException,
    Queue,
    RequestTimedOutException,
    ResourceAllocationException,
)

DESIRED = {"ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS"}
SOLE = "sole-connection-for-container"


def desired(peer: Peer, number: int = 0) -> set[str]:
    return {str(name) for name in peer.wait_frames("open", number + 1)[number]["desired-capabilities"]}


def test_the_capabilities_that_jms_needs_are_always_desired(face: Face) -> None:
    """S119, S157."""
    peer = face.peer()
    face.connect(peer)
    assert desired(peer) == DESIRED


@pytest.mark.option("jms.clientID", "amqp")
@pytest.mark.parametrize(
    ("options", "arguments"), [((), {"client_id": "me"}), (("jms.clientID=me",), {})], ids=["argument", "url"]
)
def test_only_an_explicit_client_id_asks_to_be_the_sole_connection(
    face: Face, options: tuple[str, ...], arguments: dict[str, Any]
) -> None:
    """S122: else two connections with generated ids could never shut each other out, and need not."""
    peer = face.peer()
    connection = face.connect(peer, *options, **arguments)
    assert desired(peer) == DESIRED | {SOLE}
    assert peer.wait_frames("open")[0]["container-id"] == "me"
    assert connection.client_id == "me"


@pytest.mark.option("jms.clientIDPrefix", "amqp")
def test_a_generated_client_id_is_the_container_id_with_the_prefix_of_the_url_s119(face: Face) -> None:
    peer = face.peer()
    connection = face.connect(peer, "jms.clientIDPrefix=APP:")
    assert peer.wait_frames("open")[0]["container-id"].startswith("APP:")
    assert connection.client_id is None


def test_two_connections_have_different_generated_ids_s122(face: Face) -> None:
    peer = face.peer()
    face.connect(peer)
    face.connect(peer)
    first, second = peer.wait_frames("open", 2)
    assert first["container-id"] != second["container-id"]


def test_a_client_id_set_later_is_the_one_the_broker_sees_s122(sync: SyncFace) -> None:
    peer = sync.peer()
    connection = sync.connect(peer, start=False)
    connection.client_id = "late"
    assert peer.wait_frames("open", 2)[1]["container-id"] == "late"
    assert desired(peer, 1) == DESIRED | {SOLE}
    connection.create_session().create_producer(Queue("q")).send("x")
    assert peer.connections[1].alive
    assert [frame.connection for frame in peer.wait_frames("transfer")] == [1]


def test_the_connection_is_open_when_it_is_returned_so_its_errors_raise_there(face: Face) -> None:
    """S121: nothing waits for the first use; a client id that is set before it opens the connection anew (S122)."""
    peer = face.peer()
    face.connect(peer, start=False)
    assert len(peer.all("open")) == 1
    refused = Condition("amqp:invalid-field", "no", {symbol("invalid-field"): symbol("container-id")})
    with pytest.raises(InvalidClientIDException):
        face.connect(face.peer(refuse_open=refused), client_id="taken", start=False)


@pytest.mark.option("jms.awaitClientID", "amqp")
def test_with_await_client_id_off_the_client_id_is_that_of_the_start(sync: SyncFace) -> None:
    """S121: ``jms.awaitClientID=false``."""
    peer = sync.peer()
    connection = sync.connect(peer, "jms.awaitClientID=false", start=False)
    with pytest.raises(IllegalStateException):
        connection.client_id = "late"
    assert len(peer.all("open")) == 1
    named = sync.connect(peer, "jms.awaitClientID=false", "jms.clientID=early", start=False)
    assert named.client_id == "early"
    assert peer.wait_frames("open", 2)[1]["container-id"] == "early"


def test_a_client_id_set_twice_late_or_empty_is_refused_locally_s122(sync: SyncFace) -> None:
    peer = sync.peer()
    connection = sync.connect(peer, start=False)
    with pytest.raises(InvalidClientIDException):
        connection.client_id = " "
    connection.client_id = "one"
    with pytest.raises(IllegalStateException):
        connection.client_id = "two"
    used = sync.connect(peer)
    with pytest.raises(IllegalStateException):
        used.client_id = "late"


@pytest.mark.option("amqp.vhost", "amqp")
def test_the_hostname_is_the_url_s_host_or_the_vhost(face: Face) -> None:
    peer = face.peer()
    face.connect(peer)
    face.connect(peer, "amqp.vhost=elsewhere")
    face.connect(peer, "amqp.vhost=")
    assert [frame["hostname"] for frame in peer.wait_frames("open", 3)] == ["127.0.0.1", "elsewhere", None]


def test_what_the_broker_offers_and_says_of_itself_is_in_the_metadata_s119(face: Face) -> None:
    peer = face.peer(capabilities=("DELAYED_DELIVERY",))
    connection = face.connect(peer)
    assert {"DELAYED_DELIVERY", "delivery-delay"} <= connection.capabilities
    assert not {"SHARED-SUBS", "shared-subscription"} & connection.capabilities
    assert "SHARED-SUBS" in connection.capabilities.support("shared-subscription").note
    assert (connection.metadata.broker_name, connection.metadata.broker_version) == ("scripted-peer", "7.1")


def test_prefixes_announced_in_the_open_frame_are_put_before_names(face: Face) -> None:
    """A9 of the broker facts: Classic announces ``queue://``."""
    peer = face.peer(properties={"queue-prefix": "queue://", "topic-prefix": "topic://"})
    face.session(peer).create_producer(Queue("q"))
    assert peer.wait_frames("attach")[0].terminus("target")["address"] == "queue://q"


# -- refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        (Condition("amqp:unauthorized-access", "who are you"), JMSSecurityException),
        (Condition("amqp:resource-limit-exceeded", "too many"), ResourceAllocationException),
        (Condition("amqp:connection:forced", "going down"), ConnectionLostException),
        (Condition("amqp:invalid-field", "no", {symbol("invalid-field"): symbol("hostname")}), JMSException),
    ],
    ids=["unauthorized", "limit", "forced", "other-field"],
)
def test_an_open_that_is_refused_raises_by_its_condition(
    face: Face, condition: Condition, error: type[JMSException]
) -> None:
    """S129; a refused connection first looks opened."""
    peer = face.peer(refuse_open=condition)
    with pytest.raises(error) as caught:
        face.connect(peer)
    assert not isinstance(caught.value, InvalidClientIDException)
    assert caught.value.error_code == condition.name
    peer.wait_closed()


@pytest.mark.parametrize("kind", [symbol, str])
def test_a_client_id_in_use_raises_invalid_client_id(face: Face, kind: type[str]) -> None:
    """S122: recognised by the field that the broker names."""
    taken = Condition("amqp:invalid-field", "taken", {symbol("invalid-field"): kind("container-id")})
    with pytest.raises(InvalidClientIDException):
        face.connect(face.peer(refuse_open=taken), client_id="me")


def test_a_client_id_in_use_raises_when_it_is_set_later_s122(sync: SyncFace) -> None:
    peer = sync.peer()
    connection = sync.connect(peer, start=False)
    peer.script.refuse_open = Condition("amqp:invalid-field", "x", {symbol("invalid-field"): symbol("container-id")})
    with pytest.raises(InvalidClientIDException):
        connection.client_id = "taken"
    with pytest.raises(JMSException):
        connection.create_session()


# -- silent, absent, something else -----------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["sasl", "open", "begin"])
def test_a_silent_broker_is_given_up_after_connect_timeout(face: Face, stage: str) -> None:
    """A.1 jms.connectTimeout."""
    peer = face.peer(silent={stage})
    with pytest.raises(RequestTimedOutException, match=r"jms\.connectTimeout"):
        face.connect(peer, "jms.connectTimeout=100")
    peer.wait_closed()


def test_a_sasl_outcome_that_never_comes_is_given_up_after_connect_timeout(face: Face) -> None:
    with pytest.raises(RequestTimedOutException, match=r"jms\.connectTimeout"):
        face.connect(face.peer(sasl_outcome=None), "jms.connectTimeout=100")


@pytest.fixture
def mute_port() -> Iterator[int]:
    """A port that accepts TCP and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def full_port() -> Iterator[int]:
    """A port whose queue of waiting connections is full: the next handshake is not answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        waiting = []
        for _ in range(4):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(server.getsockname())
            waiting.append(client)
        yield server.getsockname()[1]
        for client in waiting:
            client.close()


def connect_to(face: Face, url: str) -> None:
    face.wrap(face.module.ConnectionFactory(url)).create_connection()


@pytest.mark.option("transport.connectTimeout", "amqp", "stomp")
@pytest.mark.parametrize("scheme", ["amqp", "stomp"])
def test_a_host_that_does_not_answer_is_given_up_after_transport_connect_timeout(
    face: Face, full_port: int, scheme: str
) -> None:
    """A.1 transport.connectTimeout."""
    with pytest.raises(RequestTimedOutException, match=r"transport\.connectTimeout"):
        connect_to(face, f"{scheme}://127.0.0.1:{full_port}?transport.connectTimeout=100")


def test_a_tls_handshake_that_is_not_answered_is_given_up_after_transport_connect_timeout(
    face: Face, mute_port: int
) -> None:
    with pytest.raises(RequestTimedOutException, match=r"transport\.connectTimeout"):
        connect_to(face, f"amqps://127.0.0.1:{mute_port}?transport.connectTimeout=100&transport.trustAll=true")


def test_a_port_nobody_listens_on_is_a_lost_connection_that_names_it(face: Face) -> None:
    """S129."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionLostException, match=str(port)) as caught:
        connect_to(face, f"amqp://127.0.0.1:{port}")
    assert isinstance(caught.value.__cause__, OSError | JMSException)


@pytest.mark.parametrize(
    "greeting",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"ERR",
        b"AMQP\x00\x00\x09\x01",
        b"AMQP\x00\x01\x00\x00",
        b"\x00\x00\x00\x01garbage of another protocol",
    ],
    ids=["http", "short", "amqp-0.9.1", "no-sasl", "binary"],
)
def test_a_peer_that_does_not_speak_amqp_with_sasl_is_named_as_such(face: Face, greeting: bytes) -> None:
    """S129: a clear ConnectionLostException, at once and not by time-out."""
    with pytest.raises(ConnectionLostException, match=r"not an AMQP 1\.0 broker|speaks HTTP, not AMQP"):
        face.connect(face.peer(greeting=greeting))


@pytest.mark.parametrize(
    ("greeting", "spoken"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
        (b"CONNECTED\nversion:1.2\n\n\0", "STOMP"),
        (b"ERROR\nmessage:no\n\n\0", "STOMP"),
        (b"\x15\x03\x03\0\x02\x02\x46", "TLS"),
        (b"\0\0\1\x10\1ActiveMQ\0\0\0\x0c", "OpenWire"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
        (b"-ERR unknown command\r\n", "Redis"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_protocol_is_named_by_its_first_bytes(face: Face, greeting: bytes, spoken: str) -> None:
    """S129."""
    with pytest.raises(ConnectionLostException, match=rf"amqp://\S+ speaks {spoken}, not AMQP: "):
        face.connect(face.peer(greeting=greeting))


@pytest.mark.parametrize(
    ("script", "frame"),
    [({"sasl_outcome": None}, "sasl-init"), ({"silent": {"begin"}}, "begin")],
    ids=["during the login", "before its begin"],
)
def test_a_broker_that_hangs_up_while_it_is_connected_to_is_a_lost_connection(
    face: Face, script: dict[str, Any], frame: str
) -> None:
    """S129."""
    peer = face.peer(**script)
    connecting = face.background(face.connect, peer)
    peer.wait_frames(frame)
    peer.drop()
    with pytest.raises(ConnectionLostException):
        connecting.result(60)


def test_a_connection_that_cannot_be_opened_leaves_no_thread_s123(sync: SyncFace) -> None:
    before = {thread.name for thread in threading.enumerate() if thread.name.startswith("pyjmsack")}
    for script in ({"sasl_outcome": 1}, {"refuse_open": Condition("amqp:not-allowed")}, {"silent": {"begin"}}):
        with pytest.raises(JMSException):
            sync.connect(sync.peer(**script), "jms.connectTimeout=50")
    after = {thread.name for thread in threading.enumerate() if thread.name.startswith("pyjmsack")}
    assert after == before


# -- close ------------------------------------------------------------------------------------------------------


def test_close_sends_close_and_ends_the_socket_s123(face: Face) -> None:
    peer = face.peer()
    connection = face.connect(peer)
    connection.create_session()
    connection.close()
    peer.wait_closed()
    assert peer.names()[-2:] == ["end", "close"]


@pytest.mark.parametrize("stage", ["close", "end"])
def test_close_returns_after_close_timeout_when_the_broker_is_dead_s123(face: Face, stage: str) -> None:
    peer = face.peer(silent={stage})
    connection = face.connect(peer, "jms.closeTimeout=100")
    connection.create_session()
    connection.close()
    peer.wait_closed()


def test_close_does_not_call_the_exception_listener_s128(face: Face) -> None:
    heard: list[Any] = []
    connection = face.connect(face.peer())
    connection.exception_listener = heard.append
    connection.close()
    connection.close()
    assert heard == []


def test_everything_raises_illegal_state_after_close_s125(face: Face) -> None:
    connection = face.connect(face.peer())
    session = connection.create_session()
    producer, consumer = session.create_producer(Queue("q")), session.create_consumer(Queue("q"))
    connection.close()
    for call in (
        connection.start,
        connection.create_session,
        lambda: session.create_producer(Queue("q")),
        lambda: producer.send("x"),
        consumer.receive,
    ):
        with pytest.raises(IllegalStateException):
            call()


def test_concurrent_closes_all_return_s123(face: Face) -> None:
    connection = face.connect(face.peer())
    for closing in [face.background(connection.close) for _ in range(4)]:
        closing.result(60)


def test_connection_listeners_hear_of_the_failure_once_s109(face: Face) -> None:
    class Listener:
        failures: list[BaseException]

        def __init__(self) -> None:
            self.failures = []
            self.heard = threading.Event()

        def on_connection_failure(self, error: BaseException) -> None:
            self.failures.append(error)
            self.heard.set()

    peer = face.peer()
    connection = face.connect(peer)
    listener = Listener()
    connection.add_connection_listener(listener)
    peer.drop()
    assert listener.heard.wait(60)
    connection.close()
    assert [type(error) for error in listener.failures] == [ConnectionLostException]
