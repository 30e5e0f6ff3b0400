"""TLS with real brokers: who is trusted, who is refused, and that nobody waits for ever (S129)."""

from __future__ import annotations

import logging

import pytest
from security_exchange import Exchange
from security_support import STORE_PASSWORD, Tls

from pyjmsack import JMSSecurityException

STREAMS = ["amqps", "stomp+ssl"]


@pytest.fixture(params=STREAMS)
def stream(request: pytest.FixtureRequest) -> str:
    """The name of the port, and of the scheme."""
    return str(request.param)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_certificate_for_the_host_is_trusted(
    exchange: Exchange, tls: Tls, stream: str, host: str, queue_name: str, no_leaks: None
) -> None:
    """Names and addresses (subjectAltName of type iPAddress)."""
    assert exchange(tls.url(stream, host), queue_name, tls.certificates.options()) == "hello"


def test_an_unknown_authority_is_refused(exchange: Exchange, tls: Tls, stream: str, no_leaks: None) -> None:
    options = tls.certificates.options(trust=tls.certificates.strangers)
    with pytest.raises(JMSSecurityException, match=r"certificate verify failed.*transport\.trustStoreLocation"):
        exchange(tls.url(stream), "q", options)


def test_the_authorities_of_the_system_do_not_vouch_for_a_private_one(
    exchange: Exchange, tls: Tls, stream: str
) -> None:
    with pytest.raises(JMSSecurityException, match="certificate verify failed"):
        exchange(tls.url(stream), "q")


@pytest.mark.option("transport.verifyHost", "core")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_certificate_for_another_host_is_refused(
    exchange: Exchange, tls_artemis: Tls, host: str, queue_name: str, no_leaks: None
) -> None:
    url, options = tls_artemis.url("amqps-elsewhere", host), tls_artemis.certificates.options()
    with pytest.raises(JMSSecurityException, match=f"certificate is not valid for '{host}'"):
        exchange(url, queue_name, options)
    assert exchange(url, queue_name, {**options, "transport.verifyHost": False}) == "hello"


@pytest.mark.option("transport.trustAll", "core")
def test_trust_all_trusts_all_and_warns(
    exchange: Exchange, tls: Tls, stream: str, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert exchange(tls.url(stream), queue_name, {"transport.trustAll": True}) == "hello"
    assert "transport.trustAll" in caplog.text


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_client_certificate_lets_in(
    exchange: Exchange, tls: Tls, stream: str, version: str, queue_name: str, no_leaks: None
) -> None:
    options = {**tls.certificates.options("client"), "transport.contextProtocol": version}
    assert exchange(tls.url(f"{stream}-mutual"), queue_name, options) == "hello"


@pytest.mark.option("transport.keyStoreLocation", "core")
@pytest.mark.option("transport.keyStorePassword", "core")
@pytest.mark.option("transport.storeType", "core")
@pytest.mark.option("transport.trustStoreLocation", "core")
@pytest.mark.option("transport.trustStorePassword", "core")
def test_pkcs12_stores_do_as_well(exchange: Exchange, tls: Tls, stream: str, queue_name: str) -> None:
    options = {
        "transport.trustStoreLocation": tls.certificates.folder / "ca.p12",
        "transport.trustStorePassword": STORE_PASSWORD,
        "transport.keyStoreLocation": tls.certificates.folder / "client.p12",
        "transport.keyStorePassword": STORE_PASSWORD,
        "transport.storeType": "PKCS12",
    }
    assert exchange(tls.url(f"{stream}-mutual"), queue_name, options) == "hello"


def test_an_ssl_context_does_as_well(exchange: Exchange, tls: Tls, stream: str, queue_name: str) -> None:
    context = tls.certificates.context("client")
    assert exchange(tls.url(f"{stream}-mutual"), queue_name, ssl_context=context) == "hello"


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("client", [None, "rogue"])
def test_without_a_client_certificate_that_is_trusted_nobody_gets_in(
    exchange: Exchange, tls: Tls, stream: str, client: str | None, version: str, no_leaks: None
) -> None:
    """In TLS 1.3 the broker says so when the client takes the handshake for done."""
    options = {**tls.certificates.options(client), "transport.contextProtocol": version}
    with pytest.raises(JMSSecurityException, match="alert"):
        exchange(tls.url(f"{stream}-mutual"), "q", options)


def test_the_password_of_a_store_is_in_no_log_or_error(
    exchange: Exchange, tls: Tls, stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "pyjmsack")
    options = {**tls.certificates.options("rogue"), "transport.keyStorePassword": STORE_PASSWORD}
    with pytest.raises(JMSSecurityException) as caught:
        exchange(tls.url(f"{stream}-mutual"), "q", options)
    assert STORE_PASSWORD not in caplog.text + str(caught.getrepr(showlocals=False, style="long"))
