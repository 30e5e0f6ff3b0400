"""The link that begins and ends the transactions of a session, one transaction at a time (AMQP 1.0 4.1-4.5).

In the words of AMQP, a client declares a transaction to begin it, and discharges a transaction to commit it or to roll
it back.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from pyjmsack.errors import JMSException, TransactionRolledBackException
from pyjmsack.providers.amqp.engine.performatives import (
    ACCEPTED,
    Accepted,
    Attach,
    Composite,
    Coordinator,
    Declared,
    Rejected,
    Source,
    Transactional,
    encode,
)
from pyjmsack.providers.amqp.engines import AmqpEngine, SessionEnd
from pyjmsack.providers.amqp.errors import outcome_error
from pyjmsack.providers.amqp.link import AmqpLink
from pyjmsack.spi.completion import Completion

__all__ = ["AmqpCoordinator"]

_DECLARE = b"\x00\x53\x77\x00\x53\x31\x45"  # amqp-value of declare (4.5.2) with no global id


_LONGEST_ID = 251
"""The largest number of bytes of a transaction id, because the request that ends a transaction has no room for more.
The specification allows only 32, but the ids of Artemis have 36."""


def _discharge(txn_id: bytes, fail: bool) -> bytes:
    """Return the encoded request that ends a transaction. If ``fail`` is true, the request is a rollback, and otherwise
    a commit (4.5.3)."""
    fields = b"\xa0" + bytes([len(txn_id)]) + txn_id + (b"\x41" if fail else b"\x42")
    return b"\x00\x53\x77\x00\x53\x32\xc0" + bytes([len(fields) + 1, 2]) + fields


class AmqpCoordinator(AmqpLink):
    """The link of one transacted session to the transaction coordinator, which is the part of the broker that manages
    transactions."""

    def __init__(self, engine: AmqpEngine, session: SessionEnd, name: str) -> None:
        attach = Attach(
            link_name=name,
            handle=0,
            role=False,
            snd_settle_mode=0,
            source=Source(address="transactions"),
            target=Coordinator(capabilities=("amqp:local-transactions",)),
        )
        super().__init__(engine, session, attach, "the transaction coordinator")
        self._txn_id: bytes | None = None
        self._failed: JMSException | None = None
        self._waiting: deque[tuple[bytes, Completion[None], bool]] = deque()
        self._declaring: list[Completion[None]] = []
        self._send_state = self._ack_state = b""

    # -- states of the open transaction -------------------------------------------------------------------------

    def send_state(self) -> bytes:
        """Return the encoded state that makes a sent message a part of the open transaction (4.4.1). Raise an error if
        no transaction is open (S87)."""
        self._check()
        return self._send_state

    def ack_state(self) -> bytes:
        """Return the encoded state that makes an acknowledgement a part of the open transaction (4.4.2). Raise an error
        if no transaction is open."""
        self._check()
        return self._ack_state

    def _check(self) -> None:
        error = self.closed or self._failed
        if error is None and self._txn_id is None:
            error = TransactionRolledBackException("no transaction is open")
        if error is not None:
            raise error.fresh()

    # -- requests -----------------------------------------------------------------------------------------------

    def declare(self, done: Completion[None]) -> None:
        """Begin a transaction. The caller may call this before the broker has answered the discharge, which ends the
        previous transaction.

        There is never more than one open transaction. A second one would replace the first, and nobody would commit the
        work of the first.
        """
        if self._txn_id is not None:
            done.succeed()
            return
        self._declaring.append(done)
        if len(self._declaring) == 1:
            declared: Completion[None] = Completion()
            declared.add_callback(self._end_declare)
            self._request(_DECLARE, declared, True)

    def _end_declare(self, declared: Completion[None]) -> None:
        waiting, self._declaring = self._declaring, []
        for done in waiting:
            done.settle(declared.error)

    def discharge(self, done: Completion[None], *, fail: bool) -> None:
        """Commit the transaction, or roll it back if ``fail`` is true. If no transaction is open, a commit fails and a
        rollback succeeds."""
        txn_id, self._txn_id = self._txn_id, None
        error = self.closed or self._failed
        if txn_id is None or error is not None:
            if fail:
                done.succeed()
            else:
                lost = TransactionRolledBackException(f"the transaction was lost: {error or 'no transaction was open'}")
                lost.__cause__ = error
                done.fail(lost)
            return
        self._engine.barrier()
        self._request(_discharge(txn_id, fail), done, False)

    def _request(self, payload: bytes, done: Completion[None], declares: bool) -> None:
        if self.closed is not None:
            done.fail(self.closed)
            return
        self._waiting.append((payload, done, declares))
        self.on_flow()

    def on_flow(self) -> None:
        """Send the waiting requests, because the broker may have given credit for them."""
        while self._waiting and self._link.credit > 0:
            payload, done, declares = self._waiting.popleft()
            self._link.send(payload, (done, declares))

    def on_outcome(self, context: Any, state: Composite | None) -> None:
        """Handle the answer of the broker to one request that begins or ends a transaction."""
        done, declares = context
        error: JMSException | None = None
        if declares and isinstance(state, Declared) and 0 < len(state.txn_id) <= _LONGEST_ID:
            self._declared(state.txn_id)
        elif not declares and not isinstance(state, Accepted | Rejected):
            # Artemis settles a commit without an outcome if it commits at the moment at which the session ends; only
            # Rejected says that the work did not take effect (4.3)
            error = JMSException(
                "the broker ended the transaction without an outcome, so its work may have taken effect"
            )
        elif declares or isinstance(state, Rejected):
            reason = state.error if isinstance(state, Rejected) else None
            error = self._refused(declares, outcome_error("rejected", reason))
        done.settle(error)

    def _refused(self, declares: bool, cause: JMSException) -> JMSException:
        if declares:
            self._failed = cause
            return cause
        text = f"the broker refused the commit: {cause}"
        rolled_back = TransactionRolledBackException(text, error_code=cause.error_code)
        rolled_back.__cause__ = cause
        return rolled_back

    def _declared(self, txn_id: bytes) -> None:
        self._txn_id = txn_id
        self._failed = None
        self._send_state = encode(Transactional(txn_id=txn_id))
        self._ack_state = encode(Transactional(txn_id=txn_id, outcome=ACCEPTED))

    # -- end ----------------------------------------------------------------------------------------------------

    def _ended(self, error: JMSException) -> None:
        """Fail the requests that wait, because the link ended and the broker will not answer them."""
        sent = [] if self._link is None else self._link.abandon()
        pending = [done for done, _ in sent] + [done for _, done, _ in self._waiting]
        self._waiting.clear()
        for done in pending:
            done.fail(error)
