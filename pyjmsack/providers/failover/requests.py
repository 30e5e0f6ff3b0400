"""Sends requests and messages to the broker in use, or keeps them for the next broker (S90-S92)."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from pyjmsack.errors import (
    BodyConsumedException,
    ConnectionLostException,
    IllegalStateException,
    JMSException,
    SendTimedOutException,
    TransactionRolledBackException,
)
from pyjmsack.providers.failover.blame import MOST_LOSSES, Blame, blamed
from pyjmsack.providers.failover.encoding import Encoding, translate
from pyjmsack.providers.failover.member import Member
from pyjmsack.providers.failover.pending import WITHOUT_BROKER, PendingSend, Request, Without
from pyjmsack.providers.failover.resources import Resources
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.spi.envelope import Outbound
from pyjmsack.spi.provider import Provider
from pyjmsack.spi.resources import ConnectionMetadata
from pyjmsack.uri import BrokerUrl

__all__ = ["Requests"]

_ALONE = 1.0
"""Seconds for which others wait behind a request that is suspected, or behind all suspected sends together. A suspect
may make the broker end connections. A guilty suspect makes the broker end the connection in less time."""


class Interrupted(NamedTuple):
    """The requests and sends that had no answer when a connection was lost."""

    pending: list[PendingSend | Request]
    """The requests and sends that the broker had not answered."""
    behind: list[PendingSend | Request]
    """The requests and sends that waited behind a request or send that had to be sent alone."""
    guilty: PendingSend | Request | None
    """The request or send that makes brokers end connections, or ``None`` if there is no such one."""
    error: BaseException

    @property
    def sends(self) -> list[PendingSend]:
        """The sends that the broker had not answered."""
        return [item for item in self.pending if isinstance(item, PendingSend)]


class Requests:
    """The requests and sends of a failover connection, in the order in which they were made.

    Args:
        resources: the open sessions, producers and consumers of the connection.
        patience: the number of seconds for which a send may wait for a broker. ``None`` means no limit.
    """

    def __init__(self, resources: Resources, connector: Connector, patience: float | None) -> None:
        self.member: Member | None = None
        """The connection to the broker in use, or ``None`` if there is none."""
        self.encoding: Encoding | None = None
        """The encoding of the broker in use. If no broker is in use, the encoding of the last broker."""
        self.failure: BaseException | None = None
        """The reason why no request is made any more. ``None`` while requests are made."""
        self.open: dict[PendingSend | Request, Member] = {}
        """The requests and sends without an answer, each with the connection over which it was sent. An answer over
        another connection is ignored, because it may come from a broker that the client is leaving."""
        self.held: dict[PendingSend | Request, None] = {}
        """The requests and sends that wait for the next broker, or behind one that must be sent alone."""
        self._resources = resources
        self._connector = connector
        self._patience = patience
        self._alone: PendingSend | Request | None = None
        """The request or send that was sent alone, so that only this one is blamed if the connection is lost. ``None``
        if none was sent alone."""
        self._alone_timer: Timer | None = None
        self._resuming = False
        """True while :meth:`resume` sends."""
        self._blame = Blame()
        """Counts the connections that were lost while one request or send was sent alone."""

    @property
    def metadata(self) -> ConnectionMetadata:
        """The description of the broker in use."""
        assert self.member is not None  # the caller has checked this
        assert self.member.metadata is not None  # a member in use has metadata
        return self.member.metadata

    # -- requests -----------------------------------------------------------------------------------------------

    def ask(self, request: Request) -> None:
        """Send a request to the broker in use. If the request cannot be sent now, keep it until it can be sent."""
        if self.member is None:
            self._wait_for_broker(request)
        elif self._alone is not None:
            self.held[request] = None
        else:
            self._issue(request)

    def _issue(self, request: Request) -> None:
        member = self.member
        assert member is not None  # the caller has checked this
        self.open[request] = member
        request.asked = True
        if request.losses.suspect:
            self._send_alone(request)
        answered: Completion[Any] = Completion()
        answered.add_callback(partial(self._on_answer, request, member))
        request.ask(member.provider, answered)

    def _on_answer(self, request: Request, member: Member, answered: Completion[Any]) -> None:
        if self.open.get(request) is not member:  # interrupt() took the request, because its connection was lost
            return
        del self.open[request]
        if answered.error is not None:
            request.give_up(answered.error)
        else:
            if request.then is not None and request.abandoned is None:
                request.then(answered.result())
            request.done.succeed(answered.result())
        if request is self._alone:
            self._end_alone()

    # -- a request or send that may be the reason why connections are lost --------------------------------------

    def _send_alone(self, suspect: PendingSend | Request) -> None:
        """Let other requests and sends wait until this one is answered, or for a time. Suspected sends that follow one
        another share this time."""
        self._alone = suspect
        if self._alone_timer is None:
            self._alone_timer = self._connector.call_later(_ALONE, self._waited_alone)

    def _waited_alone(self) -> None:
        """Send the others again, because the answers take too long. No send is suspected any more: there may be
        thousands of them, or the broker may be slow or full, and each suspect would hold up the others."""
        for item in (self._alone, *self.held):
            if isinstance(item, PendingSend):
                item.losses = None
        self._end_alone()

    def _end_alone(self) -> None:
        """Send other requests again, because the one that was sent alone was answered or takes too long."""
        self.forget_alone()
        self.resume()

    def _answered_alone(self, send: PendingSend) -> None:
        if send is self._alone:
            self._alone = None
            self.resume()
            if self._alone is None:
                self.forget_alone()

    def forget_alone(self) -> None:
        """Forget the request or send that had to be sent alone, and its timer."""
        self._alone = None
        if self._alone_timer is not None:
            self._alone_timer.cancel()
            self._alone_timer = None

    def resume(self) -> None:
        """Send the waiting requests and sends in order. Stop at one that must be sent alone. If a provider answers a
        send at once, this method is called again inside, and only the outer call goes on."""
        if self._resuming:
            return
        self._resuming = True
        try:
            while self.held and self.member is not None and self._alone is None:
                pending = next(iter(self.held))
                del self.held[pending]
                if isinstance(pending, Request):
                    self._issue(pending)
                elif pending.producer_id not in self._resources.producers:
                    pending.give_up(self._resources.why_closed(pending.producer_id))
                else:
                    pending.disarm()
                    self.transmit(pending)
        finally:
            self._resuming = False
        if self.member is not None:
            self.member.provider.flush()

    def _find_guilty(
        self, broker: BrokerUrl, reached: list[PendingSend | Request], error: BaseException
    ) -> PendingSend | Request | None:
        """Count a lost connection. Return the request or send that makes brokers end connections, or ``None`` if no
        such one is known (S109).

        Args:
            broker: the broker of the lost connection.
            reached: the requests and sends that may have reached the broker, and had no answer.
            error: the reason why the connection was lost.
        """
        for item in reached:
            item.lost(error)
        suspect, blame = self._alone if self._alone in reached else None, self._blame
        losses = None if suspect is None else suspect.losses
        blame.lost(broker, losses, error)
        if losses is None or not (losses.reasons >= MOST_LOSSES or blame.silence_convicts):
            return None
        blame.clear()
        return suspect

    def overtakes_end(self, session_id: int) -> bool:
        """Return True if a commit or rollback of this session waits here. In this case an acknowledgement of the next
        transaction must not be sent now, because the acknowledgement would reach the broker first and join the old
        transaction.

        A commit or rollback waits here if the caller stopped waiting for it and went on. If a commit waits, this method
        also removes the commit and makes it fail, because otherwise the broker would commit the new work together with
        the old work.
        """
        waiting = [item for item in self.held if isinstance(item, Request) and item.ends == session_id]
        for request in waiting:
            if request.verb == "commit":
                del self.held[request]
                request.give_up(TransactionRolledBackException("the commit was given up before it was sent"))
        return bool(waiting)

    # -- without a broker ---------------------------------------------------------------------------------------

    def interrupt(self, member: Member, error: BaseException) -> Interrupted:
        """Take the requests and sends that the lost broker did not answer, so that they can be repeated or finished."""
        pending = [*self.open]
        self.open.clear()
        reached: list[PendingSend | Request] = []
        for item in pending:
            if isinstance(item, PendingSend):
                item.left = not _never_left(member.provider, item)
            if isinstance(item, Request) or item.left:
                reached.append(item)
        guilty = self._find_guilty(member.url, reached, error)
        self.forget_alone()
        behind, self.held = self.held, {}
        return Interrupted(pending, [*behind], guilty, error)

    def hold_again(self, lost: Interrupted) -> None:
        """Keep or finish each interrupted send. Keep or finish each interrupted request as :data:`WITHOUT_BROKER`
        says."""
        for item in lost.pending:
            if item is lost.guilty:
                continue
            if isinstance(item, PendingSend):
                self._keep(item.again(), lost.error)
            else:
                self._wait_for_broker(item)
        for item in lost.behind:
            if isinstance(item, PendingSend):
                self._hold(item)
            else:
                self._wait_for_broker(item)
        if lost.guilty is not None:
            lost.guilty.give_up(blamed(lost.guilty.name, lost.error))

    def unreachable(self, broker: BrokerUrl) -> None:
        """Remember that a broker did not accept the connection, or that not everything was restored at this broker."""
        self._blame.unreachable(broker)

    def fail(self, error: BaseException) -> None:
        """Fail all requests and sends. Later requests and sends fail with the same error."""
        self.failure = error
        self.forget_alone()
        pending = [*self.open, *self.held]
        self.open.clear()
        self.held.clear()
        for item in pending:
            item.give_up(error)

    def _wait_for_broker(self, request: Request) -> None:
        """Keep or finish a request, because there is no broker now. :data:`WITHOUT_BROKER` decides between keeping and
        finishing (S90).
        """
        without = WITHOUT_BROKER[request.verb]
        gone = self.failure or request.abandoned
        if gone is not None:
            request.give_up(gone)
        elif without is Without.HELD:
            self.held[request] = None
        elif without is Without.SUCCEEDS:
            request.done.succeed()
        else:
            text = "the connection was lost before the broker answered, so the commit may have taken effect (S94)"
            text = text if request.asked else "the commit was not sent, because there is no broker now (S90)"
            request.give_up(TransactionRolledBackException(text, in_doubt=request.asked))

    def drop(self, number: int, what: str) -> None:
        """Give up the waiting requests and sends of a resource that was closed. A request that was sent and not
        answered is not repeated at another broker, and a late answer opens nothing."""
        for asked in self.open:
            if isinstance(asked, Request) and number in asked.owner:
                asked.abandoned = IllegalStateException(f"{what} was closed before the broker answered")
        for pending in [pending for pending in self.held if number in pending.owner]:
            del self.held[pending]
            pending.give_up(IllegalStateException(f"{what} was closed before there was a broker"))

    # -- sends --------------------------------------------------------------------------------------------------

    def send(self, outbound: Outbound) -> None:
        """Send a message, and keep it until the broker answers (S91)."""
        info = self._resources.producers.get(outbound.producer_id)
        if info is None:
            outbound.done(self.failure or self._resources.why_closed(outbound.producer_id))
        else:
            self.transmit(PendingSend(outbound, self.open, info.session_id))

    def withdraw(self, outbound: Outbound, withdrawn: Completion[bool]) -> None:
        """Take back a send, because it timed out. A send that may have reached a broker is not repeated any more."""
        sends = (k for k in (*self.held, *self.open) if isinstance(k, PendingSend) and k.origin is outbound)
        send = next(sends, None)
        if send is None:
            withdrawn.succeed(False)
        elif send in self.held:
            del self.held[send]
            withdrawn.succeed(not send.left)
            send.give_up(SendTimedOutException("the send was withdrawn, because there was no broker"))
        elif self.member is not None:
            send.withdrawn = True
            self.member.provider.withdraw(send, withdrawn)
        else:  # the connection is being closed: the last broker may have the message, and nobody waits for its answer
            send.withdrawn = True
            withdrawn.succeed(False)

    def undo(self, session_id: int) -> None:
        """Take back the sends of a transaction that was rolled back. They are not sent again."""
        for send in self.open:
            if isinstance(send, PendingSend) and send.transacted and send.session_id == session_id:
                send.undone = True
        for send in [*self.held]:
            if isinstance(send, PendingSend) and send.transacted and send.session_id == session_id:
                del self.held[send]
                send.give_up(
                    TransactionRolledBackException("the transaction was rolled back before this message was sent")
                )

    def transmit(self, send: PendingSend) -> None:
        """Give a send to the broker in use. If no broker is in use, keep the send."""
        if send.transacted and self._is_in_doubt(send):
            send.origin.done(None)  # the send appears to succeed, and the commit will fail (S92)
        elif self.member is None or self._alone is not None:
            self._hold(send)
        elif send.encoding is self.encoding or self._translated(send):
            self.open[send] = self.member
            session = self._resources.sessions.get(send.session_id) if send.transacted else None
            if session is not None and session.replay is not None:
                session.replay.sends.append(send)
            if send.losses is not None and send.losses.suspect:
                send.then = partial(self._answered_alone, send)
                self._send_alone(send)
            self.member.provider.send(send)

    def _is_in_doubt(self, send: PendingSend) -> bool:
        session = self._resources.sessions.get(send.session_id)
        if session is None:
            return False
        session.work += self.member is not None
        return session.in_doubt

    def _translated(self, send: PendingSend) -> bool:
        assert self.encoding is not None  # there is a broker
        try:
            translate(send, self.encoding, self._resources.present_name)
        except JMSException as error:
            send.give_up(error)
            return False
        return True

    def _keep(self, send: PendingSend, error: BaseException) -> None:
        """Keep a send whose outcome is unknown, because the next broker gets it again. If the send must not be
        repeated, finish it instead (S91, S92, S102)."""
        session = self._resources.sessions.get(send.session_id)
        if send.undone:
            send.origin.done(
                TransactionRolledBackException("the transaction was rolled back before the broker answered")
            )
        elif send.transacted and session is not None and session.in_doubt:
            send.origin.done(None)  # the send appears to succeed, and the commit will fail
        elif send.withdrawn or (send.notifies and send.left):
            send.origin.done(
                ConnectionLostException(f"the connection was lost before the outcome of the send was known: {error}")
            )
        elif not send.repeatable:
            consumed = BodyConsumedException(
                "the connection was lost before the outcome was known, so the message may have been stored; the message"
                f" is not sent again, because its body comes from an iterator, which was read already (S168): {error}"
            )
            consumed.__cause__ = error
            send.origin.done(consumed)
        else:
            self._hold(send)

    def _hold(self, send: PendingSend) -> None:
        self.held[send] = None
        if self._patience is not None and self.member is None and send.timer is None:
            send.timer = self._connector.call_later(self._patience, partial(self._expire, send))

    def _expire(self, send: PendingSend) -> None:
        if send in self.held:
            del self.held[send]
            text = "the message may have been stored" if send.left else "the message was not sent"
            send.give_up(SendTimedOutException(f"there was no broker within {self._patience:g} s; {text}"))


def _never_left(provider: Provider, send: PendingSend) -> bool:
    """Return True if the send is still in this client, because the lost broker had given no credit for it."""
    withdrawn: Completion[bool] = Completion()
    provider.withdraw(send, withdrawn)
    return withdrawn.done and withdrawn.error is None and withdrawn.result()
