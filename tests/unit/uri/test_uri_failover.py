"""``failover:(uri,uri)?options``: members, where each option belongs, both clients' spellings."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping

import pytest
from uri_support import MARKER, value_at

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.uri import DuplicateGuard, FailoverOptions, Secret, parse_url


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("failover:(amqp://a,amqps://b:1)", "failover:(amqp://a:5672,amqps://b:1)"),
        (
            "failover:(amqp://a,stomp+ssl://b,stomp://[::1])",
            "failover:(amqp://a:5672,stomp+ssl://b:61614,stomp://[::1]:61613)",
        ),
        ("failover:( amqp://a , amqp://b )", "failover:(amqp://a:5672,amqp://b:5672)"),
        ("failover://(amqp://a)", "failover:(amqp://a:5672)"),
        ("FAILOVER:(amqp://a)/?randomize=true", "failover:(amqp://a:5672)"),
        ("failover:amqp://a", "failover:(amqp://a:5672)"),
        ("failover:amqp://a,stomp://b?randomize=true", "failover:(amqp://a:5672,stomp://b:61613)"),
        ("failover:amqp://a,amqp://b?priorityURIs=amqp://b,amqp://a", "failover:(amqp://a:5672,amqp://b:5672)"),
        ("failover://amqp://a, amqp://b?nested.amqp.vhost=v", "failover:(amqp://a:5672,amqp://b:5672)"),
        ("failover:(amqp://a,amqp://b)?nested.transport.defaultTcpPort=7", "failover:(amqp://a:7,amqp://b:7)"),
    ],
)
def test_members_are_brokers_of_any_scheme_in_the_order_written(url: str, text: str) -> None:
    parsed = parse_url(url)
    assert (parsed.scheme, parsed.protocol) == ("failover", "failover")
    assert str(parsed) == text
    assert parsed.endpoints == tuple(member.endpoints[0] for member in parsed.members)
    assert parse_url(text).endpoints == parsed.endpoints


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("failover:", "expected failover:(uri,uri)?options"),
        ("failover:()", "expected the URL of a broker"),
        ("failover:(amqp://a,)", "expected the URL of a broker"),
        ("failover:(amqp://a", "expected failover:(uri,uri)?options"),
        ("failover:(amqp://a)x", "write ( as %28 and ) as %29"),
        ("failover:amqp://a,", "expected the URL of a broker"),
        ("failover:amqp://u:p@a,amqp://b", "expected failover:(uri,uri)?options"),
        ("failover:amqp://a?amqp.vhost=v,amqp://b", "expected failover:(uri,uri)?options"),
        ("failover:amqp://a,amqp://b?amqp.vhost=v", "amqp.vhost goes inside the parentheses"),
        ("failover:(amqp://a)?x=1#y", "'#' is not allowed"),
        ("failover:(amqp://a,b)", "member 2 of the failover URL: expected a scheme and a host"),
        ("failover:(amqp://a,ampq://b)", "member 2 of the failover URL: unknown scheme, did you mean amqp?"),
        ("failover:(amqp://a:0)", "member 1 of the failover URL: the port must be"),
        ("failover:(amqp://a,tcp://b:61616)", "use amqp://host:5672"),
        ("failover:(failover:amqp://a)", "a failover URL cannot be a member of another"),
        ("failover:(stomp://a/v)", "stomp.vhost"),
        ("failover:(amqp://a)?jms.password", "has no '='"),
    ],
)
def test_malformed_failover_url_is_refused_with_what_was_expected(url: str, message: str) -> None:
    with pytest.raises(InvalidURLException, match=re.escape(message)):
        parse_url(url)


def test_a_member_has_its_own_stream_options_and_shares_the_rest() -> None:
    parsed = parse_url(
        "failover:(amqp://a?amqp.idleTimeout=1000,stomp://b?stomp.heartBeat=2000&broker=artemis,amqp://c)"
        "?nested.amqp.idleTimeout=3000&nested.stomp.heartBeat=4000&nested.transport.tcpNoDelay=false"
        "&jms.sendTimeout=5000&strict=true&broker=activemq5"
    )
    a, b, c = parsed.members
    assert [member.amqp.idle_timeout for member in (a, c)] == [1.0, 3.0]
    assert b.stomp.heart_beat == 2.0
    assert [member.transport.tcp_no_delay for member in parsed.members] == [False] * 3
    assert [member.broker for member in parsed.members] == ["classic-5", "artemis", "classic-5"]
    assert all(member.connection is parsed.connection and member.strict for member in parsed.members)
    assert parsed.connection.send_timeout == 5.0
    assert [member.protocol for member in parsed.members] == ["amqp", "stomp", "amqp"]


def test_without_parentheses_every_option_finds_its_place() -> None:
    parsed = parse_url("failover:amqp://a?transport.tcpNoDelay=false&jms.clientID=c&maxReconnectAttempts=3")
    assert not parsed.members[0].transport.tcp_no_delay
    assert parsed.connection.client_id == "c"
    assert parsed.failover.max_reconnect_attempts == 3


def test_options_argument_wins_over_what_stands_after_the_parentheses() -> None:
    parsed = parse_url(
        "failover:(amqp://a,amqp://b?amqp.vhost=own)?failover.randomize=true&nested.amqp.vhost=url",
        {"failover.randomize": False, "nested.amqp.vhost": "options", "failover.reconnectBackOffMultiplier": 1.5},
    )
    assert [member.amqp.vhost for member in parsed.members] == ["options", "own"]
    assert not parsed.failover.randomize
    assert parsed.failover.reconnect_back_off_multiplier == 1.5


def test_defaults_are_those_of_qpid_jms_but_for_a_guard_against_duplicates_and_shorter_waits() -> None:
    """S93, S105, F11."""
    assert parse_url("failover:(amqp://a)").failover == FailoverOptions(
        initial_reconnect_delay=0.0,
        reconnect_delay=0.01,
        max_reconnect_delay=None,
        use_reconnect_back_off=True,
        reconnect_back_off_multiplier=2.0,
        max_reconnect_attempts=None,
        startup_max_reconnect_attempts=None,
        warn_after_reconnect_attempts=10,
        randomize=False,
        timeout=None,
        amqp_open_server_list_action="REPLACE",
        first_send_survives=True,
        duplicate_guard=DuplicateGuard("memory"),
    )


VALUES = [
    (("initialReconnectDelay",), "0", "initial_reconnect_delay", 0.0),
    (("reconnectDelay",), "20", "reconnect_delay", 0.02),
    (("maxReconnectDelay",), "100", "max_reconnect_delay", 0.1),
    (("useReconnectBackOff", "useExponentialBackOff"), "false", "use_reconnect_back_off", False),
    (("reconnectBackOffMultiplier", "reconnectDelayExponent"), "1.5", "reconnect_back_off_multiplier", 1.5),
    (("maxReconnectAttempts",), "0", "max_reconnect_attempts", 0),
    (("startupMaxReconnectAttempts",), "-1", "startup_max_reconnect_attempts", None),
    (("warnAfterReconnectAttempts",), "1", "warn_after_reconnect_attempts", 1),
    (("randomize",), "true", "randomize", True),
    (("timeout",), "3000", "timeout", 3.0),
    (("firstSendSurvives",), "false", "first_send_survives", False),
    (("duplicateGuard",), "NONE", "duplicate_guard", DuplicateGuard("none")),
    (("duplicateGuard",), "sqlite:/a/b.db", "duplicate_guard", DuplicateGuard("sqlite", "/a/b.db")),
    (("duplicateGuardSize",), "9", "duplicate_guard_size", 9),
]


@pytest.mark.parametrize("prefix", ["failover.", ""])
@pytest.mark.parametrize(("names", "text", "field", "value"), VALUES)
def test_qpid_and_activemq_spellings_set_one_field(
    names: tuple[str, ...], text: str, field: str, value: object, prefix: str
) -> None:
    for name in names:
        parsed = parse_url(f"failover:(amqp://a)?{prefix}{name}={text}")
        assert value_at(parsed.failover, field) == value


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("failover.randomize", "randomize"), "true"),
        (("failover.useReconnectBackOff", "useExponentialBackOff"), "true"),
    ],
)
def test_two_spellings_of_one_option_are_refused_together(names: tuple[str, str], text: str) -> None:
    query = "&".join(f"{name}={text}" for name in names)
    with pytest.raises(InvalidURLException, match="two names of the same option; give only one of them"):
        parse_url(f"failover:(amqp://a)?{query}")


@pytest.mark.parametrize(
    ("members", "query", "message"),
    [
        ("amqp://a", "amqp.vhost=v", "amqp.vhost goes inside the parentheses, or after them as nested.amqp.vhost"),
        ("amqp://a", "keepAlive=true", "keepAlive goes inside the parentheses, or after them as nested.keepAlive"),
        ("amqp://a?jms.clientID=c", "", "jms.clientID holds for all brokers and goes after the parentheses"),
        ("amqp://a?failover.randomize=true", "", "failover.randomize holds for all brokers"),
        ("amqp://a?timeout=1", "", "timeout holds for all brokers"),
        ("amqp://a?strict=true", "", "strict holds for all brokers"),
        ("amqp://a?nested.amqp.vhost=v", "", "nested.amqp.vhost"),
        ("amqp://a", "nested.jms.clientID=c", "nested.jms.clientID holds for all brokers and is written jms.clientID"),
        ("amqp://a", "nested.stomp.vhost=v", "not allowed in amqp URLs: option stomp.vhost (use amqp.vhost)"),
        ("stomp://a?amqp.idleTimeout=1", "", "stomp URLs: option amqp.idleTimeout (use stomp.heartBeat)"),
        ("amqp://a", "maxReconectAttempts=1", "did you mean maxReconnectAttempts?"),
        ("amqp://a", "failover.randomise=true", "did you mean failover.randomize?"),
        ("amqp://a", "nested.amqp.vhots=v", "did you mean nested.amqp.vhost?"),
        ("amqp://a", "backOffMultiplier=2", "did you mean failover.reconnectBackOffMultiplier, or reconnectDelayExp"),
        ("amqp://a", "failover.backOffMultiplier=2", "did you mean failover.reconnectBackOffMultiplier"),
        ("amqp://a", "prefetchSize=2", "did you mean jms.prefetchPolicy.all, or consumer.prefetchSize in the name of"),
        ("amqp://a", "prefech=2", "did you mean jms.prefetchPolicy.topicPrefetch?"),
        ("amqp://a?heartbeat=2", "", "did you mean amqp.idleTimeout?"),
        ("stomp://a?heart-beat=2", "", "did you mean stomp.heartBeat?"),
        ("amqp://a?amqp.vhots=v", "", "did you mean amqp.vhost?"),
        ("amqp://a", "failover.duplicateGuard=redis", "expected one of memory, none, sqlite:PATH"),
        ("amqp://a", "failover.duplicateGuard=sqlite:", "expected one of memory, none, sqlite:PATH"),
        ("amqp://a", "failover.duplicateGuard=memory:x", "expected one of memory, none, sqlite:PATH"),
        ("amqp://a", "failover.reconnectBackOffMultiplier=0.5", "expected a number from 1 to 1000"),
        ("amqp://a", "failover.reconnectBackOffMultiplier=nan", "expected a number from 1 to 1000"),
        ("amqp://a", "failover.initialReconnectDelay=-1", "milliseconds from 0"),
    ],
)
def test_misplaced_or_misspelt_option_says_where_it_belongs(members: str, query: str, message: str) -> None:
    with pytest.raises(InvalidURLException, match=re.escape(message)):
        parse_url(f"failover:({members})?{query}")


def test_option_of_later_is_said_to_be_unsupported_in_a_failover_url() -> None:
    with pytest.raises(UnsupportedFeatureException, match=r"transport\.keyAlias"):
        parse_url("failover:(amqp://a)?nested.transport.keyAlias=a")


@pytest.mark.parametrize("spelling", ["updateURIsSupported", "failover.updateURIsSupported"])
@pytest.mark.parametrize(
    ("value", "more", "action"),
    [("true", "", "REPLACE"), ("false", "", "IGNORE"), ("false", "&failover.amqpOpenServerListAction=ADD", "ADD")],
)
def test_activemq_s_word_for_the_list_of_brokers_sets_what_is_done_with_it(
    spelling: str, value: str, more: str, action: str
) -> None:
    """A.3 ``updateURIsSupported``."""
    parsed = parse_url(f"failover:(amqp://a)?{spelling}={value}{more}")
    assert parsed.failover.amqp_open_server_list_action == action


@pytest.mark.parametrize(
    ("query", "preferred"),
    [
        ("failover.priorityBackup=true&priorityURIs=amqp://b:1", ("amqp://b:1",)),
        ("priorityURIs=amqp://b:1,amqp://a", ("amqp://b:1", "amqp://a:5672")),
    ],
)
def test_preferred_brokers_are_those_named(query: str, preferred: tuple[str, ...]) -> None:
    """A.3 ``priorityBackup``, ``priorityURIs``."""
    assert parse_url(f"failover:(amqp://a,amqp://b:1)?{query}").failover.priority_uris == preferred


def test_a_preferred_broker_that_is_not_in_the_url_is_refused() -> None:
    """A.3 ``priorityURIs``: in Java it would be ignored."""
    with pytest.raises(InvalidURLException, match=r"expected brokers of this URL \(amqp://a:5672\), not amqp://b:5672"):
        parse_url("failover:(amqp://a)?priorityBackup=true&priorityURIs=amqp://b")


@pytest.mark.parametrize("text", ["/etc/brokers", "file:///etc/brokers"])
def test_the_file_with_more_brokers_is_a_path(text: str) -> None:
    """A.3 ``updateURIsURL``."""
    assert parse_url(f"failover:(amqp://a)?updateURIsURL={text}").failover.update_uris_url == "/etc/brokers"
    with pytest.raises(InvalidURLException, match="the path of a file"):
        parse_url("failover:(amqp://a)?updateURIsURL=http://h/brokers")


def test_close_links_that_fail_on_reconnect_is_for_failover_urls() -> None:
    """S104."""
    name = "jms.closeLinksThatFailOnReconnect"
    assert parse_url(f"failover:(amqp://a)?{name}=true").connection.close_links_that_fail_on_reconnect
    with pytest.raises(InvalidURLException, match="belongs to a failover"):
        parse_url(f"amqp://a?{name}=true")


@pytest.mark.parametrize("options", [None, {"jms.allowUserInfo": True}])
@pytest.mark.parametrize("second", [f"u:{MARKER}@", "", f"v:{MARKER}@"])
def test_user_info_in_members_is_one_login_and_is_never_printed(
    options: Mapping[str, object] | None, second: str
) -> None:
    url = f"failover:(amqp://u:{MARKER}@a,amqp://{second}b)"
    if options is None or second.startswith("v"):
        with pytest.raises(InvalidURLException) as caught:
            parse_url(url, options)
        assert MARKER not in str(caught.value)
    else:
        parsed = parse_url(url, options)
        assert (parsed.connection.username, parsed.connection.password) == ("u", Secret(MARKER))
        assert MARKER not in repr(parsed) + str(parsed)


@pytest.mark.parametrize(
    "url",
    [
        f"failover:(amqp://a?transport.keyStorePassword=a,{MARKER})",
        f"failover:(amqps://a?transport.keyStorePassword=a,amqp://b?{MARKER}=1)",
        f"failover:(amqps://a?transport.keyStorePassword=a)?{MARKER}=1)",
        f"failover:(amqps://a?transport.keyStorePassword=a){MARKER})",
        f"failover:(amqp://a)?jms.password=a&{MARKER}=1",
        f"failover:(amqps://a)?nested.transport.keyStorePassword=a&{MARKER}=1",
        f"failover:(amqps://a?transport.keyStorePassword=a,{MARKER}://b)",
    ],
)
def test_rest_of_a_password_with_a_raw_delimiter_is_not_shown(url: str) -> None:
    with pytest.raises(InvalidURLException) as caught:
        parse_url(url)
    assert MARKER not in str(caught.value)


def test_failover_url_is_a_value_that_can_be_pickled_and_hashed() -> None:
    parsed = parse_url(f"failover:(amqp://a,stomp://b)?jms.password={MARKER}")
    assert pickle.loads(pickle.dumps(parsed)) == parsed
    assert hash(parsed) == hash(parse_url(f"failover:(amqp://a,stomp://b)?jms.password={MARKER}"))
    assert MARKER not in repr(parsed) + str(parsed)
