"""Finds the files to read in a folder, and chooses the reader of each file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from pyjmsack.migrate.boot import ListenerDefaults, is_boot_key, read_boot
from pyjmsack.migrate.boot_keys import squashed
from pyjmsack.migrate.broker_xml import Port, broker_of, ports_of, read_broker
from pyjmsack.migrate.factory import add_factory
from pyjmsack.migrate.jackson import read_jackson
from pyjmsack.migrate.java_source import read_sources
from pyjmsack.migrate.java_url import parse_java_url
from pyjmsack.migrate.jndi import is_jndi, read_jndi
from pyjmsack.migrate.model import Findings, Place, Settings, Unreadable
from pyjmsack.migrate.properties_file import Entry, read_properties
from pyjmsack.migrate.serving import own_variables, say_client_ids, say_queues, say_users
from pyjmsack.migrate.spring_xml import is_spring, read_spring
from pyjmsack.migrate.xml_file import Element, read_xml
from pyjmsack.migrate.yaml_file import read_yaml

__all__ = ["migrate"]

_LARGEST: Final = 4 * 1024 * 1024
_MOST_FILES: Final = 20_000
_MOST_OTHERS: Final = 8 * 1024 * 1024
"""Sources that do not use JMS are read only for their constants and classes. This is the largest number of bytes of all
these sources together.
"""
_WORTH: Final = (b"static final", b"record ", b"enum ", b"class ")
_NOT_ENTERED: Final = {
    ".git",
    ".svn",
    "target",
    "build",
    "node_modules",
    ".venv",
    "venv",
    ".idea",
    ".gradle",
    "__pycache__",
}
_PROPERTIES: Final = (".properties",)
_YAML: Final = (".yml", ".yaml")
_SOURCES: Final = (".java", ".kt", ".groovy", ".scala")
_READ: Final = (*_PROPERTIES, *_YAML, ".xml", *_SOURCES)


def migrate(inputs: Iterable[str], settings: Settings, sources: Iterable[Path] = ()) -> Findings:
    """Read URLs, files and folders, and return the findings. No connection is made, and no file is changed.

    Args:
        inputs: broker URLs, files, folders.
        settings: the protocol, the ports and the variables for the new URLs.
        sources: folders from which only Java sources are read.

    Returns:
        The findings. A file that cannot be read raises no error, and is listed in the findings.

    Raises:
        Unreadable: all files together have too many settings.
    """
    return _Migration(settings).run([*inputs], [*sources])


class _Migration:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.findings = Findings()
        self.known: dict[str, str] = {}
        """Values of properties, for placeholders in XML and Java."""
        self.boot = ListenerDefaults()
        self.others: dict[str, str] = {}

    def run(self, inputs: list[str], sources: list[Path]) -> Findings:
        urls = [text for text in inputs if _is_url(text)]
        paths = [Path(text) for text in inputs if not _is_url(text)]
        files = [*self._files(paths, _READ), *self._files(sources, _SOURCES)]
        properties, xmls, codes = self._properties(files), self._xmls(files), self._codes(files)
        for entries in properties.values():
            self.known.update({entry.key: entry.value for entry in entries if not entry.profile})
        self.known.update(self.settings.variables)
        self._learn(xmls)
        for url in urls:
            self._url(url)
        for file, entries in properties.items():
            if is_jndi(entries):
                read_jndi(self.findings, self.settings, file, entries)
        self._boot({file: entries for file, entries in properties.items() if not is_jndi(entries)})
        for file, root in xmls.items():
            self._xml(file, root)
        container, template = self.boot.container(), self.boot.template()
        read_sources(self.findings, self.settings, codes, self.others, self.known, container, template)
        for file, entries in properties.items():
            read_jackson(self.findings, file, entries)
        own_variables(self.findings)
        say_client_ids(self.findings)
        say_queues(self.findings)
        say_users(self.findings)
        return self.findings

    # files

    def _files(self, paths: Iterable[Path], endings: tuple[str, ...]) -> list[Path]:
        found: list[Path] = []
        for path in paths:
            if path.is_dir():
                for file in _walk(path):
                    if file.suffix in endings:
                        found.append(file)
                    if len(found) > _MOST_FILES:
                        self.findings.unreadable.append(f"{path}: more than {_MOST_FILES} files; give a smaller folder")
                        return found[:_MOST_FILES]
            elif path.suffix in endings:
                found.append(path)
            else:
                self.findings.unreadable.append(
                    f"{path}: expected a file that ends with {', '.join(endings)}, or a folder"
                )
        return found

    def _bytes(self, path: Path) -> bytes | None:
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise Unreadable("expected a regular file, not a pipe or a device")
            with path.open("rb") as file:
                data = file.read(_LARGEST + 1)
            if len(data) > _LARGEST:
                raise Unreadable(f"expected a file of at most {_LARGEST} bytes")
            return data
        except Unreadable as error:
            self.findings.unreadable.append(f"{path}: {error}")
        except OSError as error:
            self.findings.unreadable.append(f"{path}: {error.strerror}")
        return None

    def _properties(self, files: Iterable[Path]) -> dict[str, list[Entry]]:
        made = {}
        for path in files:
            if path.suffix not in (*_PROPERTIES, *_YAML) or (data := self._bytes(path)) is None:
                continue
            text = data.decode("utf-8", errors="replace")
            try:
                entries = read_properties(text) if path.suffix in _PROPERTIES else read_yaml(text)
            except Unreadable as error:
                self._unread(path, data, str(error))
                continue
            profile = _profile_of(path)
            made[str(path)] = [replace(one, profile=profile) for one in entries] if profile else entries
            self.findings.files += 1
        return made

    def _unread(self, path: Path, data: bytes, error: str) -> None:
        """Add a row for a file that cannot be read, but only if the file contains a word about messaging."""
        if any(word in data for word in (b"activemq", b"artemis", b"amqp", b"jms")):
            self.findings.unreadable.append(f"{path}: {error}")

    def _xmls(self, files: Iterable[Path]) -> dict[str, Element]:
        made = {}
        for path in files:
            if path.suffix != ".xml" or (data := self._bytes(path)) is None:
                continue
            try:
                root = read_xml(data)
            except Unreadable as error:
                self._unread(path, data, str(error))
                continue
            if broker_of(root) or is_spring(root):
                made[str(path)] = root
                self.findings.files += 1
        return made

    def _codes(self, files: Iterable[Path]) -> dict[str, str]:
        made, left = {}, _MOST_OTHERS
        for path in files:
            if path.suffix not in _SOURCES or (data := self._bytes(path)) is None:
                continue
            if b"jms" in data.lower() or b"@Scheduled" in data:
                made[str(path)] = data.decode("utf-8", errors="replace")
                self.findings.files += 1
            elif len(data) <= left and any(word in data for word in _WORTH):
                left -= len(data)
                self.others[str(path)] = data.decode("utf-8", errors="replace")
        return made

    # the values in the files

    def _learn(self, xmls: Mapping[str, Element]) -> None:
        """Read the kind of broker, and the port of the new protocol, from the configuration files of the broker."""
        wanted = self.settings.protocol.upper()
        for root in xmls.values():
            kind = broker_of(root)
            ports = ports_of(root, self.known)
            speaking = [port for port in ports if wanted in port.protocols]
            if not kind or not speaking:
                continue
            learned = {port.number: _nearest(port, speaking).number for port in ports} | dict(self.settings.ports)
            self.settings = replace(self.settings, ports=learned)

    def _url(self, text: str) -> None:
        try:
            parse_java_url(text)
        except Unreadable as error:
            self.findings.unreadable.append(f"argument: {error}")
            return
        self.findings.files += 1
        add_factory(self.findings, self.settings, Place("argument"), "url", text)

    def _boot(self, files: Mapping[str, list[Entry]]) -> None:
        base = {squashed(one.key): one for entries in files.values() for one in entries if not one.profile}
        for file, entries in files.items():
            if not any(is_boot_key(entry.key) for entry in entries):
                self.findings.other_keys += len(entries)
                continue
            profiles = dict.fromkeys(entry.profile for entry in entries)
            for profile in profiles:
                of_profile = [entry for entry in entries if entry.profile == profile]
                found = read_boot(self.findings, self.settings, file, of_profile, base if profile else None)
                if not profile:
                    self.boot.settings.update(found.settings)
                    self.boot.sends.update(found.sends)

    def _xml(self, file: str, root: Element) -> None:
        if broker_of(root):
            read_broker(self.findings, self.settings, file, root, self.known)
        if is_spring(root):
            read_spring(self.findings, self.settings, file, root, self.known)


def _nearest(port: Port, speaking: list[Port]) -> Port:
    """Return the best port of the new protocol: the port with the same number as ``port``. If there is none, the best
    port is one that uses TLS exactly if ``port`` uses TLS.
    """
    return max(speaking, key=lambda other: (other.number == port.number, other.tls == port.tls))


def _is_url(text: str) -> bool:
    return text.startswith("(") or (":" in text and not Path(text).exists() and ("//" in text or ":(" in text))


def _profile_of(path: Path) -> str:
    start, dash, profile = path.stem.partition("-")
    return profile if dash and start in ("application", "bootstrap") else ""


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NOT_ENTERED)
        yield from (Path(root, name) for name in sorted(files))
