"""The life of a failover connection: finding a broker, losing it, leaving it for a better one, the end (S90-S109)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyjmsack.errors import IllegalStateException
from pyjmsack.providers.failover.asking import Asking
from pyjmsack.providers.failover.blame import blamed
from pyjmsack.providers.failover.dialect import Dialect
from pyjmsack.providers.failover.member import Member
from pyjmsack.providers.failover.pending import Kept
from pyjmsack.providers.failover.priority import PriorityWatch, preferred_first
from pyjmsack.providers.failover.restore import Restoration
from pyjmsack.providers.failover.schedule import Schedule
from pyjmsack.providers.failover.search import Search, Tried, in_order, is_final
from pyjmsack.providers.failover.server_list import learn
from pyjmsack.providers.failover.uri_file import with_file
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.spi.provider import Provider, ProviderListener
from pyjmsack.spi.registry import create_provider
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata
from pyjmsack.uri import BrokerUrl

__all__ = ["Reconnecting"]

log = logging.getLogger("pyjmsack.failover")

_SETTLED = 1.0
"""Seconds in use after which a connection is of use: what ends connections does so at once."""


class Reconnecting(Asking):
    """A connection that looks for a broker, uses it, and looks for the next one when it is lost.

    Args:
        create: makes the provider of one member.
    """

    def __init__(
        self,
        url: BrokerUrl,
        connector: Connector,
        create: Callable[[BrokerUrl, Connector], Provider] = create_provider,
    ) -> None:
        super().__init__(url, connector)
        self._create = create
        self._members: list[BrokerUrl] = [*url.members]
        self._preferred = url.failover.priority_uris or (str(url.members[0]),)
        self.generation = 0
        self._trying: Member | None = None
        self._closing: Member | None = None
        self._search: Search | None = None
        self._watch: PriorityWatch | None = None
        self._leaving: set[Member] = set()
        self._lost: BrokerUrl | None = None
        self._settling: Timer | None = None
        """Runs while the connection in use is new."""
        self._short_lived = 0
        """Connections in a row that were lost while they were new: the next one is not looked for at once."""
        self._info = ConnectionInfo("")
        self._listener: ProviderListener | None = None
        self._opening: Completion[ConnectionMetadata] | None = None

    # -- a broker is found --------------------------------------------------------------------------------------

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
            max(0, self._short_lived - 2),
        )
        self._search.start()

    def _candidates(self, rounds: int) -> list[BrokerUrl]:
        options = self._url.failover
        members = with_file(self._members, options.update_uris_url)
        if rounds:  # none of these: a broker may have named others as they are called in a network of its own
            known = {str(member) for member in members}
            members = [*members, *(member for member in self._url.members if str(member) not in known)]
        ordered = in_order(members, self._lost, shuffled=options.randomize)
        return preferred_first(ordered, self._preferred) if options.priority_backup else ordered

    def _try(self, first: bool, url: BrokerUrl, tried: Tried) -> None:
        connector = self._connector.for_url(url)
        timeout = self._url.connection.connect_timeout
        provider = self._create(url, connector)
        discard = self._resources.interrupted
        closed = self._on_resource_closed
        member = self._trying = Member(url, provider, connector, timeout, self._on_lost, discard, closed)
        strict, closes_links = self._url.strict, self._url.connection.close_links_that_fail_on_reconnect
        renamed = self._the_listener.on_temporary_renamed
        restoration = Restoration(self._resources, strict, closes_links, renamed, closed)

        def ready(error: BaseException | None) -> None:
            self._trying = None
            if error is None:
                self._resources.rebuilt()
                self._use(member)
            else:
                self._blame.unreachable(url)
                if member.lost_in_rebuild:
                    restoration.failed(url, error)
                else:
                    self._resources.blame.unreachable(url)
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
        self._members = learn(self._members, self._url.members, member.url, member.metadata, action)
        self._settling = self._connector.call_later(_SETTLED, self._settle_down)
        self._watch_priority(member)
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.succeed(member.metadata)
            return
        log.info("the connection is restored at %s", member.url)
        self._the_listener.on_restored(member.metadata)
        self._replays.restore(self._open, self._transmit)
        self._resources.in_use()
        self._resume()

    @property
    def _the_listener(self) -> ProviderListener:
        assert self._listener is not None  # connect() came first
        return self._listener

    # -- and lost -----------------------------------------------------------------------------------------------

    def _on_lost(self, error: BaseException) -> None:
        """The broker in use is gone: take over what it owes, and look for another one."""
        member, self._member = self._member, None
        if member is None:
            return
        self._end_watch()
        if self._settling is not None:  # it was in use for a moment only
            self._settling.cancel()
            self._short_lived += 1
        generation, self.generation = self.generation, 0
        pending = [*self._open]
        self._open.clear()
        guilty = self._find_guilty(member.url, pending, error)
        self._forget_alone()
        behind, self._held = self._held, {}
        for item in pending:
            if isinstance(item, Kept):
                item.left = not _never_left(member.provider, item)
        self._resources.interrupted()
        sends = [item for item in pending if isinstance(item, Kept)]
        self._judge_transactions([kept for kept in sends if kept.transacted and not kept.undone])
        log.info("the connection to %s is lost: %s", member.url, error)
        self._the_listener.on_interrupted(error, generation)
        for item in pending:
            if isinstance(item, Kept):
                self._keep(item, error)
            elif item is not guilty:
                self._wait_for_broker(item)
        for item in behind:
            if isinstance(item, Kept):
                self._held[item] = None
            else:
                self._wait_for_broker(item)
        if guilty is not None:
            guilty.give_up(blamed(f"the request {guilty.verb}", error))
        self._lost = member.url
        self._look(first=False, error=error)

    def _settle_down(self) -> None:
        """The connection is of use."""
        self._settling = None
        self._short_lived = 0

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

    def _on_resource_closed(self, number: int, error: BaseException) -> None:
        """The broker closed a session or producer: no other one is asked for it (S109)."""
        self._the_listener.on_resource_closed(number, error)
        self._replays.give_up(self._resources.sessions.get(number))
        self._resources.closed_by_broker(number, error)

    # -- a better one is back -----------------------------------------------------------------------------------

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

    # -- the end ------------------------------------------------------------------------------------------------

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
        self._forget_alone()
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None
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


def _never_left(provider: Provider, kept: Kept) -> bool:
    """Ask the lost broker's provider whether a send waited in vain for credit."""
    withdrawn: Completion[bool] = Completion()
    provider.withdraw(kept, withdrawn)
    return withdrawn.done and withdrawn.error is None and withdrawn.result()
