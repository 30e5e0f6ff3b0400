"""Decides how much credit one receiving link grants (AMQP 1.0 2.6.7), as the rules S50 and S53 demand."""

from __future__ import annotations

from pyjmsack.providers.amqp.caution import Caution

__all__ = ["Credit"]


class Credit:
    """Decides how much credit one link grants, and stores the facts that are needed for the decision. The receiver
    grants the credit.

    Args:
        prefetch: the size of the prefetch window in messages. 0 means that the caller pulls each message.
        caution: decides whether the link takes one message at a time.
        page: the number of messages after which the broker waits for more credit (``AmqpDialect.page``), or ``None``.
    """

    def __init__(self, prefetch: int, caution: Caution, page: int | None = None) -> None:
        self.prefetch = prefetch
        most = prefetch if page is None else page / 2
        self._used = min(prefetch * 0.5, most)
        self._room = min(prefetch - prefetch * 0.7, most)
        self._caution = caution
        self.stopped = False
        """True after the core has stopped the deliveries. No more credit is granted, and messages that still arrive go
        back to the queue."""
        self.held_back = False
        """True if a drain took the credit. No credit is granted until the core asks for credit. Otherwise new messages
        could arrive during a rollback, before the older messages that are delivered again after the rollback (S83)."""
        self.pulling = False
        """True if the caller pulled a message that has not arrived yet."""
        self.due_after_drain = False
        """True if the core asked for credit during a drain. The credit is granted when the drain is over."""

    def due(self, credit: int, buffered: int) -> int:
        """Return the number of messages for which the receiver has to grant credit now. 0 means no credit.

        By rule S53, credit is due when half the prefetch window is used, or half a page of the broker, unless the
        messages in the inbox fill the window. A link that takes one message at a time gets credit for one message, if
        the previous message has arrived and the inbox has room.

        Args:
            credit: the credit that the link has. The number is below 0 if the broker sent more messages than it had
                credit for.
            buffered: the number of messages that wait for the caller or for the disk.
        """
        prefetch = self.prefetch
        if self._caution.single:
            return 1 - credit if credit <= 0 and buffered < prefetch else 0
        room = prefetch - credit - buffered
        return room if prefetch - credit >= self._used and room >= self._room else 0
