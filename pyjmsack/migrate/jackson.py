"""Reads the keys ``spring.jackson.*`` of Spring Boot. These keys change the JSON that Jackson writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyjmsack.migrate.boot_keys import squashed
from pyjmsack.migrate.model import Findings, Place, Verdict
from pyjmsack.migrate.properties_file import Entry
from pyjmsack.migrate.values import shown

__all__ = ["read_jackson"]

_IF: Final = "if the message converter uses the ObjectMapper of Spring Boot: "
_WHYS: Final = {
    "springjacksonpropertynamingstrategy": (
        f"{_IF}the fields have other names in JSON: rename the fields of the classes"
    ),
    "springjacksondefaultpropertyinclusion": (
        f"{_IF}the JSON leaves out some fields: the fields of records need `| None = None`"
    ),
    "springjacksonserializationwritedatesastimestamps": (
        f"{_IF}dates are numbers in JSON: a field of the type datetime refuses a number"
    ),
}
_OTHER: Final = f"{_IF}look whether the key changes the JSON of messages"
_DEFAULTS: Final = {
    "springjacksonserializationwritedatesastimestamps": "false",
    "springjacksondefaultpropertyinclusion": "always",
}
"""The keys that are harmless at one value, with this value. At this value, Jackson writes and reads the same JSON as
pyjmsack."""


def read_jackson(findings: Findings, file: str, entries: Iterable[Entry]) -> None:
    """Add a row for each key of Jackson, if the sources have classes for bodies of messages."""
    if not findings.listeners and not findings.nameless and not findings.functions:
        return
    for entry in entries:
        key = squashed(entry.key)
        if not key.startswith("springjackson"):
            continue
        same = _DEFAULTS.get(key) == entry.value.strip().lower()
        verdict, why = (Verdict.SAME, "") if same else (Verdict.BY_HAND, _WHYS.get(key, _OTHER))
        findings.add(Place(file, entry.line), entry.key, shown(entry.key, entry.value), verdict, "", why)
