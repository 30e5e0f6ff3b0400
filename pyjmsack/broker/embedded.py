""":class:`EmbeddedBroker`: start and stop of a broker of any kind."""

from __future__ import annotations

import logging
import os
import signal
import threading
import weakref
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from pyjmsack.broker.distribution import Distribution
from pyjmsack.broker.errors import BrokerError, BrokerExitedError, PortTakenError
from pyjmsack.broker.instance import Instance
from pyjmsack.broker.java import Java, find_java
from pyjmsack.broker.launch import boot, train
from pyjmsack.broker.process import BrokerProcess
from pyjmsack.broker.readiness import check_port_free, pick_port
from pyjmsack.broker.sharing import ClassArchive
from pyjmsack.broker.tls import Keys, Tls
from pyjmsack.broker.workspace import Workspace

__all__ = ["EmbeddedBroker"]

_PORT_TRIES = 5
_log = logging.getLogger("pyjmsack.broker")

SelfT = TypeVar("SelfT", bound="EmbeddedBroker")


class EmbeddedBroker(ABC):
    """A real broker on 127.0.0.1, as a child process of this one.

    Each kind of broker implements the abstract methods, which fetch its libraries and write its configuration.

    Args:
        data_dir: keeps the data and the log. ``None`` means a temporary directory, which ``stop()`` removes.
        version: the version of the broker.
        ports: the ports for AMQP and STOMP; 0 means a free port.
        tls: ``True`` to make a certificate, ``"mutual"`` to make one for clients too, or the key store to use.
        configuration: path of a configuration file of the caller. It cannot be given together with ``tls``.
        java: path of a Java executable. ``None`` searches for one.
        start_timeout: seconds until the broker must be ready.
        stop_timeout: seconds to wait for the end of the broker after SIGTERM. After this time the broker gets SIGKILL.

    Raises:
        ValueError: both ``tls`` and ``configuration`` are given, or ``tls`` is another text.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None,
        *,
        version: str,
        ports: tuple[int, int],
        tls: Tls,
        configuration: str | os.PathLike[str] | None,
        java: str | os.PathLike[str] | None,
        start_timeout: float,
        stop_timeout: float,
    ) -> None:
        if tls and configuration is not None:
            raise ValueError("configuration: write TLS into that file, and leave tls= out")
        self._kept_directory = Path(data_dir).absolute() if data_dir is not None else None
        self._version, self._java = version, java
        self._wanted_ports = ports
        self._keys = Keys(tls, self._kept_directory)
        self._start_timeout, self._stop_timeout = start_timeout, stop_timeout
        self._ports: tuple[int, int] | None = None
        self._workspace: Workspace | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._lifecycle = threading.RLock()

    @abstractmethod
    def _fetch(self) -> Distribution:
        """Return the libraries of the wanted version. Missing libraries are downloaded."""

    @abstractmethod
    def _instance(self, directory: Path, java: Java, distribution: Distribution) -> Instance:
        """Return the description of the broker to start, without its ports."""

    @staticmethod
    @abstractmethod
    def _training_instance(directory: Path, java: Java, distribution: Distribution) -> Instance:
        """Return the description of the broker for the training run, which records the classes that a broker loads.
        This broker has users."""

    def __repr__(self) -> str:
        state = f"pid {self.pid}, {self.amqp_url}" if self.running else "not running"
        return f"<{type(self).__name__} {self._version}: {state}>"

    def __enter__(self: SelfT) -> SelfT:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def amqp_url(self) -> str:
        """``amqp://127.0.0.1:PORT``, or ``amqps://`` with the files that a client needs. The URL stays the same after
        the first start.

        Raises:
            BrokerError: the broker was not started yet, and a port is 0.
        """
        return self._keys.url("amqp", "amqps", self._known_ports()[0])

    @property
    def stomp_url(self) -> str:
        """``stomp://127.0.0.1:PORT``, or ``stomp+ssl://`` with the files that a client needs. The URL stays the same
        after the first start.

        Raises:
            BrokerError: the broker was not started yet, and a port is 0.
        """
        return self._keys.url("stomp", "stomp+ssl", self._known_ports()[1])

    @property
    def trust_path(self) -> Path | None:
        """The PEM file with the authorities that clients trust. ``None`` means that clients trust the authorities of
        the system, or that there is no TLS.
        """
        return self._keys.trust

    @property
    def client_certificate_path(self) -> Path | None:
        """The PEM file with a certificate and a key for clients. ``None`` means that there is no such file, because the
        broker asks clients for no certificate, or because the caller's key store names no such file.
        """
        return self._keys.client

    @property
    def pid(self) -> int | None:
        """The process id of the broker. ``None`` if the broker does not run."""
        return self._workspace.process.pid if self._workspace is not None else None

    @property
    def running(self) -> bool:
        """Whether the broker's process is alive. A paused process is alive."""
        return self._workspace is not None and self._workspace.process.running

    @property
    def data_dir(self) -> Path:
        """The broker's directory: the given one, or a temporary one that exists between start and stop.

        Raises:
            BrokerError: the directory is a temporary one, and the broker does not run.
        """
        if self._kept_directory is not None:
            return self._kept_directory
        if self._workspace is None:
            raise BrokerError("There is no data directory, because the broker is not running; call start().")
        return self._workspace.directory

    @property
    def log_path(self) -> Path:
        """The path of the broker's log. Every start appends to this file."""
        return self.data_dir / "broker.log"

    def start(self: SelfT) -> SelfT:
        """Start the broker, and return when it serves both protocols. If the broker runs already, do nothing.

        Returns:
            The broker itself.

        Raises:
            BrokerError: there is no Java, the libraries cannot be fetched, a port is taken, or the broker is not ready
                within ``start_timeout``.
        """
        with self._lifecycle:
            if self.running:
                return self
            java = find_java(self._java)
            distribution = self._fetch()
            archive = ClassArchive(java, distribution)
            archive.build(lambda flags: train(lambda at: self._training_instance(at, java, distribution), flags))
            fresh = self._workspace is None
            workspace = self._workspace or self._open_workspace()
            try:
                workspace.claim()
                template = self._instance(workspace.directory, java, distribution)
                template.write_configuration()
                self._boot_on_free_ports(template, workspace.process, archive)
            except BaseException:
                workspace.kill()
                if fresh:  # the directory of a killed broker has the data for the next start
                    self.stop()
                raise
            return self

    def stop(self) -> None:
        """End the broker: SIGTERM, and SIGKILL after ``stop_timeout`` seconds. A temporary directory is removed."""
        with self._lifecycle:
            if self._finalizer is not None:
                self._finalizer()
            self._finalizer = self._workspace = None

    def kill(self) -> None:
        """End the broker as a crash would (SIGKILL), and return when it is dead. Its directory stays for a restart."""
        with self._lifecycle:
            if self._workspace is not None:
                self._workspace.kill()

    def restart(self) -> None:
        """End the broker in an orderly way if it runs, and start it with the same ports and durable messages."""
        with self._lifecycle:
            if self._workspace is not None:
                self._workspace.terminate()
            self.start()

    def pause(self) -> None:
        """Freeze the broker (SIGSTOP). Its connections stay open, and nothing answers.

        Raises:
            BrokerError: the broker is not running.
        """
        with self._lifecycle:
            process = self._running_process()
            process.send(signal.SIGSTOP)
            process.wait_stopped()

    def resume(self) -> None:
        """Let a paused broker go on (SIGCONT).

        Raises:
            BrokerError: the broker is not running.
        """
        with self._lifecycle:
            self._running_process().send(signal.SIGCONT)

    def _known_ports(self) -> tuple[int, int]:
        ports = self._ports or self._wanted_ports
        if 0 in ports:
            raise BrokerError("The ports are chosen by the first start; call start().")
        return ports

    def _running_process(self) -> BrokerProcess:
        if self._workspace is None:
            raise BrokerError("the broker is not running; call start()")
        return self._workspace.process

    def _open_workspace(self) -> Workspace:
        try:
            workspace = Workspace(self._kept_directory, self._stop_timeout)
        except OSError as error:
            raise BrokerError(f"The data directory cannot be used: {error}. Give another data_dir.") from error
        self._workspace = workspace
        self._finalizer = weakref.finalize(self, workspace.close)
        return workspace

    def _boot_on_free_ports(self, template: Instance, process: BrokerProcess, archive: ClassArchive) -> None:
        """Start the broker. If another process has taken a port that this method chose, choose other ports and try
        again.
        """
        for tries_left in reversed(range(_PORT_TRIES)):
            amqp_port, stomp_port = self._choose_ports()
            instance = replace(template, amqp_port=amqp_port, stomp_port=stomp_port)
            try:
                self._boot(instance, process, archive)
            except PortTakenError:
                if self._ports is not None or 0 not in self._wanted_ports or not tries_left:
                    raise
            else:
                self._ports = (amqp_port, stomp_port)
                return

    def _choose_ports(self) -> tuple[int, int]:
        amqp_port, stomp_port = self._ports or self._wanted_ports
        for port in filter(None, (amqp_port, stomp_port)):
            check_port_free(port)
        return amqp_port or pick_port(), stomp_port or pick_port()

    def _boot(self, instance: Instance, process: BrokerProcess, archive: ClassArchive) -> None:
        """Start the broker. If its process ends at once, try again without the class archive."""
        flags = archive.flags()
        try:
            log = boot(process, instance, flags, self._start_timeout)
            damaged = bool(flags) and not instance.jvm_options and archive.was_refused(log)
        except BrokerExitedError:
            if not flags:
                raise
            boot(process, instance, [], self._start_timeout)
            damaged = True
        if damaged:
            _log.warning("the class archive is damaged; it is removed and written anew at the next start")
            archive.discard()
