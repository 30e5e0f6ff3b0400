"""What is asked of the broker in use, and waits for the next one without (S90-S92)."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyjmsack.errors import (
    ConnectionLostException,
    IllegalStateException,
    JMSException,
    SendTimedOutException,
    TransactionRolledBackException,
)
from pyjmsack.providers.failover.blame import MOST_LOSSES, Blame
from pyjmsack.providers.failover.dialect import Dialect, translate
from pyjmsack.providers.failover.member import Member
from pyjmsack.providers.failover.pending import WITHOUT_BROKER, Kept, Request, Without
from pyjmsack.providers.failover.replays import Replays
from pyjmsack.providers.failover.restore import Resources
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.spi.resources import ConnectionMetadata
from pyjmsack.uri import BrokerUrl

__all__ = ["Asking"]

_ALONE = 1.0
"""Seconds for which others wait behind a request that may be guilty: a guilty one ends the connection sooner."""


class Asking:
    """The requests and sends of a failover connection, and what it has open.

    ``_member`` is the broker in use, ``None`` without one. What is asked meanwhile waits in ``_held``; what a broker
    was asked and has not answered is in ``_open``. Both are in the order in which it was asked.
    """

    def __init__(self, url: BrokerUrl, connector: Connector) -> None:
        self._url = url
        self._connector = connector
        limits = (url.failover.timeout, url.connection.send_timeout)
        self._patience = min((limit for limit in limits if limit is not None), default=None)
        """Seconds that a send may be held."""
        self._member: Member | None = None
        self._failure: BaseException | None = None
        self._dialect: Dialect | None = None
        self._open: dict[Kept | Request, bool] = {}
        self._held: dict[Kept | Request, None] = {}
        self._alone: Request | None = None
        """A request beside which nothing else is asked, so that nobody else is blamed if the connection is lost."""
        self._alone_timer: Timer | None = None
        self._blame = Blame()
        """Connections that were lost while a request was asked alone."""
        self._resources = Resources()
        self._producers = self._resources.producers
        period = url.connection.consumer_failover_redelivery_wait_period
        self._replays = Replays(self._resources, connector, period, lambda: self._member)

    @property
    def _metadata(self) -> ConnectionMetadata:
        """Of the broker in use."""
        assert self._member is not None  # the caller has looked
        assert self._member.metadata is not None  # it is in use
        return self._member.metadata

    # -- requests -----------------------------------------------------------------------------------------------

    def _ask(self, request: Request) -> None:
        if self._member is None:
            self._wait_for_broker(request)
        elif self._alone is not None:
            self._held[request] = None
        else:
            self._issue(request)

    def _issue(self, request: Request) -> None:
        member = self._member
        assert member is not None  # the caller has looked
        self._open[request] = request.asked = True
        if request.suspect:
            self._alone = request
            self._alone_timer = self._connector.call_later(_ALONE, self._end_alone)
        answered: Completion[Any] = Completion()
        answered.add_callback(partial(self._on_answer, request))
        request.ask(member.provider, answered)

    def _on_answer(self, request: Request, answered: Completion[Any]) -> None:
        if not self._open.pop(request, False):  # it was taken over, as its connection was lost
            return
        if answered.error is not None:
            request.give_up(answered.error)
        else:
            if request.then is not None and request.abandoned is None:
                request.then(answered.result())
            request.done.succeed(answered.result())
        if request is self._alone:
            self._end_alone()

    # -- a request that may be the reason why connections are lost ----------------------------------------------

    def _end_alone(self) -> None:
        """It was answered, or takes too long for others to wait for it."""
        self._forget_alone()
        self._resume()

    def _forget_alone(self) -> None:
        self._alone = None
        if self._alone_timer is not None:
            self._alone_timer.cancel()
            self._alone_timer = None

    def _resume(self) -> None:
        """Do what waits, in order, up to a request that must be alone."""
        while self._held and self._member is not None and self._alone is None:
            pending = next(iter(self._held))
            del self._held[pending]
            if isinstance(pending, Request):
                self._issue(pending)
            elif pending.producer_id not in self._producers:
                pending.give_up(self._resources.why_closed(pending.producer_id))
            else:
                pending.disarm()
                self._transmit(pending)
        if self._member is not None:
            self._member.provider.flush()

    def _find_guilty(self, broker: BrokerUrl, unanswered: list[Kept | Request], error: BaseException) -> Request | None:
        """Return the request over which connections are lost, if there is one (S109); one was lost just now."""
        for item in unanswered:
            if isinstance(item, Request):
                item.lost(error)
        suspect, blame = self._alone, self._blame
        blame.lost(broker, suspect, error)
        if suspect is None or not (suspect.reasons >= MOST_LOSSES or blame.silence_convicts):
            return None
        blame.clear()
        return suspect

    def _wait_for_broker(self, request: Request) -> None:
        """The table of S90."""
        without = WITHOUT_BROKER[request.verb]
        gone = self._failure or request.abandoned
        if gone is not None:
            request.give_up(gone)
        elif without is Without.HELD:
            self._held[request] = None
        elif without is Without.SUCCEEDS:
            request.done.succeed()
        else:
            text = "the connection was lost before the answer: it may have taken effect (S94)"
            text = text if request.asked else "there is no broker now (S90)"
            request.give_up(TransactionRolledBackException(text, in_doubt=request.asked))

    def _drop(self, number: int, what: str) -> None:
        """A resource is closed: what waits for a broker in its name is given up. What a broker was asked in its name is
        not asked of another one, nor kept as open when its answer comes."""
        for asked in self._open:
            if isinstance(asked, Request) and number in asked.owner:
                asked.abandoned = IllegalStateException(f"{what} was closed before the broker answered")
        for pending in [pending for pending in self._held if number in pending.owner]:
            del self._held[pending]
            pending.give_up(IllegalStateException(f"{what} was closed before there was a broker"))

    # -- sends --------------------------------------------------------------------------------------------------

    def _transmit(self, kept: Kept) -> None:
        """Give a send to the broker, or hold it."""
        if kept.transacted and self._is_in_doubt(kept):
            kept.origin.done(None)  # appears to succeed: the commit will say what became of it (S92)
        elif self._member is None or self._alone is not None:
            self._hold(kept)
        elif kept.dialect is self._dialect or self._translated(kept):
            self._open[kept] = True
            session = self._resources.sessions.get(kept.session_id) if kept.transacted else None
            if session is not None and session.replay is not None:
                session.replay.sends.append(kept)
            self._member.provider.send(kept)

    def _is_in_doubt(self, kept: Kept) -> bool:
        session = self._resources.sessions.get(kept.session_id)
        if session is None:
            return False
        session.work += self._member is not None
        return session.in_doubt

    def _translated(self, kept: Kept) -> bool:
        assert self._dialect is not None  # there is a broker
        try:
            translate(kept, self._dialect, self._resources.present_name)
        except JMSException as error:
            kept.give_up(error)
            return False
        return True

    def _keep(self, kept: Kept, error: BaseException) -> None:
        """A send without outcome: hold it, unless it may not be repeated (S91, S92, S102)."""
        session = self._resources.sessions.get(kept.session_id)
        if kept.undone:
            kept.origin.done(TransactionRolledBackException("rolled back before it was answered"))
        elif kept.transacted and session is not None and session.in_doubt:
            kept.origin.done(None)  # appears to succeed: the commit will say what became of it
        elif kept.withdrawn or (kept.notifies and kept.left):
            kept.origin.done(ConnectionLostException(f"the connection was lost before the outcome was known: {error}"))
        else:
            self._hold(kept)

    def _hold(self, kept: Kept) -> None:
        self._held[kept] = None
        if self._patience is not None:
            kept.timer = self._connector.call_later(self._patience, partial(self._expire, kept))

    def _expire(self, kept: Kept) -> None:
        if kept in self._held:
            del self._held[kept]
            text = "the message may have been stored" if kept.left else "the message was not sent"
            kept.give_up(SendTimedOutException(f"no broker within {self._patience:g} s; {text}"))
