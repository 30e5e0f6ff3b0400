"""The life of one AMQP connection: SASL, Open and the first Begin; what the broker said of itself; the end."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from itertools import count
from typing import TYPE_CHECKING, cast

from pyjmsack.destination import Destination, Queue
from pyjmsack.errors import JMSException, JMSSecurityException, UnsupportedFeatureException
from pyjmsack.extras import missing_extra
from pyjmsack.providers.amqp import caution
from pyjmsack.providers.amqp.deadletter import DeadLetters
from pyjmsack.providers.amqp.dialect import AmqpDialect, dialect_of
from pyjmsack.providers.amqp.engine.performatives import Open
from pyjmsack.providers.amqp.engines import AmqpEngine, EngineOptions
from pyjmsack.providers.amqp.python_engine import PythonEngine
from pyjmsack.providers.amqp.receiver import AmqpReceiver
from pyjmsack.providers.amqp.sasl import SaslClient
from pyjmsack.providers.amqp.sender import AmqpSender
from pyjmsack.providers.amqp.session import AmqpSession
from pyjmsack.providers.amqp.sizes import unfit_open
from pyjmsack.providers.amqp.temporary import AmqpTemporary
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.features import Capabilities, broker_key
from pyjmsack.spi.lifecycle import Lifecycle
from pyjmsack.spi.provider import ProviderListener
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata
from pyjmsack.uri import BrokerUrl

if TYPE_CHECKING:
    from pyjmsack.providers.amqp.proton_engine import ProtonEngine

__all__ = ["AmqpConnection", "engine_class"]

_VERSION = version("pyjmsack")
_DESIRED = ("ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS")
_EXCLUSIVE_CLIENT_ID = "sole-connection-for-container"


def engine_class(name: str) -> type[PythonEngine] | type[ProtonEngine]:
    """Return the engine that ``amqp.engine`` names.

    Raises:
        UnsupportedFeatureException: its package is not installed.
    """
    if name == "python":
        return PythonEngine
    try:
        from pyjmsack.providers.amqp.proton_engine import ProtonEngine
    except ImportError as missing:
        raise UnsupportedFeatureException(missing_extra("proton", "amqp.engine=proton", missing)) from missing
    return ProtonEngine


class AmqpConnection(Lifecycle[AmqpEngine]):
    """One connection to one broker, and the tables of what is open on it."""

    def __init__(self, url: BrokerUrl, connector: Connector) -> None:
        super().__init__(url, connector)
        self._sessions: dict[int, AmqpSession] = {}
        self._ending: dict[int, AmqpSession] = {}
        """Sessions whose End is not answered yet."""
        self._senders: dict[int, AmqpSender] = {}
        self._receivers: dict[int, AmqpReceiver] = {}
        self._temporaries: dict[int, AmqpTemporary] = {}
        self._lookups = count(1)
        self._transacted: dict[int, AmqpSession] = {}
        self._dirty: list[AmqpReceiver] = []
        self._dialect = self._find_dialect({})
        self._dead_letters: DeadLetters | None = None

    # -- open ---------------------------------------------------------------------------------------------------

    def connect(self, info: ConnectionInfo, listener: ProviderListener, done: Completion[ConnectionMetadata]) -> None:
        """Open the stream, then SASL, Open and Begin.

        The Begin is there for its answer: a broker that refuses the login or the client id sends an Open first, so
        that only what follows tells whether the connection is really open.
        """
        self._begin(info, listener, done)
        amqp = self._url.amqp
        if not amqp.sasl_layer and info.username is not None:
            self._opening = None
            done.fail(JMSSecurityException("amqp.saslLayer=false leaves no way to send the user name that was given"))
            return
        unfit = unfit_open(info.client_id, self._hostname)
        if unfit is not None:
            self._fail_opening(unfit)
            return
        try:
            kind = engine_class(amqp.engine)
        except UnsupportedFeatureException as missing:
            self._fail_opening(missing)
            return
        options = EngineOptions(
            max_frame_size=amqp.max_frame_size,
            channel_max=amqp.channel_max,
            idle_timeout=amqp.idle_timeout,
            trace=amqp.trace_frames_payload_limit if amqp.trace_frames else None,
            trace_bytes=self._url.transport.trace_bytes,
        )
        engine = self._engine = kind(self, self._sasl if amqp.sasl_layer else None, options)
        self._connector.connect(self._url.endpoints[0], engine, self._fail_opening)

    def _sasl(self, encrypted: bool) -> SaslClient:
        info = self._the_info
        return SaslClient(
            info.username,
            info.password,
            external=encrypted and self._has_certificate,
            allowed=self._url.amqp.sasl_mechanisms,
            hostname=self._hostname,
        )

    @property
    def _hostname(self) -> str:
        vhost = self._url.amqp.vhost
        return self._url.endpoints[0].host if vhost is None else vhost

    @property
    def _has_certificate(self) -> bool:
        """Whether to offer EXTERNAL; an ``ssl.SSLContext`` cannot be asked for its certificate, so the URL says it."""
        named = "EXTERNAL" in (name.upper() for name in self._url.amqp.sasl_mechanisms)
        return named or self._url.transport.key_store_location is not None

    def on_ready(self) -> None:
        """SASL is over: send Open and Begin in one burst."""
        engine, info = self._the_engine, self._the_info
        desired = _DESIRED + ((_EXCLUSIVE_CLIENT_ID,) if info.explicit_client_id else ())
        description = Open(
            container_id=info.client_id,
            hostname=self._hostname or None,
            desired_capabilities=desired,
            properties={
                "product": "pyjmsack",
                "version": _VERSION,
                "platform": f"Python/{platform.python_version()}",
            },
        )
        engine.open(description)
        self._open_session(0, AmqpSession(engine, False)).add_callback(self._on_first_session)

    def on_remote_open(self) -> None:
        """The answer to Open; only the Begin that follows makes it count."""
        self._dialect = self._find_dialect(self._remote_properties())
        name = self._dialect.dead_letters
        queue = None if name is None else Queue(self._url.amqp.dead_letter_queue or name)
        address = "" if queue is None else self.address(queue)
        self._dead_letters = DeadLetters(self._the_engine, self._sessions[0], queue, address)

    def _find_dialect(self, properties: Mapping[str, object]) -> AmqpDialect:
        named = broker_key(str(properties.get("product", "")), str(properties.get("version", "")))
        options = self._url.connection
        return dialect_of(self._url.broker or named, properties, options.queue_prefix, options.topic_prefix)

    def _remote_properties(self) -> dict[str, object]:
        return dict(self._the_engine.remote.properties or {})

    def _open_session(self, number: int, session: AmqpSession) -> Completion[None]:
        self._sessions[number] = session
        opened: Completion[None] = Completion()
        session.open(opened)
        return opened

    def _on_first_session(self, session: Completion[None]) -> None:
        opening, self._opening = self._opening, None
        if opening is None:
            return
        if session.error is not None:
            opening.fail(session.error)
        else:
            opening.succeed(self._metadata())

    def _metadata(self) -> ConnectionMetadata:
        properties = self._remote_properties()
        offered = set(self._the_engine.remote.offered_capabilities)
        product, version = str(properties.get("product", "unknown")), str(properties.get("version", "unknown"))
        table = self._dialect.features(offered, scheduler=self._url.scheduler)
        self._decide_marks(table)
        return ConnectionMetadata(
            protocol="AMQP 1.0",
            broker_name=product,
            broker_version=version,
            provider_version=self._the_engine.name,
            capabilities=Capabilities(table, offered),
            properties=properties,
            broker=self._dialect.broker,
            url=str(self._url),
            encrypted=self._url.endpoints[0].tls,
        )

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self, done: Completion[None]) -> None:
        """Send Close; ``done`` when the peer answered or is gone."""
        engine = self._engine
        if engine is None or engine.failed is not None:
            done.succeed()
            return
        self._closing = done
        self._when_copied(lambda _: True, partial(self._close_engine, engine))

    @staticmethod
    def _close_engine(engine: AmqpEngine) -> None:
        if engine.failed is None:
            engine.close_connection()

    def _when_copied(self, concerns: Callable[[AmqpReceiver], bool], then: Callable[[], None]) -> None:
        """End links when what they brought is dead-lettered."""
        if self._dead_letters is None:
            then()
        else:
            self._dead_letters.afterwards(concerns, then)

    def on_failure(self, error: JMSException) -> None:
        """The connection is over. After a loss, new links are careful for a while."""
        if self._closing is None:
            caution.lost(receiver.caution for receiver in self._receivers.values())
        super().on_failure(error)

    def abort(self, error: BaseException) -> None:
        """Fail everything with ``error`` and drop the stream."""
        engine, self._engine = self._engine, None
        if engine is not None and engine.failed is None:
            caution.lost(receiver.caution for receiver in self._receivers.values())
        self._fail_everything(error)
        self._connector.cancel()
        if engine is not None:
            engine.abort(error)
        self._end_closing()

    def flush(self) -> None:
        """Write what is pending."""
        if self._engine is not None:
            self._engine.flush()

    def _fail_everything(self, error: BaseException) -> None:
        sessions = [*self._sessions.values(), *self._ending.values()]
        links = (self._senders, self._receivers, self._temporaries)
        for table in (self._sessions, *links, self._transacted, self._ending):
            cast(dict[int, object], table).clear()
        opening, self._opening = self._opening, None
        for session in sessions:
            session.fail(error)
        if opening is not None:
            opening.fail(error)

    def on_burst_end(self) -> None:
        """Wake each consumer that got something, once."""
        if self._dirty:
            dirty, self._dirty[:] = self._dirty[:], []
            for receiver in dirty:
                receiver.burst_end()

    def address(self, destination: Destination) -> str:
        """Return the name of a node in this broker's dialect."""
        return self._dialect.address(destination)
