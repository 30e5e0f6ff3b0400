"""Defines :class:`EmbeddedArtemis`, which runs ActiveMQ Artemis for development and tests."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pyjmsack.broker.artemis_distribution import DEFAULT_VERSION, ensure_artemis
from pyjmsack.broker.artemis_instance import ArtemisInstance, hash_passwords
from pyjmsack.broker.distribution import Distribution
from pyjmsack.broker.embedded import EmbeddedBroker
from pyjmsack.broker.instance import Instance
from pyjmsack.broker.java import Java
from pyjmsack.broker.progress import ProgressFactory
from pyjmsack.broker.tls import Tls
from pyjmsack.broker.wanted import Wanted

__all__ = ["EmbeddedArtemis"]


class EmbeddedArtemis(EmbeddedBroker):
    """A real Artemis broker on 127.0.0.1, as a child process of this Python process.

    Any thread may call a method, and one method runs at a time. Every method raises :class:`BrokerError` if it cannot
    do its work.

    >>> with EmbeddedArtemis(queues=["orders"], users={"app": "secret"}) as broker:  # doctest: +SKIP
    ...     connection = ConnectionFactory(broker.amqp_url, username="app", password="secret").create_connection()

    Args:
        data_dir: keeps journal, configuration and log. ``None`` means a temporary directory, which ``stop()`` removes.
        version: the version of Artemis. This release of pyjmsack knows only the checksum of the default version. Give
            the checksum of another version with ``sha512``.
        amqp_port, stomp_port: the ports on 127.0.0.1. 0 means a free port, which the first start chooses and later
            starts keep.
        users: the password of each user. The broker refuses every other login. It also refuses logins without a name,
            unless ``allow_anonymous`` is set. ``None`` lets everybody in.
        allow_anonymous: whether logins without a name are let in, if there are ``users``.
        queues, topics: names of the destinations that the broker makes at its start.
        address_settings: for each pattern of addresses its settings, such as ``{"orders.#": {"max-delivery-attempts":
            3}}``, by the names of ``broker.xml``. If the broker already has settings for the pattern, its settings with
            other names stay.
        configuration: path of a ``broker.xml`` of your own. It is read once, by the constructor, and has at most 1 MiB.
            The file must have an acceptor for AMQP at ``127.0.0.1:${pyjmsack.amqp.port}`` and one for STOMP at
            ``127.0.0.1:${pyjmsack.stomp.port}``, and should keep its data below ``${pyjmsack.data}``. With such a file,
            ``queues``, ``topics``, ``address_settings`` and ``tls`` are refused.
        tls: ``True`` makes a certificate (extra ``pkcs12``), and both ports speak TLS only. The URLs of the broker
            contain the path of the file with the authority to trust, so clients of this library can use the URLs as
            they are. With ``"mutual"`` the broker also asks each client for a certificate. This class makes a
            certificate for clients, and the URLs contain its path too. A :class:`KeyStore` has certificates of your
            own. With a ``data_dir`` the certificates stay in its folder ``tls``.
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
        address_settings: Mapping[str, Mapping[str, object]] | None = None,
        configuration: str | os.PathLike[str] | None = None,
        tls: Tls = False,
        java: str | os.PathLike[str] | None = None,
        jvm_options: Sequence[str] = (),
        progress: ProgressFactory | None = None,
        sha512: str | None = None,
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
        self._sha512, self._progress = sha512, progress
        self._logins = None if users is None else hash_passwords(users)
        self._wanted = Wanted.of(queues, topics, address_settings, configuration)
        self._anonymous, self._jvm_options = allow_anonymous, tuple(jvm_options)

    def _fetch(self) -> Distribution:
        return ensure_artemis(self._version, sha512=self._sha512, progress=self._progress)

    def _instance(self, directory: Path, java: Java, distribution: Distribution) -> Instance:
        return ArtemisInstance(
            directory,
            java,
            distribution,
            logins=self._logins,
            anonymous=self._anonymous,
            jvm_options=self._jvm_options,
            wanted=self._wanted,
            tls=self._keys.store,
        )

    @staticmethod
    def _training_instance(directory: Path, java: Java, distribution: Distribution) -> Instance:
        return ArtemisInstance(directory, java, distribution, logins=hash_passwords({"trainer": secrets.token_hex()}))
