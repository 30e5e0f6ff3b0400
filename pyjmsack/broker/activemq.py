"""Defines :class:`EmbeddedActiveMQ`, which runs ActiveMQ Classic for development and tests."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from pyjmsack.broker.activemq_distribution import DEFAULT_VERSION, ensure_activemq
from pyjmsack.broker.activemq_instance import ActiveMQInstance
from pyjmsack.broker.distribution import Distribution
from pyjmsack.broker.embedded import EmbeddedBroker
from pyjmsack.broker.instance import Instance, check_logins
from pyjmsack.broker.java import Java
from pyjmsack.broker.progress import ProgressFactory
from pyjmsack.broker.tls import Tls
from pyjmsack.broker.wanted import Wanted

__all__ = ["EmbeddedActiveMQ"]

Transformer = Literal["native", "jms", "raw"]


class EmbeddedActiveMQ(EmbeddedBroker):
    """A real ActiveMQ Classic broker on 127.0.0.1, as a child process of this Python process. The broker has its
    default settings for destinations, and stores messages in KahaDB.

    Any thread may call a method, and one method runs at a time. Every method raises :class:`BrokerError` if it cannot
    do its work.

    Args:
        data_dir: keeps journal, configuration and log. ``None`` means a temporary directory, which ``stop()`` removes.
        version: ``"6.3.1"`` or ``"5.18.3"``.
        amqp_port, stomp_port: the ports on 127.0.0.1. 0 means a free port, which the first start chooses and later
            starts keep.
        users: the password of each user. The broker refuses every other login. It also refuses logins without a name,
            unless ``allow_anonymous`` is set. ``None`` lets everybody in. This class keeps the passwords in memory and
            in a file that only the owner may read, because this broker cannot read hashed passwords.
        allow_anonymous: whether logins without a name are let in, if there are ``users``.
        queues, topics: names of the destinations that the broker makes at its start.
        policies: attributes of a ``policyEntry`` for each name with wildcards, such as ``{"orders.>": {"queuePrefetch":
            10}}``. A name that begins with ``topic://`` is for topics.
        configuration: path of an ``activemq.xml`` of your own. The constructor reads the file. The file must name the
            ports as :class:`pyjmsack.broker.EmbeddedArtemis` says. With such a file, ``queues``, ``topics``,
            ``policies`` and ``tls`` are refused.
        tls: ``True`` makes a certificate (extra ``pkcs12``), and both ports speak TLS only. The URLs of the broker name
            the authority to trust, so clients of this library use them as they are. With ``"mutual"`` the broker also
            asks each client for a certificate. This class makes a certificate for clients, and the URLs contain its
            path too. A :class:`KeyStore` has certificates of your own. With a ``data_dir`` the certificates stay in its
            folder ``tls``.
        scheduler: whether the broker keeps delayed messages until they are due (``schedulerSupport``). Otherwise the
            broker delivers delayed messages at once.
        transformer: how clients of other protocols see a message that was sent over AMQP: ``"native"``, ``"jms"`` or
            ``"raw"``, the ``transport.transformer`` of the AMQP connector. With ``"native"``, the broker's default,
            clients of other protocols see the raw bytes of AMQP.
        java: path of a Java executable, version 17 or newer. ``None`` means the first one of ``JAVA_HOME``, ``PATH``
            and the extra ``broker``.
        jvm_options: further options for Java.
        progress: a function that shows the download. It gets the name and the size in bytes of the file, and returns a
            context manager. The context manager yields a second function, which gets the number of bytes of each piece
            that arrives. ``None`` shows a bar on a terminal, or writes one line to the log.
        start_timeout: seconds until the broker must be ready.
        stop_timeout: seconds to wait for the end of the broker after SIGTERM. After this time the broker gets SIGKILL.

    Raises:
        ValueError: a name, a user or a setting is not possible, or ``configuration`` does not fit the other arguments.
        OSError: ``configuration``, or a file of the key store, cannot be read.
        BrokerError: ``tls`` is given, and the extra ``pkcs12`` is missing.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        version: str = DEFAULT_VERSION,
        amqp_port: int = 0,
        stomp_port: int = 0,
        users: Mapping[str, str] | None = None,
        allow_anonymous: bool = False,
        queues: Iterable[str] = (),
        topics: Iterable[str] = (),
        policies: Mapping[str, Mapping[str, object]] | None = None,
        configuration: str | os.PathLike[str] | None = None,
        tls: Tls = False,
        scheduler: bool = False,
        transformer: Transformer = "native",
        java: str | os.PathLike[str] | None = None,
        jvm_options: Sequence[str] = (),
        progress: ProgressFactory | None = None,
        start_timeout: float = 60.0,
        stop_timeout: float = 10.0,
    ) -> None:
        super().__init__(
            data_dir,
            version=version,
            ports=(amqp_port, stomp_port),
            tls=tls,
            configuration=configuration,
            java=java,
            start_timeout=start_timeout,
            stop_timeout=stop_timeout,
        )
        if transformer not in (known := get_args(Transformer)):
            raise ValueError(f"transformer: expected one of {', '.join(known)}, not {transformer!r}")
        check_logins(users or {})
        self._progress = progress
        self._logins = None if users is None else dict(users)
        self._wanted = Wanted.of(queues, topics, policies, configuration)
        self._anonymous, self._jvm_options = allow_anonymous, tuple(jvm_options)
        self._scheduler, self._transformer = scheduler, transformer

    def _fetch(self) -> Distribution:
        return ensure_activemq(self._version, progress=self._progress)

    def _instance(self, directory: Path, java: Java, distribution: Distribution) -> Instance:
        return ActiveMQInstance(
            directory,
            java,
            distribution,
            logins=self._logins,
            anonymous=self._anonymous,
            jvm_options=self._jvm_options,
            wanted=self._wanted,
            tls=self._keys.store,
            scheduler=self._scheduler,
            transformer=self._transformer,
        )

    @staticmethod
    def _training_instance(directory: Path, java: Java, distribution: Distribution) -> Instance:
        return ActiveMQInstance(directory, java, distribution, logins={"trainer": secrets.token_hex()})
