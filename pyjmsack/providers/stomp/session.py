"""The transaction of a session: when the frames BEGIN, COMMIT and ABORT are sent, when ACK frames (acknowledgements)
are sent, and how messages are redelivered after a rollback (S75-S89).

Artemis applies an ACK with a ``transaction`` at once, and would lose the message at an ABORT. Therefore this client
sends the ACKs to Artemis when the COMMIT is confirmed. If the client crashes between COMMIT and ACK, the messages are
delivered again, and no message is lost (S88).

ActiveMQ Classic applies an ACK with a ``transaction`` at the COMMIT. But a COMMIT of any session of the connection
makes the broker forget the messages that other sessions have acknowledged in their transactions. If such a session
rolls back and acknowledges a message again, the broker ends the connection. Therefore the client sends the ACKs and the
COMMIT directly one after the other, so that no other frame, such as another COMMIT, comes between them. A large
transaction sends its ACKs earlier, a hundred at a time, because the broker delivers only a few hundred messages of a
queue ahead of their ACKs. If another COMMIT comes after these early ACKs, the broker forgets the messages. If the
transaction is then rolled back, the client ends the subscription and opens another one, because the broker delivers
forgotten messages again only to another subscription. The client does the same if the broker refuses the COMMIT,
because the broker has forgotten the messages in this case too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyjmsack.errors import ConnectionLostException, TransactionRolledBackException
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.providers.stomp.receiver import StompReceiver
from pyjmsack.providers.stomp.subscriptions import Shared
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Outbound
from pyjmsack.spi.resources import SessionInfo

__all__ = ["StompSession"]

Acked = list[tuple[StompReceiver, StompInbound]]
_MOST_HELD = 100
"""The largest number of ACKs that wait for the COMMIT. Classic stopped delivering after 400 messages without an ACK."""


class Work:
    """The sends and acknowledgements of one transaction."""

    __slots__ = ("acked", "commits", "transaction", "written")

    def __init__(self) -> None:
        self.transaction: bytes | None = None
        """The name of the transaction. ``None`` while the transaction has sent nothing to the broker. A name is never
        used twice, because Artemis confirms and then drops a message for an unknown transaction."""
        self.acked: Acked = []
        self.written = 0
        """The number of messages in ``acked`` whose ACKs were sent to the broker as a part of the transaction."""
        self.commits = 0
        """The number of COMMIT frames that the connection had sent before this transaction sent its first ACK."""


class StompSession:
    """One session, with its transaction.

    Args:
        shared: the common state of the connection.
        info: describes the session.
    """

    def __init__(self, shared: Shared, info: SessionInfo) -> None:
        self.info = info
        self.closing = 0
        """The number of consumers that were closed and whose end the broker has not confirmed yet."""
        self._shared = shared
        self._engine = shared.engine
        self._dialect = shared.dialect
        self._work = Work()
        self._ended: Completion[None] | None = None
        self._commit: Completion[None] | None = None
        """The last commit. Until the broker has answered this commit, some of its ACKs may still have to be sent."""

    def _begun(self) -> bytes:
        work = self._work
        if work.transaction is None:
            work.transaction = b"tx-%d" % next(self._shared.ids)
            self._engine.write(b"BEGIN\ntransaction:", work.transaction, b"\n\n\0")
        return work.transaction

    def send(self, outbound: Outbound) -> None:
        """Send a message within the transaction. The answer of the broker confirms that the broker has the message.
        Consumers get the message only after the commit."""
        self._engine.ask(b"SEND\ntransaction:" + self._begun(), outbound.payload, outbound.done)

    def acknowledge(self, receiver: StompReceiver, inbound: StompInbound) -> None:
        """Add an acknowledgement to the transaction.

        If the broker takes ACKs in a transaction, the client sends them when 100 of them wait, and sends the rest at
        the commit. Otherwise the client sends all ACKs after the commit.
        """
        work = self._work
        work.acked.append((receiver, inbound))
        if self._dialect.transacted_acks and len(work.acked) - work.written >= _MOST_HELD:
            self._write_acks()

    def _write_acks(self) -> None:
        """Send the ACKs that wait, as a part of the transaction.

        The messages of a volatile subscription (to a topic, without a name) get no ACK here, because they may have been
        acknowledged earlier.
        """
        work = self._work
        if not work.written:
            work.commits = self._shared.commits
        for receiver, inbound in work.acked[work.written :]:
            subscriptions = receiver.subscriptions
            if not subscriptions.volatile and inbound in subscriptions.outstanding and inbound.ack is not None:
                self._engine.write(b"ACK\n", inbound.ack, b"transaction:", self._begun(), b"\n\n\0")
                subscriptions.joined(inbound)
        work.written = len(work.acked)

    def _spoiled(self, work: Work) -> list[StompReceiver]:
        """Return the receivers with messages that the broker has forgotten, because a COMMIT came after their ACKs. The
        broker refuses another ACK for these messages, and delivers them again only to another subscription."""
        if self._shared.commits == work.commits:
            return []
        receivers = dict.fromkeys(receiver for receiver, _ in work.acked[: work.written])
        return [receiver for receiver in receivers if not receiver.subscriptions.volatile]

    def commit(self, done: Completion[None]) -> None:
        """Commit the sends. After that, send the acknowledgements that could not be a part of the transaction."""
        if self._dialect.transacted_acks:
            self._write_acks()
        work = self._take()
        self._commit = done
        if work.transaction is None:
            self._acknowledge(work.acked, done)
        else:
            self._shared.commits += 1
            answered = partial(self._committed, work, done)
            self._engine.ask(b"COMMIT\ntransaction:" + work.transaction, b"\n\0", answered)

    def after_commit(self, call: Callable[[], None]) -> None:
        """Run ``call``, a function that ends subscriptions or must run before their end. If a commit is under way, run
        the function after the commit. Otherwise the subscriptions would end first, the broker would refuse the ACKs of
        the commit, and would deliver the messages again although the commit succeeded."""
        if self._commit is None:
            call()
        else:
            self._commit.add_callback(lambda _: call())

    def _take(self) -> Work:
        work, self._work = self._work, Work()
        return work

    def _committed(self, work: Work, done: Completion[None], error: BaseException | None) -> None:
        if self._engine.failed is not None:
            done.fail(_in_doubt(self._engine.failed))
        elif error is not None:
            self._undo(work, self._spoiled(work))
            refused = TransactionRolledBackException(f"the broker refused the commit: {error}")
            refused.__cause__ = error
            done.fail(refused)
        elif self._dialect.transacted_acks:
            for receiver, inbound in work.acked:
                if receiver.subscriptions.volatile:
                    receiver.subscriptions.acknowledge(inbound)
                else:
                    receiver.subscriptions.acknowledged(inbound)
            done.succeed()
        else:
            self._acknowledge(work.acked, done)

    def _acknowledge(self, acked: Acked, done: Completion[None]) -> None:
        """Send the ACKs that wait. The last ACK asks for a RECEIPT, which confirms all of them."""
        wanted = [
            (receiver, inbound)
            for receiver, inbound in acked
            if inbound in receiver.subscriptions.outstanding
            and inbound.ack is not None
            and receiver.subscriptions.closing is None
        ]
        if not wanted:
            done.succeed()
            return
        *others, (receiver, inbound) = wanted
        for other, earlier in others:
            other.subscriptions.acknowledge(earlier)
        self._engine.ask(b"ACK", (inbound.ack or b"") + b"\n\0", partial(self._acknowledged, done))
        receiver.subscriptions.acknowledged(inbound)

    def _acknowledged(self, done: Completion[None], error: BaseException | None) -> None:
        """Complete the commit. If the broker refused the ACKs, the commit fails with an error that does not ask for a
        replay, because the sends are committed."""
        if error is None:
            done.succeed()
            return
        unconfirmed = ConnectionLostException(
            "the sends are committed, but the broker did not confirm that the received messages are acknowledged, "
            "so they may be delivered again (S88);"
            f" {error}"
        )
        unconfirmed.__cause__ = error
        done.fail(unconfirmed)

    def rollback(self, done: Completion[None]) -> None:
        """Undo the sends, and deliver the received messages again (S80). Later ACKs name these messages by the same ids
        as before, and the broker accepts these ACKs (S89).

        If a commit is under way, the rollback waits for the end of the commit. The rollback undoes only the work that
        the transaction has now. If the caller works on before the rollback has ended, the new work belongs to the next
        transaction.
        """
        self.after_commit(partial(self._roll_back, self._take(), done))

    def _roll_back(self, work: Work, done: Completion[None]) -> None:
        if work.transaction is None:
            # these messages are redelivered at the end of this burst, sorted together with the messages that the core
            # gives back
            for receiver, inbound in work.acked:
                receiver.redelivery.roll_back(inbound)
            done.succeed()
            return
        spoiled = self._spoiled(work)
        answered = partial(self._rolled_back, work, spoiled, done)
        self._engine.ask(b"ABORT\ntransaction:" + work.transaction, b"\n\0", answered)
        for receiver in spoiled:  # retired now, because the core gives back the messages of the inbox next
            receiver.retire()

    def _rolled_back(
        self, work: Work, spoiled: list[StompReceiver], done: Completion[None], error: BaseException | None
    ) -> None:
        if self._engine.failed is None:
            self._undo(work, spoiled)
        done.settle(error)

    @staticmethod
    def _undo(work: Work, spoiled: list[StompReceiver]) -> None:
        for receiver in spoiled:
            receiver.retire()
        for receiver, inbound in work.acked:
            receiver.subscriptions.undone(inbound)
            receiver.redelivery.roll_back(inbound)
        for receiver in dict.fromkeys(receiver for receiver, _ in work.acked):
            receiver.redelivery.redeliver_now()
        for receiver in spoiled:
            receiver.renew()

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self, done: Completion[None]) -> None:
        """Close the session. ``done`` succeeds when the broker has confirmed the end of every consumer, because then
        the broker has all acknowledgements, too."""
        self._ended = done
        self._check_end()

    def consumer_ended(self) -> None:
        """Remember that a consumer of this session has ended."""
        self.closing -= 1
        self._check_end()

    def _check_end(self) -> None:
        if self._ended is not None and not self.closing:
            self._ended.succeed()


def _in_doubt(cause: BaseException) -> ConnectionLostException:
    error = ConnectionLostException(
        "the connection was lost before the broker confirmed the commit, so nobody knows whether the commit took"
        f" effect: {cause}"
    )
    error.__cause__ = cause
    return error
