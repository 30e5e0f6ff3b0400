"""Returns to a preferred broker when this broker can be reached again (``failover.priorityBackup``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from pyjmsack.errors import ConnectionLostException, JMSException
from pyjmsack.loggers import get_logger
from pyjmsack.providers.failover.member import Member
from pyjmsack.providers.failover.returns import Returns
from pyjmsack.providers.failover.search import back_off, is_final
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.spi.provider import Provider
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata
from pyjmsack.uri import BrokerUrl

__all__ = ["PriorityWatch"]

log = get_logger("pyjmsack.failover")
_LOOK_EVERY = 0.02
"""Seconds between two checks whether the present connection is idle."""
_PATIENCE = 10.0
"""Seconds after which a connection moves to a preferred broker even if it was never idle."""
_ACKNOWLEDGING = 5.0
"""The longest wait in seconds for the acknowledgements before a connection moves. If a disk does not answer, some
acknowledgements still wait after this time, and the connection moves without them."""


class PriorityWatch:
    """Tries the preferred brokers while the connection uses another broker. The waits between the rounds are those of a
    search.

    Each attempt opens a test connection, logs in, and closes the test connection at once. The attempt succeeds only if
    the broker answers the close in time, because a broker that hangs may still accept connections. After a successful
    attempt, the connection in use moves to the preferred broker, as after a loss. The connection moves at the first
    moment when no request waits for an answer, because then nothing has to be repeated, and at the latest after ten
    seconds. Before the connection moves, it sends the acknowledgements that wait. A broker that refuses the login is
    not tried again, because several wrong logins may lock an account. A broker that failed after an earlier return is
    left out for a while.

    Args:
        url: the failover URL.
        preferred: the brokers to try.
        returns: knows the brokers that failed after an earlier return.
        idle: returns True if the present connection waits for no answer.
        acknowledge: sends the acknowledgements that wait, and then completes its argument.
        move: leaves the present connection for the broker that is given.
    """

    def __init__(
        self,
        url: BrokerUrl,
        preferred: Iterable[BrokerUrl],
        returns: Returns,
        connector: Connector,
        create: Callable[[BrokerUrl, Connector], Provider],
        info: ConnectionInfo,
        idle: Callable[[], bool],
        acknowledge: Callable[[Completion[None]], None],
        move: Callable[[BrokerUrl, BaseException], None],
    ) -> None:
        self._waits = back_off(url.failover)
        self._timeout = url.connection.connect_timeout
        self._preferred = [*preferred]
        self._returns = returns
        self._connector = connector
        self._create = create
        # a client id of its own, because some brokers refuse a second connection with the same client id
        self._info = replace(info, client_id=f"{info.client_id}-priority", explicit_client_id=False)
        self._idle = idle
        self._acknowledge = acknowledge
        self._move = move
        self._left: list[BrokerUrl] = []
        self._trying: Member | None = None
        self._timer: Timer | None = None
        self._stopped = False

    def start(self) -> None:
        """Wait for the time of the next round."""
        self._after(next(self._waits), self._begin_round)

    def stop(self) -> None:
        """End the attempts to reach a preferred broker."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        trying, self._trying = self._trying, None
        if trying is not None:
            trying.abandon(ConnectionLostException("the search for a preferred broker is over"))

    def _after(self, delay: float, then: Callable[[], None]) -> None:
        self._timer = self._connector.call_later(delay, then)

    def _begin_round(self) -> None:
        self._left = [url for url in self._preferred if not self._returns.rests(url)]
        self._next()

    def _next(self) -> None:
        if self._stopped:
            return
        if not self._left:
            if self._preferred:
                self.start()
            return
        url = self._left.pop(0)
        connector = self._connector.for_url(url)
        try:
            provider = self._create(url, connector)
        except JMSException as error:  # a library is missing
            self._strike_off(url, error)
            self._next()
            return
        member = self._trying = Member(url, provider, connector, self._timeout, lambda error: None, lambda: None)
        member.open(self._info, _close, lambda error: self._tried(member, error))

    def _strike_off(self, url: BrokerUrl, error: BaseException) -> None:
        self._preferred.remove(url)
        log.warning("the preferred broker %s is not tried again: %s", url, error)

    def _tried(self, member: Member, error: BaseException | None) -> None:
        self._trying = None
        if error is None:
            member.abandon(ConnectionLostException("this connection only tested the broker"))
            self._wait_until_idle(member.url, int(_PATIENCE / _LOOK_EVERY))
            return
        if member.metadata is None and is_final(error, first=False):
            self._strike_off(member.url, error)
        else:
            log.debug("preferred broker: %s", error)
        self._next()

    def _wait_until_idle(self, url: BrokerUrl, looks: int) -> None:
        if not self._look_again(url, looks):
            acknowledged: Completion[None] = Completion()
            self._after(_ACKNOWLEDGING, acknowledged.succeed)
            acknowledged.add_callback(lambda _: self._move_if_idle(url, looks))
            self._acknowledge(acknowledged)

    def _look_again(self, url: BrokerUrl, looks: int) -> bool:
        """Plan another look if the connection is not idle and looks are left. Return whether another look is
        planned.
        """
        again = looks > 0 and not self._idle()
        if again:
            self._after(_LOOK_EVERY, lambda: self._wait_until_idle(url, looks - 1))
        return again

    def _move_if_idle(self, url: BrokerUrl, looks: int) -> None:
        """Move to the preferred broker. If new sends wait for an answer and looks are left, plan another look
        instead."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._stopped and not self._look_again(url, looks):
            log.info("the preferred broker %s can be reached again", url)
            self._move(url, ConnectionLostException(f"moving to the preferred broker {url}"))


def _close(provider: Provider, metadata: ConnectionMetadata) -> Iterator[Completion[Any]]:
    """Close a test connection. The only step is over when the broker has answered.

    Raises:
        JMSException: the connection was lost before the answer.
    """
    closed: Completion[None] = Completion()
    provider.close(closed)
    yield closed
    closed.result()
