"""Translates names of destinations. A name may have a prefix of JNDI, wildcards, and options at its end, and may be a
list or a virtual topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyjmsack.destination import Queue
from pyjmsack.errors import JMSException
from pyjmsack.migrate.model import Findings, Place, Verdict
from pyjmsack.migrate.values import shown
from pyjmsack.uri import IGNORED_OF_DESTINATIONS, parse_destination_options

__all__ = ["NewDestination", "translate_destination"]

_LONGEST_NAME: Final = 1000
_PREFIXES: Final = {
    "queue://": False,
    "topic://": True,
    "queue:": False,
    "topic:": True,
    "dynamicQueues/": False,
    "dynamicTopics/": True,
    "jms/": None,
    "java:comp/env/": None,
}


@dataclass(frozen=True, slots=True)
class NewDestination:
    """A destination in pyjmsack. The name is empty if the user has to choose the destination."""

    name: str
    topic: bool


def translate_destination(
    findings: Findings, place: Place, key: str, text: str, *, topic: bool, broker: str
) -> NewDestination:
    """Translate the name of a destination. Add a row for the name to the findings, and return the destination.

    Args:
        topic: whether the destination is a topic. A prefix of the name has priority.
        broker: the broker that will have the destination: ``artemis``, ``classic-5``, ``classic-6`` or empty.
    """
    plain, topic = _without_prefix(text.strip(), topic)
    kind = "topic" if topic else "queue"
    name, _, query = plain.partition("?")

    def add(verdict: Verdict, why: str, new: str = "") -> NewDestination:
        python = f'create_{kind}("{new}")' if new else ""
        findings.add(place, key, shown("name", text), verdict, python, why)
        return NewDestination(new, topic)

    if len(plain) > _LONGEST_NAME:
        return add(Verdict.BY_HAND, f"a name of more than {_LONGEST_NAME} characters: write the name into the code")
    if "," in name:
        why = (
            "a list of destinations: send to each destination in a transaction, and make one consumer for each"
            " destination"
        )
        return add(Verdict.BY_HAND, why)
    if broker == "artemis" and (virtual := _virtual_topic(name)):
        return add(Verdict.BY_HAND, virtual)
    new, why = _wildcards(name, broker)
    kept, dropped = _options(query)
    if kept is None:
        return add(Verdict.BY_HAND, dropped)
    new = f"{new}?{kept}" if kept else new
    why = "; ".join(filter(None, (why, dropped)))
    if new == text:
        return add(Verdict.SAME, why, new)
    return add(Verdict.CHANGED, why or f"the call, and not a prefix of the name, makes the destination a {kind}", new)


def _without_prefix(text: str, topic: bool) -> tuple[str, bool]:
    for prefix, kind in _PREFIXES.items():
        if text.startswith(prefix):
            return text.removeprefix(prefix).lstrip("/"), topic if kind is None else kind
    return text, topic


def _virtual_topic(name: str) -> str:
    if name.startswith("Consumer.") and ".VirtualTopic." in name:
        topic = name.partition(".VirtualTopic.")[2]
        return (
            "a virtual topic of Classic: on Artemis, use"
            f' create_shared_durable_consumer(create_topic("VirtualTopic.{topic}"), "{name.split(".")[1]}"), or set'
            " virtualTopicConsumerWildcards at the acceptor for OpenWire"
        )
    return ""


def _wildcards(name: str, broker: str) -> tuple[str, str]:
    parts = name.split(".")
    if broker == "artemis" and ">" in parts:
        return ".".join("#" if part == ">" else part for part in parts), "Artemis writes # for Classic's >"
    if broker.startswith("classic") and "#" in parts:
        return ".".join(">" if part == "#" else part for part in parts), "Classic writes > for Artemis' #"
    return name, ""


def _options(query: str) -> tuple[str | None, str]:
    """Return the options that stay, and a text about the options that are left out."""
    kept, said = [], []
    for part in filter(None, query.split("&")):
        name = part.partition("=")[0]
        if not name.startswith(("consumer.", "producer.")):
            said.append(f"{name} has no effect in Java either, because Java reads only consumer.* and producer.*")
            continue
        if name in IGNORED_OF_DESTINATIONS:
            said.append(f"{name} has no effect in pyjmsack: {IGNORED_OF_DESTINATIONS[name]}")
            continue
        try:
            parse_destination_options(Queue(f"x?{part}"))
        except JMSException as error:
            return None, " ".join(str(error).split())
        kept.append(part)
    return "&".join(kept), "; ".join(said)
