"""The schemes of broker URLs, and one address of a broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

__all__ = ["SCHEMES", "Endpoint", "Scheme"]


class Scheme(NamedTuple):
    """What a URL's scheme says."""

    protocol: str
    tls: bool
    port: int
    websocket: str = ""
    """The sub-protocol inside a WebSocket; empty where there is none."""


SCHEMES: Final[Mapping[str, Scheme]] = {
    "amqp": Scheme("amqp", False, 5672),
    "amqps": Scheme("amqp", True, 5671),
    "stomp": Scheme("stomp", False, 61613),
    "stomp+ssl": Scheme("stomp", True, 61614),
    "amqpws": Scheme("amqp", False, 80, "amqp"),
    "amqpwss": Scheme("amqp", True, 443, "amqp"),
    "stomp+ws": Scheme("stomp", False, 80, "v12.stomp"),
    "stomp+wss": Scheme("stomp", True, 443, "v12.stomp"),
}
"""The schemes of a single broker, with their default ports."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of a broker; ``host`` of an IPv6 address is without brackets."""

    scheme: str
    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        host = f"[{self.host.replace('%', '%25')}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"
