"""The option table and the typed values."""

from __future__ import annotations

import copy
import pickle
import re
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from uri_support import MARKER, value_at

from pyjmsack.destination import Queue
from pyjmsack.uri import (
    DESTINATION_OPTIONS,
    IGNORED_OF_DESTINATIONS,
    OPTIONS,
    REFUSED,
    parse_destination_options,
    parse_url,
)
from pyjmsack.uri.table import is_meaningless


@pytest.mark.parametrize("row", [*OPTIONS.values(), *DESTINATION_OPTIONS.values()], ids=lambda row: row.name)
def test_every_row_is_documented_and_its_default_is_that_of_the_dataclass(row: Any) -> None:
    assert row.help
    assert row.source
    assert row.kind.expected
    blank = parse_url("amqp://h") if row.name in OPTIONS else parse_destination_options(Queue("q"))
    if row.default is not None:
        assert [value_at(blank, target) for target in row.targets] == [row.kind.parse(row.default)]


@pytest.mark.parametrize("row", [*OPTIONS.values(), *DESTINATION_OPTIONS.values()], ids=lambda row: row.name)
def test_field_has_the_java_name_in_snake_case(row: Any) -> None:
    own = row.name.rpartition(".")[2].replace("JMSXUserID", "JmsxUserID")
    own = own.replace("URIs", "Uris").replace("URL", "Url")
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", own).lower()
    if len(row.targets) == 1 and not row.alias_of and own != "updateUrisSupported":  # another word for an action
        expected = "prefetch" if row.name == "consumer.prefetchSize" else snake
        assert row.targets[0].rpartition(".")[2] == expected


def test_no_field_lacks_a_row_and_no_name_is_in_two_tables() -> None:
    def leaves(section: Any, path: str = "") -> list[str]:
        nested = [(field.name, getattr(section, field.name)) for field in fields(section)]
        return [
            leaf
            for name, value in nested
            for leaf in (leaves(value, f"{path}{name}.") if is_dataclass(value) else [path + name])
        ]

    targets = {target for row in OPTIONS.values() for target in row.targets}
    assert targets == set(leaves(parse_url("amqp://h"))) - {
        "scheme",
        "endpoints",
        "members",
        "connection.redelivery_policies",
        "transport.ws_http_headers",
    }
    assert not OPTIONS.keys() & REFUSED.keys()
    assert not DESTINATION_OPTIONS.keys() & IGNORED_OF_DESTINATIONS.keys()
    assert not [name for name in (*OPTIONS, *REFUSED) if is_meaningless(name)]


def test_broker_url_is_a_value_that_can_be_pickled_and_hashed() -> None:
    parsed = parse_url(f"amqp://h?jms.password={MARKER}&jms.prefetchPolicy.all=5")
    assert pickle.loads(pickle.dumps(parsed)) == parsed == copy.deepcopy(parsed)
    assert hash(parsed) == hash(copy.copy(parsed))
    assert parsed != parse_url("amqp://h")
