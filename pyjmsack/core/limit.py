"""Which messages came back too often (S111-S113)."""

from __future__ import annotations

from pyjmsack.spi.envelope import Inbound
from pyjmsack.uri import RedeliveryPolicy

__all__ = ["RedeliveryLimit"]


class RedeliveryLimit:
    """Judges each message of one consumer by itself (S112).

    A message is judged whenever it is about to be handed out. With ``jms.redeliveryPolicy.preDispatchCheck=false`` a
    transacted session judges it when it rolls it back, so that one which others had too often is handed out once here.
    """

    def __init__(self, policy: RedeliveryPolicy, *, transacted: bool) -> None:
        self._policy = policy
        self._at_rollback = transacted and not policy.pre_dispatch_check
        self._over: set[int] = set()
        """Hashes of what a rollback brought over the limit."""

    def exceeded(self, inbound: Inbound) -> bool:
        """Whether a message must not be handed out."""
        if not self._policy.exceeded(inbound.redelivery_count + inbound.redeliveries):
            return False
        if not self._at_rollback:
            return True
        identity = inbound.identity()
        if identity is not None and hash(identity) not in self._over:
            return False
        self._over.discard(hash(identity))
        return True  # also without a message id, as such a one could not be found again

    def rolled_back(self, inbound: Inbound) -> None:
        """A transaction that received this message is rolled back."""
        if self._at_rollback and self._policy.exceeded(inbound.redelivery_count + inbound.redeliveries + 1):
            identity = inbound.identity()
            if identity is not None:
                self._over.add(hash(identity))
