"""What a message that cannot be read costs: itself alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("kombu", reason="the extra celery is not installed")

from pyjmsack import InvalidDestinationException, Message, MessageFormatException, TextMessage, Topic
from pyjmsack.kombu.names import ExchangeKind
from pyjmsack.kombu.receiving import Binding, Source
from pyjmsack.kombu.refused import is_worker, reason


class Arrived(TextMessage):
    """A message that notes its outcome."""

    outcome = ""

    def accept(self) -> None:
        self.outcome = "accepted"

    def reject(self) -> None:
        self.outcome = "rejected"


def source() -> Source:
    binding = Binding(ExchangeKind.TOPIC, "prices", "eu.#")

    async def wanted(message: Message) -> bool:
        return binding.matches("prices", binding.key_of(message))

    return Source(lambda _: pytest.fail("nobody consumes"), wanted, single=False)


@pytest.mark.parametrize(
    ("key", "taken", "outcome"),
    [("eu.fr", True, ""), ("us", False, "accepted"), ("eu" + ".x" * 100_000, False, "rejected")],
    ids=["covered", "of another key", "too long"],
)
def test_a_routing_key_that_is_too_long_costs_its_message_alone(key: str, taken: bool, outcome: str) -> None:
    """The work on a key is the product of two numbers of words, on the loop of the connection."""
    for message in by_property(key), by_topic(key):
        assert asyncio.run(source().takes(message)) is taken
        assert message.outcome == outcome


def test_a_message_of_an_exchange_whose_properties_cannot_be_decoded_costs_itself_alone() -> None:
    """It ended the lane, and with it the connection of the worker; the broker then delivered the message again."""

    class Undecodable(Arrived):
        @property
        def properties(self) -> Any:
            raise MessageFormatException("application-properties section: odd number of entries")

    message = Undecodable("")
    assert not asyncio.run(source().takes(message))
    assert message.outcome == "rejected"


def by_property(key: str) -> Arrived:
    message = Arrived("")
    message.properties["kombu_routing_key"] = key
    return message


def by_topic(key: str) -> Arrived:
    message = Arrived("")
    message.destination = Topic(f"kombu.topic.prices.{key}")
    return message


def test_the_log_shows_the_text_of_our_own_errors_only() -> None:
    assert reason(InvalidDestinationException("too long" + "x" * 1000)).startswith(
        "InvalidDestinationException: too long"
    )
    assert len(reason(InvalidDestinationException("x" * 1000))) < 250
    assert reason(KeyError("secret")) == "KeyError"


def test_a_consumer_without_a_handler_of_celery_is_no_worker() -> None:
    assert not is_worker(Message)
    assert not is_worker(source().takes)
