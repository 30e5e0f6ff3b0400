"""Treats the open transactions of a lost broker: some continue (S92, S93), some are replayed at the next broker (S107),
and the others are rolled back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from pyjmsack.providers.failover.pending import PendingSend
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.spi.envelope import Inbound, Outbound
from pyjmsack.spi.provider import Provider
from pyjmsack.types import Outcome

if TYPE_CHECKING:
    from pyjmsack.providers.failover.resources import ConsumerRecord, Resources, SessionRecord


__all__ = [
    "Again",
    "Replay",
    "Transactions",
]

_IDENTIFYING = 10.0
"""Seconds for which a commit may wait while another thread computes the identity of a large message, if
``jms.consumerFailoverRedeliveryWaitPeriod`` is 0."""
Received = tuple[int, bytes]
"""A message that a transaction received: the id of the consumer that acknowledged the message, and the key of the
message.
"""


class Replay:
    """Records the work of one open transaction, so that it can be replayed.

    To replay a send, the payload is sent again. To replay an acknowledgement, the client waits until the message is
    delivered again to the same consumer, and acknowledges it again. The consumer does not hand the message out, because
    the caller has it already.
    """

    def __init__(self) -> None:
        self.sends: list[PendingSend] = []
        """The sends that the present broker got, in order."""
        self.missing: Counter[Received] = Counter()
        """The messages that were acknowledged at an earlier broker and were not delivered again yet. Each has a count,
        because a message may be stored twice (S91)."""
        self.impossible = False
        self.waiting: list[Callable[[], None]] | None = None
        """The commit that waits until all work is repeated, followed by the requests behind it. ``None`` if no commit
        waits."""
        self.timer: Timer | None = None
        self._received: Counter[Received] = Counter()
        self._unanswered = 0

    # -- a broker is in use ----------------------------------------------------------------------------------

    def acknowledged(self, inbound: Inbound) -> None:
        """Record a message that the transaction received. A message without an id makes a replay impossible, because
        this client could not recognise the message after its next delivery."""
        key = _key(inbound)
        if key is None:
            self.impossible = True
        else:
            self._received[inbound.consumer_id, key] += 1

    def acknowledged_late(self, inbound: Inbound) -> bool:
        """Record a message that the caller got just before the loss was noticed, because its acknowledgement has to be
        repeated. Return False if this client could not recognise the message after its next delivery.
        """
        key = _key(inbound)
        if key is not None:
            self.missing[inbound.consumer_id, key] += 1
        return key is not None

    def takes(self, inbound: Inbound) -> bool:
        """Return True for a message that the transaction acknowledged at an earlier broker. In this case, remove the
        message from :attr:`missing`."""
        key = _key(inbound)
        if key is None or (inbound.consumer_id, key) not in self.missing:
            return False
        self.missing[inbound.consumer_id, key] -= 1
        if not self.missing[inbound.consumer_id, key]:
            del self.missing[inbound.consumer_id, key]
        return True

    def expects(self, consumer_id: int) -> bool:
        """Return True if the repeated transaction still lacks messages of this consumer."""
        return any(received[0] == consumer_id for received in self.missing)

    @property
    def complete(self) -> bool:
        """True if all work from earlier brokers was repeated at the broker in use."""
        return not self.missing and not self._unanswered

    # -- the broker is lost ------------------------------------------------------------------------------------

    def survives(self, producers: Collection[int], pushed: Collection[int]) -> bool:
        """Return True if the whole transaction can be replayed.

        Args:
            producers: ids of the open producers.
            pushed: ids of the open consumers with a prefetch. Their messages come without a call of the caller.
        """
        return (
            not self.impossible
            and all(send.producer_id in producers for send in self.sends)
            and all(consumer in pushed for consumer, _ in self._received | self.missing)
        )

    def interrupted(self, unanswered: Iterable[PendingSend]) -> None:
        """Remember that the broker was lost, and that the acknowledgements of the transaction must therefore be
        repeated. Forget the sends without an answer, because ``requests.py`` repeats them (S91)."""
        again = {*unanswered}
        self.sends = [send for send in self.sends if send not in again]
        self.missing += self._received
        self._received.clear()

    def again(self, table: dict[Any, Any], answered: Callable[[BaseException | None], None]) -> list[PendingSend]:
        """Return the sends to repeat. Each send counts as unanswered until the broker answers it.

        Args:
            table: holds the sends until they are answered.
            answered: called with the error of each answer, or with ``None`` if the broker accepted the send.
        """

        def done(error: BaseException | None) -> None:
            self._unanswered -= 1
            answered(error)

        sends, self.sends = self.sends, []
        self._unanswered += len(sends)
        return [PendingSend(Again(send, done), table, send.session_id) for send in sends]

    def stop_waiting(self) -> list[Callable[[], None]]:
        """Return the commit that waits and the requests behind it, in order, and stop their wait."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        waiting, self.waiting = self.waiting or [], None
        return waiting


def _key(inbound: Inbound) -> bytes | None:
    identity = inbound.identity()
    return None if identity is None else blake2b(identity, digest_size=16).digest()


class Again(Outbound):
    """The second copy of a send that a lost broker had already confirmed to the caller."""

    __slots__ = ("_done",)

    def __init__(self, send: PendingSend, done: Callable[[BaseException | None], None]) -> None:
        self.producer_id = send.producer_id
        self.payload = send.payload
        self.encoder = send.encoder
        self.notifies = False
        self.message_id = send.message_id
        self.presettled = send.presettled
        self.transacted = True
        self.left = False
        self._done = done

    def done(self, error: BaseException | None) -> None:
        """Pass the answer of the present broker to the replay."""
        self._done(error)


class Transactions:
    """The transactions of a connection. A session without a :class:`Replay` replays nothing.

    Args:
        period: seconds for which a commit may wait for missing messages.
        first_send_survives: whether a transaction whose only work is one unanswered send continues after a loss (S93).
    """

    def __init__(self, resources: Resources, connector: Connector, period: float, *, first_send_survives: bool) -> None:
        self._resources = resources
        self._connector = connector
        self._period = period
        self._first_send_survives = first_send_survives
        self._provider: Provider | None = None
        """The provider of the broker in use."""

    # -- loss and restoration -----------------------------------------------------------------------------------

    def interrupted(self, unanswered: Sequence[PendingSend]) -> None:
        """Decide which transactions continue after the loss of the broker. A transaction continues if it has no work at
        this broker (S100), if its only work is a send without an answer (S92, S93), or if it will be replayed (S107).
        Any other transaction can only be rolled back."""
        self._provider = None
        for number, session in self._resources.sessions.items():
            sends = [send for send in unanswered if send.session_id == number and send.transacted and not send.undone]
            if self._survives(session, sends):
                session.work = 0
                continue
            done = session.work - sum(not send.left for send in sends)
            survives = done == 1 and self._first_send_survives and any(send.left for send in sends)
            session.in_doubt = session.in_doubt or (done > 0 and not survives)
            session.work = 0
            self.look(session)

    def _survives(self, session: SessionRecord, unanswered: Sequence[PendingSend]) -> bool:
        """Return True if an open transaction will be replayed at the next broker, after the present one was lost.

        If an earlier replay has not ended and the work cannot be replayed again, the transaction can only be rolled
        back.
        """
        replay = session.replay
        if replay is None or session.in_doubt:
            return False
        pushed = [number for number, record in self._resources.consumers.items() if record.info.prefetch]
        if replay.survives(self._resources.producers, pushed):
            replay.interrupted(unanswered)
            return True
        session.in_doubt = bool(replay.missing)
        return False

    def restored(self, provider: Provider, table: dict[Any, Any], transmit: Callable[[PendingSend], None]) -> None:
        """Start the replays: repeat the sends that the lost broker had confirmed, and wait for the messages that the
        lost broker had delivered.

        Args:
            provider: the provider of the broker in use.
            table: holds the sends until they are answered.
            transmit: sends one message.
        """
        self._provider = provider
        for session in self._resources.sessions.values():
            replay = session.replay
            if replay is not None and not session.in_doubt:
                for send in replay.again(table, partial(self._sent_again, session)):
                    transmit(send)
                for number, record in self._resources.consumers.items():
                    if record.info.session_id == session.info.id and replay.expects(number):
                        record.takes = partial(self._take_again, session, record)

    def _sent_again(self, session: SessionRecord, error: BaseException | None) -> None:
        session.in_doubt = session.in_doubt or error is not None
        self.look(session)

    def _take_again(self, session: SessionRecord, record: ConsumerRecord, inbound: Inbound) -> bool:
        """Acknowledge a message that the caller already has from an earlier broker. Return False if the caller does not
        have the message."""
        number, replay, provider = record.info.id, session.replay, self._provider
        if replay is None or not replay.expects(number):
            record.takes = None
            return False
        if provider is None or not replay.takes(inbound):
            return False
        session.work += 1
        replay.acknowledged(inbound)
        provider.settle(inbound, Outcome.ACCEPTED)
        provider.replenish(number)
        self.look(session)
        return True

    def settled(self, inbound: Inbound, *, current: bool) -> None:
        """Record an accepted message, if its session is transacted.

        Args:
            current: True if the broker in use delivered the message.
        """
        session = self._resources.transacted_consumers.get(inbound.consumer_id)
        if session is None:
            return
        self._next_begins(session)
        if not current and self._acknowledged_late(session, inbound):
            return
        session.work += 1
        session.in_doubt = session.in_doubt or not current
        if session.replay is not None:
            session.replay.acknowledged(inbound)

    def _acknowledged_late(self, session: SessionRecord, inbound: Inbound) -> bool:
        """Return True if a message that the lost broker delivered will be acknowledged at the next broker.

        Only before the next broker is in use is it certain that the caller does not get the message a second time.
        """
        record = self._resources.consumers.get(inbound.consumer_id)
        pushed = record is not None and record.info.prefetch > 0
        between = self._provider is None and pushed and not session.in_doubt
        return between and session.replay is not None and session.replay.acknowledged_late(inbound)

    def sends(self, producer_id: int) -> None:
        """Remember that the caller sends a message, which becomes part of the open transaction."""
        info = self._resources.producers.get(producer_id)
        if info is not None:
            self._next_begins(self._resources.sessions.get(info.session_id))

    def _next_begins(self, session: SessionRecord | None) -> None:
        """Fail a commit that waits for a replay, because the caller begins the work of the next transaction. The caller
        begins it only after it stopped waiting for the commit.

        Otherwise the broker would commit the new work with the old transaction, and a later rollback would not undo it.
        The caller already got the error that the old transaction is in doubt.
        """
        self.give_up(session)

    def expects(self, consumer_id: int) -> bool:
        """Return True if the replay of an open transaction needs messages of this consumer."""
        session = self._resources.transacted_consumers.get(consumer_id)
        return session is not None and session.replay is not None and session.replay.expects(consumer_id)

    # -- commits that wait --------------------------------------------------------------------------------------

    def wait(self, session: SessionRecord, commit: Callable[[], None]) -> bool:
        """Return True if the commit has to wait for the replay. In this case, ``commit`` is called at the end of the
        replay."""
        replay = session.replay
        period = self._period or (_IDENTIFYING if self._identifies(session) else 0)
        if replay is None or replay.complete or (replay.missing and not period):
            return False
        replay.waiting = [commit]
        if replay.missing:
            replay.timer = self._connector.call_later(period, partial(self._not_replayed, session, replay))
        return True

    def _identifies(self, session: SessionRecord) -> bool:
        """Return True if another thread computes the identity of a large message, which may be a missing message."""
        consumers = self._resources.consumers.values()
        return any(record.identifies for record in consumers if record.info.session_id == session.info.id)

    def wait_behind(self, session: SessionRecord | None, begin: Callable[[], None]) -> bool:
        """Return True if the next transaction has to begin after a commit that waits. In this case, ``begin`` is called
        after the commit."""
        waiting = None if session is None or session.replay is None else session.replay.waiting
        if waiting is None:
            return False
        waiting.append(begin)
        return True

    def _not_replayed(self, session: SessionRecord, replay: Replay) -> None:
        replay.timer = None
        session.in_doubt = session.in_doubt or bool(replay.missing)
        self.look(session)

    @staticmethod
    def look(session: SessionRecord) -> None:
        """If the replay is complete or has failed, run the commit that waits for the replay, and the requests behind
        the commit."""
        replay = session.replay
        if replay is not None and (session.in_doubt or replay.complete):
            for ask in replay.stop_waiting():
                ask()

    def give_up(self, session: SessionRecord | None) -> None:
        """If a commit waits for the replay of this transaction, end the wait, so that the commit fails."""
        if session is not None and session.replay is not None and session.replay.waiting is not None:
            session.in_doubt = True
            self.look(session)

    def end(self) -> None:
        """End all replays, because the connection ends."""
        self._provider = None
        for session in [*self._resources.sessions.values()]:
            self.give_up(session)
