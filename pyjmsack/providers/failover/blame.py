"""Decides whether one request or one link makes brokers end connections, or whether the network is bad (S104, S109).
``requests.py`` uses this module for requests, and ``restore.py`` for links. ``search.py`` decides when to connect
again, and ``brokers.py`` to which broker."""

from __future__ import annotations

import re
from typing import Final

from pyjmsack.errors import JMSException, ResourceAllocationException
from pyjmsack.uri import BrokerUrl

__all__ = ["MOST_LOSSES", "MOST_SILENT_LOSSES", "Blame", "blamed", "says_why"]

MOST_LOSSES: Final = 3
"""A request or link is given up after this number of lost connections for which the broker gave a reason. Nothing else
was pending when the last of them was lost."""
MOST_SILENT_LOSSES: Final = 10
"""A request or link is given up after this number of connections in a row that were lost without a reason from the
broker. Nothing else was pending when each of them was lost."""
_NOT_OVER_A_LINK: Final = ("amqp:connection:forced", "amqp:connection:redirect")
"""Error codes for which no link is to blame: the broker stops, or an operator ends the connection or redirects the
client."""
_LOST_US: Final = re.compile(r"idle-?\s?timeout|connection TTL|heart-?beat", re.IGNORECASE)
"""Words in the error of a broker that received nothing from this client for too long. The network causes such an
error."""


def says_why(error: BaseException) -> bool:
    """Return True if the broker gave a reason why it ended the connection: a Close with a condition, or an ERROR frame.

    A stream that ends without a reason looks the same as a bad network.
    """
    code = error.error_code if isinstance(error, JMSException) else None
    return code is not None and code not in _NOT_OVER_A_LINK and not _LOST_US.search(str(error))


class Blame:
    """Counts the connections in a row that were lost, and remembers the one request or link that was pending each time.

    A loss for which the broker gives a reason is strong evidence. A silent loss is weak evidence: it counts only if the
    same request or link was the only pending one each time, and the broker could be reached each time.
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
            suspect: the only pending request or link, or ``None`` if there was none or more than one.

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
        """True if so many connections were lost while the suspect was pending that the network cannot be the only
        reason.
        """
        return self._silent >= MOST_SILENT_LOSSES

    def unreachable(self, broker: BrokerUrl) -> None:
        """Forget the losses without a reason, if this is the broker of the last loss. If a broker accepts no connection
        at all, the broker or the network causes the losses, and not the suspect."""
        if broker == self._broker:
            self._silent = 0

    def clear(self) -> None:
        """Forget all losses, because the broker granted every request."""
        self.losses = self.reasons = self._silent = 0
        self._suspect = self._broker = None


def blamed(what: str, error: BaseException) -> JMSException:
    """Return the error for a request or link that makes brokers end connections. ``what`` names it."""
    losses = MOST_LOSSES if says_why(error) else MOST_SILENT_LOSSES
    guilty = ResourceAllocationException(
        f"pyjmsack gave up {what} and keeps the connection, because {losses} connections were lost while {what} waited"
        f" for an answer; the last error was: {error}"
    )
    guilty.__cause__ = error
    return guilty
