"""The blocking requestor."""

from __future__ import annotations

import threading
from datetime import timedelta

from pyjmsack.core import requestor as core_requestor
from pyjmsack.core.facade import RequestorFacade
from pyjmsack.core.stats import seconds
from pyjmsack.message import Message
from pyjmsack.sync._face import SessionFace

__all__ = ["Requestor"]


class Requestor(RequestorFacade):
    """Sends requests and waits for their replies, as JMS' ``QueueRequestor``; any number of threads may share it.

    The replies come to a temporary queue of its own. Whoever answers copies the request's correlation id, or its
    message id if it has none, into the reply's correlation id: :meth:`pyjmsack.MessageProducer.reply`.
    """

    def __init__(self, core: core_requestor.Requestor, face: SessionFace) -> None:
        super().__init__(core)
        self._run = face.run
        self._sending = threading.Lock()

    def request(
        self,
        message: object,
        timeout: float | timedelta | None = None,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live: float | timedelta | None = None,
        delivery_delay: float | timedelta | None = None,
    ) -> Message:
        """Send a request and return its reply, which is acknowledged.

        Args:
            message: a message, or ``str``/``bytes``/... turned into one; its ``reply_to`` is set.
            timeout: seconds or ``timedelta`` to wait for the reply; ``None`` waits for ever.
            delivery_mode, priority, time_to_live, delivery_delay: as for :meth:`pyjmsack.MessageProducer.send`.

        Raises:
            RequestTimedOutException: no reply in time; one that comes later is dropped.
            IllegalStateException: the requestor or connection is closed, the connection is stopped, or the message's
                correlation id is that of another request under way or given up.
            JMSException: the request was not accepted by the broker, or the connection is lost.
        """
        limit = seconds(timeout)
        with self._sending:
            request = self._core.send(message, delivery_mode, priority, time_to_live, delivery_delay)
        return self._run(self._core.wait(request, limit))

    def close(self) -> None:
        """Delete the queue for the replies; requests under way raise. Idempotent."""
        self._run(self._core.close())

    def __enter__(self) -> Requestor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
