"""Completes the findings: options and variables that the generated code needs, and that no Java file has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pyjmsack.migrate.model import USER, Factory, Findings, Listener, Verdict

__all__ = ["CLIENT_ID", "destination_of", "needs_client_id", "say_client_ids", "say_users"]

CLIENT_ID: Final = "PYJMSACK_CLIENT_ID"
"""The environment variable with the client id of durable subscriptions."""
_NO_PREFETCH: Final = re.compile(r"prefetchPolicy\.\w+=0(?!\d)")
_PULLS: Final = "consumer.allowPullListener=true"


def destination_of(listener: Listener, factory: Factory) -> str:
    """Return the destination of a listener with its options. If the prefetch is 0, one option allows a listener (S9).

    Args:
        listener: the listener that was found.
        factory: its connection factory, whose URL says the prefetch.
    """
    name = listener.destination
    if not _NO_PREFETCH.search(factory.url) or _PULLS in name:
        return name
    return f"{name}{'&' if '?' in name else '?'}{_PULLS}"


def needs_client_id(listener: Listener, factories: Iterable[Factory]) -> bool:
    """Whether a listener has a durable subscription of its own, and the URL of its factory has no client id (S141)."""
    if listener.client_id:
        return False
    known = [factory for factory in factories if factory.url]
    used = [factory for factory in known if factory.name == listener.factory] or known[:1]
    return listener.durable and not listener.shared and not any("jms.clientID=" in factory.url for factory in used)


def say_client_ids(findings: Findings) -> None:
    """Add a row for each listener that needs a client id, if no file names one."""
    for listener in findings.listeners:
        if needs_client_id(listener, findings.factories):
            why = (
                f"a durable subscription belongs to a client id: set {CLIENT_ID} to that of the Java service, because"
                " with another one the messages stay in the old subscription"
            )
            findings.add(listener.place, "(client id)", "", Verdict.BY_HAND, f"env:{CLIENT_ID}", why)


def say_users(findings: Findings) -> None:
    """Add a row for each factory with a password whose user no file names."""
    for factory in findings.factories:
        if factory.asks_for_user:
            why = "there is a password, and no file says the name of its user; set this variable"
            findings.add(factory.place, "(user)", "", Verdict.CHANGED, f"env:{USER}", why)
