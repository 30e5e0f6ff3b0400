""":class:`Broker` has the methods of a broker that a test can use. The broker is embedded or runs in a container."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Broker"]


class Broker(Protocol):
    """The type of a broker, embedded or in a container, for annotations. A method has taken effect when it returns.

    Raises:
        BrokerError: every method raises it if the method cannot do its work.
    """

    @property
    def amqp_url(self) -> str:
        """The URL for AMQP, ``amqp://127.0.0.1:PORT``. The URL is the same after every restart."""
        ...

    @property
    def stomp_url(self) -> str:
        """The URL for STOMP, ``stomp://127.0.0.1:PORT``. The URL is the same after every restart."""
        ...

    @property
    def running(self) -> bool:
        """Whether the broker's process is alive. A paused process is alive."""
        ...

    def kill(self) -> None:
        """End the broker as a crash would (SIGKILL). Its data stay for a restart."""
        ...

    def restart(self) -> None:
        """End the broker in an orderly way if it runs, start it, and return when it serves both protocols."""
        ...

    def pause(self) -> None:
        """Freeze the broker: its connections stay open, and it does not answer."""
        ...

    def resume(self) -> None:
        """Let a paused broker go on."""
        ...
