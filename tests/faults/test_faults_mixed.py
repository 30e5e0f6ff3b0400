"""One URL with both protocols: the connection is lost over one, and everything goes on over the other."""

from __future__ import annotations

import pytest
from contract.brokers import Target
from contract.faces import Face
from contract.harness import Jms, take, texts

from faults.faults_support import failover_url
from pyjmsack import AckMode, Queue, TransactionRolledBackException
from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.testing import Wire

pytestmark = pytest.mark.timeout(60)

OTHER = {"amqp": "stomp", "stomp": "amqp"}


@pytest.fixture
def jms(face: Face, protocol: str, any_broker: EmbeddedArtemis, queue_name: str, no_leaks: None) -> Jms:
    """The broker itself, over the protocol that is lost. On Classic STOMP cannot acknowledge what AMQP sent."""
    return Jms(face, getattr(any_broker, f"{protocol}_url"), queue_name, Target(protocol, "artemis"))


async def test_a_connection_that_is_lost_over_one_protocol_goes_on_over_the_other(
    jms: Jms, protocol: str, any_broker: EmbeddedArtemis
) -> None:
    """S91, S92, S95, S97, S101, S103, S106: sends, transactions and consumers; the repeated send is stored once."""
    with Wire(jms.url) as wire:
        connection = await jms.connection(failover_url(wire.url, getattr(any_broker, f"{OTHER[protocol]}_url")))
        assert protocol.upper() in connection.metadata.protocol
        session = await connection.create_session(AckMode.CLIENT_ACKNOWLEDGE)
        transacted = await connection.create_session(AckMode.SESSION_TRANSACTED)
        producer, in_transaction = [await each.create_producer(jms.queue) for each in (session, transacted)]
        inbox = Queue(f"{jms.queue.name}.inbox")
        consumer, to_inbox = await session.create_consumer(inbox), await session.create_producer(inbox)
        for body in ("1", "2"):
            await to_inbox.send(body)
        (first,) = await take(consumer, 1)
        await producer.send("a")
        await in_transaction.send_async("undone")
        wire.cut_after(0, replies=True)
        await producer.send("b")
        assert OTHER[protocol].upper() in connection.metadata.protocol
        first.acknowledge()
        with pytest.raises(TransactionRolledBackException):
            await transacted.commit()
        await in_transaction.send("c")
        await transacted.commit()
        again = await take(consumer, 2)
        assert texts([first, *again]) == ["1", "1", "2"]  # the guard compares what one protocol delivered
        again[-1].acknowledge()
        await jms.left("a", "b", "c")
