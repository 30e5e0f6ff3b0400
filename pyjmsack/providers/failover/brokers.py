"""Decides which brokers a search tries in one round, and in which order. The brokers come from the URL, from the list
that a broker sends, and from a file. ``search.py`` decides when a round begins and when the search ends. ``blame.py``
decides whether a request or link, and not a broker, is the reason why connections are lost."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from pyjmsack.errors import JMSException
from pyjmsack.loggers import get_logger
from pyjmsack.spi.resources import ConnectionMetadata
from pyjmsack.uri import SCHEMES, BrokerUrl, Endpoint, check_plain, parse_url

__all__ = [
    "MOST",
    "MOST_CHARACTERS",
    "Brokers",
    "in_order",
    "learn",
    "with_file",
]

MOST = 100
"""The largest number of entries that are read from a broker's list, the largest number of brokers that are known in
addition to the brokers of the URL, and the largest number of brokers in the file of ``failover.updateURIsURL``."""
_LONGEST_NAME = 253
"""The largest number of characters of a host name (RFC 1035)."""
_FIELDS = ("network-host", "hostname", "port", "scheme")

log = get_logger("pyjmsack.failover")


class Brokers:
    """The brokers of one connection, in the order in which they are tried.

    Args:
        url: the failover URL, which names all brokers.
    """

    def __init__(self, url: BrokerUrl) -> None:
        self._given = url.members
        self._known = [*url.members]
        self._options = url.failover
        self._preferred: Collection[str] = url.failover.priority_uris or (str(url.members[0]),)
        self._lost: BrokerUrl | None = None

    def of_round(self, rounds: int) -> list[BrokerUrl]:
        """Return the brokers of the next round, in order. ``rounds`` is the number of earlier rounds without
        success."""
        options = self._options
        members = with_file(self._known, options.update_uris_url)
        if rounds:
            # also try the brokers of the URL, because a broker may send host names that only its own network knows
            known = {str(member) for member in members}
            members = [*members, *(member for member in self._given if str(member) not in known)]
        ordered = in_order(members, self._lost, shuffled=options.randomize)
        if options.priority_backup:
            ordered.sort(key=lambda member: str(member) not in self._preferred)
        return ordered

    def found(self, present: BrokerUrl, metadata: ConnectionMetadata) -> None:
        """Remember that this broker is in use, and learn the other brokers that this broker names."""
        self._lost = None
        self._known = learn(self._known, self._given, present, metadata, self._options.amqp_open_server_list_action)

    def lost(self, present: BrokerUrl) -> None:
        """Let the next search begin with the broker that follows this broker in the list, because the connection to
        this broker was lost."""
        self._lost = present

    def better_than(self, present: BrokerUrl) -> list[BrokerUrl]:
        """Return the preferred brokers (``failover.priorityBackup``). The connection moves to one of them as soon as
        one can be reached. The list is empty if the present broker is preferred."""
        if not self._options.priority_backup or self.prefers(present):
            return []
        return [url for url in self._given if self.prefers(url)]

    def prefers(self, url: BrokerUrl) -> bool:
        """Return True if this is a preferred broker (``failover.priorityBackup``)."""
        return self._options.priority_backup and str(url) in self._preferred


def in_order(members: Sequence[BrokerUrl], lost: BrokerUrl | None, *, shuffled: bool) -> list[BrokerUrl]:
    """Return the brokers of a round. Their order is random if ``shuffled`` is true. Otherwise the order is the given
    one, beginning with the broker that follows the lost broker."""
    ordered = [*members]
    if shuffled:
        random.shuffle(ordered)  # to spread load, not to keep a secret
    elif lost in ordered:
        behind = ordered.index(lost) + 1
        ordered = ordered[behind:] + ordered[:behind]
    return ordered


def learn(
    members: Sequence[BrokerUrl],
    given: Sequence[BrokerUrl],
    present: BrokerUrl,
    metadata: ConnectionMetadata,
    action: str,
) -> list[BrokerUrl]:
    """Return the brokers to try from now on.

    Each new broker gets the options of the broker that named it. If the present broker uses TLS, a broker without TLS
    is not accepted, unless ``amqp.allowNonSecureRedirects`` allows it. Only the first :data:`MOST` entries of a list
    are read, and this client remembers at most :data:`MOST` brokers in addition to the brokers of the URL. Without
    these limits, a broker could use up the time and the memory of this client.

    Args:
        members: the brokers that are known now.
        action: ``REPLACE`` keeps the present broker and replaces all others by the brokers of the list, ``ADD`` adds
            the list to the known brokers, ``IGNORE`` changes nothing.
    """
    offered = metadata.properties.get("failover-server-list")
    if action == "IGNORE" or not isinstance(offered, Sequence) or isinstance(offered, str | bytes):
        return [*members]
    if len(offered) > MOST:
        log.warning("a broker named %d other brokers; only the first %d are used", len(offered), MOST)
    named = [_member(present, entry) for entry in offered[:MOST] if isinstance(entry, Mapping)]
    learned = {} if action == "REPLACE" else {str(member): member for member in members}
    for member in (present, *(member for member in named if member is not None)):
        if len(learned) < MOST + len(given):
            learned.setdefault(str(member), member)
    if [*learned] != [*map(str, members)]:
        log.info("the brokers to try from now on: %s", ", ".join(learned))
    return [*learned.values()]


def _member(present: BrokerUrl, entry: Mapping[object, object]) -> BrokerUrl | None:
    """Return the broker that an entry of the list describes by ``network-host`` or ``hostname``, ``port`` and
    ``scheme``. If the entry cannot be used, log the reason and return ``None``."""
    fields = {str(name): entry.get(name) for name in _FIELDS}
    host = fields.get("network-host") or fields.get("hostname")
    port = fields.get("port")
    scheme = str(fields.get("scheme") or present.scheme)
    secure = present.endpoints[0].tls and not present.amqp.allow_non_secure_redirects
    understood = isinstance(host, str) and len(host) <= _LONGEST_NAME and isinstance(port, int) and 0 < port < 65536
    if not understood or not host or scheme not in SCHEMES:
        log.warning("a broker named another broker in a way that cannot be used: %.200s", fields)
        return None
    if SCHEMES[scheme].protocol != present.protocol or (secure and not SCHEMES[scheme].tls):
        log.warning("a broker named another broker that is less secure or speaks another protocol: %.200s", fields)
        return None
    endpoint = Endpoint(scheme, str(host), cast(int, port), SCHEMES[scheme].tls)
    return replace(present, scheme=scheme, endpoints=(endpoint,))


MOST_CHARACTERS = 65536
"""The largest number of characters in the file of ``failover.updateURIsURL``."""

log = get_logger("pyjmsack.failover")


def with_file(members: Sequence[BrokerUrl], path: str | None) -> list[BrokerUrl]:
    """Return ``members``, followed by the brokers that the file names. The brokers of the file get the options of the
    first member.

    If the file cannot be read or holds no broker addresses, a warning is logged and nothing changes, because a bad file
    must not end a search. The I/O loop reads the file itself, because the file is small and is read only once for each
    round.
    """
    if path is None:
        return [*members]
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise ValueError("this is no regular file")  # reading a pipe could take for ever
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)
        if len(text) > MOST_CHARACTERS:
            raise ValueError(f"the file has more than {MOST_CHARACTERS:,} characters")
        parts = [part for part in map(str.strip, text.replace("\n", ",").split(",")) if part]
        if len(parts) > MOST:
            raise ValueError(f"the file names more than {MOST} brokers")
        check_plain("the file", parts)
        named = [parse_url(part) for part in parts]
    except (OSError, ValueError, JMSException) as error:
        log.warning("failover.updateURIsURL: %s: %.2000s", path, error)
        return [*members]
    known = [str(member) for member in members]
    more = {str(url): url for url in named if str(url) not in known}
    return [*members, *(replace(members[0], scheme=url.scheme, endpoints=url.endpoints) for url in more.values())]
