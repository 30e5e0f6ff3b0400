"""The life of a failover connection: the connection finds a broker, loses the broker or leaves it for a better one, and
ends (S90-S109)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyjmsack.errors import IllegalStateException, JMSException
from pyjmsack.loggers import get_logger
from pyjmsack.providers.failover.brokers import Brokers
from pyjmsack.providers.failover.encoding import Encoding
from pyjmsack.providers.failover.member import Member
from pyjmsack.providers.failover.priority import PriorityWatch
from pyjmsack.providers.failover.requests import Requests
from pyjmsack.providers.failover.resources import Resources
from pyjmsack.providers.failover.restore import Restoration
from pyjmsack.providers.failover.returns import Returns
from pyjmsack.providers.failover.search import LONGEST_PAUSE, Search, Tried, back_off, is_final
from pyjmsack.providers.failover.transactions import Transactions
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.spi.provider import Provider, ProviderListener
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata
from pyjmsack.uri import BrokerUrl

__all__ = ["Connection"]

log = get_logger("pyjmsack.failover")

_SETTLED = 1.0
"""A connection that was in use for this number of seconds is not new any more. If a request or link makes a broker end
connections, each of these connections ends while it is still new.
"""
_MOST_SHORT_LIVED = 2
"""The next search begins after a pause if more than this number of connections in a row were lost while they were
new."""


class Connection:
    """A connection that looks for a broker and uses this broker. When the broker is lost, the connection looks for the
    next broker.

    Args:
        requests: the requests and sends that the broker in use has not answered.
        resources: the open sessions, producers and consumers, which are restored at the next broker.
        create: makes the provider for one broker of the URL.
    """

    def __init__(
        self,
        url: BrokerUrl,
        connector: Connector,
        create: Callable[[BrokerUrl, Connector], Provider],
        resources: Resources,
        requests: Requests,
        transactions: Transactions,
    ) -> None:
        self._url = url
        self._connector = connector
        self._create = create
        self._resources = resources
        self._requests = requests
        self._transactions = transactions
        self._brokers = Brokers(url)
        self._returns = Returns(connector, self._brokers.prefers)
        self.generation = 0
        """The number of the connection to the broker in use, or 0 if no broker is in use."""
        self._trying: Member | None = None
        self._closing: Member | None = None
        self._leaving: set[Member] = set()
        self._search: Search | None = None
        self._watch: PriorityWatch | None = None
        self._settling: Timer | None = None
        """The timer that runs while the connection in use counts as new. ``None`` if no timer runs."""
        self._short_lived = 0
        """The number of connections in a row that were lost while they were new. After the third of these losses, each
        search begins after a pause."""
        self._pauses = back_off(url.failover)
        self._info = ConnectionInfo("")
        self._listener: ProviderListener | None = None
        self._opening: Completion[ConnectionMetadata] | None = None

    # -- a broker is found --------------------------------------------------------------------------------------

    def connect(self, info: ConnectionInfo, listener: ProviderListener, done: Completion[ConnectionMetadata]) -> None:
        """Look for the first broker."""
        self._info, self._listener, self._opening = replace(info, resends=True), listener, done
        self._requests.failure = None
        self._look(first=True, error=None)

    def _look(self, *, first: bool, error: BaseException | None) -> None:
        pause = min(LONGEST_PAUSE, next(self._pauses)) if self._short_lived > _MOST_SHORT_LIVED else 0.0
        self._search = Search(
            self._url.failover,
            self._connector,
            self._brokers.of_round,
            partial(self._try, first),
            self._give_up,
            error,
            first=first,
            pause=pause,
        )
        self._search.start()

    def _try(self, first: bool, url: BrokerUrl, tried: Tried) -> None:
        connector = self._connector.for_url(url)
        timeout = self._url.connection.connect_timeout
        try:
            provider = self._create(url, connector)
        except JMSException as error:  # a library is missing
            tried(error, is_final(error, first=first))
            return
        discard = self._resources.interrupted
        closed = self._on_resource_closed
        member = self._trying = Member(url, provider, connector, timeout, self._on_lost, discard, closed)
        strict, closes_links = self._url.strict, self._url.connection.close_links_that_fail_on_reconnect
        renamed = self._the_listener.on_temporary_renamed
        restoration = Restoration(self._resources, strict, closes_links, renamed, closed, member)
        member.ended_in_rebuild = restoration.ended

        def ready(error: BaseException | None) -> None:
            self._trying = None
            if error is None:
                self._resources.rebuilt()
                self._use(member)
            else:
                self._returns.failed(url, error, accepted=member.metadata is not None)
                self._requests.unreachable(url)
                if member.lost_in_rebuild:
                    restoration.failed(url, error)
                else:
                    self._resources.blame.unreachable(url)
            tried(error, error is not None and member.metadata is None and is_final(error, first=first))

        member.open(self._info, restoration.steps, ready)

    def _use(self, member: Member) -> None:
        """Use a broker that is ready: inform the core, and then repeat the requests and sends that have no answer
        (S103)."""
        assert member.metadata is not None  # a member that is ready has metadata
        requests, provider = self._requests, member.provider
        requests.member, self._search = member, None
        self.generation = provider.generation
        encoding = Encoding(provider, member.metadata)
        if requests.encoding is None or self._resources.renamed or not encoding.understands(requests.encoding):
            requests.encoding = encoding
        self._resources.renamed = False
        self._brokers.found(member.url, member.metadata)
        self._settling = self._connector.call_later(_SETTLED, self._settle_down)
        self._returns.arrived(member.url)
        self._watch_priority(member)
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.succeed(member.metadata)
            return
        self._the_listener.on_restored(member.metadata)
        self._transactions.restored(provider, requests.open, requests.transmit)
        self._resources.in_use()
        requests.resume()
        log.info("the connection is restored at %s", member.url)

    @property
    def _the_listener(self) -> ProviderListener:
        assert self._listener is not None  # connect() came first
        return self._listener

    # -- the broker is lost -------------------------------------------------------------------------------------

    def _on_lost(self, error: BaseException) -> None:
        """Keep the requests and sends that the lost broker did not answer, and look for another broker."""
        requests = self._requests
        member, requests.member = requests.member, None
        if member is None:
            return
        self._end_watch()
        self._returns.lost(member.url, error)
        if self._settling is not None:  # the connection was still new
            self._settling.cancel()
            self._short_lived += 1
        generation, self.generation = self.generation, 0
        lost = requests.interrupt(member, error)
        self._resources.interrupted()
        self._transactions.interrupted(lost.sends)
        self._the_listener.on_interrupted(error, generation)
        requests.hold_again(lost)
        self._brokers.lost(member.url)
        self._look(first=False, error=error)
        log.info("the connection to %s is lost: %s", member.url, error)  # last, because Ctrl-C may end a log call

    def _settle_down(self) -> None:
        """Remember that the connection in use is not new any more, so that the next search begins without a pause."""
        self._settling = None
        self._short_lived = 0
        self._pauses = back_off(self._url.failover)

    def _on_resource_closed(self, number: int, error: BaseException) -> None:
        """Forget a session or producer that the broker closed. The session or producer is not restored at another
        broker (S109)."""
        self._the_listener.on_resource_closed(number, error)
        self._transactions.give_up(self._resources.sessions.get(number))
        self._resources.closed_by_broker(number, error)

    # -- a preferred broker is back -----------------------------------------------------------------------------

    def _watch_priority(self, member: Member) -> None:
        """Look for a preferred broker while the broker in use is not preferred."""
        better = self._brokers.better_than(member.url)
        if better:
            self._watch = PriorityWatch(
                self._url,
                better,
                self._returns,
                self._connector,
                self._create,
                self._info,
                self._is_idle,
                self._the_listener.on_leaving,
                self._leave,
            )
            self._watch.start()

    def _is_idle(self) -> bool:
        """Return True if no request or send waits for an answer, and no open transaction has work."""
        return not self._requests.open and not any(session.work for session in self._resources.sessions.values())

    def _leave(self, better: BrokerUrl, error: BaseException) -> None:
        """Leave the present broker for a better one."""
        member = self._requests.member
        self._returns.begin(better)
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
        """Fail the connection, because no attempt to reach a broker is left (S109)."""
        self._search = None
        self._returns.stop()
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.fail(error)
            return
        self._fail_everything(error)
        self._the_listener.on_failure(error)

    def _fail_everything(self, error: BaseException) -> None:
        self._requests.failure = error
        self._transactions.end()
        self._resources.clear()
        self._requests.fail(error)

    def close(self, done: Completion[None]) -> None:
        """Close the connection. If a broker is in use, tell the broker first that the connection ends."""
        member, self._requests.member = self._requests.member, None
        self.generation = 0
        closed = IllegalStateException("the connection is closed")
        self._end_search(closed)
        self._requests.forget_alone()
        self._transactions.end()
        self._resources.clear()
        if member is None:
            self._requests.fail(closed)
            done.succeed()
        else:
            self._closing = member
            member.provider.close(done)
            member.provider.flush()

    def abort(self, error: BaseException) -> None:
        """Fail all pending requests and sends, and drop the connection without telling the broker."""
        members = (self._requests.member, self._closing, *self._leaving)
        self._requests.member = self._closing = None
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
        self._returns.stop()
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
        """Write the pending bytes to the socket."""
        member = self._requests.member or self._closing
        if member is not None:
            member.provider.flush()
