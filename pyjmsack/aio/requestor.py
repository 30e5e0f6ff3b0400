"""The asyncio requestor."""

from __future__ import annotations

from datetime import timedelta

from pyjmsack.aio._face import SessionFace
from pyjmsack.core import requestor as core_requestor
from pyjmsack.core.facade import RequestorFacade
from pyjmsack.core.stats import seconds
from pyjmsack.message import Message

__all__ = ["Requestor"]


class Requestor(RequestorFacade):
    """Sends requests and waits for their replies. Any number of tasks may share a requestor.
    :meth:`Session.create_requestor` makes a requestor.

    The replies come to a temporary queue of the requestor. The answering program must give the reply the correlation id
    of the request, or the message id of the request if the request has no correlation id. :meth:`MessageProducer.reply`
    does this.
    """

    def __init__(self, core: core_requestor.Requestor, face: SessionFace) -> None:
        super().__init__(core)
        self._run = face.run

    async def request(
        self,
        message: object,
        timeout: float | timedelta | None = None,
        *,
        delivery_mode: int | None = None,
        priority: int | None = None,
        time_to_live: float | timedelta | None = None,
        delivery_delay: float | timedelta | None = None,
    ) -> Message:
        """Send a request and return its reply. The reply is acknowledged. If the task is cancelled, the reply is
        dropped.

        Args:
            message: a message, or a value that becomes one, such as a ``str``. Its ``reply_to`` is set.
            timeout: seconds or ``timedelta`` to wait for the reply; ``None`` waits for ever.
            delivery_mode, priority, time_to_live, delivery_delay: as for :meth:`MessageProducer.send`.

        Raises:
            RequestTimedOutException: no reply came in time. A later reply is dropped.
            IllegalStateException: the requestor or the connection is closed, the connection is stopped, or another
                request that is under way or was given up has the same correlation id.
            JMSException: the broker did not accept the request, or the connection is lost.
        """
        limit = seconds(timeout)
        request = self._core.send(message, delivery_mode, priority, time_to_live, delivery_delay)
        return await self._run(self._core.wait(request, limit))

    async def close(self) -> None:
        """Delete the queue for the replies. Requests under way raise ``IllegalStateException``. A second call has no
        effect.
        """
        await self._run(self._core.close())

    async def __aenter__(self) -> Requestor:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
