"""Reads ``application.properties`` and ``application.yml`` of Spring Boot: the settings of connections, listeners and
sends.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyjmsack.java_options.reasons import NO_BROKER_INSIDE
from pyjmsack.migrate.bean_keys import ADDS_CONSUMERS
from pyjmsack.migrate.boot_keys import BOOT_KEYS, PREFIXES, BootKey, squashed
from pyjmsack.migrate.destinations import translate_destination
from pyjmsack.migrate.factory import Setting, add_factory
from pyjmsack.migrate.java_bean_rows import Container
from pyjmsack.migrate.java_templates import Template, template_of_boot
from pyjmsack.migrate.model import Findings, Place, Settings, Verdict
from pyjmsack.migrate.modes import mode_of
from pyjmsack.migrate.properties_file import Entry
from pyjmsack.migrate.values import Missing, is_secret, milliseconds, resolve, seconds, shown
from pyjmsack.types import AckMode

__all__ = ["ListenerDefaults", "is_boot_key", "read_boot"]

_URLS: Final = {
    "activemq": "tcp://localhost:61616",
    "artemis": "tcp://localhost:61616",
    "qpid": "amqp://localhost:5672",
}
_OF_FACTORY: Final = ("url", "host", "port", "option")
_HOST_AND_PORT: Final = re.compile(r"[\w.-]+:[0-9]{1,5}")
_WITH_DEFAULT: Final = re.compile(r"\$\{([^:{}$]{1,200}):")
_TRUE: Final = ("true", "yes", "on", "1")
_SQUASHED_PREFIXES: Final = tuple(squashed(prefix) for prefix in PREFIXES)


@dataclass(slots=True)
class ListenerDefaults:
    """The settings that apply to all listeners, and to all sends of Spring Boot's ``JmsTemplate``."""

    settings: dict[str, str] = field(default_factory=dict)
    sends: dict[str, str] = field(default_factory=dict)

    def template(self) -> Template:
        """Return the settings of the ``JmsTemplate`` that Spring Boot makes."""
        return template_of_boot(self.sends)

    def container(self) -> Container:
        """Return the settings for a listener that names no container factory."""
        least, most = self.settings.get("least"), self.settings.get("most")
        return Container(
            concurrency=f"{least or 1}-{most}" if most and most != least else least,
            transacted=_boolean(self.settings.get("transacted", "true")),
            acknowledge=self.settings.get("acknowledge"),
            topic=_boolean(self.settings.get("topic")),
            durable=_boolean(self.settings.get("durable")),
            autostart=_boolean(self.settings.get("autostart")),
        )


def _boolean(value: str | None) -> str | None:
    return value if value is None else str(value.lower() in _TRUE).lower()


def is_boot_key(key: str) -> bool:
    """Return whether a key is about messaging."""
    return squashed(key).startswith(_SQUASHED_PREFIXES) and key.partition(".")[0].lower() != "logging"


def read_boot(
    findings: Findings, settings: Settings, file: str, entries: Iterable[Entry], base: Mapping[str, Entry] | None = None
) -> ListenerDefaults:
    """Add the rows and connection factories of one profile in one file.

    Args:
        entries: all entries of the profile.
        base: entries of the default profile, which apply if this profile has no entry for a key.
    """
    mine = {squashed(entry.key): entry for entry in entries}
    merged = {**(base or {}), **mine}
    known = {entry.key: entry.value for entry in merged.values()} | dict(settings.variables)
    reader = _Reader(findings, settings, file, known, next(iter(mine.values())).profile)
    for entry in mine.values():
        if is_boot_key(entry.key):
            reader.read(entry)
        else:
            findings.other_keys += 1
    reader.add_factories(merged, mine)
    return reader.listeners


@dataclass(slots=True)
class _Reader:
    findings: Findings
    settings: Settings
    file: str
    known: Mapping[str, str]
    profile: str
    listeners: ListenerDefaults = field(default_factory=ListenerDefaults)

    def read(self, entry: Entry) -> None:
        """Add the row of a key that does not belong to a connection factory."""
        row = BOOT_KEYS.get(squashed(entry.key))
        place = Place(self.file, entry.line)
        if row is None:
            self.findings.add(place, entry.key, shown(entry.key, entry.value), Verdict.BY_HAND, "", _no_such(entry.key))
            return
        if row.role in _OF_FACTORY:
            return  # add_factories() adds the row of this key
        value = self._resolved(entry)
        if value is None:
            return
        if not row.role:
            self.findings.add(place, entry.key, shown(entry.key, value), row.verdict, "", row.why)
        elif row.role == "mode":
            self.findings.add(place, entry.key, shown(entry.key, value), *_broker_mode(value))
        elif row.role in ("listener", "template"):
            self._setting_of_jms(row, entry, value)

    def _setting_of_jms(self, row: BootKey, entry: Entry, value: str) -> None:
        """Add the row of a key for listeners or sends, and keep its value for the generated code."""
        place = Place(self.file, entry.line)
        verdict, python, why = (_listener if row.role == "listener" else _template)(row, value)
        ours = row.name.startswith("spring.jms.")
        if ours and row.role == "listener":
            self.listeners.settings[row.target] = value
        if ours and (row.role == "template" or row.target == "topic"):
            self.listeners.sends[row.target] = _boolean(value) or "" if row.target in ("topic", "qos") else value
        if ours and row.target in _QOS and self._is("spring.jms.template.qos-enabled", "false"):
            verdict, python = Verdict.IGNORED, ""
            why = (
                "Java ignores this key, because spring.jms.template.qos-enabled is false: leave the argument out of"
                " the sends"
            )
        if ours and row.target == "acknowledge" and not self._is("spring.jms.listener.session.transacted", "false"):
            verdict, python, why = Verdict.CHANGED, 'app.listener(..., mode="transacted")', _STILL_TRANSACTED
        if self.profile:
            verdict = Verdict.BY_HAND
            why = (
                f"a key of the profile {shown('name', self.profile)}: the generated code has only the settings outside"
                " of profiles"
            )
        if row.target == "destination" and not self.profile:
            broker = self.settings.broker
            translate_destination(self.findings, place, entry.key, value, topic=False, broker=broker)
        else:
            self.findings.add(place, entry.key, shown(entry.key, value), verdict, python, why)

    def _is(self, key: str, value: str) -> bool:
        """Return whether a boolean key has this value."""
        given = next((text for name, text in self.known.items() if squashed(name) == squashed(key)), None)
        try:
            return given is not None and _boolean(resolve(given, self.known)) == value
        except Missing:
            return False

    def _resolved(self, entry: Entry) -> str | None:
        """Return a value with its placeholders replaced. If a placeholder has no value, add a row that says so, and
        return ``None``.
        """
        self._say_defaults(entry)
        try:
            return resolve(entry.value, self.known)
        except Missing as missing:
            if is_secret(entry.key):
                return "x"  # the value of a secret is never read
            place, value = Place(self.file, entry.line), shown(entry.key, entry.value)
            self.findings.add(place, entry.key, value, Verdict.BY_HAND, "", str(missing))
            return None

    def _say_defaults(self, entry: Entry) -> None:
        """Add a row if a placeholder has its default value.

        The row is needed, because the variable in the placeholder may have another value where the Java service runs.
        """
        names = [name for name in _WITH_DEFAULT.findall(entry.value) if name.strip() not in self.known]
        if names and not is_secret(entry.key):
            name = shown("name", names[0].strip())
            why = (
                f"the default value is written, because the given files have no value for {name}; -D {name}=VALUE"
                " writes another value"
            )
            place = Place(self.file, entry.line)
            key = f"{entry.key} (default)"
            if not any(row.place == place and row.key == key for row in self.findings.rows):
                self.findings.add(place, key, shown(entry.key, entry.value), Verdict.CHANGED, "", why)

    def add_factories(self, merged: Mapping[str, Entry], mine: Mapping[str, Entry]) -> None:
        """Add a connection factory for each prefix, if this profile has a key that begins with the prefix and is a
        setting of the connection. Add a row for each key of a connection that has no row yet.
        """
        for prefix in PREFIXES:
            rows = {
                key: row
                for key, row in BOOT_KEYS.items()
                if key in merged and row.name.startswith(f"{prefix}.") and row.role in _OF_FACTORY
            }
            if prefix != "spring.jms" and rows.keys() & mine.keys():
                self._add_factory(prefix, rows, merged)
        said = {row.key for row in self.findings.rows if row.place.file == self.file}
        for key, entry in mine.items():
            row = BOOT_KEYS.get(key)
            if row is not None and row.role in _OF_FACTORY and entry.key not in said:
                self._add_part(row, entry)

    def _add_part(self, row: BootKey, entry: Entry) -> None:
        """Add the row of a key that sets a part of a URL, or an option. The key has no row yet."""
        python = f"{row.target}={shown(entry.key, entry.value)}" if row.target else ""
        why = (
            "add this option to the URL of the connection factory"
            if row.target
            else "this value is a part of the URL of the connection factory"
        )
        place = Place(self.file, entry.line)
        self.findings.add(place, entry.key, shown(entry.key, entry.value), Verdict.CHANGED, python, why)

    def _add_factory(self, prefix: str, rows: Mapping[str, BootKey], merged: Mapping[str, Entry]) -> None:
        client = next((row.client for row in rows.values() if row.client), "activemq")
        roles = {row.role: merged[key] for key, row in rows.items() if row.role != "option"}
        common = {key: BOOT_KEYS[key] for key in (squashed("spring.jms.client-id"),) if key in merged}
        also = [
            setting
            for key, row in {**common, **rows}.items()
            if row.role == "option" and (setting := self._setting(row, merged[key]))
        ]
        first = roles.get("url") or roles.get("host") or roles.get("port") or next(iter(merged[key] for key in rows))
        url = self._url(client, roles)
        if url is not None:
            name = (first.profile or prefix.rpartition(".")[2]) + "_factory"
            key = roles["url"].key if "url" in roles else f"{prefix} (host and port)"
            broker = "artemis" if client == "artemis" else ""
            add_factory(
                self.findings,
                self.settings,
                Place(self.file, first.line),
                key,
                url,
                name=name,
                client=client,
                broker=broker,
                also=also,
            )

    def _url(self, client: str, roles: Mapping[str, Entry]) -> str | None:
        if "url" in roles:
            url = self._resolved(roles["url"])
            return f"tcp://{url}" if url and _HOST_AND_PORT.fullmatch(url) else url
        host = self._resolved(roles["host"]) if "host" in roles else "localhost"
        port = self._resolved(roles["port"]) if "port" in roles else ""
        if host is None or port is None:
            return None
        scheme, _, rest = _URLS[client].partition("://")
        return f"{scheme}://{host}:{port or rest.partition(':')[2]}"

    def _setting(self, row: BootKey, entry: Entry) -> Setting | None:
        value = self._resolved(entry)
        if value is None:
            return None
        place = Place(self.file, entry.line)
        if row.unit == "ms":
            try:
                value = str(milliseconds(value))
            except ValueError as error:
                self.findings.add(place, entry.key, shown(entry.key, value), Verdict.BY_HAND, row.target, str(error))
                return None
        return Setting(place, entry.key, row.target, value)


def _broker_mode(value: str) -> tuple[Verdict, str, str]:
    if value.lower() == "native":
        return Verdict.IGNORED, "", "the broker runs in a process of its own, at the address in the URL"
    return Verdict.BY_HAND, "", NO_BROKER_INSIDE


def _no_such(key: str) -> str:
    near = difflib.get_close_matches(squashed(key), BOOT_KEYS, n=1, cutoff=0.7)
    meant = f": did you mean {BOOT_KEYS[near[0]].name}?" if near else ""
    return f"no version of Spring Boot or Camel that we know reads this key, and an unread key has no effect{meant}"


def _listener(row: BootKey, value: str) -> tuple[Verdict, str, str]:
    if row.target == "acknowledge":
        mode = mode_of(value)
        if mode is None:
            return Verdict.BY_HAND, "", "expected the mode AUTO, CLIENT or DUPS_OK"
        of_app = 'mode="no-ack"' if mode.mode is AckMode.NO_ACKNOWLEDGE else 'mode="individual"'
        return Verdict.CHANGED, f"AckMode.{mode.mode.name}, or app.listener(..., {of_app})", mode.why
    if row.target == "transacted":
        transacted = value.lower() in _TRUE
        python = 'app.listener(..., mode="transacted")' if transacted else 'app.listener(..., mode="individual")'
        return Verdict.CHANGED, python, _session(transacted)
    return Verdict.CHANGED, _ARGUMENTS[row.target](value), _WHYS.get(row.target, "")


def _session(transacted: bool) -> str:
    mode = mode_of("", transacted=transacted)
    return mode.why if mode is not None else ""


def _template(row: BootKey, value: str) -> tuple[Verdict, str, str]:
    if row.target == "qos":
        why = (
            "arguments of app.sender.send always count"
            if value.lower() in _TRUE
            else "see the rows of the settings that qos-enabled switches off"
        )
        return Verdict.IGNORED, "", why
    if row.unit == "s":
        try:
            number = seconds(value)
        except ValueError as error:
            return Verdict.BY_HAND, row.target, str(error)
        call = "receive" if row.target == "timeout" else "send"
        if row.target == "timeout" and float(number) <= 0:
            number = "None" if float(number) == 0 else "0"
        return Verdict.CHANGED, f"{call}(..., {row.target}={number})", "seconds in Python"
    if row.target in ("acknowledge", "transacted"):
        return Verdict.BY_HAND, "create_session(AckMode....)", "choose the mode of the session that sends"
    if row.target == "persistent":
        value = "PERSISTENT" if value.lower() in _TRUE else "NON_PERSISTENT"
    if row.target in ("persistent", "delivery_mode"):
        names = {"1": "NON_PERSISTENT", "2": "PERSISTENT"}
        name = value.upper().replace("-", "_")
        return (
            Verdict.CHANGED,
            f"send(..., delivery_mode=DeliveryMode.{names.get(name, name)})",
            "an argument of each send",
        )
    return Verdict.CHANGED, f"send(..., {row.target}={shown('value', value)})", "an argument of each send"


_ARGUMENTS: Final[Mapping[str, Callable[[str], str]]] = {
    "topic": lambda value: (
        "app.listener(..., topic=True), app.sender.send(..., topic=True)"
        if value.lower() in _TRUE
        else "app.listener(...), app.sender.send(...)"
    ),
    "autostart": lambda value: "app.listener(...)" if value.lower() in _TRUE else "app.listener(..., autostart=False)",
    "durable": lambda value: (
        "create_durable_consumer(topic, name)" if value.lower() in _TRUE else "create_consumer(topic)"
    ),
    "shared": lambda value: (
        "create_shared_consumer(topic, name)" if value.lower() in _TRUE else "create_consumer(topic)"
    ),
    "subscription": lambda value: f"create_durable_consumer(topic, {shown('value', value)!r})",
    "selector": lambda value: f"create_consumer(destination, {shown('value', value)!r})",
    "no_local": lambda value: f"create_consumer(topic, no_local={value.lower() in _TRUE})",
    "least": lambda value: f"{shown('value', value)} sessions with a consumer each",
    "most": lambda value: f"at most {shown('value', value)} sessions with a consumer each",
}
_QOS: Final = ("time_to_live", "priority", "delivery_mode")
_STILL_TRANSACTED: Final = (
    "unless spring.jms.listener.session.transacted is false, Spring Boot makes the sessions transacted, and a"
    " transacted session has no other mode"
)
_WHYS: Final = {
    "least": "Spring's container opens this number of sessions when it starts",
    "most": ADDS_CONSUMERS,
}
