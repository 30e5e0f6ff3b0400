"""Any legal URL round-trips; any damaged one is refused without showing a password, or parses."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote_plus

from hypothesis import given
from hypothesis import strategies as st
from uri_support import MARKER, assert_refused_or_parsed_without_leak

from pyjmsack.uri import OPTIONS, Option, parse_url
from pyjmsack.uri.query import Place, belongs

SAMPLES = {
    "boolean": ("true", "False"),
    "duration": ("1", "2500"),
    "integer": ("512", "1024"),
    "number": ("1", "2.5"),
    "text": ("a", "a b&c=d%,(e)+é#?"),
    "outcome": ("RELEASED", "4"),
}
SPECIAL = {
    "amqp.saslMechanisms": ("PLAIN", "PLAIN,EXTERNAL"),
    "broker": ("artemis", "activemq5"),
    "failover.duplicateGuard": ("none", "sqlite:/a,b"),
    "failover.priorityURIs": ("",),  # else brokers of the URL
    "profile": ("activemq", "qpid"),
    "stomp.version": ("1.1",),
    "transport.contextProtocol": ("TLSv1.3",),
    "jms.prefetchPolicy.maxPrefetchSize": ("5",),
}


def samples(row: Option) -> tuple[str, ...]:
    """Return texts that the option takes: of its kind, or its own."""
    given = SPECIAL.get(row.alias_of or row.name) or SAMPLES.get(row.kind.type) or (row.default or "PEM",)
    return tuple(text for text in given if _takes(row, text))


def _takes(row: Option, text: str) -> bool:
    try:
        row.kind.parse(text)
    except (ValueError, KeyError):
        return False
    return True


ROWS = {name: row for name, row in OPTIONS.items() if not row.alias_of and len(row.targets) == 1 and samples(row)}


def options_at(place: Place, *protocols: str) -> st.SearchStrategy[dict[str, str]]:
    """Options with values that may stand at a place."""
    rows = [row for name, row in ROWS.items() if belongs(name, place, protocols)]
    return st.lists(st.sampled_from(rows), unique_by=lambda row: row.name, max_size=6).flatmap(
        lambda chosen: st.fixed_dictionaries({row.name: st.sampled_from(samples(row)) for row in chosen})
    )


def query_of(options: dict[str, str]) -> str:
    return "&".join(f"{name}={quote_plus(text)}" for name, text in options.items())


@st.composite
def members(draw: Any, place: Place) -> tuple[str, dict[str, str]]:
    """A broker's address and its options."""
    scheme = draw(st.sampled_from(["amqp", "amqps", "stomp", "stomp+ssl"]))
    host = draw(st.sampled_from(["a", "my-host.example", "10.0.0.1", "[::1]"]))
    port = draw(st.sampled_from(["", ":1", ":65535"]))
    return f"{scheme}://{host}{port}", draw(options_at(place, "amqp" if scheme.startswith("amqp") else "stomp"))


def expected_at(parsed: Any, options: dict[str, str]) -> None:
    for name, text in options.items():
        value = parsed
        for part in ROWS[name].targets[0].split("."):
            value = getattr(value, part)
        assert value == ROWS[name].kind.parse(text), name


@given(members(Place.SINGLE))
def test_any_legal_url_means_what_it_says_and_its_address_parses_again(single: tuple[str, dict[str, str]]) -> None:
    address, options = single
    parsed = parse_url(f"{address}?{query_of(options)}")
    expected_at(parsed, options)
    assert parse_url(address, options) == parsed
    assert parse_url(str(parsed), options) == parsed


@given(st.lists(members(Place.MEMBER), min_size=1, max_size=3), options_at(Place.OUTER))
def test_any_legal_failover_url_means_what_it_says_and_its_addresses_parse_again(
    brokers: list[tuple[str, dict[str, str]]], outer: dict[str, str]
) -> None:
    inside = ",".join(f"{address}?{query_of(options)}" for address, options in brokers)
    parsed = parse_url(f"failover:({inside})?{query_of(outer)}")
    expected_at(parsed, outer)
    for member, (_, options) in zip(parsed.members, brokers, strict=True):
        expected_at(member, options)
    assert parse_url(f"failover:({inside})", outer) == parsed
    assert parse_url(str(parsed)).endpoints == parsed.endpoints


DELIMITERS = st.sampled_from([*"?&=,()@:/#%+[] ", "", "://", "failover:(", "nested."])


@given(
    st.lists(members(Place.MEMBER), min_size=1, max_size=2),
    options_at(Place.OUTER),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), DELIMITERS), min_size=1, max_size=4),
)
def test_any_damaged_failover_url_shows_no_password_and_raises_nothing_unforeseen(
    brokers: list[tuple[str, dict[str, str]]], outer: dict[str, str], damage: list[tuple[float, int, str]]
) -> None:
    inside = ",".join(f"{address}?{query_of(options)}" for address, options in brokers)
    others = {name: text for name, text in outer.items() if name != "jms.password"}
    head, tail = f"failover:({inside})?jms.password={MARKER}", f"&{query_of(others)}"
    for where, length, text in damage:
        at = int(where * len(tail))
        tail = tail[:at] + text + tail[at + length :]
    url = head + tail
    assert_refused_or_parsed_without_leak(url)
