"""Brokers that are managed: Artemis where nobody may manage, and ActiveMQ Classic with a Jolokia agent in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from pyjmsack.broker import EmbeddedActiveMQ, EmbeddedArtemis
from pyjmsack.broker.distribution import Artefact, cache_directory
from pyjmsack.broker.readiness import pick_port

__all__ = ["FORBIDDEN", "Managed", "classic_with_jolokia", "guarded_artemis"]

_AGENT = Artefact(
    "org.jolokia",
    "jolokia-agent-jvm",
    "2.2.9",
    "746f6344f7ba4a365fcf50ccf8d84269152ee29e29eb7cee8f01b3c684d6886e1b69e14ebd626d4de3fcb1e7a68f80473f62852ec99e8c516b639f9643a7fd5d",
    "javaagent",
)
FORBIDDEN = '-Dbrokerconfig.securityRoles."activemq.management.#".amq.manage=false'


@dataclass(frozen=True)
class Managed:
    """A broker, and where Jolokia is if it has one."""

    amqp_url: str
    jolokia: str | None = None


@contextmanager
def classic_with_jolokia() -> Iterator[tuple[str, str]]:
    """Start ActiveMQ Classic with a Jolokia agent that asks for no login; yield both URLs."""
    agent = cache_directory() / _AGENT.file_name
    if not agent.exists():
        _AGENT.download(agent, lambda *_: nullcontext(lambda count: None))
    port = pick_port()
    options = ["-Dpyjmsack.jmx=true", f"-javaagent:{agent}=port={port},host=127.0.0.1"]
    with EmbeddedActiveMQ(jvm_options=options) as broker:
        yield broker.amqp_url, f"http://127.0.0.1:{port}/jolokia/"


@contextmanager
def guarded_artemis() -> Iterator[str]:
    """Start Artemis with the user ``alice``, password ``wonderland``, who may do everything but manage."""
    with EmbeddedArtemis(users={"alice": "wonderland"}, jvm_options=[FORBIDDEN]) as broker:
        yield broker.amqp_url
