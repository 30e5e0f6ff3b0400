"""The way to the broker, and the facts about the connection that all its objects share (S119, S125, S128)."""

from __future__ import annotations

import itertools
import uuid
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any

from pyjmsack.core.events import Events
from pyjmsack.core.recorder import Recorder
from pyjmsack.core.redelivery import FailedDeliveries
from pyjmsack.core.runtime import Runtime
from pyjmsack.core.steps import Deadline
from pyjmsack.core.tracing import Traces
from pyjmsack.core.transformer import Transforms
from pyjmsack.errors import ConnectionLostException, IllegalStateException, JMSException
from pyjmsack.spi.demands import require
from pyjmsack.spi.provider import Provider
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata
from pyjmsack.uri import BrokerUrl

__all__ = ["UNNAMED", "Channel", "State"]

UNNAMED = (
    "the connection is not open, because its caller gave up while the client id was being set; set the client id"
    " again, or close the connection"
)


class State(Enum):
    """The state of a connection, which decides what a caller can do with the connection."""

    OPEN = "open"
    """The connection works, as far as the client knows."""
    UNNAMED = "unnamed"
    """The connection is not open, because a caller gave up while the connection was being opened with another client
    id."""
    FAILED = "failed"
    """The connection is lost. It can only be closed. ``Channel.failure`` is the reason."""
    CLOSED = "closed"


_MOST_ROLLED_BACK = 10_000
"""The number of rolled-back messages that a connection remembers for the limit of redeliveries."""


class RolledBack:
    """How often transactions of this connection rolled back each message (S113). The oldest are forgotten first.

    A message is forgotten when it is done, because a sender may send a second message that agrees with it in all parts.
    Any thread may call the methods.
    """

    def __init__(self, lock: AbstractContextManager[Any]) -> None:
        self._lock = lock
        self._times: OrderedDict[int, int] = OrderedDict()

    def add(self, key: Hashable) -> None:
        """Count a rollback. ``key`` has the identity of the message and the name of its queue or subscription."""
        number = hash(key)
        with self._lock:
            self._times[number] = self._times.get(number, 0) + 1
            self._times.move_to_end(number)
            if len(self._times) > _MOST_ROLLED_BACK:
                self._times.popitem(last=False)

    def times(self, key: Hashable) -> int:
        """Return the number of counted rollbacks of a message."""
        return self._times.get(hash(key), 0)

    def forget(self, key: Hashable) -> None:
        """Forget a message that is done."""
        with self._lock:  # another thread may be just about to move the message to the end
            self._times.pop(hash(key), None)

    def __bool__(self) -> bool:
        """Whether any message is remembered."""
        return bool(self._times)


class Channel:
    """One connection's way to its broker.

    Sessions, producers and consumers submit their commands here, and read the state of the connection here. Only the
    :class:`~pyjmsack.core.connection.Connection` changes the state.

    Args:
        url: the parsed broker URL.
        runtime: how this face reaches the loop and runs user code.
        provider: speaks the protocol.
        info: client id and login.
        transforms: the hooks that replace messages.
        recorder: records each send, delivery and event. ``None`` means that there is no ledger.
        traces: makes spans of sends and deliveries. ``None`` means that there are no spans.
    """

    __slots__ = (
        "_ids",
        "events",
        "failure",
        "failures",
        "info",
        "lost_generation",
        "message_id_prefix",
        "metadata",
        "options",
        "provider",
        "recorder",
        "rolled_back",
        "runtime",
        "started",
        "state",
        "submit",
        "submit_lazily",
        "traces",
        "transforms",
        "url",
    )

    def __init__(
        self,
        url: BrokerUrl,
        runtime: Runtime,
        provider: Provider,
        info: ConnectionInfo,
        transforms: Transforms,
        recorder: Recorder | None,
        traces: Traces | None,
    ) -> None:
        self.url = url
        self.options = url.connection
        self.runtime = runtime
        self.submit, self.submit_lazily = runtime.submit, runtime.submit_lazily
        self.provider = provider
        self.info = info
        self.transforms = transforms
        self.recorder = recorder
        self.traces = traces
        self.events = Events(runtime, recorder)
        self.rolled_back = RolledBack(runtime.lock())
        self.failures = FailedDeliveries()
        self.state = State.OPEN
        self.started = False
        self.metadata: ConnectionMetadata | None = None
        self.failure: BaseException | None = None
        self.lost_generation = 0
        """The number of the last connection that was lost and restored. The broker delivers the messages of that
        connection again (S95)."""
        self.message_id_prefix = f"{self.options.connection_id_prefix}{uuid.uuid4()}"
        self._ids = itertools.count(1)

    def next_id(self) -> int:
        """Return an id for a resource, unique on this connection."""
        return next(self._ids)

    def leads_to(self, metadata: ConnectionMetadata) -> None:
        """Remember which broker the connection leads to. Called when the connection was opened or restored."""
        self.metadata = metadata
        if self.recorder is not None:
            self.recorder.metadata = metadata
        if self.traces is not None:
            self.traces.leads_to(metadata, self.info.client_id)

    @property
    def address(self) -> str:
        """The address of the broker in use."""
        return (self.metadata.url if self.metadata is not None else "") or str(self.url)

    @property
    def the_metadata(self) -> ConnectionMetadata:
        """The facts about the broker. Raises an error if the connection has not been opened yet."""
        if self.metadata is None:
            raise IllegalStateException("the connection is not open")
        return self.metadata

    @property
    def usable(self) -> bool:
        """Whether the connection is open. If so, :meth:`check_open` raises no error."""
        return self.state is State.OPEN

    def check_open(self) -> None:
        """Raise an error if the connection is closed or lost (S125, S128)."""
        if self.state is State.OPEN:
            return
        if self.state is State.FAILED and self.failure is not None:
            raise _lost(self.failure)
        raise IllegalStateException(UNNAMED if self.state is State.UNNAMED else "the connection is closed")

    def require(self, feature: str) -> None:
        """Raise an error if this protocol or this broker does not have a feature. No request is sent (S119).

        Raises:
            UnsupportedFeatureException: the feature is missing. The text gives the reason.
        """
        require(self.the_metadata, feature)

    def deadline(self) -> Deadline:
        """Return the deadline for the answer to a request that is made now. ``jms.requestTimeout`` sets the time."""
        return Deadline(self.options.request_timeout, "jms.requestTimeout")


def _lost(cause: BaseException) -> JMSException:
    """Return a new error for a lost connection. Each caller gets an error of its own, because raising an error adds to
    its traceback."""
    if isinstance(cause, JMSException):
        return cause.fresh()
    error = ConnectionLostException(str(cause))
    error.__cause__ = cause
    return error
