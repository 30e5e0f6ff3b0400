"""Options after a destination's name."""

from __future__ import annotations

import logging
import re

import pytest

from pyjmsack.destination import Queue, Topic
from pyjmsack.errors import InvalidDestinationException
from pyjmsack.uri import (
    IGNORED_OF_DESTINATIONS,
    DestinationOptions,
    parse_destination_options,
    table,
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", DestinationOptions()),
        ("?consumer.prefetchSize=10", DestinationOptions(prefetch=10)),
        ("?consumer.prefetchSize=0&consumer.allowPullListener=true", DestinationOptions(0, allow_pull_listener=True)),
        ("?consumer.selector=a%20%3D%20'b'", DestinationOptions(selector="a = 'b'")),
        ("?consumer.noLocal=true", DestinationOptions(no_local=True)),
        ("?consumer.noLocal=false", DestinationOptions(no_local=False)),
        ("?consumer.exclusive=false", DestinationOptions(exclusive=False)),
        ("?consumer.retroactive=true", DestinationOptions(retroactive=True)),
        ("?consumer.maximumPendingMessageLimit=5", DestinationOptions(maximum_pending_message_limit=5)),
        ("?consumer.expectedMessageSize=1", DestinationOptions(expected_message_size=1)),
    ],
)
def test_destination_options_are_typed_and_unset_ones_are_left_to_the_factory_s49(
    query: str, expected: DestinationOptions
) -> None:
    assert parse_destination_options(Queue(f"orders{query}")) == expected


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("customer.prefetchSize=10", "customer.prefetchSize (did you mean consumer.prefetchSize?)"),  # F14
        ("prefetchSize=10", "did you mean consumer.prefetchSize?"),
        ("consumer.prefetchsize=10", "did you mean consumer.prefetchSize?"),
        ("consumer.qqq=1", "consumer.qqq"),
        ("jms.sendTimeout=10", "unknown option jms.sendTimeout"),
        ("consumer.browser=true", "unknown option consumer.browser"),
        ("consumer.noRangeAcks=true", "unknown option"),
        ("consumer.prefetchSize=-1", "option consumer.prefetchSize='-1': expected a whole number of messages from 0"),
        ("consumer.prefetchSize=", "expected a whole number"),
        ("consumer.noLocal=1", "expected true or false"),
    ],
)
def test_wrong_destination_option_is_refused_with_the_nearest_s11(option: str, message: str) -> None:
    with pytest.raises(InvalidDestinationException, match=re.escape(message)):
        parse_destination_options(Topic(f"t?{option}"))


@pytest.mark.parametrize("name", sorted(IGNORED_OF_DESTINATIONS))
def test_destination_option_without_meaning_is_accepted_with_one_warning_that_says_why(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(table, "_warned", set())
    for _ in range(2):
        assert parse_destination_options(Queue(f"q?{name}=true")) == DestinationOptions()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert IGNORED_OF_DESTINATIONS[name] in caplog.text
