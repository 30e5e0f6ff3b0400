"""Selectors that the client lets pass select at the broker what they say (S187-S189)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from shared_brokers import Served

from contract.brokers import not_on, only_on
from contract.harness import Jms, take, texts
from pyjmsack import Message

NO_BROWSER = not_on("stomp-artemis", "STOMP: `browser:true` is ignored, so a browser is refused")
NO_END = not_on("stomp-classic", "STOMP: properties are strings; where a selector fails with one, a browser never ends")
SELECTIONS = [
    ("number = 2", "2"),
    ("number <> 2 AND number IS NOT NULL", "13"),
    ("number >= 2 and not (number > 2)", "2"),
    ("number BETWEEN 2 AND 3", "23"),
    ("number NOT BETWEEN 1 + 1 AND 6 / 2", "1"),
    ("number = 0x2 OR number = 03 OR number = 1L", "123"),
    ("number * 2 > 5.5e0 OR -number = -1", "13"),
    ("name IN ('one', 'it''s%')", "13"),
    ("name NOT IN ('one')", "23"),
    ("name LIKE 't_o%'", "2"),
    ("name NOT LIKE '%!%' ESCAPE '!'", "12"),
    ("odd", "13"),
    ("odd = FALSE", "2"),
    ("(number > 1) AND odd = TRUE", "3"),
    ("NOT odd", "2"),
    ("NOT (number = 1) AND NOT (unknown IS NOT NULL)", "23"),
    ("unknown IS NULL", "123"),
    ("unknown = 1 OR NOT (unknown = 1)", ""),
    ("Number = 1", ""),
    ("number = 1 /* first */ OR name = 'two'", "12"),
    ("JMSPriority = 4 AND JMSDeliveryMode = 'PERSISTENT'", "123"),
    ("JMSType = 'two'", "2"),
    ("JMSCorrelationID = 'two' OR JMSXGroupID = 'one'", "12"),
]
OF_TYPES = {"odd", "NOT odd", "number * 2 > 5.5e0 OR -number = -1"}


@NO_BROWSER
async def test_selectors_select_what_they_say_in_order(jms: Jms) -> None:
    """S187, S189: each by a browser, which takes nothing."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    for number, name in enumerate(["one", "two", "it's%"], 1):
        message: Message = session.create_text_message(str(number))
        message.properties.update(number=number, name=name, odd=number % 2 == 1, JMSXGroupID=name)
        message.type = name
        message.correlation_id = name
        await producer.send(message)
    strings = jms.target.protocol == "stomp"  # properties are text there (broker facts, STOMP)
    for selector, expected in SELECTIONS:
        if strings and selector in OF_TYPES:
            continue
        browser = await session.create_browser(jms.queue, selector)
        assert "".join([str(message.body) async for message in browser]) == expected, selector
        await browser.close()


@pytest.mark.parametrize("condition", ["number = 1", "name = 'two'", "number IS NULL"])
@NO_BROWSER
@NO_END
async def test_brokers_negate_the_first_operand_and_not_the_condition(jms: Jms, condition: str) -> None:
    """S187: why the client refuses ``NOT a = 1``. In SQL at least two of the three messages fit."""
    session = await jms.session(options={"jms.validateSelector": False})
    producer = await session.create_producer(jms.queue)
    for number, name in enumerate(["one", "two", "three"], 1):
        message = session.create_text_message(name)
        message.properties.update(number=number, name=name)
        await producer.send(message)
    browser = await session.create_browser(jms.queue, f"NOT {condition}")
    assert [message async for message in browser] == []
    await browser.close()


@only_on("amqp-artemis", "identifiers in double quotes are Artemis's own")
async def test_annotations_can_be_selected_by_s188(jms: Jms) -> None:
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    await producer.send("text")
    await producer.send(b"bytes")
    browser = await session.create_browser(jms.queue, '"m.x-opt-jms-msg-type" = 5')
    assert [message.body async for message in browser] == ["text"]
    await browser.close()


@pytest.mark.parametrize("condition", ["= '{id}'", "IN ('ID:1', '{id}')", "LIKE '{id}'"])
@only_on("artemis", "over STOMP, a message id of AMQP cannot be acknowledged on Classic")
async def test_a_message_is_found_by_its_id_whichever_protocol_sent_it(
    jms: Jms, brokers: Callable[[str], Served], condition: str
) -> None:
    """S189: over STOMP, a message that was sent over AMQP was never found."""
    session = await jms.session()
    for url in (brokers("artemis").amqp_url, brokers("artemis").stomp_url):
        async with jms.factory(url).create_connection() as connection, connection.create_session() as sending:
            messages = [sending.create_text_message(body) for body in "abc"]
            for message in messages:
                await (await sending.create_producer(jms.queue)).send(message)
        selector = "JMSMessageID " + condition.format(id=messages[1].message_id)
        async with session.create_consumer(jms.queue, selector) as consumer:
            assert texts(await take(consumer, 1)) == ["b"]
        async with session.create_consumer(jms.queue) as consumer:
            assert texts(await take(consumer, 2)) == ["a", "c"]
