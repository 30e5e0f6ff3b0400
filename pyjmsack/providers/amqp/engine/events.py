"""The events that the engine reports to its caller. An event is a tuple whose first element is one of these numbers.

============================================= ===================================================================
event                                         the peer ...
============================================= ===================================================================
``(OPENED, open)``                            opened its end of the connection
``(BEGUN, session)``                          answered our Begin
``(ATTACHED, link)``                          answered our Attach; with no queue or topic the peer refuses the link
``(CREDIT, link)``                            sent a Flow; ``link.credit`` and ``link.drain`` have their new values
``(DELIVERY, link, id, payload, settled)``    sent a whole message
``(OVERSIZE, link, id, start, size, settled)`` sent a message over the limit of the link; its first bytes are kept
``(BEGINNING, link, id, start)``              sent a part of a large message; the owner of the link may now call
                                                :meth:`.ReceiverLink.take_pieces`
``(PIECE, link, payload, more, settled, aborted)`` sent more of a message that is taken in pieces
``(OUTCOME, link, context, state)``           gave our message its outcome, or settled it without one (``None``)
``(DETACHED, link)``                          detached the link, see ``link.remote_error`` and ``link.remote_closed``
``(ENDED, session)``                          ended the session and so its links; ``session.remote_error`` says why
``(CLOSED, error)``                           closed the connection; ``None`` means that it gave no error
``(FAILED, error)``                           broke the specification, or was silent for too long
============================================= ===================================================================

The events are plain tuples, because every message causes two events. To make an object of a class for each event would
take longer than to parse the frame.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

__all__ = [
    "ATTACHED",
    "BEGINNING",
    "BEGUN",
    "CLOSED",
    "CREDIT",
    "DELIVERY",
    "DETACHED",
    "ENDED",
    "FAILED",
    "OPENED",
    "OUTCOME",
    "OVERSIZE",
    "PIECE",
    "Event",
]

Event: TypeAlias = "tuple[Any, ...]"

DELIVERY: Final = 0
OUTCOME: Final = 1
CREDIT: Final = 2
OPENED: Final = 3
BEGUN: Final = 4
ATTACHED: Final = 5
DETACHED: Final = 6
ENDED: Final = 7
CLOSED: Final = 8
FAILED: Final = 9
OVERSIZE: Final = 10
BEGINNING: Final = 11
PIECE: Final = 12
