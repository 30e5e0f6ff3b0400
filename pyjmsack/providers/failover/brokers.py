"""The brokers that a failover connection may use: those of the URL, those that a broker names, and those of a file."""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from pyjmsack.errors import JMSException
from pyjmsack.spi.resources import ConnectionMetadata
from pyjmsack.uri import SCHEMES, BrokerUrl, Endpoint, parse_url

__all__ = [
    "MOST",
    "MOST_CHARACTERS",
    "Brokers",
    "in_order",
    "learn",
    "with_file",
]

MOST = 100
"""Entries of a list that are looked at, and brokers known beside those of the URL."""
_LONGEST_NAME = 253
"""Characters of a host name (RFC 1035)."""
_FIELDS = ("network-host", "hostname", "port", "scheme")

log = logging.getLogger("pyjmsack.failover")


class Brokers:
    """The brokers of one connection, in the order in which they are tried.

    Args:
        url: of all brokers.
    """

    def __init__(self, url: BrokerUrl) -> None:
        self._given = url.members
        self._known = [*url.members]
        self._options = url.failover
        self._preferred: Collection[str] = url.failover.priority_uris or (str(url.members[0]),)
        self._lost: BrokerUrl | None = None

    def of_round(self, rounds: int) -> list[BrokerUrl]:
        """Return the brokers to try in the next round, in order. ``rounds`` were in vain before."""
        options = self._options
        members = with_file(self._known, options.update_uris_url)
        if rounds:  # none of these: a broker may have named others as they are called in a network of its own
            known = {str(member) for member in members}
            members = [*members, *(member for member in self._given if str(member) not in known)]
        ordered = in_order(members, self._lost, shuffled=options.randomize)
        if options.priority_backup:
            ordered.sort(key=lambda member: str(member) not in self._preferred)
        return ordered

    def found(self, present: BrokerUrl, metadata: ConnectionMetadata) -> None:
        """A broker is in use; it may name others."""
        self._lost = None
        self._known = learn(self._known, self._given, present, metadata, self._options.amqp_open_server_list_action)

    def lost(self, present: BrokerUrl) -> None:
        """The next search begins behind this one."""
        self._lost = present

    def better_than(self, present: BrokerUrl) -> list[BrokerUrl]:
        """Return the brokers to which the connection shall move when they are there (``failover.priorityBackup``)."""
        if not self._options.priority_backup or str(present) in self._preferred:
            return []
        return [url for url in self._given if str(url) in self._preferred]


def in_order(members: Sequence[BrokerUrl], lost: BrokerUrl | None, *, shuffled: bool) -> list[BrokerUrl]:
    """Return the brokers of a round: as written, beginning behind the one that was lost; or shuffled."""
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

    Each new one gets the options of the broker that named it. One without TLS is not taken from a broker with TLS,
    unless ``amqp.allowNonSecureRedirects`` says so. Of a list the first :data:`MOST` entries are looked at, and so many
    brokers beside those of the URL are known at most: what a broker says costs a bounded time, and no more memory.

    Args:
        given: those of the URL.
        action: ``REPLACE`` keeps the present broker and takes the list for the others, ``ADD`` adds to them, ``IGNORE``
            changes nothing.
    """
    offered = metadata.properties.get("failover-server-list")
    if action == "IGNORE" or not isinstance(offered, Sequence):
        return [*members]
    if len(offered) > MOST:
        log.warning("a broker named %d others: the first %d are looked at", len(offered), MOST)
    named = [_member(present, entry) for entry in offered[:MOST] if isinstance(entry, Mapping)]
    learned = {} if action == "REPLACE" else {str(member): member for member in members}
    for member in (present, *(member for member in named if member is not None)):
        if len(learned) < MOST + len(given):
            learned.setdefault(str(member), member)
    if [*learned] != [*map(str, members)]:
        log.info("brokers from now on: %s", ", ".join(learned))
    return [*learned.values()]


def _member(present: BrokerUrl, entry: Mapping[object, object]) -> BrokerUrl | None:
    """Return the broker of one entry: a map of ``network-host`` or ``hostname``, ``port`` and ``scheme``."""
    fields = {str(name): entry.get(name) for name in _FIELDS}
    host = fields.get("network-host") or fields.get("hostname")
    port = fields.get("port")
    scheme = str(fields.get("scheme") or present.scheme)
    secure = present.endpoints[0].tls and not present.amqp.allow_non_secure_redirects
    understood = isinstance(host, str) and len(host) <= _LONGEST_NAME and isinstance(port, int) and 0 < port < 65536
    if not understood or not host or scheme not in SCHEMES:
        log.warning("a broker named one that cannot be understood: %.200s", fields)
        return None
    if SCHEMES[scheme].protocol != present.protocol or (secure and not SCHEMES[scheme].tls):
        log.warning("a broker named one that is not as secure, or speaks another protocol: %.200s", fields)
        return None
    endpoint = Endpoint(scheme, str(host), cast(int, port), SCHEMES[scheme].tls)
    return replace(present, scheme=scheme, endpoints=(endpoint,))


MOST_CHARACTERS = 65536
"""Of the file."""

log = logging.getLogger("pyjmsack.failover")


def with_file(members: Sequence[BrokerUrl], path: str | None) -> list[BrokerUrl]:
    """Return the brokers with those of a file behind them, which get the options of the first.

    A file that cannot be read, or does not hold broker addresses, is logged and changes nothing: a search for a broker
    must not end by it. It is small and read before each round only, so the loop waits for it.
    """
    if path is None:
        return [*members]
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)
        if len(text) > MOST_CHARACTERS:
            raise ValueError(f"it has more than {MOST_CHARACTERS:,} characters")
        named = [parse_url(part.strip()) for part in text.replace("\n", ",").split(",") if part.strip()]
    except (OSError, ValueError, JMSException) as error:
        log.warning("failover.updateURIsURL: %s: %s", path, error)
        return [*members]
    known = [str(member) for member in members]
    more = {str(url): url for url in named if str(url) not in known}
    return [*members, *(replace(members[0], scheme=url.scheme, endpoints=url.endpoints) for url in more.values())]
