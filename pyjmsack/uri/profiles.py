"""The profiles for ``profile=NAME``. A profile has the defaults of a Java client that differ from our defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["PROFILES"]

PROFILES: Final[Mapping[str, Mapping[str, str]]] = {
    "activemq": {
        "jms.prefetchPolicy.queueBrowserPrefetch": "500",
        "jms.prefetchPolicy.durableTopicPrefetch": "100",
        "jms.prefetchPolicy.optimizeDurableTopicPrefetch": "1000",
        "jms.prefetchPolicy.topicPrefetch": "32767",
        "jms.redeliveryPolicy.maxRedeliveries": "6",  # S114
        # the POISON acknowledgement of ActiveMQ's client makes the message a dead letter (S112)
        "jms.redeliveryPolicy.outcome": "REJECTED",
        "jms.redeliveryPolicy.initialRedeliveryDelay": "1000",
        "jms.redeliveryPolicy.redeliveryDelay": "1000",
        "jms.closeTimeout": "15000",
        "jms.connectTimeout": "0",
        "jms.forceAsyncAcks": "true",
        "transport.connectTimeout": "30000",
        "amqp.idleTimeout": "30000",
        "failover.initialReconnectDelay": "10",
        "failover.maxReconnectDelay": "30000",
        "failover.randomize": "true",
    },
    "qpid": {
        "jms.listenerErrorOutcome": "released",  # S18
        "jms.sendTimeoutForcesSync": "false",  # S62
        "failover.maxReconnectDelay": "30000",
        "failover.firstSendSurvives": "false",  # S93
        "failover.duplicateGuard": "none",  # S105
    },
    "artemis": {
        "jms.requestTimeout": "30000",
        "jms.forceAsyncAcks": "true",
        "failover.initialReconnectDelay": "2000",
        "failover.reconnectDelay": "2000",
        "failover.useReconnectBackOff": "false",
        "failover.duplicateGuard": "none",
    },
}
"""For each profile, the text of each option that the profile sets."""
