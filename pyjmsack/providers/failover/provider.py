"""The failover provider: the core's verbs over whichever broker there is, and over none for a while (S90-S109)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pyjmsack.destination import Destination
from pyjmsack.errors import (
    ConnectionLostException,
    IllegalStateException,
    JMSException,
    SendTimedOutException,
    TransactionRolledBackException,
)
from pyjmsack.message import Message
from pyjmsack.providers.failover.dialect import Dialect, MemberEncoder, translate
from pyjmsack.providers.failover.member import Member
from pyjmsack.providers.failover.pending import WITHOUT_BROKER, Kept, Request, Without
from pyjmsack.providers.failover.priority import PriorityWatch, preferred_first
from pyjmsack.providers.failover.records import ConsumerRecord, SessionRecord
from pyjmsack.providers.failover.replays import Replays
from pyjmsack.providers.failover.restore import Resources, Restoration
from pyjmsack.providers.failover.schedule import Schedule
from pyjmsack.providers.failover.search import Search, Tried, in_order, is_final
from pyjmsack.providers.failover.server_list import learn
from pyjmsack.providers.failover.uri_file import with_file
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.envelope import Encoder, Inbound, Outbound
from pyjmsack.spi.provider import Provider, ProviderListener
from pyjmsack.spi.registry import create_provider
from pyjmsack.spi.resources import (
    ConnectionInfo,
    ConnectionMetadata,
    ConsumerInfo,
    ProducerInfo,
    SessionInfo,
    TemporaryInfo,
)
from pyjmsack.types import Outcome
from pyjmsack.uri import BrokerUrl

__all__ = ["FailoverProvider"]

log = logging.getLogger("pyjmsack.failover")


class FailoverProvider:
    """One connection that outlives its brokers. Everything runs on the loop.

    ``_member`` is the broker in use, ``None`` without one. What is asked meanwhile waits in ``_held``; what a broker
    was asked and has not answered is in ``_open``. Both are in the order in which it was asked.

    Args:
        create: makes the provider of one member.
    """

    def __init__(
        self,
        url: BrokerUrl,
        connector: Connector,
        create: Callable[[BrokerUrl, Connector], Provider] = create_provider,
    ) -> None:
        self._url = url
        self._connector = connector
        self._create = create
        self._members: list[BrokerUrl] = [*url.members]
        self._preferred = url.failover.priority_uris or (str(url.members[0]),)
        limits = (url.failover.timeout, url.connection.send_timeout)
        self._patience = min((limit for limit in limits if limit is not None), default=None)
        """Seconds that a send may be held."""
        self.generation = 0
        self._member: Member | None = None
        self._trying: Member | None = None
        self._closing: Member | None = None
        self._search: Search | None = None
        self._watch: PriorityWatch | None = None
        self._leaving: set[Member] = set()
        self._lost: BrokerUrl | None = None
        self._failure: BaseException | None = None
        self._info = ConnectionInfo("")
        self._listener: ProviderListener | None = None
        self._opening: Completion[ConnectionMetadata] | None = None
        self._dialect: Dialect | None = None
        self._open: dict[Kept | Request, bool] = {}
        self._held: dict[Kept | Request, None] = {}
        self._resources = Resources()
        self._producers = self._resources.producers
        period = url.connection.consumer_failover_redelivery_wait_period
        self._replays = Replays(self._resources, connector, period, lambda: self._member)

    # -- connection ---------------------------------------------------------------------------------------------

    def connect(self, info: ConnectionInfo, listener: ProviderListener, done: Completion[ConnectionMetadata]) -> None:
        """Look for the first broker."""
        self._info, self._listener, self._opening = replace(info, resends=True), listener, done
        self._failure = None
        self._look(first=True, error=None)

    def _look(self, *, first: bool, error: BaseException | None) -> None:
        options = self._url.failover
        self._search = Search(
            Schedule(options, first=first),
            self._connector,
            self._candidates,
            partial(self._try, first),
            self._give_up,
            error,
        )
        self._search.start()

    def _candidates(self) -> list[BrokerUrl]:
        options = self._url.failover
        members = with_file(self._members, options.update_uris_url)
        ordered = in_order(members, self._lost, shuffled=options.randomize)
        return preferred_first(ordered, self._preferred) if options.priority_backup else ordered

    def _try(self, first: bool, url: BrokerUrl, tried: Tried) -> None:
        connector = self._connector.for_url(url)
        timeout = self._url.connection.connect_timeout
        provider = self._create(url, connector)
        discard = self._resources.interrupted
        closed = self._on_resource_closed
        member = self._trying = Member(url, provider, connector, timeout, self._on_lost, discard, closed)
        closes_links = self._url.connection.close_links_that_fail_on_reconnect
        restoration = Restoration(self._resources, closes_links, self._the_listener.on_temporary_renamed, closed)

        def ready(error: BaseException | None) -> None:
            self._trying = None
            if error is None:
                self._use(member)
            tried(error, error is not None and member.metadata is None and is_final(error, first=first))

        member.open(self._info, restoration.steps, ready)

    def _use(self, member: Member) -> None:
        """A broker is ready: tell the core, then ask again what waits (S103)."""
        assert member.metadata is not None  # it is ready
        self._member, self._search, self._lost = member, None, None
        self.generation = member.provider.generation
        dialect = Dialect(member.provider, member.metadata)
        if self._dialect is None or self._resources.renamed or not dialect.understands(self._dialect):
            self._dialect = dialect
        self._resources.renamed = False
        action = self._url.failover.amqp_open_server_list_action
        self._members = learn(self._members, member.url, member.metadata, action)
        self._watch_priority(member)
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.succeed(member.metadata)
            return
        log.info("the connection is restored at %s", member.url)
        self._the_listener.on_restored(member.metadata)
        self._replays.restore(self._open, self._transmit)
        self._resources.in_use()
        held, self._held = self._held, {}
        for pending in held:
            if isinstance(pending, Request):
                self._issue(pending)
            elif pending.producer_id not in self._producers:
                pending.give_up(self._resources.why_closed(pending.producer_id))
            else:
                pending.disarm()
                self._transmit(pending)
        member.provider.flush()

    def _watch_priority(self, member: Member) -> None:
        """Look for a preferred broker while this is none."""
        if self._url.failover.priority_backup and str(member.url) not in self._preferred:
            preferred = [url for url in self._url.members if str(url) in self._preferred]
            self._watch = PriorityWatch(
                self._url, preferred, self._connector, self._create, self._info, self._is_idle, self._leave
            )
            self._watch.start()

    def _is_idle(self) -> bool:
        """Whether nobody waits for an answer, and no transaction has work."""
        return not self._open and not any(session.work for session in self._resources.sessions.values())

    def _leave(self, error: BaseException) -> None:
        """Give the present broker up for a better one."""
        member = self._member
        self._on_lost(error)
        if member is not None:
            self._leaving.add(member)
            member.leave(partial(self._leaving.discard, member))

    def _end_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()

    @property
    def _the_listener(self) -> ProviderListener:
        assert self._listener is not None  # connect() came first
        return self._listener

    def _give_up(self, error: BaseException) -> None:
        """No attempt is left (S109)."""
        self._search = None
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.fail(error)
            return
        self._fail_everything(error)
        self._the_listener.on_failure(error)

    def _fail_everything(self, error: BaseException) -> None:
        self._failure = error
        self._replays.give_all_up()
        pending = [*self._open, *self._held]
        self._open.clear()
        self._held.clear()
        self._resources.clear()
        for item in pending:
            item.give_up(error)

    def close(self, done: Completion[None]) -> None:
        """Close in order; without a broker at once."""
        member, self._member = self._member, None
        self.generation = 0
        self._end_search(IllegalStateException("the connection is closed"))
        self._replays.give_all_up()
        self._resources.clear()
        if member is None:
            self._fail_everything(IllegalStateException("the connection is closed"))
            done.succeed()
        else:
            self._closing = member
            member.provider.close(done)
            member.provider.flush()

    def abort(self, error: BaseException) -> None:
        """Fail what is pending, and drop the broker."""
        members = (self._member, self._closing, *self._leaving)
        self._member = self._closing = None
        self._leaving.clear()
        self.generation = 0
        self._end_search(error)
        opening, self._opening = self._opening, None
        self._fail_everything(error)
        for member in members:
            if member is not None:
                member.abandon(error)
        if opening is not None:
            opening.fail(error)

    def _end_search(self, error: BaseException) -> None:
        self._end_watch()
        search, self._search = self._search, None
        if search is not None:
            search.stop()
        trying, self._trying = self._trying, None
        if trying is not None:
            trying.abandon(error)

    def flush(self) -> None:
        """Write what is pending."""
        member = self._member or self._closing
        if member is not None:
            member.provider.flush()

    def _on_resource_closed(self, number: int, error: BaseException) -> None:
        """The broker closed a session or producer: no other one is asked for it (S109)."""
        self._the_listener.on_resource_closed(number, error)
        self._replays.give_up(self._resources.sessions.get(number))
        self._resources.closed_by_broker(number, error)

    # -- interruption -------------------------------------------------------------------------------------------

    def _on_lost(self, error: BaseException) -> None:
        """The broker in use is gone: take over what it owes, and look for another one."""
        member, self._member = self._member, None
        if member is None:
            return
        self._end_watch()
        generation, self.generation = self.generation, 0
        pending = [*self._open]
        self._open.clear()
        for item in pending:
            if isinstance(item, Kept):
                item.left = not _never_left(member.provider, item)
        self._resources.interrupted()
        self._judge_transactions([item for item in pending if isinstance(item, Kept) and item.transacted])
        log.info("the connection to %s is lost: %s", member.url, error)
        self._the_listener.on_interrupted(error, generation)
        for item in pending:
            if isinstance(item, Kept):
                self._keep(item, error)
            else:
                self._wait_for_broker(item)
        self._lost = member.url
        self._look(first=False, error=error)

    def _judge_transactions(self, unanswered: list[Kept]) -> None:
        """Decide which transactions go on: those without work at the lost broker (S100), and those whose only work is
        a send that is still here (S92, S93)."""
        for number, session in self._resources.sessions.items():
            sends = [kept for kept in unanswered if kept.session_id == number]
            if self._replays.survives(session, sends):
                session.work = 0
                continue
            done = session.work - sum(not kept.left for kept in sends)
            survives = done == 1 and self._url.failover.first_send_survives and any(kept.left for kept in sends)
            session.in_doubt = session.in_doubt or (done > 0 and not survives)
            session.work = 0
            self._replays.look(session)

    def _keep(self, kept: Kept, error: BaseException) -> None:
        """A send without outcome: hold it, unless it may not be repeated (S91, S92, S102)."""
        session = self._resources.sessions.get(kept.session_id)
        if kept.transacted and session is not None and session.in_doubt:
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

    # -- requests -----------------------------------------------------------------------------------------------

    def _ask(self, request: Request) -> None:
        if self._member is None:
            self._wait_for_broker(request)
        else:
            self._issue(request)

    def _issue(self, request: Request) -> None:
        member = self._member
        assert member is not None  # the caller has looked
        self._open[request] = request.asked = True
        answered: Completion[Any] = Completion()
        answered.add_callback(partial(self._on_answer, request))
        request.ask(member.provider, answered)

    def _on_answer(self, request: Request, answered: Completion[Any]) -> None:
        if not self._open.pop(request, False):  # it was taken over, as its connection was lost
            return
        if answered.error is not None:
            request.give_up(answered.error)
            return
        if request.then is not None:
            request.then()
        request.done.succeed(answered.result())

    def _wait_for_broker(self, request: Request) -> None:
        """The table of S90."""
        without = WITHOUT_BROKER[request.verb]
        if self._failure is not None:
            request.give_up(self._failure)
        elif without is Without.HELD:
            self._held[request] = None
        elif without is Without.SUCCEEDS:
            request.done.succeed()
        else:
            text = "the connection was lost before the answer: it may have taken effect (S94)"
            text = text if request.asked else "there is no broker now (S90)"
            request.give_up(TransactionRolledBackException(text, in_doubt=request.asked))

    def _drop_held(self, number: int, what: str) -> None:
        """A resource is closed: what waits for a broker in its name is given up."""
        for pending in [pending for pending in self._held if number in pending.owner]:
            del self._held[pending]
            pending.give_up(IllegalStateException(f"{what} was closed before there was a broker"))

    # -- sessions, producers, consumers -------------------------------------------------------------------------

    def create_session(self, info: SessionInfo, done: Completion[None]) -> None:
        """Open a session."""
        replays = self._url.failover.transaction_replay
        self._ask(
            Request(
                "create_session",
                (info.id,),
                lambda provider, answered: provider.create_session(info, answered),
                done,
                lambda: self._resources.sessions.__setitem__(info.id, SessionRecord(info, replays=replays)),
            )
        )

    def close_session(self, session_id: int, done: Completion[None]) -> None:
        """End a session with all that it has."""
        self._replays.give_up(self._resources.sessions.get(session_id))
        self._resources.forget_session(session_id)
        self._drop_held(session_id, "the session")
        self._ask(Request("close_session", (), lambda provider, a: provider.close_session(session_id, a), done))

    def create_producer(self, info: ProducerInfo, done: Completion[None]) -> None:
        """Attach a sender."""
        self._ask(
            Request(
                "create_producer",
                (info.session_id, info.id),
                lambda provider, answered: provider.create_producer(info, answered),
                done,
                lambda: self._resources.producers.__setitem__(info.id, info),
            )
        )

    def close_producer(self, producer_id: int, done: Completion[None]) -> None:
        """Detach a sender."""
        self._resources.forget_producer(producer_id)
        self._drop_held(producer_id, "the producer")
        self._ask(Request("close_producer", (), lambda provider, a: provider.close_producer(producer_id, a), done))

    def create_consumer(self, info: ConsumerInfo, done: Completion[None]) -> None:
        """Attach a receiver."""
        record = ConsumerRecord(info, self._resources.forget_consumer)

        def ask(provider: Provider, answered: Completion[None]) -> None:
            provider.create_consumer(record.attach(), answered)

        self._ask(
            Request(
                "create_consumer", (info.session_id, info.id), ask, done, lambda: self._resources.add_consumer(record)
            )
        )

    def close_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """Detach a receiver."""
        self._resources.forget_consumer(consumer_id)
        self._drop_held(consumer_id, "the consumer")
        self._ask(Request("close_consumer", (), lambda provider, a: provider.close_consumer(consumer_id, a), done))

    def create_temporary(self, info: TemporaryInfo, done: Completion[str]) -> None:
        """Create a temporary destination."""

        def created(answered: Completion[str]) -> None:
            if answered.error is None:
                self._resources.temporaries[info.id] = (info, answered.result())

        named: Completion[str] = Completion()
        named.add_callback(created)
        named.add_callback(lambda answered: _pass_on(answered, done))
        self._ask(
            Request("create_temporary", (info.id,), lambda provider, a: provider.create_temporary(info, a), named)
        )

    def delete_temporary(self, temporary_id: int, done: Completion[None]) -> None:
        """Delete a temporary destination."""
        self._resources.temporaries.pop(temporary_id, None)
        self._drop_held(temporary_id, "the temporary destination")
        self._ask(Request("delete_temporary", (), lambda provider, a: provider.delete_temporary(temporary_id, a), done))

    def unsubscribe(self, name: str, done: Completion[None]) -> None:
        """Delete a durable subscription."""
        self._ask(Request("unsubscribe", (), lambda provider, a: provider.unsubscribe(name, a), done))

    # -- flow ---------------------------------------------------------------------------------------------------

    def start_consumer(self, consumer_id: int) -> None:
        """Let messages flow, also from the brokers to come."""
        record = self._resources.consumers.get(consumer_id)
        if record is not None:
            record.started = True
            if self._member is not None:
                self._member.provider.start_consumer(consumer_id)

    def stop_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """No message from now on."""
        record = self._resources.consumers.get(consumer_id)
        if record is not None:
            record.stopped = True
        self._ask(Request("stop_consumer", (), lambda provider, a: provider.stop_consumer(consumer_id, a), done))

    def replenish(self, consumer_id: int) -> None:
        """Grant credit again; a new broker gives it anyway."""
        if self._member is not None:
            self._member.provider.replenish(consumer_id)

    def pull(self, consumer_id: int) -> None:
        """Ask for one message, of the next broker if this one does not give it (S108)."""
        record = self._resources.consumers.get(consumer_id)
        if record is not None:
            record.pulling = True
            if self._member is not None:
                self._member.provider.pull(consumer_id)

    def drain(self, consumer_id: int, done: Completion[None]) -> None:
        """Ask for what there is: without a broker nothing, but for a browser, which must not end before its end."""
        record = self._resources.consumers.get(consumer_id)
        verb = "drain"
        if record is not None:
            record.pulling = False
            verb = "browse" if record.info.browser else "drain"
        self._ask(Request(verb, (consumer_id,), lambda provider, a: provider.drain(consumer_id, a), done))

    # -- messages -----------------------------------------------------------------------------------------------

    def send(self, outbound: Outbound) -> None:
        """Send, and keep it until it is answered (S91)."""
        info = self._producers.get(outbound.producer_id)
        if info is None:
            outbound.done(self._failure or self._resources.why_closed(outbound.producer_id))
        else:
            self._transmit(Kept(outbound, self._open, info.session_id))

    def _transmit(self, kept: Kept) -> None:
        """Give a send to the broker, or hold it."""
        if kept.transacted and self._is_in_doubt(kept):
            kept.origin.done(None)  # appears to succeed: the commit will say what became of it (S92)
        elif self._member is None:
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

    def withdraw(self, outbound: Outbound, withdrawn: Completion[bool]) -> None:
        """Take back a send that timed out; one that may have reached a broker is not repeated any more."""
        kept = next((k for k in (*self._held, *self._open) if isinstance(k, Kept) and k.origin is outbound), None)
        if kept is None:
            withdrawn.succeed(False)
        elif kept in self._held:
            del self._held[kept]
            withdrawn.succeed(not kept.left)
            kept.give_up(SendTimedOutException("withdrawn for want of a broker"))
        elif self._member is not None:
            kept.withdrawn = True
            self._member.provider.withdraw(kept, withdrawn)

    def settle(self, inbound: Inbound, outcome: Outcome) -> None:
        """Send an outcome, unless its delivery is of an earlier connection: then it is the broker's again (S95)."""
        current = inbound.generation == self.generation
        if outcome is Outcome.ACCEPTED:
            session = self._resources.transacted_consumers.get(inbound.consumer_id)
            if session is not None:
                session.work += 1
                session.in_doubt = session.in_doubt or not current
                if session.replay is not None:
                    session.replay.acknowledged(inbound)
        if current and self._member is not None:
            self._member.provider.settle(inbound, outcome)

    # -- transactions -------------------------------------------------------------------------------------------

    def begin(self, session_id: int, done: Completion[None]) -> None:
        """Declare a transaction; without a broker the next one does it with the session."""
        if self._replays.wait_behind(self._resources.sessions.get(session_id), partial(self.begin, session_id, done)):
            return
        self._ask(Request("begin", (), lambda provider, a: provider.begin(session_id, a), done))

    def commit(self, session_id: int, done: Completion[None]) -> None:
        """Commit; roll back instead what lost its work (S92, S97)."""
        session = self._resources.sessions.get(session_id)
        if session is None or not session.in_doubt:
            if session is not None and self._replays.wait(session, partial(self.commit, session_id, done)):
                return
            if session is None or session.replay is None or session.replay.complete:
                self._clear(session)
                self._ask(Request("commit", (), lambda provider, a: provider.commit(session_id, a), done))
                return
        missing = 0 if session.replay is None else len(session.replay.missing)
        lost = "the connection was lost while the transaction was open; its work is undone (S92, S97)"
        if missing:
            lost = f"not replayed: {missing} message(s) that the transaction received did not come again (S107)"
        session.clear()
        undone: Completion[None] = Completion()
        undone.add_callback(lambda _: done.fail(TransactionRolledBackException(lost)))
        self._ask(Request("rollback", (), lambda provider, a: provider.rollback(session_id, a), undone))

    def rollback(self, session_id: int, done: Completion[None]) -> None:
        """Roll back; the broker has done so already for what was lost (S99)."""
        session = self._resources.sessions.get(session_id)
        self._replays.give_up(session)
        self._clear(session)
        for kept in [k for k in self._held if isinstance(k, Kept) and k.transacted and k.session_id == session_id]:
            del self._held[kept]
            kept.give_up(TransactionRolledBackException("rolled back before it could be sent"))
        self._ask(Request("rollback", (), lambda provider, a: provider.rollback(session_id, a), done))

    @staticmethod
    def _clear(session: SessionRecord | None) -> None:
        if session is not None:
            session.clear()

    # -- names and encoding -------------------------------------------------------------------------------------

    def encoder(self, destination: Destination) -> Encoder:
        """Return the present broker's encoder, or that of the last one; it says which (S91)."""
        if self._dialect is None:
            raise IllegalStateException("the connection is not open")
        return MemberEncoder.of(self._dialect, destination)

    def decode(self, payload: bytes, destination: Destination) -> tuple[Message, int]:
        """Undo the encoding."""
        if self._dialect is None:
            raise IllegalStateException("the connection is not open")
        return self._dialect.provider.decode(payload, destination)


def _never_left(provider: Provider, kept: Kept) -> bool:
    """Ask the lost broker's provider whether a send waited in vain for credit."""
    withdrawn: Completion[bool] = Completion()
    provider.withdraw(kept, withdrawn)
    return withdrawn.done and withdrawn.error is None and withdrawn.result()


def _pass_on(answered: Completion[Any], done: Completion[Any]) -> None:
    if answered.error is not None:
        done.fail(answered.error)
    else:
        done.succeed(answered.result())
