"""For which broker a payload was encoded, and how to encode it for another one (S91)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyjmsack.destination import Destination, TemporaryQueue, TemporaryTopic
from pyjmsack.providers.failover.pending import PendingSend
from pyjmsack.spi.demands import require
from pyjmsack.spi.provider import Provider
from pyjmsack.spi.resources import ConnectionMetadata

__all__ = ["Encoding", "MemberEncoder", "translate"]


class Encoding:
    """What payloads of the present broker have in common; brokers that agree share one.

    Args:
        provider: encodes and decodes it.
    """

    def __init__(self, provider: Provider, metadata: ConnectionMetadata) -> None:
        self.provider = provider
        self.metadata = metadata
        prefixes = (metadata.properties.get("queue-prefix"), metadata.properties.get("topic-prefix"))
        self._key = (metadata.protocol, metadata.broker, prefixes)

    def understands(self, other: Encoding) -> bool:
        """Whether payloads of the other one are right here, too."""
        return self._key == other._key


class MemberEncoder(partial[bytes]):
    """An encoder that says for what it encodes; calling it costs no more than calling the member's."""

    encoding: Encoding
    destination: Destination

    @classmethod
    def of(cls, encoding: Encoding, destination: Destination) -> MemberEncoder:
        """Return the encoder of the encoding's provider."""
        made = cls(encoding.provider.encoder(destination))
        made.encoding = encoding
        made.destination = destination
        return made


def translate(kept: PendingSend, encoding: Encoding, present_name: Callable[[str], str]) -> None:
    """Encode a kept message for another broker.

    Args:
        present_name: returns the name that a temporary destination has now, by one that it had (S133).

    Raises:
        JMSException: the other protocol cannot carry it, or that broker cannot delay it.
    """
    old = kept.encoder
    assert isinstance(old, MemberEncoder)  # the core has its encoders from us
    message, ttl_ms = old.encoding.provider.decode(kept.payload, old.destination)
    if message._delivery_time <= message._timestamp:  # what is read says when it was to be delivered: at once
        message._delivery_time = 0
    else:
        require(encoding.metadata, "delivery-delay")
    reply_to = message._reply_to
    if isinstance(reply_to, TemporaryQueue | TemporaryTopic):
        message._reply_to = type(reply_to)._literal(present_name(reply_to.name))
    message._destination = old.destination
    encoder = MemberEncoder.of(encoding, old.destination)
    kept.payload, kept.encoder, kept.encoding = encoder(message, ttl_ms), encoder, encoding
