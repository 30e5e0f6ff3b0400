"""Options after a destination's name."""

from __future__ import annotations

import re

import pytest

from pyjmsack.destination import Queue, Topic
from pyjmsack.errors import InvalidDestinationException, UnsupportedFeatureException
from pyjmsack.uri import (
    DESTINATION_OPTIONS_LATER,
    DestinationOptions,
    parse_destination_options,
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


@pytest.mark.parametrize("name", sorted(DESTINATION_OPTIONS_LATER))
def test_destination_option_of_later_is_known_and_said_to_be_unsupported(name: str) -> None:
    with pytest.raises(UnsupportedFeatureException, match=re.escape(name)):
        parse_destination_options(Queue(f"q?{name}=1"))
