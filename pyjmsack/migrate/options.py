"""Translates one option of a Java client into options of pyjmsack."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from pyjmsack.errors import JMSException
from pyjmsack.java_options.model import Fate, Translation
from pyjmsack.java_options.table import JAVA_OPTIONS
from pyjmsack.migrate.model import Verdict
from pyjmsack.uri import IGNORED, IGNORED_PREFIXES, OPTIONS, REFUSED, parse_url

__all__ = ["Translated", "belongs_to_failover", "belongs_to_member", "known_names", "translate"]

_VERDICTS: Final = {
    Fate.IGNORED: Verdict.IGNORED,
    Fate.REFUSED: Verdict.REFUSED,
    Fate.BY_HAND: Verdict.BY_HAND,
}
_CLIENTS: Final = {"activemq": "ActiveMQ Classic", "artemis": "Artemis", "qpid": "Qpid JMS"}
_LONGEST_NAME: Final = 100
"""The nearest name is looked for up to this number of characters."""
_OF_STOMP: Final = {
    "amqp.idleTimeout": "stomp.heartBeat",
    "amqp.vhost": "stomp.vhost",
    "amqp.maxFrameSize": "stomp.maxFrameSize",
    "amqp.traceFrames": "stomp.traceFrames",
    "amqp.drainTimeout": "stomp.drainTimeout",
}


@dataclass(frozen=True, slots=True)
class Translated:
    """The translation of one option with its value."""

    verdict: Verdict
    why: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def python(self) -> str:
        """Return the options in the form of a URL."""
        return "&".join(f"{name}={value}" for name, value in self.options.items())


def translate(client: str, name: str, value: str, protocol: str) -> Translated:
    """Return the replacement for an option of a Java client's URL, or for a property of its factory.

    Args:
        client: ``activemq``, ``artemis`` or ``qpid``.
        name: the name of the option in a URL.
        value: the text of the option, without placeholders.
        protocol: the protocol of the new URL, ``amqp`` or ``stomp``.
    """
    found = _of_table(client, name, value) or _of_ours(name, value)
    if found is None:
        found = next((of for other in JAVA_OPTIONS if (of := _of_table(other, name, value))), None)
    if found is None:
        return Translated(Verdict.BY_HAND, _never_heard(client, name))
    return _checked(_for_protocol(found, protocol), protocol)


def belongs_to_failover(name: str) -> bool:
    """Return whether only a failover URL may have this option."""
    return name in OPTIONS and OPTIONS[name].targets[0].startswith("failover.")


def belongs_to_member(name: str) -> bool:
    """Return whether the option is for the stream (protocol, TCP and TLS) to one broker."""
    return name in OPTIONS and OPTIONS[name].targets[0].startswith(("transport.", "amqp.", "stomp.", "wire_format."))


def known_names(client: str) -> list[str]:
    """Return the names of all options of a Java client. An error proposes the name nearest to a misspelt one."""
    return [*JAVA_OPTIONS[client], *OPTIONS, *IGNORED, *REFUSED]


def _of_table(client: str, name: str, value: str) -> Translated | None:
    row = JAVA_OPTIONS[client].get(name)
    if row is None:
        return None
    try:
        made: Translation = row.translate(value)
    except ValueError:
        return Translated(Verdict.BY_HAND, f"{row.hint()}; the value is not a number".lstrip("; "))
    if made.fate is not Fate.HONOURED:
        return Translated(_VERDICTS[made.fate], made.why)
    same = made.options == {name: value}
    return Translated(Verdict.SAME if same else Verdict.CHANGED, made.why, made.options)


def _of_ours(name: str, value: str) -> Translated | None:
    if name in OPTIONS:
        return Translated(Verdict.SAME, "", {name: value})
    if name in IGNORED:
        return Translated(Verdict.IGNORED, IGNORED[name])
    for prefix, why in IGNORED_PREFIXES.items():
        if name.startswith(prefix):
            return Translated(Verdict.IGNORED, why)
    if name in REFUSED:
        return Translated(Verdict.REFUSED, REFUSED[name])
    return None


@lru_cache(maxsize=65_536)
def _nearest(client: str, name: str) -> str:
    """Return the known name that is most like an unknown one, or an empty string. The search is slow, and many
    factories may have one policy with the unknown name.
    """
    return next(iter(difflib.get_close_matches(name, known_names(client), n=1, cutoff=0.7)), "")


def _never_heard(client: str, name: str) -> str:
    near = _nearest(client, name) if len(name) <= _LONGEST_NAME else ""
    meant = f"did you mean {near}? " if near else ""
    return (
        f"no version of the {_CLIENTS[client]} client has this option: {meant}remove the option, or look which code"
        " sets"
        " the option"
    )


def _for_protocol(found: Translated, protocol: str) -> Translated:
    """Return the replacement for the new protocol. For STOMP, an option of AMQP has another name or no meaning."""
    if protocol == "amqp" or not any(name.startswith("amqp.") for name in found.options):
        return found
    kept = {name: value for name, value in found.options.items() if not name.startswith("amqp.")}
    for name, value in found.options.items():
        if name == "amqp.idleTimeout" and value in ("0", "-1"):
            why = "heart-beats are never off over STOMP, because Artemis drops silent clients"
            return Translated(Verdict.IGNORED, why, kept)
        if name in _OF_STOMP:
            kept[_OF_STOMP[name]] = value
    if not kept:
        return Translated(Verdict.IGNORED, "the option is for AMQP, and the new URL is for STOMP")
    return Translated(Verdict.CHANGED, found.why or "the option of STOMP with the same effect", kept)


def _checked(found: Translated, protocol: str) -> Translated:
    """Return the translation unchanged if the URL parser accepts the new options. Otherwise return a translation with
    the error.
    """
    failover = any(map(belongs_to_failover, found.options))
    scheme = {"amqp": "amqps", "stomp": "stomp+ssl"}[protocol]  # options of TLS have no effect without TLS
    for name, value in found.options.items():
        if name == "jms.password" or OPTIONS[name].kind.secret:
            continue
        target = f"nested.{name}" if failover and belongs_to_member(name) else name
        try:
            parse_url(f"failover:({scheme}://host)" if failover else f"{scheme}://host", {target: value})
        except JMSException as error:
            return Translated(Verdict.BY_HAND, f"{' '.join(str(error).split())}")
    return found
