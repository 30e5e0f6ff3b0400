"""The list of brokers that a broker gives in its Open: ``failover-server-list`` (A.1 amqpOpenServerListAction)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from pyjmsack.spi.resources import ConnectionMetadata
from pyjmsack.uri import SCHEMES, BrokerUrl, Endpoint

__all__ = ["MOST", "learn"]

MOST = 100
"""Entries of a list that are looked at, and brokers known beside those of the URL."""
_LONGEST_NAME = 253
"""Characters of a host name (RFC 1035)."""
_FIELDS = ("network-host", "hostname", "port", "scheme")

log = logging.getLogger("pyjmsack.failover")


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
