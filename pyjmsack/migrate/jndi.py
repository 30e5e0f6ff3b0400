"""Reads ``jndi.properties`` in the forms of ActiveMQ Classic, Artemis and Qpid JMS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyjmsack.migrate.destinations import translate_destination
from pyjmsack.migrate.factory import Setting, add_factory
from pyjmsack.migrate.model import Findings, Place, Settings, Verdict
from pyjmsack.migrate.properties_file import Entry
from pyjmsack.migrate.values import Missing, resolve, shown

__all__ = ["is_jndi", "read_jndi"]

_INITIAL: Final = "java.naming.factory.initial"
_CLIENTS: Final = {
    "org.apache.activemq.artemis.": "artemis",
    "org.apache.activemq.jndi.": "activemq",
    "org.apache.activemq.": "activemq",
    "org.apache.qpid.jms.": "qpid",
}
_FACTORY: Final = re.compile(r"connectionfactory\.([^.]+)", re.I)
_PROPERTY: Final = re.compile(r"property\.connectionfactory\.([^.]+)\.(.+)", re.I)
_DEFAULT: Final = re.compile(r"default\.connectionfactory", re.I)
_OF_ONE: Final = re.compile(r"connection\.([^.]+)\.(.+)")
_DESTINATION: Final = re.compile(r"(queue|topic)\.(.+)", re.I)
_NAMES: Final = "connectionfactorynames"
_LOGIN: Final = {"java.naming.security.principal": "jms.username", "java.naming.security.credentials": "jms.password"}
_OTHER: Final = {
    _INITIAL: (Verdict.IGNORED, "pyjmsack has no JNDI: make a ConnectionFactory from its URL"),
    "java.naming.factory.url.pkgs": (Verdict.IGNORED, "pyjmsack has no JNDI"),
    "java.naming.factory.object": (Verdict.IGNORED, "pyjmsack has no JNDI"),
    "java.naming.factory.state": (Verdict.IGNORED, "pyjmsack has no JNDI"),
    "java.naming.security.authentication": (Verdict.IGNORED, "pyjmsack has no JNDI"),
    "java.naming.security.protocol": (Verdict.IGNORED, "pyjmsack has no JNDI"),
    "java.naming.dns.url": (Verdict.IGNORED, "pyjmsack has no JNDI"),
    _NAMES: (Verdict.IGNORED, "names for JNDI look-ups; in Python a factory is a variable"),
    "connectionfactoryname": (Verdict.IGNORED, "a name for JNDI look-ups; in Python a factory is a variable"),
    "xaconnectionfactorynames": (Verdict.REFUSED, "this library has no XA transactions; use a local transaction"),
}
_JNDI_KEYS: Final = ("java.naming.", "connectionfactory", "property.connectionfactory", "default.connectionfactory")


def is_jndi(entries: Iterable[Entry]) -> bool:
    """Return whether a file of properties is for JNDI."""
    return any(entry.key.lower().startswith(_JNDI_KEYS) for entry in entries)


def read_jndi(findings: Findings, settings: Settings, file: str, entries: list[Entry]) -> None:
    """Add the rows, factories and destinations of a file."""
    reader = _Reader(findings, settings, file, {entry.key: entry.value for entry in entries} | dict(settings.variables))
    reader.client = _client(entries)
    for entry in entries:
        reader.read(entry)
    reader.add_factories()


def _client(entries: Iterable[Entry]) -> str:
    initial = next((entry.value for entry in entries if entry.key == _INITIAL), "")
    return next((client for start, client in _CLIENTS.items() if initial.startswith(start)), "")


@dataclass(slots=True)
class _Reader:
    findings: Findings
    settings: Settings
    file: str
    known: Mapping[str, str]
    client: str = ""
    urls: dict[str, tuple[Place, str, str]] = field(default_factory=dict)
    """For each factory, by its name, the place, the key and the URL."""
    also: dict[str, list[Setting]] = field(default_factory=dict)
    """For each factory, by its name, its settings. Settings under the empty name are for all factories."""

    def read(self, entry: Entry) -> None:
        place = Place(self.file, entry.line)
        try:
            value = resolve(entry.value, self.known)
        except Missing as missing:
            self.findings.add(place, entry.key, shown(entry.key, entry.value), Verdict.BY_HAND, "", str(missing))
            return
        key = entry.key
        if key.lower() in _OTHER:
            verdict, why = _OTHER[key.lower()]
            self.findings.add(place, key, shown(key, value), verdict, "", why)
        elif key == "java.naming.provider.url":
            self._provider(place, key, value)
        elif key in _LOGIN:
            self.also.setdefault("", []).append(Setting(place, key, _LOGIN[key], value))
        else:
            self._messaging(place, key, value)

    def _provider(self, place: Place, key: str, value: str) -> None:
        """Add the provider URL. For ActiveMQ Classic it is the URL of the broker, and for Qpid JMS it is the path of
        another file.
        """
        if self.client == "qpid" or value.startswith("file:"):
            why = "this is the path of the file with the entries: give that file to `pyjmsack migrate`"
            self.findings.add(place, key, shown(key, value), Verdict.BY_HAND, "", why)
        else:
            self.urls.setdefault("connection_factory", (place, key, value))

    def _messaging(self, place: Place, key: str, value: str) -> None:
        if found := _PROPERTY.fullmatch(key):
            self.also.setdefault(found[1], []).append(Setting(place, key, f"jms.{found[2]}", value))
        elif found := _FACTORY.fullmatch(key):
            self.urls[found[1]] = (place, key, value)
        elif _DEFAULT.fullmatch(key):
            self.urls["connection_factory"] = (place, key, value)
        elif found := _DESTINATION.fullmatch(key):
            topic = found[1].lower() == "topic"
            broker = self.settings.broker or ("artemis" if self.client == "artemis" else "")
            translate_destination(self.findings, place, key, value, topic=topic, broker=broker)
        elif found := _OF_ONE.fullmatch(key):
            if found[2].lower() == "brokerurl":
                self.urls[found[1]] = (place, key, value)
            else:
                self.also.setdefault(found[1], []).append(Setting(place, key, f"jms.{found[2]}", value))
        elif key.lower() == "brokerurl":
            self.urls["connection_factory"] = (place, key, value)
        else:
            self._property(place, key, value)

    def _property(self, place: Place, key: str, value: str) -> None:
        # the JNDI context of this client gives every property of the environment to the factories
        if self.client == "activemq":
            self.also.setdefault("", []).append(Setting(place, key, f"jms.{key}", value))
        elif self.client or key.startswith("java.naming."):
            why = (
                "the JNDI contexts of the known JMS clients do not read this key. Therefore it has no effect in Java"
                " either"
            )
            self.findings.add(place, key, shown(key, value), Verdict.IGNORED, "", why)
        else:
            self.findings.other_keys += 1

    def add_factories(self) -> None:
        common = self.also.pop("", [])
        if not self.urls and (common or self.also) and self.client:
            usual = "amqp://localhost:5672" if self.client == "qpid" else "tcp://localhost:61616"
            place = common[0].place if common else next(iter(self.also.values()))[0].place
            self.urls["connection_factory"] = (place, "(default URL)", usual)
        for name, (place, key, url) in self.urls.items():
            also = [*common, *self.also.pop(name, [])]
            if self.client == "artemis":
                also = [Setting(one.place, one.key, one.option.removeprefix("jms."), one.value) for one in also]
            add_factory(self.findings, self.settings, place, key, url, name=name, client=self.client, also=also)
        for rest in self.also.values():
            for one in rest:
                why = "the setting belongs to a factory that this file does not define"
                self.findings.add(one.place, one.key, shown(one.key, one.value), Verdict.BY_HAND, one.option, why)
