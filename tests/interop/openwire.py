"""The embedded brokers with more ports: for the OpenWire client of ActiveMQ, and for AMQP that it can read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pyjmsack.broker import EmbeddedActiveMQ
from pyjmsack.broker.activemq_instance import ActiveMQInstance
from pyjmsack.broker.distribution import Distribution
from pyjmsack.broker.java import Java
from pyjmsack.broker.readiness import pick_port

__all__ = ["OpenWireActiveMQ", "openwire_acceptor"]

_ACCEPTOR = "-Dbrokerconfig.acceptorConfigurations.openwire."
_NETTY = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptorFactory"


def openwire_acceptor(port: int) -> list[str]:
    """Return the JVM options that make Artemis listen there for OpenWire."""
    return [
        f"{_ACCEPTOR}factoryClassName={_NETTY}",
        f"{_ACCEPTOR}params.host=127.0.0.1",
        f"{_ACCEPTOR}params.port={port}",
        f"{_ACCEPTOR}params.protocols=OPENWIRE",
    ]


@dataclass(frozen=True)
class _Instance(ActiveMQInstance):
    openwire_port: int = 0
    translated_port: int = 0

    def write_configuration(self) -> None:
        super().write_configuration()
        path = self.etc / "activemq.xml"
        openwire = f'<transportConnector name="openwire" uri="tcp://127.0.0.1:{self.openwire_port}"/>'
        translated = (
            f'<transportConnector name="translated" uri="amqp://127.0.0.1:{self.translated_port}'
            '?transport.transformer=jms&amp;wireFormat.maxFrameSize=104857600"/>'
        )
        end = "</transportConnectors>"
        path.write_text(path.read_text().replace(end, f"{openwire}{translated}{end}"))


class OpenWireActiveMQ(EmbeddedActiveMQ):
    """ActiveMQ Classic with an OpenWire connector, and an AMQP connector that translates for it.

    By default this broker keeps what comes over AMQP as it is, and OpenWire clients see its raw bytes.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.openwire_port, self.translated_port = pick_port(), pick_port()

    def _instance(self, directory: Path, java: Java, distribution: Distribution) -> _Instance:
        plain: Any = super()._instance(directory, java, distribution)
        taken = {field.name: getattr(plain, field.name) for field in fields(plain)}
        return _Instance(**taken, openwire_port=self.openwire_port, translated_port=self.translated_port)
