"""Reckons how many settled messages the broker still owes to one receiving link after a drain (rule S36)."""

from __future__ import annotations

__all__ = ["Owed"]

_EMPTY = 3
"""The number of drains with one credit that have to bring nothing in a row. After the first of them Artemis still sent
a large message in some 1 of 30 runs."""


class Owed:
    """The messages that the broker has taken from the queue for one link, and sends only when it gets credit.

    Artemis 2.56 may answer a drain before the first frame of a message that it has taken from the queue, above all of a
    large one. The answer takes the credit of this message and of those behind it. A small message with the only credit
    of its link was lost in some 1 of 80 drains on a busy machine. If the messages are settled, they are lost when the
    link ends. Other messages go back to the queue then, so nothing is done about them.

    Args:
        possible: whether the broker may owe settled messages of this link.
        pulls: whether each message is asked for by a caller (prefetch 0). If such a drain of one credit brings nothing,
            nearly always nobody sent a message. To ask again would get a message that no caller wants.
    """

    def __init__(self, *, possible: bool = False, pulls: bool = False) -> None:
        self._possible = possible
        self._pulls = pulls
        self.most = 0
        """The most messages that the broker may owe. The next messages that arrive are these."""
        self.kept = False
        """Whether the caller of a stopped link still takes messages (S36). A link that is closed does not get what is
        owed, because nobody would take it."""
        self.fetching = False
        """Whether the drain under way is for messages that are owed."""
        self._empty = 0
        """The number of drains in a row, with one credit each, that brought nothing."""

    def wanted(self) -> int:
        """Return the number of owed messages that the link has to get now."""
        return self.most if self.kept else 0

    @property
    def careful(self) -> bool:
        """Whether the next drain needs a pause before it, because the last one brought nothing."""
        return self._empty > 0

    def after(self, credit: int, arrived: int) -> int:
        """Reckon what is owed at the end of a drain. Return the credit for a drain that brings it.

        If some drains with one credit bring no message, nothing is owed. So such a drain comes first. If it brings a
        message, the others get their credit at once.

        Args:
            credit: the credit with which the drain began.
            arrived: the number of messages that arrived during the drain.

        Returns:
            0 if the link needs no other drain.
        """
        if not self._possible:
            return 0
        left = max(0, credit - arrived)
        self._empty = self._empty + 1 if self.fetching and credit == 1 and left else 0
        if self._empty == _EMPTY:
            self.most = self._empty = 0
        if not self.fetching and (credit > 1 or not self._pulls):
            self.most = max(self.most, left)
        brought = self.fetching and credit == 1 and not left
        return self.wanted() if brought else min(self.wanted(), 1)
