""":class:`EmbeddedActiveMQ`."""

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
from pyjmsack.broker.tls import KeyStore
from pyjmsack.broker.wanted import Wanted

__all__ = ["EmbeddedActiveMQ"]

Transformer = Literal["native", "jms", "raw"]


class EmbeddedActiveMQ(EmbeddedBroker):
    """A real ActiveMQ Classic broker on 127.0.0.1, as a child process of this one.

    It has the broker's default policies and a KahaDB store. ``version`` is "6.3.1" or "5.18.3". ``scheduler`` turns on
    ``schedulerSupport``, without which this broker delivers delayed messages at once. ``transformer`` is the AMQP
    connector's ``transport.transformer``: it decides how clients of other protocols see a message that was sent over
    AMQP. With "native", the broker's default, they see its raw bytes. ``policies`` maps a name with wildcards, such as
    ``"orders.>"`` or ``"topic://prices.>"``, to attributes of a ``policyEntry``, such as ``{"queuePrefetch": 10}``.
    ``configuration`` is an ``activemq.xml`` of your own. The other arguments are those of
    :class:`pyjmsack.broker.EmbeddedArtemis`, with one difference: this class keeps the passwords of ``users`` in memory
    and in a file that only the owner may read, because this broker cannot read hashed passwords.

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
        policies: Mapping[str, Mapping[str, object]] | None = None,
        configuration: str | os.PathLike[str] | None = None,
        tls: bool | KeyStore = False,
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
