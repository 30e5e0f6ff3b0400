"""The table of the Java clients' options agrees with itself and with the options of this library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from pyjmsack.java_options.model import Fate, JavaOption, Translation
from pyjmsack.java_options.schemes import JAVA_SCHEMES
from pyjmsack.java_options.table import JAVA_OPTIONS
from pyjmsack.uri import OPTIONS

ROWS = [(client, row) for client, rows in JAVA_OPTIONS.items() for row in rows.values()]
VALUES = {"true", "false", "0", "-1", "1000", "PKCS12", "JKS", "XA_CF", "CF", "2.0"}


def test_every_row_says_what_replaces_the_option_or_why_nothing_does() -> None:
    silent = [(client, row.name) for client, row in ROWS if not (row.hint() or row.decide)]
    assert silent == []
    assert {row.ours for _, row in ROWS if row.ours} <= OPTIONS.keys()


def translations(row: JavaOption) -> Iterator[Translation]:
    """Yield what each value becomes; what is no number where one is expected is for the tool to say."""
    for value in VALUES:
        with suppress(ValueError):
            yield row.translate(value)


def test_whatever_its_value_an_option_becomes_options_of_ours_or_gets_a_reason() -> None:
    for client, row in ROWS:
        for made in translations(row):
            assert set(made.options) <= OPTIONS.keys(), (client, row.name)
            assert made.why or made.options, (client, row.name)
            assert made.fate is Fate.HONOURED or not made.options, (client, row.name)


def test_every_scheme_of_a_java_url_is_replaced_or_has_the_reason() -> None:
    for name, scheme in JAVA_SCHEMES.items():
        assert scheme.says, name
    assert JAVA_SCHEMES["vm"].why_not
    assert not JAVA_SCHEMES["tcp"].why_not


def test_waits_of_artemis_grow_only_with_a_multiplier_above_one() -> None:
    multiplier = JAVA_OPTIONS["artemis"]["retryIntervalMultiplier"]
    assert multiplier.translate("1.0").options == {"failover.useReconnectBackOff": "false"}
    assert multiplier.translate("2.0").options["failover.reconnectBackOffMultiplier"] == "2.0"


def test_the_window_of_an_artemis_consumer_is_bytes_there_and_messages_here() -> None:
    window = JAVA_OPTIONS["artemis"]["consumerWindowSize"]
    assert window.translate("0").options == {"jms.prefetchPolicy.all": "0"}
    assert window.translate("1048576").options == {"jms.prefetchPolicy.all": "256"}
    assert window.translate("1").options == {"jms.prefetchPolicy.all": "1"}


def test_a_persistent_send_without_an_answer_is_no_silent_translation() -> None:
    assert JAVA_OPTIONS["artemis"]["blockOnDurableSend"].translate("false").fate is Fate.BY_HAND
