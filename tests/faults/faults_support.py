"""What the fault tests share. Their load is that of ``pyjmsack soak``."""

from __future__ import annotations

import pytest
from contract.harness import Jms

from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.soak.load import Load, StuckError

__all__ = ["OPTIONS", "failover_url", "finish", "url_of"]

OPTIONS = "failover.reconnectDelay=10&failover.useReconnectBackOff=false&jms.closeTimeout=10000"


def failover_url(*members: str) -> str:
    """Return a failover URL that is impatient."""
    return f"failover:({','.join(members)})?{OPTIONS}"


def url_of(jms: Jms, broker: EmbeddedArtemis) -> str:
    """Return the broker's URL of the protocol that the scenario runs on."""
    return next(url for url in (broker.amqp_url, broker.stomp_url) if url in jms.url)


async def finish(load: Load, jms: Jms) -> None:
    """Send nothing more, receive the rest: once each, or at least once where transactions are not atomic (S88)."""
    try:
        await load.finish()
    except StuckError as error:
        pytest.fail(f"{error}; the consumer counts {load.stats}; the broker has {await jms.queues()}")
    problems, counts = load.ledger.problems(atomic=load.atomic), (len(load.ledger.received), len(load.ledger.confirmed))
    if problems or counts[0] != counts[1]:
        found = f"{', '.join(problems)}; received and confirmed: {counts}; the consumer counts {load.stats}"
        pytest.fail(f"{found}; the broker has {await jms.queues()}")
