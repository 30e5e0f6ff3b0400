"""The destinations and settings, or the configuration file, that a caller wants for an embedded broker."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

__all__ = ["Wanted", "with_activemq_wishes", "with_artemis_wishes"]

_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]{1,1000}")
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z-]{0,99}")
_PORTS: Final = ("127.0.0.1:${pyjmsack.amqp.port}", "127.0.0.1:${pyjmsack.stomp.port}")
_LARGEST: Final = 1024 * 1024


@dataclass(frozen=True)
class Wanted:
    """The wanted destinations, settings or file, checked when the object is made.

    Attributes:
        queues, topics: names of destinations that the broker shall make.
        settings: for each key, the settings of all destinations whose names match the key. The keys have the broker's
            wildcards, and the settings have the broker's names. An underscore in the name of a setting stands for a
            hyphen.
        configuration: the content of a file that replaces the broker's own.

    Raises:
        ValueError: a name or a value is not possible, the file does not name the ports, or a file is given together
            with destinations or settings.
    """

    queues: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    configuration: bytes | None = None

    @classmethod
    def of(
        cls,
        queues: Iterable[str],
        topics: Iterable[str],
        settings: Mapping[str, Mapping[str, object]] | None,
        configuration: str | os.PathLike[str] | None,
    ) -> Wanted:
        """Check these arguments of a broker's class, and return them as one object. The configuration file is read now,
        and not again at the start.

        Raises:
            ValueError: for the reasons that the class names, or because the file is larger than 1 MiB.
            OSError: the file cannot be read.
        """
        text = None
        if configuration is not None:
            if Path(configuration).stat().st_size > _LARGEST:
                raise ValueError(f"configuration: the file has more than {_LARGEST} bytes")
            text = Path(configuration).read_bytes()
        return cls(tuple(queues), tuple(topics), {key: dict(one) for key, one in (settings or {}).items()}, text)

    def __post_init__(self) -> None:
        for name in (*self.queues, *self.topics, *self.settings):
            if not _NAME.fullmatch(name) or "${" in name or name != name.strip():
                raise ValueError(
                    f"{name!r} is not the name of a destination; expected 1 to 1,000 characters without ${{...}}"
                )
        for key, value in [pair for one in self.settings.values() for pair in one.items()]:
            if not _KEY.fullmatch(key.replace("_", "-")):
                raise ValueError(f"{key!r} is not the name of a setting; expected one such as max-delivery-attempts")
            if not _NAME.fullmatch(str(value)) or "${" in str(value):
                raise ValueError(f"{key}: expected a value of 1 to 1,000 characters without ${{...}}, not {value!r}")
        if self.configuration is None:
            return
        if self.queues or self.topics or self.settings:
            raise ValueError(
                "configuration: write the destinations and their settings into that file, and leave these arguments out"
            )
        if missing := [port for port in _PORTS if port.encode() not in self.configuration]:
            raise ValueError(
                f"configuration: the file does not contain {missing[0]}; it needs a connector for AMQP at"
                f" {_PORTS[0]} and one for STOMP at {_PORTS[1]}"
            )


def with_artemis_wishes(template: bytes, wanted: Wanted) -> bytes:
    """Return a ``broker.xml`` with the wanted destinations and settings in it.

    The elements are inserted as text, because the broker's parser does not read namespace prefixes.
    """
    if wanted.configuration is not None:
        return wanted.configuration
    text = template.decode()
    addresses = []
    for name in dict.fromkeys((*wanted.queues, *wanted.topics)):
        anycast = f"<anycast><queue name={quoteattr(name)}/></anycast>" if name in wanted.queues else ""
        multicast = "<multicast/>" if name in wanted.topics else ""
        addresses.append(f"<address name={quoteattr(name)}>{anycast}{multicast}</address>")
    text = _before(text, "</addresses>", addresses)
    for match, values in wanted.settings.items():
        text = _with_setting(text, match, {key.replace("_", "-"): _text(value) for key, value in values.items()})
    return text.encode()


def _with_setting(text: str, match: str, values: Mapping[str, str]) -> str:
    """Return ``text``, which is a ``broker.xml``, with the settings for a pattern of names.

    If the file has an element for the pattern already, the settings go into this element. If there were two elements,
    the broker would drop the first one.
    """
    start = f"<address-setting match={quoteattr(match)}>"
    lines = [f"<{key}>{escape(value)}</{key}>" for key, value in values.items()]
    before, found, after = text.partition(start)
    if not found:
        return _before(text, "</address-settings>", [start, *lines, "</address-setting>"])
    inside, end, rest = after.partition("</address-setting>")
    for key in values:
        inside = re.sub(f"<{key}>[^<]*</{key}>", "", inside)
    return "".join([before, start, *lines, inside, end, rest])


def with_activemq_wishes(template: bytes, wanted: Wanted) -> bytes:
    """Return an ``activemq.xml`` with the wanted destinations and settings in it. A key that begins with ``topic://``
    is for topics.
    """
    if wanted.configuration is not None:
        return wanted.configuration
    destinations = [f"<queue physicalName={quoteattr(name)}/>" for name in dict.fromkeys(wanted.queues)]
    destinations += [f"<topic physicalName={quoteattr(name)}/>" for name in dict.fromkeys(wanted.topics)]
    entries = []
    for match, values in wanted.settings.items():
        kind = "topic" if match.startswith("topic://") else "queue"
        given = {kind: match.removeprefix(f"{kind}://"), **{key: _text(value) for key, value in values.items()}}
        attributes = " ".join(f"{key}={quoteattr(value)}" for key, value in given.items())
        entries.append(f"<policyEntry {attributes}/>")
    parts = ["<destinations>", *destinations, "</destinations>"] if destinations else []
    if entries:
        start, end = (
            ("destinationPolicy", "policyMap", "policyEntries"),
            ("policyEntries", "policyMap", "destinationPolicy"),
        )
        parts += [*(f"<{name}>" for name in start), *entries, *(f"</{name}>" for name in end)]
    return _before(template.decode(), "</broker>", parts).encode()


def _before(text: str, end: str, lines: Iterable[str]) -> str:
    """Return the text with lines inserted before ``end``. The text has ``end`` exactly once."""
    before, found, after = text.partition(end)
    return "".join([before, *(f"{line}\n" for line in lines), found, after])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
