"""The list of brokers that a broker gives in its Open: ``failover-server-list`` (A.1 amqpOpenServerListAction)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyjmsack.spi.resources import ConnectionMetadata
from pyjmsack.uri import SCHEMES, BrokerUrl, Endpoint

__all__ = ["learn"]

log = logging.getLogger("pyjmsack.failover")


def learn(
    members: Sequence[BrokerUrl], present: BrokerUrl, metadata: ConnectionMetadata, action: str
) -> list[BrokerUrl]:
    """Return the brokers to try from now on.

    Each new one gets the options of the broker that named it. One without TLS is not taken from a broker with TLS,
    unless ``amqp.allowNonSecureRedirects`` says so.

    Args:
        action: ``REPLACE`` keeps the present broker and takes the list for the others, ``ADD`` adds to them, ``IGNORE``
            changes nothing.
    """
    offered = metadata.properties.get("failover-server-list")
    if action == "IGNORE" or not isinstance(offered, Sequence):
        return [*members]
    named = [_member(present, entry) for entry in offered if isinstance(entry, Mapping)]
    learned = [] if action == "REPLACE" else [*members]
    for member in (present, *(member for member in named if member is not None)):
        if str(member) not in [str(known) for known in learned]:
            learned.append(member)
    if [*map(str, learned)] != [*map(str, members)]:
        log.info("brokers from now on: %s", ", ".join(map(str, learned)))
    return learned


def _member(present: BrokerUrl, entry: Mapping[object, object]) -> BrokerUrl | None:
    """Return the broker of one entry: a map of ``network-host`` or ``hostname``, ``port`` and ``scheme``."""
    fields = {str(name): value for name, value in entry.items()}
    host = fields.get("network-host") or fields.get("hostname")
    port = fields.get("port")
    scheme = str(fields.get("scheme") or present.scheme)
    secure = present.endpoints[0].tls and not present.amqp.allow_non_secure_redirects
    if not host or not isinstance(port, int) or scheme not in SCHEMES:
        log.warning("a broker named one that cannot be understood: %s", fields)
        return None
    if SCHEMES[scheme].protocol != present.protocol or (secure and not SCHEMES[scheme].tls):
        log.warning("a broker named one that is not as secure, or speaks another protocol: %s", fields)
        return None
    endpoint = Endpoint(scheme, str(host), int(port), SCHEMES[scheme].tls)
    return replace(present, scheme=scheme, endpoints=(endpoint,))
