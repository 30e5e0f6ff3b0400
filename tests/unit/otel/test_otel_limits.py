"""What a hostile producer can write as a context: it is bounded before it is parsed."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.baggage import get_all, set_baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagate import get_global_textmap
from opentelemetry.trace import get_current_span

from pyjmsack.otel.limits import PropertyGetter, PropertySetter

GOOD = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("traceparent", "0" * 1_000_000),
        ("traceparent", "0" * 513),
        ("traceparent", 42),
        ("traceparent", None),
        ("tracestate", "a=1," * 1000),
        ("tracestate", b"a=1"),
        ("tracestate", "=" * 512),
        ("tracestate", ",".join(f"a{number}=1" for number in range(33))),
        ("tracestate", "a=1=2"),
        ("tracestate", "A=1"),
        ("baggage", ",".join(["a=1"] * 10_000)),
        ("baggage", ",".join(["a=1"] * 65)),
        ("baggage", "a=" + "1" * 8191),
        ("baggage", "a=\u2603"),
        ("baggage", "no value"),
        ("baggage", "k=" + "x" * 4095),
        ("baggage", "k=v;" + "p=q;" * 1000),
        ("baggage", "k=two words"),
        ("baggage", "k=v;"),
        ("baggage", " " * 8192),
        ("baggage", "k=v ; p =" + " " * 2000 + "q"),
        ("tracestate", " ,\t"),
        ("baggage", "k=" + " " * 4000 + '"'),
        ("baggage", True),
        ("X-B3-TraceId", "0" * 1025),
    ],
)
def test_a_value_that_is_too_long_or_no_string_is_absent(key: str, value: Any) -> None:
    assert PropertyGetter().get({key.replace("-", "__dash__"): value}, key) is None


def test_values_within_the_limits_are_read_as_they_are() -> None:
    baggage = ",".join(["a=1"] * 63 + ["b=" + "1" * 4000 + " ; metadata;p = q"])
    carrier = {"traceparent": GOOD, "baggage": baggage, "X__dash__B3__dash__TraceId": "1"}
    getter = PropertyGetter()
    assert [getter.get(carrier, key) for key in ("traceparent", "baggage", "X-B3-TraceId", "tracestate")] == [
        [GOOD],
        [baggage],
        ["1"],
        None,
    ]
    assert getter.keys(carrier) == [], "a propagator that looks by prefix would look at all properties"


def test_a_dash_in_a_key_is_written_as_the_java_agent_writes_it() -> None:
    carrier: dict[str, Any] = {}
    PropertySetter().set(carrier, "X-B3-TraceId", "1")
    assert carrier == {"X__dash__B3__dash__TraceId": "1"}


@pytest.mark.parametrize(
    ("baggage", "tracestate"),
    [("a b=1,=,\u2603=1", "=" * 512), ("k=" + "x" * 8190, "a=1," * 33), ("k=v;" + "p=q;" * 1000, "a= ,b")],
)
def test_hostile_baggage_does_not_take_the_trace_with_it_and_writes_no_warning(
    caplog: pytest.LogCaptureFixture, baggage: str, tracestate: str
) -> None:
    """S166: a producer must not be able to fill the log of a receiver."""
    carrier = {"traceparent": GOOD, "baggage": baggage, "tracestate": tracestate}
    context = get_global_textmap().extract(carrier, Context(), PropertyGetter())
    assert format(get_current_span(context).get_span_context().span_id, "016x") == "b7ad6b7169203331"
    assert get_all(context) == {}
    assert caplog.records == []


@pytest.mark.parametrize("keys", ["user id", "user:id", "a+b", "ü", "50%"])
def test_baggage_as_opentelemetry_writes_it_is_read(keys: str) -> None:
    sent, carrier = set_baggage(keys, "ä 1", set_baggage("other", "1", Context())), dict[str, Any]()
    W3CBaggagePropagator().inject(carrier, sent, PropertySetter())
    read = W3CBaggagePropagator().extract(carrier, Context(), PropertyGetter())
    assert get_all(read) == {keys: "ä 1", "other": "1"}


def test_an_empty_entry_of_baggage_does_not_take_the_others_with_it() -> None:
    assert PropertyGetter().get({"baggage": "a=1, ,b=2,"}, "baggage") == ["a=1,b=2"]


def test_blanks_around_an_entry_of_baggage_do_not_reach_opentelemetry() -> None:
    """S166: its time grows with their square, and its warning has them all."""
    for blanks in (" " * 5_000 + "k=v", "k=v" + " " * 8_000, "k=" + " " * 4_090 + ",k=v" + "\t" * 4_000):
        (read,) = PropertyGetter().get({"baggage": blanks}, "baggage") or []
        assert read in ("k=v", "k=,k=v")


@pytest.mark.parametrize("tracestate", ["vendor=1", "a=1 2, tenant@system=x/y ,,b=3"])
def test_a_tracestate_that_w3c_allows_is_read(tracestate: str) -> None:
    (read,) = PropertyGetter().get({"tracestate": tracestate}, "tracestate") or []
    assert read == ",".join(member.strip() for member in tracestate.split(",") if member)
