"""Describes a listener: its settings, and the facts that ``pyjmsack explain`` shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pyjmsack.app.listener import Listener
from pyjmsack.app.retry import Retry
from pyjmsack.explain import Fact, explain
from pyjmsack.types import AckMode

__all__ = ["described"]

_OURS = {
    AckMode.SESSION_TRANSACTED: (
        Fact("who acknowledges", "the app commits the message and all sends, after the listener returned", "S75, S78"),
        Fact("a listener raises", "the transaction is rolled back: the message comes again, counted", "S80"),
    ),
    AckMode.INDIVIDUAL_ACKNOWLEDGE: (
        Fact(
            "who acknowledges", "the app, after the listener returned, unless the listener chose an outcome", "S34, S35"
        ),
        Fact("a listener raises", "the message comes again, counted; messages that the listener sent stay sent", "S21"),
    ),
    AckMode.NO_ACKNOWLEDGE: (),
}
"""For each acknowledge mode, the facts that are different in an app than in a session without an app."""


def described(listener: Listener, url: str, options: Mapping[str, object]) -> dict[str, Any]:
    """Return the settings of a listener, and facts about its messages.

    Args:
        listener: the listener.
        url, options: the URL of its connection, and the options that are not part of the URL.
    """
    settings = listener.settings
    ours = _OURS[listener.mode]
    facts = explain(url, listener.mode, listener.destination, options=options).facts
    told = {fact.about for fact in ours}
    return {
        "name": listener.name,
        "function": getattr(listener.function, "__qualname__", repr(listener.function)),
        "destination": f"{'topic' if listener.destination.is_topic else 'queue'} {listener.destination.name}",
        "selector": settings.selector,
        "subscription": _subscription(listener),
        "concurrency": str(listener.low) if listener.low == listener.high else f"{listener.low} to {listener.high}",
        "mode": settings.mode,
        "retry": _retry(listener.retry),
        "reply_to": None if listener.reply_to is None else listener.reply_to.name,
        "facts": [asdict(fact) for fact in (*ours, *(fact for fact in facts if fact.about not in told))],
    }


def _subscription(listener: Listener) -> str | None:
    settings = listener.settings
    if settings.subscription is None:
        return None
    kinds = [word for word, holds in (("shared", settings.shared), ("durable", settings.durable)) if holds]
    return f"{settings.subscription} ({', '.join(kinds)})"


def _retry(retry: Retry | None) -> str:
    if retry is None:
        return "the redelivery policy in the URL; without one, waits of 1 to 30 s and the broker's limit"
    limit = "the broker's limit" if retry.limit is None else f"{retry.limit} times, then {retry.then}"
    return f"{limit}; waits from {retry.delay:g} s, times {retry.backoff:g}, at most {retry.longest:g} s"
