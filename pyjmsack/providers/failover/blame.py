"""Decides why connections are lost: because of one request, because of one session or link, or because of a bad network
(S104, S109). A link is the path of one producer or consumer. ``requests.py`` uses this module for requests, and
``restore.py`` for sessions and links. ``search.py`` decides when to connect again, and ``brokers.py`` to which
broker."""

from __future__ import annotations

import re
from typing import Final

from pyjmsack.errors import JMSException, ResourceAllocationException
from pyjmsack.uri import BrokerUrl

__all__ = ["MOST_LOSSES", "MOST_SILENT_LOSSES", "Blame", "blamed", "says_why"]

MOST_LOSSES: Final = 3
"""A request, session or link is given up after this number of lost connections for which the broker gave a reason. The
last of these connections must have been lost while nothing else was pending."""
MOST_SILENT_LOSSES: Final = 10
"""A request, session or link is given up after this number of connections in a row that were lost without a reason from
the broker. Each of these connections must have been lost while nothing else was pending."""
_NOT_OVER_A_LINK: Final = ("amqp:connection:forced", "amqp:connection:redirect")
"""Error codes that no session or link can cause, because the broker sends them when the broker stops, and when an
operator ends the connection or redirects the client."""
_LOST_US: Final = re.compile(r"idle-?\s?timeout|connection TTL|heart-?beat", re.IGNORECASE)
"""Words of the errors with which brokers end a connection because they received nothing for too long. The network
causes such an error, and not a request, session or link."""


def says_why(error: BaseException) -> bool:
    """Return True if the broker gave a reason why it ended the connection: a Close with a condition, or an ERROR frame.

    If the stream ends without a reason, the network may be bad. Some reasons do not count, because no request,
    session or link can cause them.
    """
    code = error.error_code if isinstance(error, JMSException) else None
    return code is not None and code not in _NOT_OVER_A_LINK and not _LOST_US.search(str(error))


class Blame:
    """Counts the connections in a row that were lost, and remembers the one request, session or link that was pending
    each time.

    A loss for which the broker gives a reason is strong evidence. A loss without a reason is weak evidence. Such losses
    count only if the same request, session or link was pending alone each time, and the broker could be reached each
    time.
    """

    def __init__(self) -> None:
        self.losses = 0
        """The number of connections in a row that were lost."""
        self.reasons = 0
        """The number of connections in a row that were lost and for which a broker gave a reason."""
        self._suspect: object = None
        self._silent = 0
        self._broker: BrokerUrl | None = None

    def lost(self, broker: BrokerUrl, suspect: object, error: BaseException) -> bool:
        """Count a lost connection.

        Args:
            broker: the broker of the lost connection.
            suspect: the request, session or link that was pending alone, or ``None`` if nothing or several things were
                pending.
            error: the reason why the connection was lost.

        Returns:
            True if the same suspect was pending when the previous connection was lost.
        """
        again = suspect is not None and suspect == self._suspect
        silent = suspect is not None and not says_why(error)
        self.losses += 1
        self.reasons += says_why(error)
        self._silent = (self._silent if again else 0) + silent
        self._suspect, self._broker = suspect, broker
        return again

    @property
    def silence_convicts(self) -> bool:
        """True if the suspect is to blame although no broker gave a reason: :data:`MOST_SILENT_LOSSES` connections in a
        row were lost while only the suspect was pending, so the network cannot be the only cause."""
        return self._silent >= MOST_SILENT_LOSSES

    def unreachable(self, broker: BrokerUrl) -> None:
        """Forget the losses without a reason, if ``broker`` is the broker of the last loss. If a broker accepts no
        connection at all, the broker or the network causes the losses, and not the suspect."""
        if broker == self._broker:
            self._silent = 0

    def clear(self) -> None:
        """Forget all losses, because everything is restored, or because the guilty one was found."""
        self.losses = self.reasons = self._silent = 0
        self._suspect = self._broker = None


def blamed(what: str, error: BaseException) -> JMSException:
    """Return the error for a request, session or link that makes brokers end connections. ``what`` names it."""
    losses = MOST_LOSSES if says_why(error) else MOST_SILENT_LOSSES
    guilty = ResourceAllocationException(
        f"pyjmsack gave up {what} and keeps the connection, because {losses} connections were lost while {what} waited"
        f" for an answer; the last error was: {error}"
    )
    guilty.__cause__ = error
    return guilty
