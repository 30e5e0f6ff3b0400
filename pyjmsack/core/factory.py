"""The common part of the connection factories of both faces."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyjmsack.core.transformer import hook
from pyjmsack.errors import InvalidClientIDException, UnsupportedFeatureException
from pyjmsack.extras import missing_extra
from pyjmsack.java_options.names import StrictNames
from pyjmsack.spi.registry import create_ledger, create_tracing
from pyjmsack.spi.resources import ConnectionInfo
from pyjmsack.uri import parse_url, redact, shows_no_secret

if TYPE_CHECKING:
    from ssl import SSLContext

    from pyjmsack.spi.ledger import Ledger
    from pyjmsack.spi.tracing import Tracing

__all__ = ["FactoryFacade"]


class FactoryFacade(StrictNames):
    """Parses and checks everything that a connection needs, without connecting.

    Args:
        url: the broker, such as ``amqp://localhost:5672?jms.sendTimeout=5000``. Options have their Java names and
            units.
        username, password: the login. They override ``jms.username`` and ``jms.password``.
        client_id: overrides ``jms.clientID``. If neither is given, a client id is generated.
        options: more URL options, by their Java names. They override the options in the URL.
        ledger: directory in which each connection records its sends, its deliveries and its events. The factories of
            several programs may share it. Needs ``pyjmsack[ledger]``. ``None`` records nothing.
        message_transformer: an object with ``producer_transform(message, destination)``, called before the headers of a
            message are set and the message is sent, and ``consumer_transform(message, destination)``, called before a
            message is handed out. One of the two may be missing. Each returns a message to use instead, or ``None`` to
            keep the message. Both are plain functions, also in ``pyjmsack.aio`` (S192).
        ssl_context: used for TLS schemes instead of a context made from the ``transport.*`` options.

    Raises:
        InvalidURLException: the URL or an option is wrong. The text names the nearest right spelling.
        InvalidClientIDException: the client id is empty (S122).
        TypeError: ``message_transformer`` has none of these functions, or one of its functions is not a plain function.
        UnsupportedFeatureException: this library does not support a scheme or an option; or the extra that a ledger or
            tracing needs is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        username: str | None = None,
        password: str | None = None,
        client_id: str | None = None,
        options: Mapping[str, object] | None = None,
        ssl_context: SSLContext | None = None,
        ledger: str | os.PathLike[str] | None = None,
        message_transformer: object | None = None,
    ) -> None:
        self._url = parse_url(url, options)
        self._text = redact(url)
        self._shows_no_secret = shows_no_secret(url)
        connection = self._url.connection
        self._username = connection.username if username is None else username
        self._password = password
        if password is None and connection.password is not None:
            self._password = connection.password.reveal()
        self._client_id = connection.client_id if client_id is None else client_id
        if self._client_id is not None and not str(self._client_id).strip():
            raise InvalidClientIDException(f"client id {self._client_id!r}: expected a non-empty string (S122)")
        self._ssl_context = ssl_context
        self._transformer = message_transformer
        hook(message_transformer, "producer_transform")
        hook(message_transformer, "consumer_transform")
        self._ledger = ledger
        if ledger is not None and find_spec("pyarrow") is None:
            raise UnsupportedFeatureException(missing_extra("ledger", "A ledger"))
        if self._url.connection.tracing == "opentelemetry" and not _has_opentelemetry():
            raise UnsupportedFeatureException(missing_extra("otel", "jms.tracing=opentelemetry"))

    def _drop_policies_of_destinations(self) -> None:
        """Drop the redelivery policies of single destinations, so that the general policy decides everywhere. An
        ``App`` calls this method for a listener that has its own ``Retry``.
        """
        self._url = replace(self._url, connection=replace(self._url.connection, redelivery_policies=()))

    def _login(self, username: str | None, password: str | None) -> ConnectionInfo:
        explicit = self._client_id is not None
        client_id = self._client_id if explicit else f"{self._url.connection.client_id_prefix}{uuid.uuid4()}"
        if username is None:
            username, password = self._username, self._password
        return ConnectionInfo(str(client_id), explicit, username, password)

    def _open_ledger(self) -> Ledger | None:
        """Return the ledger of a new connection.

        Raises:
            JMSException: the directory of the ledger cannot be written to.
        """
        return None if self._ledger is None else create_ledger(self._ledger)

    def _create_tracing(self) -> Tracing | None:
        """Return the object that traces a new connection. ``None`` without tracing."""
        return create_tracing(self._url.connection.tracing)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._text!r})"


def _has_opentelemetry() -> bool:
    # a look for the package ``opentelemetry`` alone is not enough, because every package of OpenTelemetry installs it
    try:
        return find_spec("opentelemetry.instrumentation.instrumentor") is not None
    except ModuleNotFoundError:
        return False
