"""Artemis tells a STOMP client no reason when it refuses a management message."""

from __future__ import annotations

import pytest
from managed_brokers import FORBIDDEN

from pyjmsack import ConnectionFactory
from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.management import ManagementDeniedError, Manager


def test_a_user_who_may_not_manage_is_told_so_over_both_protocols() -> None:
    """Over STOMP the error was one of resources, with the text of the message, so that no command went on without."""
    with EmbeddedArtemis(users={"alice": "wonderland"}, jvm_options=[FORBIDDEN]) as broker:
        for url in (broker.amqp_url, broker.stomp_url):
            factory = ConnectionFactory(url, username="alice", password="wonderland")
            with pytest.raises(ManagementDeniedError, match="permissions manage"), Manager(factory) as manager:
                manager.queues("*")
