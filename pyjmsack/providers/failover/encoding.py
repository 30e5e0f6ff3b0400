"""Remembers the broker for which a payload was encoded, and encodes the message again for another broker (S91)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyjmsack.destination import Destination, TemporaryQueue, TemporaryTopic
from pyjmsack.message import Message
from pyjmsack.providers.failover.pending import PendingSend
from pyjmsack.spi.demands import require
from pyjmsack.spi.envelope import Payload, StreamedPayload
from pyjmsack.spi.provider import Provider
from pyjmsack.spi.resources import ConnectionMetadata
from pyjmsack.spi.spellings import check_destination_name, check_message

__all__ = ["Encoding", "MemberEncoder", "translate"]


class Encoding:
    """The way in which payloads are encoded for one broker. Brokers that need the same bytes can share one encoding.

    Args:
        provider: encodes and decodes the payloads.
    """

    def __init__(self, provider: Provider, metadata: ConnectionMetadata) -> None:
        self.provider = provider
        self.metadata = metadata
        prefixes = (metadata.properties.get("queue-prefix"), metadata.properties.get("topic-prefix"))
        self._key = (metadata.protocol, metadata.broker, prefixes)

    def understands(self, other: Encoding) -> bool:
        """Return True if payloads in the other encoding are also right for this broker."""
        return self._key == other._key


class MemberEncoder(partial[Payload]):
    """An encoder that knows its encoding and its destination. This encoder is as fast as the encoder of the provider
    for a single broker."""

    encoding: Encoding
    destination: Destination

    @classmethod
    def of(cls, encoding: Encoding, destination: Destination) -> MemberEncoder:
        """Return an encoder for messages to this destination.

        Raises:
            InvalidDestinationException: this broker would treat the name differently, or could not store it (S67).
        """
        check_destination_name(destination, encoding.metadata)  # the core checked the name for an earlier broker
        made = cls(encoding.provider.encoder(destination))
        made.encoding = encoding
        made.destination = destination
        return made


def translate(kept: PendingSend, encoding: Encoding, present_name: Callable[[str], str]) -> None:
    """Encode the message of a send again, because the send was kept and goes to another broker now.

    If this broker needs the same bytes as the last one, they stay as they are, because the last broker may have stored
    them, and the guard against duplicates has to recognise the second copy (S105).

    Args:
        present_name: takes an earlier name of a temporary destination and returns its present name (S133).

    Raises:
        JMSException: the other protocol cannot carry the message, or the other broker cannot delay or store it.
    """
    old = kept.encoder
    assert isinstance(old, MemberEncoder)  # the core gets its encoders from FailoverProvider
    payload = kept.payload
    if isinstance(payload, StreamedPayload):
        message, ttl_ms = old.encoding.provider.decode(payload.without_body, old.destination)
        message._body = payload.body
    else:
        message, ttl_ms = old.encoding.provider.decode(payload, old.destination)
    if message._delivery_time <= message._timestamp:  # a decoded message without a delay has a delivery time, too
        message._delivery_time = 0
    else:
        require(encoding.metadata, "delivery-delay")
    encoder = kept.encoder = MemberEncoder.of(encoding, old.destination)
    kept.encoding = encoding
    renamed = _rename_reply_to(message, present_name)
    understood = encoding.understands(old.encoding)
    if not understood:
        check_message(message, encoding.metadata)
    if renamed or not understood:
        message._destination = old.destination
        kept.payload = encoder(message, ttl_ms)


def _rename_reply_to(message: Message, present_name: Callable[[str], str]) -> bool:
    """Put the present name of a temporary destination into ``reply_to``, and return whether it is another name."""
    reply_to = message._reply_to
    if not isinstance(reply_to, TemporaryQueue | TemporaryTopic):
        return False
    name = present_name(reply_to.name)
    message._reply_to = type(reply_to)._literal(name)
    return name != reply_to.name
