"""The queues of durable subscriptions on Artemis have the names that ``docs/howto/from-spring.md`` says."""

from __future__ import annotations

import pytest

from pyjmsack import ConnectionFactory
from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.management import Manager

CORE = "-Dbrokerconfig.amqpUseCoreSubscriptionNaming=true"
"""``amqp-use-core-subscription-naming`` of ``broker.xml``."""


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], {"audit:global", "desk.audit", "desk.eu.audit.all"}),
        ([CORE], {"audit", "desk.audit", r"desk\.eu.audit\.all"}),
    ],
    ids=["as it comes", "core naming"],
)
def test_the_name_of_a_subscription_that_java_may_share(options: list[str], names: set[str]) -> None:
    """S145. The client of Artemis itself names its queues as the second row does, which was measured with 2.56."""
    with EmbeddedArtemis(jvm_options=options) as broker:
        for client_id, name in ((None, "audit"), ("desk", "audit"), ("desk.eu", "audit.all")):
            with ConnectionFactory(broker.amqp_url, client_id=client_id).create_context() as context:
                context.create_shared_durable_consumer(context.create_topic("prices"), name)
        with Manager(ConnectionFactory(broker.amqp_url)) as manager:
            assert names <= {queue.name for queue in manager.queues()}
