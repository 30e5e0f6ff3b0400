"""Completes the findings with options and variables that the generated code needs, and that no Java file has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from pyjmsack.migrate.model import Factory, Findings, Listener, Verdict
from pyjmsack.migrate.values import shown

__all__ = [
    "CLIENT_ID",
    "QUEUE_KEY",
    "destination_of",
    "needs_client_id",
    "other_queue",
    "own_variables",
    "say_client_ids",
    "say_queues",
    "say_users",
]

CLIENT_ID: Final = "PYJMSACK_CLIENT_ID"
"""The environment variable with the client id of durable subscriptions."""
QUEUE_KEY: Final = "(queue of the subscription)"
"""The key of the row about the name of the queue of a subscription."""
_OF_PROFILES: Final = (".properties", ".yml", ".yaml")
_NO_PREFETCH: Final = re.compile(r"prefetchPolicy\.\w+=0(?!\d)")
_CLIENT_ID_OF_URL: Final = re.compile(r"[?&]jms\.clientID=([^&)]*)")
_SHARING: Final = 'docs/howto/from-spring.md, "A subscription that Java and Python share", shows how both use one queue'
_PULLS: Final = "consumer.allowPullListener=true"


def destination_of(listener: Listener, factory: Factory) -> str:
    """Return the destination of a listener with its options. If the prefetch is 0, add the option
    ``consumer.allowPullListener``, without which the destination could have no listener (S9).

    Args:
        listener: the listener that was found.
        factory: the connection factory of the listener. Its URL has the prefetch.
    """
    name = listener.destination
    if not _NO_PREFETCH.search(factory.url) or _PULLS in name:
        return name
    return f"{name}{'&' if '?' in name else '?'}{_PULLS}"


def needs_client_id(listener: Listener, factories: Iterable[Factory]) -> bool:
    """Return whether a listener has an unshared durable subscription, and the URL of its factory has no client id
    (S141).
    """
    if listener.client_id:
        return False
    used = _factory_of(listener, factories)
    named = used is not None and bool(_CLIENT_ID_OF_URL.search(used.url))
    return listener.durable and not listener.shared and not named


def _factory_of(listener: Listener, factories: Iterable[Factory]) -> Factory | None:
    known = [factory for factory in factories if factory.url]
    return next((factory for factory in known if factory.name == listener.factory), next(iter(known), None))


def other_queue(listener: Listener, factory: Factory | None) -> str:
    """Return the reason why messages that wait for the Java service stay in another queue. Return an empty text if Java
    and Python use the same queue.

    The client of Artemis and a client of AMQP give the queue of a durable subscription different names in some cases.
    """
    if factory is None or factory.client != "artemis" or "amqp" not in factory.url.partition("?")[0]:
        return ""
    if not (listener.subscription and listener.durable):
        return ""
    of_url = _CLIENT_ID_OF_URL.search(factory.url)
    client_id = listener.client_id or (unquote(of_url[1]) if of_url else "")
    names = [name for name in (client_id, listener.subscription) if name]
    if not client_id and not listener.shared:
        return ""  # the row of say_client_ids() asks for the client id first
    java = ".".join(name.replace("\\", "\\\\").replace(".", "\\.") for name in names)
    ours = ".".join(names) if client_id else f"{listener.subscription}:global"
    if java == ours:
        return ""
    return (
        f"the queue of this subscription is {shown('name', ours)} over AMQP, and {shown('name', java)} for the Java"
        f" client of Artemis: both queues get every message, and messages in Java's queue stay there; {_SHARING}"
    )


def say_queues(findings: Findings) -> None:
    """Add a row for each durable subscription whose queue has another name in Python than in the Java service."""
    for listener in findings.listeners:
        if why := other_queue(listener, _factory_of(listener, findings.factories)):
            text = shown("name", listener.subscription)
            findings.add(listener.place, QUEUE_KEY, text, Verdict.BY_HAND, "", why)


def say_client_ids(findings: Findings) -> None:
    """Add a row for each listener that needs a client id, if no file has a client id."""
    for listener in findings.listeners:
        if needs_client_id(listener, findings.factories):
            why = (
                f"a durable subscription belongs to a client id: set {CLIENT_ID} to the client id of the Java service,"
                " because with another id the messages stay in the old subscription"
            )
            findings.add(listener.place, "(client id)", "", Verdict.BY_HAND, f"env:{CLIENT_ID}", why)


def own_variables(findings: Findings) -> None:
    """Give environment variables of its own to each connection factory that is a bean and has a secret. Only the first
    of these factories keeps the usual variables.

    Two such factories are two brokers of one service. The factories of profiles are one broker in several environments.
    """
    first = True
    for factory in findings.factories:
        if not factory.secrets or factory.place.file.endswith(_OF_PROFILES):
            continue
        if not first:
            factory.suffix = f"_{re.sub(r'[^A-Za-z0-9]+', '_', factory.name).strip('_').upper()}"
            for number, row in enumerate(findings.rows):
                mine = row.place == factory.place or row.key.startswith(f"{factory.name}.")
                if row.place.file == factory.place.file and mine and row.python.startswith("env:PYJMSACK_"):
                    findings.rows[number] = replace(row, python=f"{row.python}{factory.suffix}")
            factory.secrets = {name: f"{variable}{factory.suffix}" for name, variable in factory.secrets.items()}
        first = False


def say_users(findings: Findings) -> None:
    """Add a row for each factory that has a password, if no file has the user name."""
    for factory in findings.factories:
        if factory.asks_for_user:
            why = "the files have a password, but no user name; set this variable to the user name"
            findings.add(factory.place, "(user)", "", Verdict.CHANGED, f"env:{factory.user_variable}", why)
