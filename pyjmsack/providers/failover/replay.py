"""Doing an open transaction again at the next broker: ``failover.transactionReplay`` (S107)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from hashlib import blake2b
from typing import Any

from pyjmsack.providers.failover.pending import Kept
from pyjmsack.spi.engine import Timer
from pyjmsack.spi.envelope import Inbound, Outbound

__all__ = ["Again", "Replay"]

Receipt = tuple[int, bytes]
"""Id of a consumer, and the key of a message that it acknowledged."""


class Replay:
    """What one transaction did, so that it can be done again; a transaction has one of its own.

    Sends are repeated from their payloads. An acknowledgement is repeated when its message comes again to its consumer,
    who does not see it then: its caller has it already.
    """

    def __init__(self) -> None:
        self.sends: list[Kept] = []
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
            and all(kept.producer_id in producers for kept in self.sends)
            and all(consumer in pushed for consumer, _ in self._receipts | self.missing)
        )

    def interrupted(self, unanswered: Iterable[Kept]) -> None:
        """The broker is gone. Sends without an answer are repeated anyway (S91)."""
        again = {*unanswered}
        self.sends = [kept for kept in self.sends if kept not in again]
        self.missing += self._receipts
        self._receipts.clear()

    def again(self, table: dict[Any, bool], answered: Callable[[BaseException | None], None]) -> list[Kept]:
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
        return [Kept(Again(kept, done), table, kept.session_id) for kept in sends]

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

    def __init__(self, kept: Kept, done: Callable[[BaseException | None], None]) -> None:
        self.producer_id = kept.producer_id
        self.payload = kept.payload
        self.encoder = kept.encoder
        self.notifies = False
        self.message_id = kept.message_id
        self.presettled = kept.presettled
        self.transacted = True
        self.left = False
        self._done = done

    def done(self, error: BaseException | None) -> None:
        """The present broker answered."""
        self._done(error)
