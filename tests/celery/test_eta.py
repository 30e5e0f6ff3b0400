"""Tasks that are due later: where they wait, and how often they run."""

# kombu has no types
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import kombu
import pytest
from contract.brokers import Embedded
from shared_brokers import Served

import pyjmsack.kombu
from pyjmsack import ConnectionFactory, Queue

assert pyjmsack.kombu.Transport  # the import makes the schemes known
SideMaker = Callable[..., Any]


def test_an_eta_waits_at_the_broker_and_not_in_the_worker(any_broker: Served, side: SideMaker) -> None:
    """``native_eta``: the worker does not know of a task that is due in two hours, and runs a due one once."""
    own = side(any_broker.amqp_url, broker_transport_options={"native_eta": True})
    own.start()
    app, tasks = own.tasks.app, own.tasks
    tasks.effect.apply_async((1,), eta=datetime.now(timezone.utc) + timedelta(hours=2))
    soon = tasks.effect.apply_async((2,), countdown=1.5)
    assert tasks.add.delay(1, 1).get(timeout=60) == 2
    assert [*(app.control.inspect(**own.control()).scheduled() or {}).values()] == [[]]
    assert soon.get(timeout=60) == 2
    assert own.done() == {"done 2": 1}


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_an_eta_of_two_hours_is_delivered_once(
    protocol: str, mortal_brokers: Callable[[str], Embedded], queue_name: str
) -> None:
    """The broker is killed while the message waits. Then an administrator ends the wait, as the time would do. kombu
    alone receives, because a worker would hold the task until its own clock says that the task is due."""
    broker = mortal_brokers("artemis")
    url, options = f"jms+{getattr(broker, f'{protocol}_url')}", {"native_eta": True}
    due = datetime.now(timezone.utc) + timedelta(hours=2)
    with kombu.Connection(url, transport_options=options) as connection:
        connection.Producer().publish(1, routing_key=queue_name, headers={"eta": due.isoformat()})
        connection.Producer().publish(2, routing_key=queue_name)
    broker.kill()
    broker.restart()
    came: list[Any] = []
    with kombu.Connection(url) as connection:
        with kombu.Consumer(connection, [kombu.Queue(queue_name)], on_message=came.append):
            connection.drain_events(timeout=30)
            came[0].ack()
            assert manage(broker, queue_name, "getScheduledCount") == 1
            manage(broker, queue_name, "deliverScheduledMessages", "")
            connection.drain_events(timeout=30)
            came[1].ack()
            with pytest.raises(TimeoutError):
                connection.drain_events(timeout=0.2)
        assert [message.payload for message in came] == [2, 1]
        assert not came[1].delivery_info["redelivered"]
    assert manage(broker, queue_name, "countMessages", "") == 0


def manage(broker: Embedded, queue: str, operation: str, *arguments: Any) -> Any:
    """Call an operation of a queue, as an administrator would."""
    with (
        ConnectionFactory(broker.amqp_url).create_connection() as connection,
        connection.create_session() as session,
        session.create_requestor(Queue("activemq.management")) as requestor,
    ):
        connection.start()
        request = session.create_text_message(json.dumps(arguments))
        request.properties.update({"_AMQ_ResourceName": f"queue.{queue}", "_AMQ_OperationName": operation})
        answer = requestor.request(request, 60)
    assert answer is not None
    assert answer.properties["_AMQ_OperationSucceeded"], answer.body
    return json.loads(answer.body)[0] if answer.body else None
