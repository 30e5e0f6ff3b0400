"""By what the guard knows a message when it comes again (S105), looked at on each broker and over each protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from contract.brokers import WAYS
from polling import expired, wait_until
from proton.utils import BlockingConnection

from faults.wide_amqp import described
from pyjmsack import AckMode, Byte, Char, ConnectionFactory, Float, Long, Message, Queue, Session, Short
from pyjmsack.broker import EmbeddedActiveMQ, EmbeddedArtemis
from pyjmsack.testing import Wire

pytestmark = pytest.mark.timeout(300)

PATIENCE = 60
BROKERS: dict[str, Callable[[], EmbeddedArtemis | EmbeddedActiveMQ]] = {
    "artemis": partial(EmbeddedArtemis, jvm_options=['-Dbrokerconfig.addressSettings."delayed.#".redeliveryDelay=50']),
    "classic-5": partial(EmbeddedActiveMQ, version="5.18.3"),
    "classic-6": partial(EmbeddedActiveMQ, version="6.3.1"),
}
MANY = {f"name{n}": value for n, value in enumerate((1, "x", Long(5), b"ab", 2.5, True, None, Byte(3), Char("c")))}
KINDS: dict[str, Callable[[Session], Message]] = {
    "text": lambda session: session.create_text_message("grün"),
    "large": lambda session: session.create_text_message("x" * 300_000),
    "no text": lambda session: session.create_text_message(None),
    "bytes": lambda session: session.create_bytes_message(bytes(100)),
    "map": lambda session: session.create_map_message({**MANY, **{f"more{n}": n for n in range(20)}}),
    "stream": lambda session: session.create_stream_message([*MANY.values()]),
    "object": lambda session: session.create_object_message({"a": [1, {"b": UUID(int=5)}], "c": None}),
    "plain": lambda session: session.create_message(),
}
NOT_FOR_STOMP = ("stream", "object")
"""What Artemis does not convert when it was sent over AMQP."""


def dressed(message: Message, kind: str) -> Message:
    """Give a message all that a sender may set."""
    for number in range(14):
        value = (number, f"text {number}", Long(number), 2.5, True, Byte(1), Short(2), Float(0.5))[number % 8]
        message.properties[f"property{number}"] = value
    message.properties.update({"JMSXGroupID": "group", "kind": kind})
    message.correlation_id, message.type, message.reply_to = "correlation", "type", Queue("answers")
    return message


def undressed(message: Message, kind: str) -> Message:
    """Leave a message with as little as possible; the encoded fields end with an empty one then."""
    return message


def send(url: str, queue: Queue, make: Callable[[Session], Message], **options: Any) -> Message:
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(queue)
        producer.disable_message_timestamp = options.pop("timeless", False)
        message = make(session)
        producer.send(message, **options)
        return message


@contextmanager
def consuming(url: str, queue: Queue, mode: AckMode) -> Iterator[tuple[Session, Any]]:
    with ConnectionFactory(url).create_connection() as connection:
        connection.start()
        session = connection.create_session(mode)
        yield session, session.create_consumer(queue)


def identity(consumer: Any) -> bytes:
    message = consumer.receive(PATIENCE)
    assert message is not None
    found: bytes | None = message._delivery.identity()
    assert found is not None
    return found


def released(url: str, queue: Queue, *, modified: bool) -> Iterator[bytes]:
    """Hand it back, once, and get it again from the same consumer."""
    with consuming(url, queue, AckMode.INDIVIDUAL_ACKNOWLEDGE) as (_, consumer):
        message = consumer.receive(PATIENCE)
        yield message._delivery.identity()
        if modified:
            message.modify()
        else:
            message.release()
        yield identity(consumer)


def rolled_back(url: str, queue: Queue) -> Iterator[bytes]:
    with consuming(url, queue, AckMode.SESSION_TRANSACTED) as (session, consumer):
        yield identity(consumer)
        session.rollback()
        yield identity(consumer)


def lost(url: str, queue: Queue) -> Iterator[bytes]:
    """Cut the connection, and get it on the next one."""
    with Wire(url) as wire:
        again = f"failover:({wire.url})?failover.reconnectDelay=10"
        with consuming(again, queue, AckMode.CLIENT_ACKNOWLEDGE) as (_, consumer):
            yield identity(consumer)
            wire.cut()
            wire.heal()
            yield identity(consumer)


def closed(url: str, queue: Queue) -> Iterator[bytes]:
    """Leave without an acknowledgement; that is what is done after a restart as well."""
    with consuming(url, queue, AckMode.CLIENT_ACKNOWLEDGE) as (_, consumer):
        yield identity(consumer)


CAUSES = [partial(released, modified=False), partial(released, modified=True), rolled_back, lost, closed]


def url_of(broker: EmbeddedArtemis | EmbeddedActiveMQ, protocol: str) -> str:
    return broker.amqp_url if protocol == "amqp" else broker.stomp_url


def waiting_in(queue: str) -> Queue:
    return Queue(f"{queue}?consumer.prefetchSize=1")


def ways(key: str, *, foreign: bool) -> Iterator[tuple[str, str, str]]:
    """Yield sender's protocol, receiver's protocol and kind of message, of all that this broker can convey.

    What came over AMQP cannot be acknowledged over STOMP at Classic (docs/broker-facts.md, STOMP)."""
    for sender in ("amqp", "stomp"):
        for receiver in ("amqp", "stomp"):
            if key != "artemis" and (sender, receiver) == ("amqp", "stomp"):
                continue
            for kind in KINDS:
                if (sender, receiver) != ("amqp", "stomp") or kind not in NOT_FOR_STOMP:
                    yield sender, receiver, kind
    if foreign:
        yield "foreign", "amqp", "wide"


@pytest.mark.parametrize("key", BROKERS)
def test_a_message_is_the_same_whatever_makes_a_broker_deliver_it_again(key: str) -> None:
    """S105: released, failed, rolled back, a lost connection, a closed one, a broker that is killed and restarted."""
    seen: dict[str, set[bytes]] = {}
    with BROKERS[key]() as broker:
        for sender, receiver, kind in ways(key, foreign=True):
            for dress in (dressed, undressed) if kind == "text" else (dressed,):
                name = f"{'delayed.' if dress is dressed else ''}again.{sender}.{receiver}.{kind}".replace(" ", "-")
                if sender == "foreign":
                    send_wide(broker.amqp_url, name, name if key == "artemis" else f"queue://{name}")
                else:
                    make = lambda session, dress=dress, kind=kind: dress(KINDS[kind](session), kind)  # noqa: E731
                    timeless = dress is undressed and (sender, receiver) == ("amqp", "amqp")
                    how = {"time_to_live": 3600, "priority": 7} if dress is dressed else {"timeless": timeless}
                    send(url_of(broker, sender), Queue(name), make, **how)
                url, found = url_of(broker, receiver), seen.setdefault(name, set())
                for cause in CAUSES:
                    found.update(cause(url, waiting_in(name)))
        broker.kill()
        broker.restart()
        for name, found in seen.items():
            url = broker.stomp_url if ".stomp." in name.split("again.")[1][4:] else broker.amqp_url
            found.update(closed(url, waiting_in(name)))
    assert {name: len(found) for name, found in seen.items()} == dict.fromkeys(seen, 1)
    assert len(set().union(*seen.values())) == len(seen)


def send_wide(url: str, name: str, address: str) -> None:
    """Send what another client wrote, all of it in the longest form that AMQP has."""
    with consuming(url, Queue(name), AckMode.CLIENT_ACKNOWLEDGE):  # so that Artemis makes a queue of the address
        connection = BlockingConnection(url, timeout=PATIENCE)
        connection.create_sender(address).send(WIDE)
        connection.close()


class Wide:
    """Bytes, for proton's sender."""

    payload = b"".join(
        (
            described(0x70, [True, 4]),
            described(0x72, {"x-opt-mine": 5}),
            described(0x73, ["ID:wide", b"me", None, "subject", None, "correlation", None, None]),
            described(0x74, {"number": 1, "flag": True, "text": "short", "long": Long(2)}),
            described(0x77, {"names": [1, "x", {"deep": None}], "flag": False}),
            described(0x78, {"x-opt-sum": 1}),
        )
    )

    def send(self, link: Any, tag: str | None = None) -> Any:
        delivery = link.delivery(tag or link.delivery_tag())
        link.stream(self.payload)
        link.advance()
        return delivery


WIDE = Wide()


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
@pytest.mark.parametrize("key", BROKERS)
def test_a_dead_letter_is_the_same_whatever_makes_the_broker_deliver_it_again(key: str, protocol: str) -> None:
    """S105, S118: rejected, and expired. What the broker notes on it is no part of it."""
    with BROKERS[key]() as broker:
        url = url_of(broker, protocol)
        for why, place in (("rejected", WAYS[key].dead_letters), ("expired", WAYS[key].expired)):
            name = f"dead.{protocol}.{why}"
            make = lambda session: dressed(KINDS["text"](session), "text")  # noqa: E731
            sent = send(url, Queue(name), make, **({"time_to_live": 0.05} if why == "expired" else {}))
            if why == "expired":  # before a consumer is there, because the broker would hand the message to it in time
                wait_until(lambda sent=sent: expired(sent.expiration))
            with consuming(url, Queue(name), AckMode.INDIVIDUAL_ACKNOWLEDGE) as (_, consumer):
                if why == "rejected":
                    consumer.receive(PATIENCE).reject()
                else:
                    assert consumer.receive(1) is None
            found: set[bytes] = set()
            for cause in CAUSES:
                found.update(cause(url, waiting_in(place)))
            assert len(found) == 1
            with consuming(url, Queue(place), AckMode.AUTO_ACKNOWLEDGE) as (_, consumer):
                identity(consumer)
