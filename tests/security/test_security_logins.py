"""Logins to real brokers: who gets in, what the others are told, and where the passwords are not (S129)."""

from __future__ import annotations

import logging
import traceback
from typing import Any

import pytest
from security_exchange import Exchange
from security_support import USERS, Certificates

from pyjmsack import ConnectionFactory, JMSSecurityException

USER, PASSWORD = next(iter(USERS.items()))
WRONG = "Wr0ngMarker"
REFUSED: dict[str, dict[str, Any]] = {
    "wrong password": {"username": USER, "password": WRONG},
    "missing password": {"username": USER},
    "unknown user": {"username": "mallory", "password": WRONG},
    "no login": {},
}


def refused(exchange: Exchange, url: str, caplog: pytest.LogCaptureFixture, **login: Any) -> str:
    """Fail to log in, with all that can be logged; return everything that a program could print."""
    caplog.set_level(logging.DEBUG, "pyjmsack")
    options = {f"{url.partition(':')[0]}.traceFrames": True}
    with pytest.raises(JMSSecurityException) as caught:
        exchange(url, "q", options, **login)
    factory = ConnectionFactory(url, options=options, **login)
    return caplog.text + repr(caught.value) + "".join(traceback.format_exception(caught.value)) + repr(factory)


def test_the_right_password_is_accepted(exchange: Exchange, secured_url: str, queue_name: str, no_leaks: None) -> None:
    assert exchange(secured_url, queue_name, username=USER, password=PASSWORD) == "hello"


@pytest.mark.parametrize("login", REFUSED.values(), ids=REFUSED)
def test_a_wrong_login_is_a_security_error_that_shows_no_password(
    exchange: Exchange, secured_url: str, login: dict[str, Any], caplog: pytest.LogCaptureFixture, no_leaks: None
) -> None:
    assert WRONG not in refused(exchange, secured_url, caplog, **login)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_logs_in(
    exchange: Exchange, scram_urls: dict[str, str], mechanism: str, queue_name: str, no_leaks: None
) -> None:
    """RFC 5802, RFC 7677; the acceptor offers nothing else."""
    assert exchange(scram_urls[mechanism], queue_name, username=USER, password=PASSWORD) == "hello"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("login", REFUSED.values(), ids=REFUSED)
def test_scram_with_a_wrong_login_is_a_security_error_that_shows_no_password(
    exchange: Exchange,
    scram_urls: dict[str, str],
    mechanism: str,
    login: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    no_leaks: None,
) -> None:
    assert WRONG not in refused(exchange, scram_urls[mechanism], caplog, **login)


def test_a_client_certificate_logs_in_with_external(
    exchange: Exchange, external_url: str, certificates: Certificates, queue_name: str, no_leaks: None
) -> None:
    """RFC 4422 appendix A; the broker takes the user's name from the certificate."""
    assert exchange(external_url, queue_name, certificates.options("client")) == "hello"


def test_a_certificate_in_the_name_of_nobody_is_refused(
    exchange: Exchange, external_url: str, certificates: Certificates, no_leaks: None
) -> None:
    with pytest.raises(JMSSecurityException):
        exchange(external_url, "q", certificates.options("server"))
