"""What the fault tests share. Their load is that of ``pyjmsack soak``."""

from __future__ import annotations

from contract.harness import Jms

from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.soak.load import Load

__all__ = ["OPTIONS", "failover_url", "finish", "url_of"]

OPTIONS = "failover.reconnectDelay=10&failover.useReconnectBackOff=false&jms.closeTimeout=10000"


def failover_url(*members: str) -> str:
    """Return a failover URL that is impatient."""
    return f"failover:({','.join(members)})?{OPTIONS}"


def url_of(jms: Jms, broker: EmbeddedArtemis) -> str:
    """Return the broker's URL of the protocol that the scenario runs on."""
    return next(url for url in (broker.amqp_url, broker.stomp_url) if url in jms.url)


async def finish(load: Load) -> None:
    """Send nothing more, receive the rest: once each, or at least once where transactions are not atomic (S88)."""
    await load.finish()
    assert load.ledger.problems(atomic=load.atomic) == []
    assert len(load.ledger.received) == len(load.ledger.confirmed)
