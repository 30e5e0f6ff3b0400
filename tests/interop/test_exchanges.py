"""Selectors, browsers, durable subscriptions, groups and request/reply with a Java service at the other end."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from agent import Agent, typed
from conftest import Java, Site

from pyjmsack import ConnectionFactory, Queue, Session


def text(body: str, **properties: Any) -> dict[str, Any]:
    return {"type": "text", "body": body, "properties": {name: typed(value) for name, value in properties.items()}}


def test_java_selects_by_our_properties_and_headers(java: Java, session: Session, queue_name: str) -> None:
    producer = session.create_producer(session.create_queue(queue_name))
    for number in range(4):
        message = session.create_text_message(str(number))
        message.properties["number"], message.type = number, f"type{number % 2}"
        producer.send(message, priority=number)
    for selector, expected in (("number > 2", "3"), ("JMSType = 'type1'", "1"), ("JMSPriority = 2", "2")):
        found: Any = java.do("receive", destination=queue_name, selector=selector)
        assert [message["body"] for message in found] == [expected]


def test_we_select_by_java_s_properties_and_headers(java: Java, session: Session, queue_name: str) -> None:
    documents = [text(str(n), number=n, half=n / 2) | {"jmsType": f"type{n % 2}", "priority": n} for n in range(4)]
    java.do("send", destination=queue_name, messages=documents)
    queue = session.create_queue(queue_name)
    for selector, expected in (("half > 1.1", "3"), ("JMSType = 'type1'", "1"), ("JMSPriority = 2", "2")):
        with session.create_consumer(queue, selector) as consumer:
            assert consumer.receive_body(str, timeout=10) == expected


@pytest.mark.parametrize("prefix", [None, "foo", "höst", "a:b", "x\\", "x\\c1", "a b", "ID:::1", "-1"])
@pytest.mark.parametrize("site", ["classic-5", "classic-6"], indirect=True)
def test_what_java_sends_with_any_id_of_its_own_is_acknowledged_over_stomp_s166(
    site: Site, openwire: Agent, queue_name: str, prefix: str | None
) -> None:
    """The name of the host is in the id, and a program may set another prefix. Only an id that the broker itself cannot
    read leaves a message in the queue."""
    url = site.java_urls["openwire"]
    if prefix is not None:
        url += f"?jms.connectionIDPrefix={quote(prefix)}"
    sent: Any = openwire.do("send", url, destination=queue_name, messages=[text("first"), text("second")])
    with ConnectionFactory(site.stomp_url).create_connection() as connection:
        connection.start()
        consumer = connection.create_session().create_consumer(Queue(queue_name))
        received = [consumer.receive(timeout=10) for _ in range(2)]
        assert [message.message_id for message in received if message is not None] == sent
    left: Any = openwire.do("browse", url, destination=queue_name)
    assert left == []
    assert prefix is None or sent[0].startswith(prefix)


def test_either_end_browses_what_the_other_sent(java: Java, session: Session, queue_name: str) -> None:
    queue = session.create_queue(queue_name)
    session.create_producer(queue).send("ours")
    java.do("send", destination=queue_name, messages=[text("theirs")])
    browsed: Any = java.do("browse", destination=queue_name)
    assert [message["body"] for message in browsed] == ["ours", "theirs"]
    assert [message.body for message in session.create_browser(queue)] == ["ours", "theirs"]
    consumer = session.create_consumer(queue)
    assert [consumer.receive_body(str, timeout=10) for _ in range(2)] == ["ours", "theirs"]


def test_a_durable_subscriber_of_java_gets_what_we_sent_while_it_was_away(
    java: Java, session: Session, queue_name: str
) -> None:
    who = {"destination": queue_name, "topic": True, "subscription": "sub", "clientId": f"java-{queue_name}"}
    java.do("subscribe", **who)
    session.create_producer(session.create_topic(queue_name)).send("meanwhile")
    found: Any = java.do("receive", **who)
    assert [message["body"] for message in found] == ["meanwhile"]
    assert found[0]["destination"] == f"topic:{queue_name}"
    java.do("unsubscribe", **who)


def test_our_durable_subscriber_gets_what_java_sent_while_it_was_away(java: Java, queue_name: str) -> None:
    factory = ConnectionFactory(java.python_url, client_id=f"ours-{queue_name}")
    with factory.create_context() as context:
        topic = context.create_topic(queue_name)
        context.create_durable_consumer(topic, "sub").close()
        java.do("send", destination=queue_name, topic=True, messages=[text("meanwhile")])
        with context.create_durable_consumer(topic, "sub") as consumer:
            message = consumer.receive(timeout=60)
        assert message is not None
        assert (message.body, message.destination) == ("meanwhile", topic)
        context.unsubscribe("sub")


def test_java_answers_our_request(java: Java, session: Session, queue_name: str) -> None:
    java.agent.start("reply", java.url, destination=queue_name, answer=text("pong"))
    inbox = session.create_temporary_queue()
    consumer = session.create_consumer(inbox)
    request = session.create_text_message("ping")
    request.reply_to = inbox
    session.create_producer(session.create_queue(queue_name)).send(request)
    answer = consumer.receive(timeout=60)
    seen = java.agent.answer()
    assert seen["body"] == "ping"
    assert answer is not None
    assert (answer.body, answer.correlation_id) == ("pong", seen["messageId"])
    assert seen["messageId"] == request.message_id or java.client == "openwire"  # Artemis gives converted ones new ids
    consumer.close()
    inbox.delete()


def test_we_answer_java_s_request(java: Java, session: Session, queue_name: str) -> None:
    queue = session.create_queue(queue_name)
    java.agent.start("request", java.url, destination=queue_name, message=text("ping"))
    consumer = session.create_consumer(queue)
    request = consumer.receive(timeout=60)
    assert request is not None
    assert request.reply_to is not None
    answer = session.create_text_message("pong")
    answer.correlation_id = request.message_id
    session.create_producer().send(answer, request.reply_to)
    got = java.agent.answer()
    assert (got["body"], got["correlationId"]) == ("pong", request.message_id)
    assert got["answers"] == request.message_id or java.client == "openwire"


def test_our_groups_stay_together_at_java_s_consumers(java: Java, session: Session, queue_name: str) -> None:
    java.agent.start("groups", java.url, destination=queue_name, count=12)
    producer = session.create_producer(session.create_queue(queue_name))
    for number in range(12):
        message = session.create_text_message(str(number))
        message.properties["JMSXGroupID"] = f"group{number % 3}"
        message.properties["JMSXGroupSeq"] = number // 3 + 1
        producer.send(message)
    first, *found = java.agent.answer()
    assert first == "ready"
    of_group: dict[str, list[tuple[int, int]]] = {}
    for message in found:
        of_group.setdefault(message["group"], []).append((message["consumer"], message["sequence"]))
    assert len(of_group) == 3
    for members in of_group.values():
        assert len({consumer for consumer, _ in members}) == 1
        assert [sequence for _, sequence in members] == [1, 2, 3, 4]
