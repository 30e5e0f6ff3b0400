"""URLs and options of kombu as those of pyjmsack; passwords are hidden."""

# kombu has no types
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kombu", reason="the extra celery is not installed")

import kombu

from pyjmsack import InvalidURLException
from pyjmsack.kombu.settings import settings_of


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("jms+amqp://h:1", "amqp://h:1"),
        ("jms+amqps://h", "amqps://h"),
        ("jms+stomp+ssl://h:2", "stomp+ssl://h:2"),
        ("jms+failover:(amqp://a:1,amqp://b:2)", "failover:(amqp://a:1,amqp://b:2)"),
    ],
)
def test_the_url_is_what_stands_after_the_first_plus_sign(url: str, found: str) -> None:
    assert settings_of(kombu.Connection(url, transport="jms" if "(" in url else None)).url == found


def test_an_alternate_keeps_its_protocol() -> None:
    """kombu parses an alternate in another way than the first URL."""
    connection = kombu.Connection("jms+amqp://a:1;jms+stomp://u:secret@b:2")
    connection.switch("jms+stomp://u:secret@b:2")
    settings = settings_of(connection)
    assert (settings.url, settings.username, settings.password) == ("stomp://b:2", "u", "secret")


def test_a_shown_url_has_no_password() -> None:
    connection = kombu.Connection("jms+amqp://ann:secret@h:1")
    assert "secret" not in connection.as_uri()
    assert connection.as_uri().startswith("jms+amqp://")
    named = kombu.Connection("jms+amqp://h:1", userid="ann", password="secret")
    assert named.as_uri() == "jms+amqp://ann:**@h:1"
    assert named.as_uri(include_password=True) == "jms+amqp://ann:secret@h:1"


def test_no_wait_is_without_a_limit() -> None:
    options = settings_of(kombu.Connection("jms+amqp://h", connect_timeout=3)).options
    assert options["jms.closeTimeout"] == 5000
    assert options["jms.requestTimeout"] == 30_000
    assert options["jms.connectTimeout"] == 3000
    given = settings_of(kombu.Connection("jms+amqp://h?jms.closeTimeout=1")).options
    assert "jms.closeTimeout" not in given


@pytest.mark.parametrize(
    ("url", "how", "text"),
    [
        ("jms+amqp://h", {"transport_options": {"envelope": "xml"}}, "expected one of kombu, jms"),
        ("jms+amqp://h", {"ssl": True}, "has no TLS"),
        ("jms+amqps://h", {"ssl": {"colour": 1}}, "broker_use_ssl: unknown colour"),
        ("jms://h", {}, "write the protocol after a plus sign"),
        ("jms+amqp://h?jms.sendTimeout=9;jms+amqp://i", {}, "URLs of a list can have no options"),
        ("jms+amqp://h", {"transport_options": {"jms_options": {}}, "ssl": {"ca_certs": "x"}}, "has no TLS"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name(url: str, how: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidURLException, match=text):
        settings_of(kombu.Connection(url, **how))


def test_failover_does_not_restore_connections_behind_celery() -> None:
    with pytest.raises(InvalidURLException, match="Celery itself connects again"):
        settings_of(kombu.Connection("jms+failover:(amqp://a)?failover.maxReconnectAttempts=5", transport="jms"))
    options = settings_of(kombu.Connection("jms+failover:(amqp://a)", transport="jms")).options
    assert options["failover.maxReconnectAttempts"] == 0
    assert options["nested.transport.connectTimeout"] == 5000  # kombu's default, for each broker of the list


def test_sends_wait_for_the_broker_unless_the_user_says_otherwise() -> None:
    assert settings_of(kombu.Connection("jms+amqp://h")).options["jms.forceSyncSend"] == "true"
    url = "jms+amqp://h?jms.forceAsyncSend=true"
    assert "jms.forceSyncSend" not in settings_of(kombu.Connection(url)).options


def test_tasks_are_asked_for_one_by_one_over_amqp_unless_the_user_says_otherwise() -> None:
    """At Artemis a killed worker could cost its neighbours a task."""
    name = "amqp.singleCredit"
    for url, own in (("jms+amqp://h", name), ("jms+failover:(amqp://a,amqp://b)", f"nested.{name}")):
        assert settings_of(kombu.Connection(url, transport="jms")).options[own] == "always"
    for url in ("jms+stomp://h", f"jms+amqp://h?{name}=afterLoss"):
        assert name not in settings_of(kombu.Connection(url, transport="jms")).options


def test_a_compressed_body_may_be_as_large_as_any_message() -> None:
    assert settings_of(kombu.Connection("jms+amqp://h")).largest == 104_857_600
    assert settings_of(kombu.Connection("jms+amqp://h?jms.maxMessageSize=2000")).largest == 2000


def test_no_login_is_in_the_repr_of_the_settings() -> None:
    """Logs and tracebacks show it."""
    connection = kombu.Connection(
        "jms+failover:(amqp://u:one-secret@a:1)",
        transport="jms",
        userid="u",
        password="two-secret",
        transport_options={"jms_options": {"jms.password": "three-secret", "jms.allowUserInfo": True}},
    )
    settings = settings_of(connection)
    assert settings.password == "two-secret"
    assert "secret" not in repr(settings)
