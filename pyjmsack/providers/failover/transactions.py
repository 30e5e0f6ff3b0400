"""Transactions that were open when the broker was lost. Some go on (S92, S93), others are done again at the next broker
(S107)."""

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

Receipt = tuple[int, bytes]
"""Id of a consumer, and the key of a message that it acknowledged."""


class Replay:
    """What one transaction did, so that it can be done again; a transaction has one of its own.

    Sends are repeated from their payloads. An acknowledgement is repeated when its message comes again to its consumer,
    who does not see it then: its caller has it already.
    """

    def __init__(self) -> None:
        self.sends: list[PendingSend] = []
        """Those that the present broker was given, in order."""
        self.missing: Counter[Receipt] = Counter()
        """Acknowledged at an earlier broker, and not come again; how often, as a message may be stored twice (S91)."""
        self.impossible = False
        self.waiting: list[Callable[[], None]] | None = None
        """A commit that waits until all is repeated, and what was asked for behind it."""
        self.timer: Timer | None = None
        self._receipts: Counter[Receipt] = Counter()
        self._unanswered = 0

    # -- while a broker is there --------------------------------------------------------------------------------

    def acknowledged(self, inbound: Inbound) -> None:
        """The transaction received a message. One without an id could not be told when it comes again."""
        key = _key(inbound)
        if key is None:
            self.impossible = True
        else:
            self._receipts[inbound.consumer_id, key] += 1

    def takes(self, inbound: Inbound) -> bool:
        """Whether a delivery is one that the transaction acknowledged before; then it is not missing any more."""
        key = _key(inbound)
        if key is None or (inbound.consumer_id, key) not in self.missing:
            return False
        self.missing[inbound.consumer_id, key] -= 1
        if not self.missing[inbound.consumer_id, key]:
            del self.missing[inbound.consumer_id, key]
        return True

    def expects(self, consumer_id: int) -> bool:
        """Whether messages of this consumer are missing."""
        return any(receipt[0] == consumer_id for receipt in self.missing)

    @property
    def complete(self) -> bool:
        """Whether all that was done at earlier brokers is done at this one."""
        return not self.missing and not self._unanswered

    # -- when it is lost ----------------------------------------------------------------------------------------

    def survives(self, producers: Collection[int], pushed: Collection[int]) -> bool:
        """Whether everything can be repeated.

        Args:
            producers: ids of those that are open.
            pushed: ids of the consumers that are open and to which messages come without a call.
        """
        return (
            not self.impossible
            and all(send.producer_id in producers for send in self.sends)
            and all(consumer in pushed for consumer, _ in self._receipts | self.missing)
        )

    def interrupted(self, unanswered: Iterable[PendingSend]) -> None:
        """The broker is gone. Sends without an answer are repeated anyway (S91)."""
        again = {*unanswered}
        self.sends = [send for send in self.sends if send not in again]
        self.missing += self._receipts
        self._receipts.clear()

    def again(self, table: dict[Any, bool], answered: Callable[[BaseException | None], None]) -> list[PendingSend]:
        """Return the sends to repeat; each is counted until the broker has answered it.

        Args:
            table: where they stand until then.
            answered: told of each outcome.
        """

        def done(error: BaseException | None) -> None:
            self._unanswered -= 1
            answered(error)

        sends, self.sends = self.sends, []
        self._unanswered += len(sends)
        return [PendingSend(Again(send, done), table, send.session_id) for send in sends]

    def stop_waiting(self) -> list[Callable[[], None]]:
        """Return what waits, in order: it is to be asked now."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        waiting, self.waiting = self.waiting or [], None
        return waiting


def _key(inbound: Inbound) -> bytes | None:
    identity = inbound.identity()
    return None if identity is None else blake2b(identity, digest_size=16).digest()


class Again(Outbound):
    """A send whose caller had its answer from a broker that is gone."""

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
        """The present broker answered."""
        self._done(error)


class Transactions:
    """The transactions of a connection. Nothing is replayed for a session without a :class:`Replay`.

    Args:
        period: seconds that a commit may wait for messages that have not come again.
        first_send_survives: whether a transaction goes on whose only work is a send without an answer (S93).
    """

    def __init__(self, resources: Resources, connector: Connector, period: float, *, first_send_survives: bool) -> None:
        self._resources = resources
        self._connector = connector
        self._period = period
        self._first_send_survives = first_send_survives
        self._provider: Provider | None = None
        """Of the broker in use."""

    # -- loss and restoration -----------------------------------------------------------------------------------

    def interrupted(self, unanswered: Sequence[PendingSend]) -> None:
        """The broker is lost. Decide which transactions go on: those without work there (S100), those whose only work
        is a send that is still here (S92, S93), and those that will be done again (S107)."""
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
        """Whether an open transaction will be done again at the next broker; the present one is lost.

        If not, and if work of it was to be done again already, it can only be rolled back.
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

    def restored(self, provider: Provider, table: dict[Any, bool], transmit: Callable[[PendingSend], None]) -> None:
        """Send again what the lost broker had confirmed, and look out for what it had delivered.

        Args:
            provider: of the broker in use.
            table: where sends stand until they are answered.
            transmit: sends one.
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
        """Acknowledge a message that its caller has already, if it is one."""
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
        """A message was accepted: note it, if that is work of a transaction.

        Args:
            current: whether the broker in use delivered it.
        """
        session = self._resources.transacted_consumers.get(inbound.consumer_id)
        if session is not None:
            session.work += 1
            session.in_doubt = session.in_doubt or not current
            if session.replay is not None:
                session.replay.acknowledged(inbound)

    # -- commits that wait --------------------------------------------------------------------------------------

    def wait(self, session: SessionRecord, commit: Callable[[], None]) -> bool:
        """Whether a commit waits until the transaction is done again; then it is called."""
        replay = session.replay
        if replay is None or replay.complete or (replay.missing and not self._period):
            return False
        replay.waiting = [commit]
        if replay.missing:
            replay.timer = self._connector.call_later(self._period, partial(self._not_replayed, session, replay))
        return True

    def wait_behind(self, session: SessionRecord | None, begin: Callable[[], None]) -> bool:
        """Whether the next transaction begins behind a commit that waits."""
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
        """Ask for a commit that waited, and what came behind it, if there is nothing to wait for any more."""
        replay = session.replay
        if replay is not None and (session.in_doubt or replay.complete):
            for ask in replay.stop_waiting():
                ask()

    def give_up(self, session: SessionRecord | None) -> None:
        """Nobody waits any more for this transaction to be done again: its commit fails."""
        if session is not None and session.replay is not None and session.replay.waiting is not None:
            session.in_doubt = True
            self.look(session)

    def end(self) -> None:
        """The connection ends."""
        self._provider = None
        for session in [*self._resources.sessions.values()]:
            self.give_up(session)
