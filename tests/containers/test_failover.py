"""Failover of brokers in containers: the network goes and comes back, or a backup takes over, while messages flow."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable

import pytest
from contract.brokers import Target
from contract.faces import AIO
from contract.harness import Heard, Jms
from faults.faults_support import Load, failover_url

from containers.conftest import Pair
from pyjmsack.testing import Broker

pytestmark = [pytest.mark.xdist_group("containers"), pytest.mark.usefixtures("containers"), pytest.mark.timeout(600)]

KEYS = {"artemis": "artemis", "activemq": "classic-6", "activemq5": "classic-5"}


class Watch:
    """Hears that the connection is lost."""

    def __init__(self) -> None:
        self.interrupted: Heard[str] = Heard()

    def on_connection_interrupted(self, url: str) -> None:
        """It is."""
        self.interrupted(url)


async def under_load(jms: Jms, harm: Callable[[Watch], Awaitable[None]]) -> None:
    """Send, receive and send on in transactions, and receive, while harm is done: nothing is lost or torn, nor doubled
    where that can be (S88, S106)."""
    load, watch = Load(jms.session, jms.queue.name, relayed=True), Watch()
    try:
        (await jms.connection()).add_connection_listener(watch)
        load.start()
        await load.reaches(100)
        await harm(watch)
        await load.reaches(len(load.ledger.received) + 100)
        await load.finish()
        problems = load.ledger.problems(atomic=load.atomic and jms.target.broker == "artemis")
    finally:
        await load.cancel()
        await jms.close()
    assert problems == []


@pytest.fixture(autouse=True)
def few_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classic relays slowly; what is ahead of it has to be consumed in the end."""
    monkeypatch.setattr("pyjmsack.cli.soak.load.WINDOW", 100)


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
@pytest.mark.parametrize("jms_broker", KEYS, indirect=True)
def test_a_broker_that_is_off_the_network_for_a_while_loses_nothing(
    jms_broker: Broker, request: pytest.FixtureRequest, docker: str, protocol: str, queue_name: str
) -> None:
    """S75, S91, S92, S94, S97, S106."""
    port = jms_broker.amqp_url.rpartition(":")[2]
    listed = subprocess.run([docker, "ps", "-q", "--filter", f"publish={port}"], capture_output=True, check=True)

    def network(verb: str) -> None:
        subprocess.run([docker, "network", verb, "bridge", listed.stdout.strip()], check=True)

    async def harm(watch: Watch) -> None:
        await asyncio.to_thread(network, "disconnect")
        await watch.interrupted.next()
        await asyncio.to_thread(network, "connect")

    target = Target(protocol, KEYS[request.node.callspec.params["jms_broker"]])
    jms = Jms(AIO, failover_url(getattr(jms_broker, f"{protocol}_url")), queue_name, target)
    asyncio.run(under_load(jms, harm))


def test_a_backup_takes_over_under_load_and_nothing_is_lost(pair: Pair, docker: str, queue_name: str) -> None:
    """S75, S90, S91, S92, S94, S97, S106: the primary is killed; its store has all that was confirmed."""

    async def harm(watch: Watch) -> None:
        await asyncio.to_thread(
            subprocess.run, [docker, "kill", f"{pair.name}-1"], stdout=subprocess.DEVNULL, check=True
        )
        await watch.interrupted.next()

    # Artemis tells clients of the backup by its name in the pair's own network, which does not lead there from here
    jms = Jms(AIO, failover_url(*pair.urls), queue_name, Target("amqp", KEYS[pair.kind]))
    asyncio.run(under_load(jms, harm))
