""":class:`ContainerBroker`: a broker in a container, which testcontainers runs."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from pyjmsack.broker import BrokerError
from pyjmsack.broker.readiness import answers_amqp, answers_stomp, pick_port
from pyjmsack.extras import missing_extra

if TYPE_CHECKING:
    from docker.models.containers import Container
    from testcontainers.core.container import DockerContainer

__all__ = ["ContainerBroker"]

_AMQP, _STOMP = "5672/tcp", "61613/tcp"
_POLL_SECONDS = 0.05
_LOG_LINES = 40


class ContainerBroker:
    """A broker in a container. Its ports are published on 127.0.0.1, and are the same after every restart.

    Any thread may call a method, and one method runs at a time. Every method raises
    :class:`pyjmsack.broker.BrokerError` if it cannot do its work.

    Args:
        image: the name of an image that serves AMQP on port 5672 and STOMP on port 61613, such as an image that
            ``containers/build`` makes.
        environment: variables for the container.
        volumes: for each directory of this machine, the path at which the container sees it, read-only.
        ports: for each further port of the container, the port of 127.0.0.1 that leads to it.
        start_timeout: seconds until the broker must answer in both protocols.
        stop_timeout: seconds that :meth:`restart` waits for the end of the broker, before it kills the broker.
    """

    def __init__(
        self,
        image: str,
        *,
        environment: Mapping[str, str] | None = None,
        volumes: Mapping[str, str] | None = None,
        ports: Mapping[int, int] | None = None,
        start_timeout: float = 60.0,
        stop_timeout: int = 10,
    ) -> None:
        self._image = image
        self._environment, self._volumes, self._ports = dict(environment or {}), dict(volumes or {}), dict(ports or {})
        self._start_timeout, self._stop_timeout = start_timeout, stop_timeout
        self._amqp_port, self._stomp_port = pick_port(), pick_port()
        self._container: Container | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._lifecycle = threading.RLock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._image}: {self.amqp_url}>"

    def __enter__(self) -> ContainerBroker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def amqp_url(self) -> str:
        """The URL of the broker for AMQP, ``amqp://127.0.0.1:PORT``."""
        return f"amqp://127.0.0.1:{self._amqp_port}"

    @property
    def stomp_url(self) -> str:
        """The URL of the broker for STOMP, ``stomp://127.0.0.1:PORT``."""
        return f"stomp://127.0.0.1:{self._stomp_port}"

    @property
    def running(self) -> bool:
        """Whether the broker's process is alive. A paused process is alive."""
        return self._container is not None and self._status(self._container) in ("running", "paused")

    def start(self) -> ContainerBroker:
        """Make and start the container, and return when the broker serves both protocols. If it runs, do nothing.

        Returns:
            The broker itself.

        Raises:
            BrokerError: the container engine or the image is missing, or the broker is not ready within
                ``start_timeout``.
        """
        with self._lifecycle, self._engine("started"):
            if self._container is None:
                self._container = self._create()
            elif not self.running:
                self._container.start()
            else:
                return self
            self._await_ready(self._container)
            return self

    def stop(self) -> None:
        """Kill the broker, and remove the container with its data."""
        with self._lifecycle, self._engine("removed"):
            if self._finalizer is not None:
                self._finalizer()
            self._finalizer = self._container = None

    def kill(self) -> None:
        """End the broker as a crash would (SIGKILL), and return when it has ended. Its data stay for a restart."""
        with self._lifecycle, self._engine("killed"):
            if self.running:
                container = self._known()
                container.kill()
                container.wait()

    def restart(self) -> None:
        """End the broker in an orderly way if it runs, and start it with the same ports and durable messages."""
        with self._lifecycle, self._engine("restarted"):
            self.resume()
            if self.running:
                self._known().stop(timeout=self._stop_timeout)
            self.start()

    def pause(self) -> None:
        """Freeze the broker: its connections stay open and nothing answers."""
        with self._lifecycle, self._engine("paused"):
            self._known().pause()

    def resume(self) -> None:
        """Let a paused broker go on. If it is not paused, this does nothing."""
        with self._lifecycle, self._engine("resumed"):
            if self._container is not None and self._status(self._container) == "paused":
                self._container.unpause()

    def _create(self) -> Container:
        try:
            from testcontainers.core.container import DockerContainer
        except ImportError as error:
            raise BrokerError(missing_extra("testing", "A broker in a container", error)) from error
        made = DockerContainer(self._image, env=dict(self._environment))
        for directory, target in self._volumes.items():
            made.with_volume_mapping(directory, target)
        published = {_AMQP: self._amqp_port, _STOMP: self._stomp_port}
        published |= {f"{inner}/tcp": outer for inner, outer in self._ports.items()}
        # with_bind_ports() is no choice, because it takes no host and would publish the ports on every network
        made.ports.update(cast(Any, {inner: ("127.0.0.1", outer) for inner, outer in published.items()}))
        self._finalizer = weakref.finalize(self, _remove, made)
        made.start()
        return made.get_wrapped_container()

    def _known(self) -> Container:
        if self._container is None:
            raise BrokerError("The broker does not run; call start().")
        return self._container

    @staticmethod
    def _status(container: Container) -> str:
        container.reload()
        return str(container.status)

    def _await_ready(self, container: Container) -> None:
        """Wait until the broker itself answers. The relay of Docker or Podman accepts connections earlier than that, so
        an accepted connection proves nothing."""
        deadline = time.monotonic() + self._start_timeout
        while not (answers_amqp(self._amqp_port) and answers_stomp(self._stomp_port)):
            status = self._status(container)
            late = time.monotonic() > deadline
            if late or status in ("exited", "dead"):
                what = f"was not ready after {self._start_timeout:g} s" if late else "ended at once"
                log = container.logs(tail=_LOG_LINES).decode(errors="replace")
                raise BrokerError(f"The broker of {self._image} {what}. End of its log:\n{log or '(empty)'}")
            time.sleep(_POLL_SECONDS)

    @contextlib.contextmanager
    def _engine(self, done: str) -> Iterator[None]:
        """Raise errors of the container engine as :class:`BrokerError`. ``done`` names the work, such as "killed"."""
        try:
            yield
        except BrokerError:
            raise
        except Exception as error:
            if not type(error).__module__.startswith(("docker.", "requests.", "testcontainers.")):
                raise
            raise BrokerError(
                f"The container of {self._image} could not be {done}: {error}. Does the container engine run, and is "
                "the image there (containers/build)? Without a registry, set TESTCONTAINERS_RYUK_DISABLED=true."
            ) from error


def _remove(made: DockerContainer) -> None:
    """Remove a container with its data, also if it is paused or dead. If it never started, this does nothing."""
    made.stop()
