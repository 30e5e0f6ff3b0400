"""What ActiveMQ Classic delivers over STOMP in the encoding of AMQP, and the names of temporary destinations in it."""

from __future__ import annotations

from typing import Any

import pytest

from pyjmsack.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from pyjmsack.errors import InvalidDestinationException
from pyjmsack.message import Message, TextMessage
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.stomp.dialect import dialect_of
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.providers.stomp.provider import StompProvider
from pyjmsack.uri import parse_url

CLASSIC = dialect_of("classic-6")


def delivered(reply_to: Destination | None, lines: bytes = b"") -> Message:
    request = TextMessage("hello")
    request.properties["a"] = 1
    request._reply_to = reply_to
    body = encode(request, "queue://q")
    assert isinstance(body, bytes)
    return StompInbound(b"\nJMS_AMQP_NATIVE:true\nmessage-id:1" + lines, body, CLASSIC).to_message(Queue("q"))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (TemporaryQueue("temp-queue://ID:1"), TemporaryQueue("/remote-temp-queue/ID:1")),
        (TemporaryTopic("temp-topic://ID:1"), TemporaryTopic("/remote-temp-topic/ID:1")),
        (TemporaryQueue("odd"), TemporaryQueue("odd")),
        (Queue("q"), Queue("q")),
        (Topic("t"), Topic("t")),
        (None, None),
    ],
)
def test_a_requester_over_amqp_is_answered_by_the_name_of_stomp_s68(
    theirs: Destination | None, ours: Destination | None
) -> None:
    """Also after the properties were read, for which all headers are decoded at once. A property of the sender that has
    the name of the header changes nothing."""
    message = delivered(theirs, b"\nreply-to:/queue/elsewhere")
    assert message.reply_to == ours
    assert type(message.reply_to) is type(ours)
    again = delivered(theirs)
    assert again.properties.copy() == {"a": 1}
    assert again.reply_to == ours
    assert isinstance(again, TextMessage)
    assert again.text == "hello"


class Silent(StompProvider):
    """A provider that is connected to a broker, without a connection."""

    def __init__(self, broker: str) -> None:
        no_connector: Any = None
        super().__init__(parse_url("stomp://127.0.0.1:1"), no_connector)
        self._dialect = dialect_of(broker)


@pytest.mark.parametrize("kind", [TemporaryQueue, TemporaryTopic])
@pytest.mark.parametrize("name", ["temp-queue://ID:1", "temp-topic://ID:1", "ID:1", "odd"])
def test_a_temporary_destination_that_classic_does_not_know_over_stomp_is_refused_s68(kind: Any, name: str) -> None:
    """Classic took the name for the name of an ordinary queue, and no error said that nobody got the message."""
    for broker in ("classic-5", "classic-6"):
        with pytest.raises(InvalidDestinationException, match=f"does not know '{name}' over STOMP"):
            Silent(broker).encoder(kind(name))
    for broker in ("artemis", "unknown"):
        assert Silent(broker).encoder(kind(name))
    assert Silent("classic-6").encoder(Queue._literal(name))


@pytest.mark.parametrize("kind", [TemporaryQueue, TemporaryTopic])
def test_a_temporary_destination_of_a_reply_to_over_stomp_is_known_s68(kind: type[Destination]) -> None:
    what = "topic" if kind.is_topic else "queue"
    assert Silent("classic-6").encoder(kind._literal(f"/remote-temp-{what}/ID:1"))
    provider = Silent("classic-6")
    provider._aliases[1] = f"/temp-{what}/own"
    assert provider.encoder(kind._literal(f"/temp-{what}/own"))
