"""Parts that every program on python-qpid-proton here needs."""

from __future__ import annotations

from typing import Any, TypeAlias

import proton
from proton import symbol
from proton.reactor import Container, ReceiverOption, SenderOption

from benchmarks.job import login

Event: TypeAlias = Any  # proton declares every property of every event as Optional

_QUEUE = symbol("queue")
CLIENT = f"python-qpid-proton {'.'.join(map(str, proton.VERSION))}"


class QueueTarget(SenderOption):
    """Ask for a queue: without the capability Artemis accepts messages to a new address, and drops them."""

    def apply(self, sender: Any) -> None:
        """Mark the target before the link is opened."""
        sender.target.capabilities.put_object(_QUEUE)


class QueueSource(ReceiverOption):
    """Ask for a queue, as :class:`QueueTarget` does."""

    def apply(self, receiver: Any) -> None:
        """Mark the source before the link is opened."""
        receiver.source.capabilities.put_object(_QUEUE)


def connect(container: Container, url: str) -> Any:
    """Open a connection that is not made again when it is lost: a measurement across two of them is worthless."""
    username, password = login()
    return container.connect(url, user=username, password=password, reconnect=False)
