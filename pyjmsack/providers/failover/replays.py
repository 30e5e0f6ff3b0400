"""The transactions of a connection that are done again at the next broker, and commits that wait for that (S107)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyjmsack.providers.failover.member import Member
from pyjmsack.providers.failover.pending import Kept
from pyjmsack.providers.failover.records import ConsumerRecord, SessionRecord
from pyjmsack.providers.failover.replay import Replay
from pyjmsack.providers.failover.restore import Resources
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.envelope import Inbound
from pyjmsack.types import Outcome

__all__ = ["Replays"]


class Replays:
    """All does nothing for a session without a :class:`Replay`.

    Args:
        period: seconds that a commit may wait for messages that have not come again.
        member: returns the broker in use.
    """

    def __init__(
        self, resources: Resources, connector: Connector, period: float, member: Callable[[], Member | None]
    ) -> None:
        self._resources = resources
        self._connector = connector
        self._period = period
        self._member = member

    # -- loss and restoration -----------------------------------------------------------------------------------

    def survives(self, session: SessionRecord, unanswered: Sequence[Kept]) -> bool:
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

    def restore(self, table: dict[Any, bool], transmit: Callable[[Kept], None]) -> None:
        """Send again what the lost broker had confirmed, and look out for what it had delivered.

        Args:
            table: where sends stand until they are answered.
            transmit: sends one.
        """
        for session in self._resources.sessions.values():
            replay = session.replay
            if replay is not None and not session.in_doubt:
                for kept in replay.again(table, partial(self._sent_again, session)):
                    transmit(kept)
                for number, record in self._resources.consumers.items():
                    if record.info.session_id == session.info.id and replay.expects(number):
                        record.takes = partial(self._take_again, session, record)

    def _sent_again(self, session: SessionRecord, error: BaseException | None) -> None:
        session.in_doubt = session.in_doubt or error is not None
        self.look(session)

    def _take_again(self, session: SessionRecord, record: ConsumerRecord, inbound: Inbound) -> bool:
        """Acknowledge a message that its caller has already, if it is one."""
        number, replay, member = record.info.id, session.replay, self._member()
        if replay is None or not replay.expects(number):
            record.takes = None
            return False
        if member is None or not replay.takes(inbound):
            return False
        session.work += 1
        replay.acknowledged(inbound)
        member.provider.settle(inbound, Outcome.ACCEPTED)
        member.provider.replenish(number)
        self.look(session)
        return True

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

    def give_all_up(self) -> None:
        """The connection ends."""
        for session in [*self._resources.sessions.values()]:
            self.give_up(session)
