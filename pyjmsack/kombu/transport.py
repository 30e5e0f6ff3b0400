"""The transport of kombu: makes connections and channels, and gives the messages that arrived to kombu."""

# kombu has no type annotations, and some types that a checker infers from its source are too narrow for our overrides
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import builtins
from contextlib import suppress
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

from kombu.exceptions import ChannelError
from kombu.transport import base, virtual

from pyjmsack import JMSException, RequestTimedOutException
from pyjmsack.kombu.channel import Channel as JmsChannel
from pyjmsack.kombu.connection import Connection
from pyjmsack.kombu.settings import SCHEMES, masked, settings_of
from pyjmsack.version import VERSION

__all__ = ["SCHEMES", "Transport"]

_BURST: Final = 50
"""The largest number of messages that are delivered to kombu before the other callbacks of its event loop have a
turn."""
_PATIENCE: Final = 1.0
"""The number of seconds in which consumers end before their connection is given up."""


class _Past:
    """What became of the connections to the broker that a :class:`kombu.Connection` made. kombu replaces its transport,
    so the transport cannot know."""

    def __init__(self) -> None:
        self.bereft = False
        """Whether consumers have ended with a connection, and the program may not know."""
        self.made: list[ref[Connection]] = []
        """The connections, in their order. Threads that share a :class:`kombu.Connection` may make several at the same
        time. Then all use the first one."""


_pasts: Final[WeakKeyDictionary[Any, _Past]] = WeakKeyDictionary()


class Transport(base.Transport):
    """Lets kombu and Celery use a JMS broker.

    Args:
        client: the :class:`kombu.Connection`.
    """

    Channel = JmsChannel
    Management = virtual.Management
    can_parse_url = True
    default_port = 5672
    driver_type = "jms"
    driver_name = "pyjmsack"
    connection_errors = (*virtual.Transport.connection_errors, builtins.ConnectionError, RequestTimedOutException)
    channel_errors = (ChannelError, JMSException)
    recoverable_connection_errors = connection_errors
    recoverable_channel_errors = ()
    implements = virtual.Transport.implements.extend(
        asynchronous=True,
        exchange_type=frozenset({"direct", "topic", "fanout"}),
        heartbeats=False,
        batch_publish=False,
    )

    def establish_connection(self) -> Connection:
        """Connect to the broker. The lost connections, which kombu replaces by this one, are closed.

        Raises:
            JMSException: the broker cannot be reached, or refuses the login; or the URL is wrong.
        """
        client = self.client  # kombu takes it away if another thread gives the connection up meanwhile
        connection, past = Connection(client, settings_of(client)), _pasts.setdefault(client, _Past())
        self._end_unusable(past)
        past.made.append(ref(connection))
        found = (made() for made in [*past.made])
        first = next((one for one in found if one is not None and one.alive), connection)
        if first is not connection:
            connection.close()  # another thread was quicker, and the program would use both
        first.owes, past.bereft = past.bereft or first.owes, False
        if first.consuming:  # looked at behind the assignment, because another thread may just have opened a consumer
            first.owes = False
        return first

    def _end_unusable(self, past: _Past) -> None:
        """Close the connections that are lost, and take them and the closed ones away from their channels."""
        for made in [*past.made]:
            old = made()
            if old is not None and not old.closed and old.error is None:
                continue
            with suppress(ValueError):  # another thread was quicker
                past.made.remove(made)
            if old is not None:
                if not old.closed:
                    self._note_consumers(old)
                old.replaced()

    @staticmethod
    def _note_consumers(lost: Connection) -> bool:
        """Let the next connection tell the program, if it waits for messages and opens no consumers before. Return
        whether the connection had consumers.
        """
        if lost.consuming:
            _pasts.setdefault(lost.client, _Past()).bereft = True
            return True
        return False

    def close_connection(self, connection: Connection) -> None:
        """Close a connection and its channels. A lost connection is closed too, so that its thread ends.

        Args:
            connection: the connection that :meth:`establish_connection` returned.
        """
        # kombu closes a connection that works if it has several brokers, and a call took too long
        if not connection.closed and (connection.error is not None or connection.client.cycle is not None):
            self._note_consumers(connection)
        try:
            with suppress(JMSException):  # the connection was lost
                connection.cancel_all()
            for channel in [*connection.channels]:
                with suppress(JMSException):  # the channel has ended, because the connection was lost
                    channel.close()
        finally:
            connection.close()

    def _collect(self, connection: Connection | None) -> None:
        """Forget a connection. kombu calls this for a lost connection, and for each connection in a child of a fork."""
        if connection is not None:
            noted = connection.closed or self._note_consumers(connection)
            try:
                if connection.alive:  # a call took too long
                    self._give_back(connection)
            finally:  # also if a signal handler has raised, because the consumers have ended
                connection.forget()
            if not noted:  # until then another thread may have opened consumers
                self._note_consumers(connection)

    @staticmethod
    def _give_back(connection: Connection) -> None:
        """Give all messages back. Otherwise the broker would count a failure for each of them. The consumers end first,
        because they would get these messages again.
        """
        try:
            with suppress(JMSException, TimeoutError):  # the connection was lost meanwhile, or the broker stands still
                connection.cancel_all(_PATIENCE)
        finally:  # also if a signal handler has raised
            for channel in [*connection.channels]:
                with suppress(JMSException):
                    channel.qos.release_all()

    def verify_connection(self, connection: Connection) -> bool:
        """Return True if a connection can be used. Also return True for a lost connection with consumers until a call
        has raised its error.

        Args:
            connection: the connection that :meth:`establish_connection` returned.
        """
        return connection.alive or connection.owes_error

    def create_channel(self, connection: Connection) -> JmsChannel:
        """Return a new channel.

        Args:
            connection: the connection that :meth:`establish_connection` returned.

        Raises:
            ConnectionLostException: the connection is lost or closed.
        """
        connection.check()
        channel = self.Channel(connection)
        connection.channels.append(channel)
        return channel

    def close_channel(self, channel: JmsChannel) -> None:
        """Close a channel.

        Args:
            channel: the channel that :meth:`create_channel` returned.
        """
        channel.close()

    def drain_events(self, connection: Connection, timeout: float | None = None, **kwargs: Any) -> None:
        """Wait for a message and give it to its consumer.

        Args:
            connection: the connection whose consumers get messages.
            timeout: seconds; ``None`` waits for ever, 0 does not wait.
            kwargs: ignored.

        Raises:
            socket.timeout: no message came in time.
            ConnectionLostException: the connection is lost.
        """
        connection.drain(timeout)

    def register_with_event_loop(self, connection: Connection, loop: Any) -> None:
        """Deliver messages from an event loop of kombu.

        Args:
            connection: the connection whose consumers get messages.
            loop: the event loop.
        """
        connection.register(loop, self.on_readable)

    def unregister_from_event_loop(self, connection: Connection, loop: Any) -> None:
        """Do not deliver messages from this event loop any more.

        Args:
            connection: the connection.
            loop: the event loop.
        """
        connection.unregister(loop)

    def on_readable(self, connection: Connection, loop: Any) -> None:
        """Deliver messages that have arrived, at most 50 of them, so that other callbacks of the loop get their turn.

        Args:
            connection: the connection whose consumers get messages.
            loop: the event loop, which calls again if there are more messages.

        Raises:
            ConnectionLostException: the connection is lost.
        """
        if connection.closed:
            return
        connection.clear_signal()
        for _ in range(_BURST):
            connection.check()
            if not connection.deliver():
                return
        if connection.has_more:
            loop.call_soon(self.on_readable, connection, loop)

    def driver_version(self) -> str:
        """Return the version of pyjmsack."""
        return VERSION

    def as_uri(self, uri: str, include_password: bool = False, mask: str = "**") -> str:
        """Return the broker's URL for people to read.

        Args:
            uri: ignored, because the URL of the connection is complete.
            include_password: whether passwords are shown.
            mask: the text in place of a password.
        """
        return masked(self.client, include_password=include_password, mask=mask)

    @property
    def default_connection_params(self) -> dict[str, Any]:
        """The host and the port that kombu shows if the URL names neither."""
        return {"hostname": "localhost", "port": self.default_port}
