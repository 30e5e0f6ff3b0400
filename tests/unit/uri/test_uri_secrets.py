"""No message shows a password; any text is parsed or refused."""

from __future__ import annotations

import contextlib
import re
import traceback
from dataclasses import asdict
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from uri_support import MARKER, assert_refused_or_parsed_without_leak

from pyjmsack.destination import Queue
from pyjmsack.errors import InvalidDestinationException, InvalidURLException, UnsupportedFeatureException
from pyjmsack.uri import (
    DESTINATION_OPTIONS,
    IGNORED,
    IGNORED_OF_DESTINATIONS,
    OPTIONS,
    REFUSED,
    DestinationOptions,
    Secret,
    parse_destination_options,
    parse_url,
    redact,
)


def test_secret_shows_itself_only_when_asked() -> None:
    secret = Secret(MARKER)
    assert MARKER not in f"{secret} {secret!r} {[secret]}"
    assert secret.reveal() == MARKER
    assert secret != MARKER
    assert {secret, Secret(MARKER)} == {secret}


def test_broker_url_never_shows_a_password() -> None:
    url = f"amqps://h?jms.password={MARKER}1&transport.keyStorePassword={MARKER}2&jms.username=u"
    parsed = parse_url(url)
    assert MARKER not in repr(parsed) + str(parsed) + repr(asdict(parsed))
    assert redact(url) == "amqps://h?jms.password=***"


@pytest.mark.parametrize(
    ("url", "redacted"),
    [
        ("amqp://h:1?jms.clientID=c&jms.password=p", "amqp://h:1?jms.clientID=c&jms.password=***"),
        ("amqp://h?jms.Password=p&jms%2epassword=p", "amqp://h?jms.Password=***"),
        ("amqp://h?jms.password=p&q&r=s", "amqp://h?jms.password=***"),
        ("amqp://h?jms.password:p", "amqp://h?***"),
        ("amqp://h?jms.password=p#q", "amqp://h?jms.password=***#***"),
        ("amqp://u:p?x@h?jms.username=a@b", "amqp://***@h?jms.username=***"),
        ("amqp://u:p=x?y@h", "amqp://***"),
        ("amqp://h&jms.password=p@q", "amqp://***@***"),
        ("amqp://h/p", "amqp://h/***"),
        ("amqp://[::1]:5672", "amqp://[::1]:5672"),
        ("u:p@h", "***"),
        ("h:5672", "h:5672"),
        ("failover:(amqp://a:1?amqp.vhost=v,amqps://b)?jms.password=p", "failover:(amqp://a:1,amqps://b)?***"),
        ("failover:(amqp://u:p@a,amqp://b)", "failover:(***)"),
        ("failover:(amqp://a,amqp://b?jms.password=p,amqp://c)?jms.clientID=d", "failover:(amqp://a,amqp://b,***)"),
        ("amqp://h?jms.clientID=c&jms.pasword=p&amqp.vhost=v", "amqp://h?jms.clientID=c&jms.pasword=***"),
        (
            "amqp://h?transport.ws.httpHeader.Authorization=p&jms.clientID=c",
            "amqp://h?transport.ws.httpHeader.Authorization=***",
        ),
        ("failover:amqp://u:p@a?jms.password=q", "failover:amqp://***@a?jms.password=***"),
        ("failover://amqp://a:1", "failover:amqp://a:1"),
        ("amqp://u:a@p#1@h:5672", "amqp://***@***"),
        ("amqps://u:a@p/1@h:5671", "amqps://***@***"),
        ("amqp://u:a@p?1@h", "amqp://***@***"),
        ("amqp://u:a@p?jms.q=1@h", "amqp://***@***"),
        ("failover:amqp://u:a@p#1@h,amqp://i", "failover:amqp://***@***"),
        ("amqp://u:p@h:1?jms.clientID=me@home", "amqp://***@h:1?jms.clientID=me@home"),
        ("amqp://u:1234#a=b@h", "amqp://***"),
        ("amqp://u:1234/a=b@h", "amqp://***"),
        ("amqp://u:1234?a=b@h", "amqp://***"),
        ("amqp://h:1?jms.clientID=me@home", "amqp://h:1?jms.clientID=me@home"),
    ],
)
def test_redact_shows_only_what_is_known_to_be_harmless(url: str, redacted: str) -> None:
    assert redact(url) == redacted


@pytest.mark.parametrize("url", [f"amqp://h?jms.password=a&{MARKER}=b", f"amqp://u:1?{MARKER}=a@h"])
def test_rest_of_a_password_with_a_raw_delimiter_is_not_shown(url: str) -> None:
    with pytest.raises(InvalidURLException, match="write '&' as %26") as caught:
        parse_url(url)
    assert MARKER not in str(caught.value)


@pytest.mark.parametrize("form", ["amqp://u:{}@h:1", "failover:amqp://u:{}@h:1,amqp://i", "failover:(amqp://u:{}@h)"])
def test_a_password_with_an_at_sign_and_another_delimiter_is_not_shown(form: str) -> None:
    """`P@ssw0rd#1` was taken for the end of a login and a host."""
    for before, behind in product("@#/?&=:,;", repeat=2):
        url = form.format(f"p{before}{MARKER}{behind}1")
        try:
            shown = str(parse_url(url).endpoints)
        except (InvalidURLException, UnsupportedFeatureException) as error:
            shown = "".join(traceback.format_exception(error)) + repr(error)
        assert MARKER not in shown + redact(url)


@pytest.mark.parametrize(
    "address",
    [
        *(f"{login}@h" for login in ("u:Secret,W0rd", "u:Secret@1,W0rd", "u:1234,W0rd", "u:1234/Secret,x=W0rd")),
        "h?jms.password=Secret,W0rd",
        "h?jms.username=u%26jms.password=Secret,W0rd",
        "h%3Fjms.password=Secret,amqp://W0rd",
        "h?transport.ws.httpHeader.X-Any=Secret,W0rd",
    ],
)
def test_no_part_of_a_password_in_a_list_of_brokers_is_shown(address: str) -> None:
    """A comma in a password cuts it into two addresses."""
    with pytest.raises(InvalidURLException, match=r"priorityURIs: expected addresses without a user") as caught:
        parse_url(f"failover:(amqp://h)?failover.priorityURIs=amqp://{address}")
    assert not re.search("Secret|1234|W0rd", "".join(traceback.format_exception(caught.value)))


SECRETS = """
jms.password jms.pasword jms.passwd jms.passwrod jms.apssword jms.PASSWORD password passwort pwd pw passcode secret
token jms.pass%77ord nested.jms.password transport.keyStorePassword transport.trustStorePasword xapi_key
transport.ws.httpHeader.Authorization
"""
BEHIND = [
    "a&{}=1", "a&jms.{}=1", "a&jms.sendTimeout={}", "a?{}=1", "a&{}", "a%&{}=1", "a,amqp://{}", "a)?jms.{}=1",
    "a=b&c={}"
]  # fmt: skip
AROUND = [
    "amqp://h?{}={}", "amqps://h?jms.clientID=c&{}={}", "stomp://h?{}={}&x=y", "failover:(amqp://h?{}={},amqp://i)",
    "failover:(amqp://h)?{}={}", "failover:amqp://h?{}={}", "amqp://u:p@h?{}={}", "tcp://h?{}={}"
]  # fmt: skip


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("around", AROUND)
def test_nothing_behind_a_word_that_resembles_a_secret_is_printed(around: str, behind: str) -> None:
    """A password may hold any delimiter, raw: up to the end of the URL nobody knows what belongs to it."""
    for secret in SECRETS.split():
        url, shown = around.format(secret, behind.format(MARKER)), ""
        try:
            parse_url(url)
        except (InvalidURLException, UnsupportedFeatureException) as error:
            shown = "".join(traceback.format_exception(error)) + repr(error)
        assert MARKER not in shown + redact(url)


def test_an_error_before_a_password_is_explained() -> None:
    with pytest.raises(InvalidURLException, match=r"jms\.sendTimeout.*soon"):
        parse_url("amqp://h?jms.sendTimeout=soon&jms.password=p&q")
    with pytest.raises(InvalidURLException, match=r"jms\.pasword \(did you mean jms\.password"):
        parse_url(f"amqp://h?jms.pasword=a&{MARKER}=1")
    with pytest.raises(InvalidURLException, match=r"may be part of a password.*%26"):
        parse_url(f"amqp://h?jms.password=a&{MARKER}=1")


GARBAGE = st.text(alphabet=st.sampled_from(list("ab1:/?#[]@&=%+.,() \n\u00e9\ud800")), max_size=12)
SCHEMES = st.sampled_from(
    ["amqp://", "amqps://", "stomp://", "failover:(amqp://", "failover:amqp://", "tcp://", "amqp:", "", "x+y://"]
)


@given(SCHEMES, GARBAGE, GARBAGE, GARBAGE)
@example("amqp://", "h?", "x", "&jms.sendTimeout=x")
@example("amqp://", "", ",", "://")
def test_password_option_in_any_garbage_never_leaks(scheme: str, before: str, inside: str, after: str) -> None:
    assert_refused_or_parsed_without_leak(f"{scheme}h{before}&jms.password={inside}{MARKER}{after}")
    assert_refused_or_parsed_without_leak(f"{scheme}h?jms.password={inside}{MARKER}{after}")
    assert_refused_or_parsed_without_leak(f"{scheme}h?jms.password={MARKER}{inside}={after}")
    assert_refused_or_parsed_without_leak(f"failover:({scheme}h)?jms.password={inside}{MARKER}{after}")
    assert_refused_or_parsed_without_leak(f"failover:({scheme}h?transport.keyStorePassword={inside}{MARKER}{after})")
    assert_refused_or_parsed_without_leak(
        f"failover:({scheme}h)?nested.transport.keyStorePassword={inside}{MARKER}{after}"
    )


@given(SCHEMES, GARBAGE, GARBAGE, GARBAGE)
def test_user_info_in_any_garbage_never_leaks(scheme: str, user: str, inside: str, after: str) -> None:
    assert_refused_or_parsed_without_leak(f"{scheme}u{user}:{inside}{MARKER}@h{after}")
    assert_refused_or_parsed_without_leak(f"failover:(amqp://b,{scheme}u{user}:{inside}{MARKER}@h{after})")
    assert_refused_or_parsed_without_leak(f"{scheme}u{user}:{MARKER}{inside}@h{after}", {"jms.allowUserInfo": "true"})


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(url: str) -> None:
    assert_refused_or_parsed_without_leak(url)
    assert_refused_or_parsed_without_leak(f"amqp://{url}")
    assert_refused_or_parsed_without_leak(f"amqp://h?{url}")


VALUE = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.binary(max_size=5))


@given(
    st.dictionaries(st.one_of(st.sampled_from([*OPTIONS, *REFUSED, *IGNORED]), st.text(max_size=20)), VALUE, max_size=4)
)
def test_any_options_are_parsed_or_refused(options: dict[str, object]) -> None:
    assert_refused_or_parsed_without_leak("amqps://h", {**options, "jms.password": MARKER})


@given(st.text(max_size=30), st.sampled_from([*DESTINATION_OPTIONS, *IGNORED_OF_DESTINATIONS, ""]))
def test_any_destination_options_are_parsed_or_refused(text: str, name: str) -> None:
    with contextlib.suppress(InvalidDestinationException, UnsupportedFeatureException):
        assert isinstance(parse_destination_options(Queue(f"q?{name}={text}")), DestinationOptions)
