"""The tables of the open sessions and links of one connection. The keys are the numbers that the core gave them."""

from __future__ import annotations

from pyjmsack.providers.amqp.receiver import AmqpReceiver
from pyjmsack.providers.amqp.sender import AmqpSender
from pyjmsack.providers.amqp.session import AmqpSession
from pyjmsack.providers.amqp.temporary import AmqpTemporary
from pyjmsack.spi.completion import Completion

__all__ = ["OpenResources"]


class OpenResources:
    """The open sessions and links of one connection. The key is the number of a session or link. Session 0 belongs to
    the connection itself."""

    def __init__(self) -> None:
        self.sessions: dict[int, AmqpSession] = {}
        self.senders: dict[int, AmqpSender] = {}
        self.receivers: dict[int, AmqpReceiver] = {}
        self.temporaries: dict[int, AmqpTemporary] = {}
        self.transacted: dict[int, AmqpSession] = {}
        """The sessions that have a transaction. The key is the number of the session."""
        self._ending: dict[int, AmqpSession] = {}
        """The sessions whose End frame the broker has not answered yet. The key is the number of the session."""

    def end_session(self, number: int, done: Completion[None]) -> AmqpSession | None:
        """Remove a session and its links from the tables. The session counts as ending until ``done`` is completed."""
        self.transacted.pop(number, None)
        session = self.sessions.pop(number, None)
        if session is not None:
            for link in session.links:
                self.senders.pop(link, None)
                self.receivers.pop(link, None)
            self._ending[number] = session
            done.add_callback(lambda _: self._ending.pop(number, None))
        return session

    def take_all(self) -> list[AmqpSession]:
        """Empty all tables, and return the sessions that were in them, including the sessions that are ending."""
        sessions = [*self.sessions.values(), *self._ending.values()]
        self.sessions.clear()
        self.senders.clear()
        self.receivers.clear()
        self.temporaries.clear()
        self.transacted.clear()
        self._ending.clear()
        return sessions
