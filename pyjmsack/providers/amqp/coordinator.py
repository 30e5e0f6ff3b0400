"""The control link of transactions: declare and discharge (AMQP 1.0 4.1-4.5), one transaction at a time per session."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from proton import Data, Described, Sender, Terminus, symbol, ulong

from pyjmsack.errors import JMSException, TransactionRolledBackException
from pyjmsack.providers.amqp import native
from pyjmsack.providers.amqp.errors import outcome_error
from pyjmsack.providers.amqp.link import AmqpLink
from pyjmsack.providers.amqp.proton_engine import AmqpEngine
from pyjmsack.spi.completion import Completion

__all__ = ["AmqpCoordinator"]

_DECLARE = b"\x00\x53\x77\x00\x53\x31\x45"  # amqp-value of declare (4.5.2) with no global id


def _discharge(txn_id: bytes, fail: bool) -> bytes:
    """Return an amqp-value of discharge (4.5.3)."""
    fields = b"\xa0" + bytes([len(txn_id)]) + txn_id + (b"\x41" if fail else b"\x42")
    return b"\x00\x53\x77\x00\x53\x32\xc0" + bytes([len(fields) + 1, 2]) + fields


def _txn_id(fields: object) -> bytes | None:
    """Return the id in a declared state (4.5.7), ``None`` if there is none of a length that a frame has room for."""
    value = fields[0] if isinstance(fields, list) and fields else None
    return bytes(value) if isinstance(value, bytes | memoryview) and 0 < len(value) <= 255 else None


class AmqpCoordinator(AmqpLink):
    """The coordinator of one transacted session."""

    def __init__(self, engine: AmqpEngine, link: Sender, next_tag: Callable[[], bytes]) -> None:
        super().__init__(engine, link, "the transaction coordinator")
        self._next_tag = next_tag
        self._txn_id: bytes | None = None
        self._failed: JMSException | None = None
        self._waiting: deque[tuple[bytes, Completion[None], bool]] = deque()
        self._sent: dict[Any, tuple[Completion[None], bool]] = {}
        self._declaring: list[Completion[None]] = []
        self._send_state: Data | None = None
        self._ack_state: Data | None = None
        link.target.type = Terminus.COORDINATOR
        link.target.capabilities.put_object(symbol("amqp:local-transactions"))
        link.source.address = "transactions"
        link.snd_settle_mode = link.SND_UNSETTLED

    # -- states of the open transaction -------------------------------------------------------------------------

    def send_state(self) -> Any:
        """Return the transactional state for a transfer (4.4.1), or raise why there is no transaction (S87)."""
        self._check()
        assert self._send_state is not None  # set with the id
        return self._send_state._data

    def ack_state(self) -> Any:
        """Return the transactional state for an acceptance (4.4.2), or raise why there is no transaction."""
        self._check()
        assert self._ack_state is not None  # set with the id
        return self._ack_state._data

    def _check(self) -> None:
        error = self.closed or self._failed
        if error is None and self._txn_id is None:
            error = TransactionRolledBackException("no transaction is declared")
        if error is not None:
            raise error.fresh()

    # -- requests -----------------------------------------------------------------------------------------------

    def declare(self, done: Completion[None]) -> None:
        """Begin a transaction; may be called while the discharge of the last one is on its way.

        There is never more than one: a second declare would replace the first, whose work nobody would then commit.
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
        """Commit, or roll back with ``fail``. Without an open transaction commit fails and rollback is done."""
        txn_id, self._txn_id = self._txn_id, None
        error = self.closed or self._failed
        if txn_id is None or error is not None:
            if fail:
                done.succeed()
            else:
                lost = TransactionRolledBackException(f"the transaction was lost: {error or 'it was never declared'}")
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
        """Send requests while there is credit."""
        while self._waiting and native.link_credit(self.native) > 0:
            payload, done, declares = self._waiting.popleft()
            delivery = native.new_delivery(self.native, self._next_tag())
            native.send(self.native, payload)
            native.link_advance(self.native)
            self._sent[delivery] = (done, declares)

    def on_delivery(self, delivery: Any) -> None:
        """The answer to one request."""
        state = native.delivery_remote_state(delivery)
        if not state and not native.delivery_remote_settled(delivery):
            return
        request = self._sent.pop(delivery, None)
        if request is None:
            return
        done, declares = request
        remote = native.wrap(delivery).remote
        txn_id = _txn_id(remote.data) if declares and state == native.DECLARED else None
        error: JMSException | None
        if txn_id is not None:
            self._declared(txn_id)
            error = None
        elif not declares and state == native.ACCEPTED:
            error = None
        else:
            error = self._refused(declares, outcome_error("rejected", remote.condition))
        native.delivery_settle(delivery)
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
        self._send_state = Data()
        self._send_state.put_object([txn_id])
        self._ack_state = Data()
        self._ack_state.put_object([txn_id, Described(ulong(native.ACCEPTED), [])])

    # -- end ----------------------------------------------------------------------------------------------------

    def _ended(self, error: JMSException) -> None:
        """No request will be answered."""
        pending = [done for done, _ in self._sent.values()] + [done for _, done, _ in self._waiting]
        self._sent.clear()
        self._waiting.clear()
        for done in pending:
            done.fail(error)
