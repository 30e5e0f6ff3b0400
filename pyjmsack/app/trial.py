"""Makes the URL and the options with which an app connects to the broker of a test. Options that only the usual broker
of the app needs are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyjmsack.uri import parse_url

if TYPE_CHECKING:
    from pyjmsack.broker import EmbeddedArtemis

__all__ = ["embedded", "options_elsewhere", "own_url", "url_elsewhere"]

_OF_THE_BROKER: Final = ("transport.", "jms.username", "jms.password", "amqp.sasl", "amqp.vhost", "stomp.vhost")
"""Options that are left out for the broker of a test, because that broker has no TLS, no login and no virtual hosts."""


def embedded() -> EmbeddedArtemis:
    """Return an Artemis that is not started yet.

    Raises:
        BrokerError: the extra ``broker`` or Java is missing.
    """
    from pyjmsack.broker import EmbeddedArtemis  # only a test needs Java

    return EmbeddedArtemis()


def own_url(url: str, broker: EmbeddedArtemis) -> str:
    """Return the URL of ``broker`` with the protocol of an app's URL. If the app's URL names several brokers, the
    protocol of the first one counts.
    """
    parsed = parse_url(url)
    protocol = (parsed.members[0] if parsed.members else parsed).protocol
    return broker.stomp_url if protocol == "stomp" else broker.amqp_url


def url_elsewhere(url: str, broker_url: str) -> str:
    """Return an app's URL with another broker, without the options that only the usual broker of the app needs."""
    failover = url.strip().lower().startswith("failover:")
    _, _, query = (url.rpartition(")")[2] if "(" in url else url).partition("?")
    kept = "&".join(part for part in query.split("&") if part and not _of_the_broker(part.partition("=")[0]))
    return (f"failover:({broker_url})" if failover else broker_url) + (f"?{kept}" if kept else "")


def options_elsewhere(options: dict[str, Any]) -> dict[str, Any]:
    """Return an app's options without the options that only the usual broker of the app needs."""
    return {name: value for name, value in options.items() if not _of_the_broker(name)}


def _of_the_broker(name: str) -> bool:
    return name.removeprefix("nested.").startswith(_OF_THE_BROKER)
