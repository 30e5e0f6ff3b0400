"""A send that is kept and repeated is the same message for the guard against duplicates (S91, S105)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pyjmsack import (
    InvalidDestinationException,
    JMSException,
    MapMessage,
    MessageFormatException,
    Queue,
    StreamMessage,
    TemporaryQueue,
    TextMessage,
    UnsupportedFeatureException,
)
from pyjmsack.destination import Destination
from pyjmsack.message import Message
from pyjmsack.providers.amqp.encode import encode as encode_amqp
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.failover.encoding import Encoding, MemberEncoder, translate
from pyjmsack.providers.stomp.dialect import dialect_of
from pyjmsack.providers.stomp.encode import encode as encode_stomp
from pyjmsack.providers.stomp.header_lines import escape
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.spi.resources import ConnectionMetadata
from pyjmsack.types import Byte, Float

BROKERS = "artemis", "classic-5", "classic-6"
QUEUE = Queue("q")


class Amqp:
    """The codec of a connection over AMQP."""

    def __init__(self, broker: str) -> None:
        self.name = broker

    def encoder(self, destination: Destination) -> Any:
        return lambda message, ttl_ms: encode_amqp(message, destination.name, ttl_ms)

    def read(self, payload: Any) -> AmqpInbound:
        inbound = AmqpInbound(payload)
        inbound.kept_whole = self.name == "artemis"
        return inbound

    def decode(self, payload: Any, destination: Destination) -> tuple[Message, int]:
        return self.read(payload).to_sent(destination)


class Stomp:
    """The codec of a connection over STOMP."""

    def __init__(self, broker: str) -> None:
        self.name, self.dialect = broker, dialect_of(broker)

    def encoder(self, destination: Destination) -> Any:
        lines = self.dialect.send_lines(destination)
        return lambda message, ttl_ms: encode_stomp(message, lines=lines, dialect=self.dialect, escape=escape)

    def read(self, payload: Any) -> StompInbound:
        head, _, body = payload.partition(b"\n\n")
        return StompInbound(b"\n" + head, body[:-1], self.dialect)

    def decode(self, payload: Any, destination: Destination) -> tuple[Message, int]:
        return self.read(payload).to_sent(destination)


CODECS = [pytest.param(codec(broker), id=f"{codec.__name__}-{broker}") for codec in (Amqp, Stomp) for broker in BROKERS]


def encoding(codec: Any, version: str = "1") -> Encoding:
    return Encoding(codec, ConnectionMetadata("any", "", "", "", broker=f"{codec.name} {version}"))


def sent(message: Message, first: Encoding, destination: Destination = QUEUE) -> Any:
    """Return a send of the message, kept since its broker is lost."""
    encoder = MemberEncoder.of(first, destination)
    message._destination = destination
    return SimpleNamespace(payload=encoder(message, 0), encoder=encoder, encoding=first)


def kept(codec: Any, message: Message) -> Any:
    """Return such a send, of a broker of which only the name counts."""
    return sent(message, encoding(codec))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("message", [TextMessage("a"), MapMessage({"b": 1, "a": Byte(2)}), StreamMessage([b"b", 1.5])])
def test_the_copy_for_another_broker_is_the_same_message(codec: Any, message: Message) -> None:
    """S105: a decoded head may have its lines in another order."""
    message._message_id, message._timestamp, message._expiration, message._group_id = "ID:1", 5, 9, "g"
    message._reply_to, message._correlation_id, message._type = Queue("r"), "c", "t"
    message._destination = QUEUE
    message.properties.update({"e": "text", "d": None, "c": True, "b": Byte(1), "a": Float(0.5), "f": 1 << 40})
    send = kept(codec, message)
    first = send.payload
    translate(send, encoding(codec, "2"), lambda name: name)
    assert send.payload is not first
    assert codec.read(send.payload).identity() == codec.read(first).identity()


@pytest.mark.parametrize("codec", CODECS)
def test_only_a_message_with_a_reply_to_that_has_a_new_name_is_encoded_again_for_the_same_broker(codec: Any) -> None:
    """S91, S133: the broker may have stored the first copy."""
    plain, other, own = TextMessage("a"), TextMessage("b"), TextMessage("c")
    old, new = (f"/temp-queue/{name}" if isinstance(codec, Stomp) else name for name in ("old", "new"))
    for message, reply_to in ((other, f"{old}er"), (own, old)):
        message._reply_to = TemporaryQueue._literal(reply_to)
    for message in (plain, other, own):
        message.properties.update({"b": 1, "a": 2})
    present = {old: new}
    for message in (plain, other):
        send = kept(codec, message)
        first = send.payload
        translate(send, encoding(codec), lambda name: present.get(name, name))
        assert send.payload is first
    send = kept(codec, own)
    translate(send, encoding(codec), lambda name: present.get(name, name))
    assert codec.read(send.payload).to_message(QUEUE).reply_to == TemporaryQueue._literal(new)


def at(codec: Any, protocol: str) -> Encoding:
    return Encoding(codec, ConnectionMetadata(protocol, "", "", "", broker=codec.name))


def with_property(name: str, value: Any) -> Message:
    message = TextMessage("a")
    message._properties = {name: value}
    return message


def with_header(name: str, value: Any) -> Message:
    message = TextMessage("a")
    setattr(message, name, value)
    return message


ARTEMIS_AMQP, ARTEMIS_STOMP = at(Amqp("artemis"), "AMQP 1.0"), at(Stomp("artemis"), "STOMP 1.2")
CLASSIC_AMQP, CLASSIC_STOMP = at(Amqp("classic-6"), "AMQP 1.0"), at(Stomp("classic-6"), "STOMP 1.2")


@pytest.mark.parametrize(
    ("message", "first", "then", "error"),
    [
        (with_header("_reply_to", Queue("r" * 70_000)), ARTEMIS_AMQP, CLASSIC_AMQP, InvalidDestinationException),
        (with_header("_correlation_id", "c" * 70_000), ARTEMIS_AMQP, CLASSIC_AMQP, MessageFormatException),
        (with_property("p" * 70_000, 1), ARTEMIS_AMQP, CLASSIC_AMQP, MessageFormatException),
        (with_property("_AMQ_INGRESS_TIMESTAMP", "x"), CLASSIC_AMQP, ARTEMIS_STOMP, MessageFormatException),
        (with_property("_AMQ_ROUTING_TYPE", "x"), CLASSIC_STOMP, ARTEMIS_STOMP, MessageFormatException),
        (with_property("AMQ_SCHEDULED_DELAY", 60_000), CLASSIC_AMQP, ARTEMIS_AMQP, UnsupportedFeatureException),
    ],
    ids=["reply-to", "correlation id", "name of a property", "time of arrival", "routing type", "delay"],
)
def test_a_kept_send_is_checked_for_the_broker_that_gets_it(
    message: Message, first: Encoding, then: Encoding, error: type[JMSException]
) -> None:
    """S67, S157, S160: the core checked the message for the broker before, which takes it."""
    send = sent(message, first)
    with pytest.raises(error):
        translate(send, then, lambda name: name)
    again = sent(message, first)
    translate(again, first, lambda name: name)
    assert again.payload == send.payload


def test_a_kept_send_to_several_queues_is_not_sent_to_a_broker_that_would_take_them_for_one_s67() -> None:
    """Artemis stored the message in a queue named ``a,b``, and confirmed it."""
    several = Queue("a,b")
    several._several = True
    with pytest.raises(InvalidDestinationException, match="composite destinations"):
        translate(sent(TextMessage("a"), CLASSIC_AMQP, several), ARTEMIS_AMQP, lambda name: name)


@pytest.mark.parametrize("then", [ARTEMIS_AMQP, ARTEMIS_STOMP, CLASSIC_AMQP, CLASSIC_STOMP])
@pytest.mark.parametrize("first", [ARTEMIS_AMQP, ARTEMIS_STOMP, CLASSIC_AMQP, CLASSIC_STOMP])
def test_a_delayed_send_that_is_kept_passes_the_check_of_the_next_broker(first: Encoding, then: Encoding) -> None:
    """S91, S157: the delay is not taken for a property that a program wrote."""
    message = TextMessage("a")
    message._message_id, message._timestamp, message._delivery_time = "ID:1", 1_000, 61_000
    send = sent(message, first)
    translate(send, then, lambda name: name)
    inbound = then.provider.read(send.payload).to_sent(QUEUE)[0]  # type: ignore[attr-defined]  # one of the codecs
    assert inbound._delivery_time == 61_000


def test_a_delay_that_a_program_wrote_stays_in_the_kept_send_s91() -> None:
    send = sent(with_property("AMQ_SCHEDULED_DELAY", 60_000), CLASSIC_STOMP)
    translate(send, CLASSIC_AMQP, lambda name: name)
    assert AmqpInbound(send.payload).to_sent(QUEUE)[0]._properties == {"AMQ_SCHEDULED_DELAY": 60_000}
