"""Options and columns: what is wrong is refused on the driver, by name, with the nearest right spelling."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyjmsack import InvalidURLException
from pyjmsack.spark.columns import arrow_schema, spark_schema
from pyjmsack.spark.options import OptionError, parse_options

HEADER = "transport.ws.httpHeader.Authorization"
URL = "amqp://127.0.0.1:1"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"spoolLocatoin": "/tmp"}, "did you mean 'spoolLocation'"),
        ({"partition": "2"}, "did you mean 'partitions'"),
        ({"partitions": "0"}, "option 'partitions': expected a whole number of at least 1"),
        ({"partitions": "two"}, "at least 1"),
        (
            {"maxBytesPerPartition": str((1 << 30) + 1)},
            "'maxBytesPerPartition': expected at most 1073741824, which is 1 GiB",
        ),
        ({"pollMs": "-1"}, "option 'pollMs': expected a whole number of milliseconds"),
        ({"idleMs": "0"}, "option 'idleMs': expected a whole number of at least 1"),
        ({"dedup": "yes"}, "option 'dedup': expected true or false"),
        ({"unsendable": "ignore"}, "option 'unsendable': expected one of fail, skip, failAtEnd"),
        ({"mode": "peek"}, "option 'mode': expected one of stream, drain, browse"),
        ({"spoolLocation": "s3a://bucket/spool"}, "expected a mounted directory, not s3a"),
        ({"spoolLocation": "spool"}, "expected an absolute path"),
        ({"drainId": "../other"}, "option 'drainId'"),
        ({"user": "alice"}, "must be given together"),
        ({"user": "alice", "credentialRef": "wonderland"}, "expected env:VARIABLE or file:/path"),
        ({"queue": " "}, "option 'queue'"),
    ],
)
def test_a_wrong_option_is_refused_by_name(given: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError, match=says) as caught:
        parse_options({"url": URL, **given})
    assert "wonderland" not in str(caught.value)


def test_a_task_may_take_up_to_one_gibibyte() -> None:
    assert parse_options({"url": URL, "maxBytesPerPartition": str(1 << 30)}).maxBytesPerPartition == 1 << 30


def test_the_url_must_be_there_be_right_and_hold_no_secret() -> None:
    with pytest.raises(OptionError, match="'url' is missing"):
        parse_options({})
    with pytest.raises(InvalidURLException, match="sendTimeout"):
        parse_options({"url": f"{URL}?jms.sendTimeuot=5"})
    for url in (
        "amqp://alice:wonderland@127.0.0.1:1?jms.allowUserInfo=true",
        f"{URL}?jms.password=wonderland",
        f"failover:({URL})?jms.password=wonderland",
        f"failover:({URL})?jms.p%61ssword=wonderland",
        f"failover:({URL}?transport.keyStorePassword=wonderland)",
        "failover:(amqp://alice:wonderland@127.0.0.1:1)?jms.allowUserInfo=true",
        f"amqpws://127.0.0.1:1?{HEADER}=Bearer%20wonderland",
        f"failover:(amqpws://127.0.0.1:1?{HEADER}=Bearer%20wonderland)",
        f"failover:(amqp://127.0.0.1:2,amqpws://127.0.0.1:1?{HEADER}=Bearer%20wonderland)",
        f"FailOver:(amqpws://127.0.0.1:1)?nested.{HEADER}=Bearer%20wonderland",
        f"failover:amqpws://127.0.0.1:1?{HEADER}=Bearer%20wonderland",
        f"failover:({URL})?jms.username=wonderland",
    ):
        with pytest.raises(OptionError, match="'url' holds a login") as caught:
            parse_options({"url": url})
        assert "wonderland" not in str(caught.value)
    for listed in ("a:wonderland@127.0.0.1:1?jms.allowUserInfo%3Dtrue", f"127.0.0.1:1?{HEADER}%3Dwonderland"):
        with pytest.raises(InvalidURLException, match="priorityURIs: expected addresses without a user") as refused:
            parse_options({"url": f"failover:(amqpws://127.0.0.1:1)?failover.priorityURIs=amqpws://{listed}"})
        assert "wonderland" not in str(refused.value)


def test_failover_urls_are_fine_with_their_options() -> None:
    for url in (
        f"failover:({URL},stomp://127.0.0.1:2)",
        f"failover:({URL})?failover.maxReconnectAttempts=3",
        f"failover:{URL}?transport.connectTimeout=5",
        f"failover:({URL}?transport.connectTimeout=5)?nested.transport.tcpKeepAlive=true",
        f"failover:({URL})?jms.redeliveryPolicy[orders.>].maxRedeliveries=3",
        f"failover:({URL},amqp://127.0.0.1:2)?priorityURIs=amqp://127.0.0.1:2",
    ):
        assert parse_options({"url": url}).url == url


def test_names_count_in_any_case_and_those_of_spark_itself_are_let_through() -> None:
    options = parse_options(
        {"URL": URL, "SPOOLLOCATION": "file:///tmp/a%20b", "checkpointLocation": "/cp", "pollms": "20"}
    )
    assert (options.spool, options.pollMs) == (Path("/tmp/a b"), 0.02)


def test_secrets_are_read_where_they_are_needed_and_never_travel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_TEST_SECRET", "wonderland")
    options = parse_options({"url": URL, "user": "alice", "credentialRef": "env:SPARK_TEST_SECRET"})
    assert b"wonderland" not in pickle.dumps(options)
    assert "wonderland" not in repr(options)
    monkeypatch.delenv("SPARK_TEST_SECRET")
    with pytest.raises(OptionError, match="SPARK_TEST_SECRET is not set"):
        options.connect()
    absent = parse_options({"url": URL, "user": "alice", "credentialRef": f"file:{tmp_path / 'absent'}"})
    with pytest.raises(OptionError, match="absent"):
        absent.connect()


@pytest.mark.parametrize("body", [True, False])
def test_our_arrow_columns_are_the_ones_spark_expects(spark: Any, body: bool) -> None:
    wanted = to_arrow_schema(StructType.fromDDL(spark_schema(body)), timezone="UTC")
    assert arrow_schema(body) == wanted
