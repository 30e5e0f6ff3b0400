"""Whether a link or a request ends connections, or the network is bad (S104, S109)."""

from __future__ import annotations

import re
from typing import Final

from pyjmsack.errors import JMSException, ResourceAllocationException
from pyjmsack.uri import BrokerUrl

__all__ = ["MOST_LOSSES", "MOST_SILENT_LOSSES", "Blame", "blamed", "says_why"]

MOST_LOSSES: Final = 3
"""So many connections may be lost over one request or link if the broker says why; the last one while it alone was
asked for."""
MOST_SILENT_LOSSES: Final = 10
"""So many connections in a row may be lost without a reason while the same request or link alone was asked for."""
_NOT_OVER_A_LINK: Final = ("amqp:connection:forced", "amqp:connection:redirect")
"""Reasons of the broker itself: it stops, or an operator ends the connection, or sends it elsewhere."""
_LOST_US: Final = re.compile(r"idle-?\s?timeout|connection TTL|heart-?beat", re.IGNORECASE)
"""Words of a broker that heard nothing from us: that is the network."""


def says_why(error: BaseException) -> bool:
    """Whether the broker gave a reason why it ended the connection: a Close with a condition, or an ERROR frame.

    A stream that merely ends is what a bad network looks like.
    """
    code = error.error_code if isinstance(error, JMSException) else None
    return code is not None and code not in _NOT_OVER_A_LINK and not _LOST_US.search(str(error))


class Blame:
    """Connections in a row that were lost, and the one thing that each was asked for then.

    A loss for which the broker gives a reason is strong evidence. A silent one is weak: it counts only while the same
    thing alone is asked for every time, and the broker is reached every time.
    """

    def __init__(self) -> None:
        self.losses = 0
        """Connections in a row that were lost."""
        self.reasons = 0
        """Those of them for which a broker gave a reason."""
        self._suspect: object = None
        self._silent = 0
        self._broker: BrokerUrl | None = None

    def lost(self, broker: BrokerUrl, suspect: object, error: BaseException) -> bool:
        """Count a lost connection.

        Args:
            suspect: what alone was asked for then, ``None`` if there was nothing or more than one thing.

        Returns:
            Whether the same suspect was asked for when the connection before was lost.
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
        """Whether the suspect is at fault: more connections were lost with it than a bad network explains."""
        return self._silent >= MOST_SILENT_LOSSES

    def unreachable(self, broker: BrokerUrl) -> None:
        """The broker of the last loss did not take a connection: it or the network is in trouble."""
        if broker == self._broker:
            self._silent = 0

    def clear(self) -> None:
        """All that was asked for was taken."""
        self.losses = self.reasons = self._silent = 0
        self._suspect = self._broker = None


def blamed(what: str, error: BaseException) -> JMSException:
    """Return the error for what ends connections."""
    losses = MOST_LOSSES if says_why(error) else MOST_SILENT_LOSSES
    guilty = ResourceAllocationException(
        f"{what} is given up, and not the connection: {losses} connections in a row were lost while a broker was"
        f" asked for it; the last one said: {error}"
    )
    guilty.__cause__ = error
    return guilty
