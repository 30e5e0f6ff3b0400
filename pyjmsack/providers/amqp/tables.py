"""The tables of the open sessions and links of one connection, by the numbers that the core gave them."""

from __future__ import annotations

from pyjmsack.providers.amqp.receiver import AmqpReceiver
from pyjmsack.providers.amqp.sender import AmqpSender
from pyjmsack.providers.amqp.session import AmqpSession
from pyjmsack.providers.amqp.temporary import AmqpTemporary
from pyjmsack.spi.completion import Completion

__all__ = ["OpenResources"]


class OpenResources:
    """Sessions and links of one connection, by number. Number 0 is the session of the connection itself."""

    def __init__(self) -> None:
        self.sessions: dict[int, AmqpSession] = {}
        self.senders: dict[int, AmqpSender] = {}
        self.receivers: dict[int, AmqpReceiver] = {}
        self.temporaries: dict[int, AmqpTemporary] = {}
        self.transacted: dict[int, AmqpSession] = {}
        """Those of the sessions that have a transaction."""
        self._ending: dict[int, AmqpSession] = {}
        """Sessions whose End is not answered yet."""

    def end_session(self, number: int, done: Completion[None]) -> AmqpSession | None:
        """Take a session out, with its links; until ``done`` it counts as ending."""
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
        """Forget everything; return the sessions, those that are ending among them."""
        sessions = [*self.sessions.values(), *self._ending.values()]
        self.sessions.clear()
        self.senders.clear()
        self.receivers.clear()
        self.temporaries.clear()
        self.transacted.clear()
        self._ending.clear()
        return sessions
