""":class:`EmbeddedArtemis`."""

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
from pyjmsack.broker.tls import KeyStore
from pyjmsack.broker.wanted import Wanted

__all__ = ["EmbeddedArtemis"]


class EmbeddedArtemis(EmbeddedBroker):
    """A real Artemis broker on 127.0.0.1, as a child process of this one.

    ``data_dir`` keeps journal, configuration and log; without it a temporary directory is used and removed by
    ``stop()``. A port of 0 means a free port, which the first start chooses and later starts keep. With ``users`` (name
    to password) the broker refuses every other login, and logins without a name too unless ``allow_anonymous`` is set;
    without ``users`` it lets everybody in. ``java`` names a Java executable, ``jvm_options`` adds to its options,
    ``progress`` replaces the download's progress bar, ``sha512`` pins a ``version`` this release does not know,
    ``start_timeout`` and ``stop_timeout`` are seconds.

    ``queues`` and ``topics`` are made at the start. ``address_settings`` maps a match, such as ``"orders.#"``, to
    settings by the names of ``broker.xml``, such as ``{"max-delivery-attempts": 3}``; if the broker has the match
    already, its other settings stay. ``configuration`` is a ``broker.xml`` of your own, which is read once, by the
    constructor: one acceptor for AMQP listens at ``127.0.0.1:${pyjmsack.amqp.port}``, one for STOMP at
    ``127.0.0.1:${pyjmsack.stomp.port}``, and data goes below ``${pyjmsack.data}``. With such a file, ``queues``,
    ``topics``, ``address_settings`` and ``tls`` are refused.

    With ``tls=True`` both ports speak TLS only. The certificate is made here (extra ``pkcs12``), and the URLs name the
    authority to trust, so clients of this library use them as they are. A :class:`KeyStore` is a certificate of your
    own. With a ``data_dir`` the certificate stays in its folder ``tls``.

    Methods may be called from any thread; one runs at a time. Every method raises :class:`BrokerError` when it cannot
    do its work.
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
        tls: bool | KeyStore = False,
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
