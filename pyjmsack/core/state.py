"""The facts about a session that its producers and consumers must know."""

from __future__ import annotations

from enum import IntEnum

from pyjmsack.core.channel import Channel
from pyjmsack.core.guard import Memory
from pyjmsack.core.transaction import Transactions
from pyjmsack.errors import IllegalStateException
from pyjmsack.spi.resources import SessionInfo

__all__ = ["SessionState", "State"]


class State(IntEnum):
    """Whether a session is open, is being closed, or is closed."""

    OPEN = 0
    CLOSING = 1
    """No message is handed out any more. The listener at work may still acknowledge and send."""
    CLOSED = 2


class SessionState:
    """The facts about one session that its producers and consumers may read. Only the
    :class:`~pyjmsack.core.session.Session` changes these facts.

    Args:
        channel: the connection.
        info: id and acknowledge mode.
        memory: the messages that were processed in the session.
        transactions: the open transaction, and how it ends.
    """

    __slots__ = ("channel", "info", "listeners", "memory", "remote_close", "started", "state", "transactions")

    def __init__(self, channel: Channel, info: SessionInfo, memory: Memory, transactions: Transactions) -> None:
        self.channel = channel
        self.info = info
        self.memory = memory
        self.transactions = transactions
        self.state = State.OPEN
        self.started = False
        """Whether messages may be handed out: the connection is started, and the session is neither closing nor ending
        a transaction. A message handed out during a commit would belong to no transaction."""
        self.listeners: set[int] = set()
        """Ids of the open consumers that have a message listener."""
        self.remote_close = channel.events.remote_close(info.id, "on_session_closed")

    @property
    def closed(self) -> bool:
        """Whether the session is closed."""
        return self.state is State.CLOSED

    def check_open(self) -> None:
        """Raise an error if the session or the connection is closed or lost (S125)."""
        if self.state is State.CLOSED:
            raise IllegalStateException("the session is closed")
        self.channel.check_open()
        if not self.started:
            self.transactions.look_again()
