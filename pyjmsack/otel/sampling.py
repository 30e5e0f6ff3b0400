"""Decides which spans are not sampled, without a call of the SDK, if the SDK's own samplers are in use.

A span of the SDK that is not sampled costs about as much as a send that does not wait for its answer: the sampler is
asked, and several objects are made, which nobody reads. The samplers of the SDK look at nothing but the trace id and
the parent. So this module knows their decision beforehand. A span that is not sampled is not made. This module makes
only the ids of the span, because the message carries these ids to the receiver.

The decisions of this module and of the SDK must always be the same. So this module decides only if all of these
conditions hold. Otherwise the SDK decides about each span:

- The tracer is the SDK's ``Tracer``, and its sampler is one of the SDK's. A subclass does not count, because a subclass
  may decide by the name or the attributes of a span. (The subclass ``ParentBasedTraceIdRatio`` of the SDK counts.)
- The sampler itself decides as this module expects, in a trial for each kind of parent.
- The SDK counts no spans. Otherwise its counts would lack the spans that are not made.

A span that is sampled is always made by the SDK.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import Tracer
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import (
    Decision,
    ParentBased,
    ParentBasedTraceIdRatio,
    Sampler,
    StaticSampler,
    TraceIdRatioBased,
)
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState, set_span_in_context

__all__ = ["Sampling", "known_sampling"]

LOW: Final = TraceIdRatioBased.TRACE_ID_LIMIT
"""The mask of the bits of a trace id by which the SDK decides whether a span is sampled."""
ALL: Final = LOW + 1
RANDOM: Final[int] = getattr(TraceFlags, "RANDOM_TRACE_ID", 0) if hasattr(IdGenerator, "is_trace_id_random") else 0
"""The trace flag for a random trace id. 0 in an older SDK, which does not know the flag."""
_FLAGS: Final = {number: TraceFlags(number) for number in (0, RANDOM)}
_STATE: Final = TraceState([("trial", "1")])
_DECISIONS: Final = {Decision.DROP: 0, Decision.RECORD_AND_SAMPLE: ALL}
_PARTS: Final = (
    "_root",
    "_local_parent_not_sampled",
    "_local_parent_sampled",
    "_remote_parent_not_sampled",
    "_remote_parent_sampled",
)
"""The private attributes of a ``ParentBased`` that hold its samplers, in the order of the bounds. If an SDK does not
have these attributes, the SDK decides about each span.
"""
Bounds = tuple[int, ...]
"""One bound for each kind of parent. A span is sampled if the low bits of its trace id are less than the bound. The
order of the kinds is: no parent; local parent, not sampled; local parent, sampled; remote parent, not sampled; remote
parent, sampled.
"""


class Sampling:
    """Decides as the sampler of a tracer would decide.

    Args:
        tracer: the tracer.
        bounds: the bounds of the sampler of this tracer.
    """

    __slots__ = ("_enabled", "_parents", "_root", "_sampler", "_tracer")

    def __init__(self, tracer: Tracer, bounds: Bounds) -> None:
        self._tracer = tracer
        self._sampler = tracer.sampler
        self._root = bounds[0]
        self._parents = bounds[1:]
        self._enabled: Callable[[], bool] = getattr(tracer, "_is_enabled", lambda: True)

    def choose(self, parent: SpanContext | None) -> int:
        """Decide about a span.

        Args:
            parent: the parent, which is valid. ``None`` for a span without a parent.

        Returns:
            The trace id if the span is not sampled. The trace id with a minus sign if the span has no parent and is
            sampled. 0 if the SDK has to decide.
        """
        tracer = self._tracer
        if tracer.sampler is not self._sampler or not self._enabled():
            return 0
        if parent is None:
            trace_id = tracer.id_generator.generate_trace_id()
            return trace_id if trace_id & LOW >= self._root else -trace_id
        trace_id = parent.trace_id
        kind = (2 if parent.is_remote else 0) + (parent.trace_flags & 1)
        return trace_id if trace_id & LOW >= self._parents[kind] else 0

    def ids(self, parent: SpanContext | None) -> tuple[int, int]:
        """Return the trace flags and a new span id for a span that is not sampled."""
        ids = self._tracer.id_generator
        if parent is not None:
            flags = parent.trace_flags & RANDOM
        else:
            flags = RANDOM if RANDOM and ids.is_trace_id_random() else 0
        return flags, ids.generate_span_id()

    def span(self, trace_id: int, parent: SpanContext | None) -> NonRecordingSpan:
        """Return a span with this trace id. The span is not sampled and records nothing."""
        flags, span_id = self.ids(parent)
        state = None if parent is None else parent.trace_state
        return NonRecordingSpan(
            SpanContext(trace_id, span_id, is_remote=False, trace_flags=_FLAGS[flags], trace_state=state)
        )

    def tracer(self, trace_id: int) -> Tracer:
        """Return a tracer whose next span without a parent gets this trace id, because the decision about this span was
        made for this trace id."""
        tracer = copy(self._tracer)
        tracer.id_generator = _Given(trace_id, tracer.id_generator)
        return tracer


class _Given(IdGenerator):
    """Returns a trace id that was generated before."""

    def __init__(self, trace_id: int, generator: IdGenerator) -> None:
        self._trace_id = trace_id
        self._generator = generator

    def generate_trace_id(self) -> int:
        return self._trace_id

    def generate_span_id(self) -> int:
        return self._generator.generate_span_id()

    def is_trace_id_random(self) -> bool:
        return self._generator.is_trace_id_random()


def known_sampling(tracer: Any) -> Sampling | None:
    """Return an object that decides as the sampler of this tracer does. Return ``None`` if the SDK has to decide about
    each span of this tracer.
    """
    if type(tracer) is not Tracer or not _counts_nothing(tracer):
        return None
    bounds = _bounds(tracer.sampler)
    return None if bounds is None or not _agrees(tracer.sampler, bounds) else Sampling(tracer, bounds)


def _counts_nothing(tracer: Tracer) -> bool:
    counts = getattr(tracer, "_tracer_metrics", None)  # an older SDK has none
    return counts is None or type(counts).__name__ == "NoOpTracerMetrics"


def _bounds(sampler: Sampler) -> Bounds | None:
    if type(sampler) in (ParentBased, ParentBasedTraceIdRatio):
        found = [_bound(getattr(sampler, name, None)) for name in _PARTS]
    else:
        found = [_bound(sampler)] * 5
    bounds = tuple(bound for bound in found if bound is not None)
    return bounds if len(bounds) == len(found) else None


def _bound(sampler: Any) -> int | None:
    if type(sampler) is TraceIdRatioBased:
        return sampler.bound
    if type(sampler) is StaticSampler:
        return _DECISIONS.get(sampler.should_sample(None, 1, "trial").decision)
    return None


def _agrees(sampler: Sampler, bounds: Bounds) -> bool:
    """Return whether the sampler decides by the bounds, and keeps the tracestate of the parent."""
    parents = [Context(), *(_trial(remote=remote, sampled=sampled) for remote in (False, True) for sampled in (0, 1))]
    for bound, context in zip(bounds, parents, strict=True):
        for low in {0, max(0, bound - 1), min(bound, LOW), LOW}:
            for trace_id in (low | ALL, low | (LOW << 64)):
                result = sampler.should_sample(context, trace_id, "trial")
                expected = Decision.RECORD_AND_SAMPLE if low < bound else Decision.DROP
                if result.decision is not expected or result.trace_state != (_STATE if context else None):
                    return False
    return True


def _trial(*, remote: bool, sampled: int) -> Context:
    parent = SpanContext(1, 1, is_remote=remote, trace_flags=TraceFlags(sampled), trace_state=_STATE)
    return set_span_in_context(NonRecordingSpan(parent), Context())
