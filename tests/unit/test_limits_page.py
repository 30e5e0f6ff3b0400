"""The table of limits in docs/security.md says what the code does, and names each limit of the code."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from pyjmsack.providers.amqp import name_sizes
from pyjmsack.uri import DESTINATION_OPTIONS, OPTIONS

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "security.md"
ROWS = re.findall(r"^\| (.+?) \| (.+?) \| ?(.*?) ?\|$", PAGE.read_text(), re.MULTILINE)
ROOMS = (
    "aio",
    "app",
    "cli/health.py",
    "core",
    "io",
    "kombu",
    "management",
    "message",
    "otel",
    "providers",
    "selector",
    "spi",
    "sync",
    "uri",
    "*.py",
)
"""Where a broker, a producer or a URL can choose. Other folders work for the user who calls them, except
for the health server."""
WORDS = re.compile("DEEPEST|DEPTH|KEPT|LARGEST|LEAST|LIMIT|LONGEST|MAX|MOST|SHOWN|TORN|WINDOW")
"""What the name of a limit has in it."""

LIMITS = {
    "messages that come without credit": "providers/amqp/receiver.py _OVERDRAFT",
    "messages of a STOMP subscription that wait": "providers/stomp/window.py _MOST_BEYOND",
    "windows of a STOMP subscription": "providers/stomp/window.py _MOST_WINDOWS",
    "bytes beyond these windows": "providers/stomp/window.py _MOST_BYTES_BEYOND",
    "bytes that are kept of a message": "providers/amqp/engine/deliveries.py KEPT_OF_OVERSIZE",
    "bytes that wait for the disk": "providers/amqp/engines.py MOST_UNWRITTEN",
    "frames that the peer must accept": "providers/amqp/provider.py _LEAST_FRAME",
    "sections of the body": "providers/amqp/sections.py MOST_SECTIONS",
    "the footer of such": "providers/amqp/pieces.py _MOST_FOOTER",
    "a delivery tag of AMQP": "providers/amqp/engine/fastpath.py MAX_TAG_SIZE",
    "the command of a STOMP frame": "providers/stomp/frames.py _LONGEST_COMMAND",
    "a header line that is kept": "providers/stomp/frames.py _LONGEST_NAME",
    "seconds until the broker is asked whether": "providers/stomp/engine.py _PROBE",
    "the same, after one `content-length` of": "providers/stomp/engine.py _PROBE_AGAIN",
    "nested values in a message": "providers/amqp/wire.py MAX_DEPTH",
    "values in a frame of AMQP": "providers/amqp/engine/performatives.py _MOST_VALUES",
    "nested values of an object message": "message/object.py MAX_DEPTH",
    "nested values of a JSON body": "app/names.py DEEPEST",
    "values of a JSON body that are built only": "app/typed.py _MOST_TRIED",
    "values in the body of an AMQP message": "providers/amqp/wire.py MOST_VALUES",
    "names and values of the application properties": "providers/amqp/sections.py _MOST_IN_PROPERTIES",
    "commas and opening brackets in a body": "message/portable.py _MOST_VALUES",
    "values in the JSON of an object message": "json_text.py MOST_VALUES",
    "elements without bytes": "providers/amqp/wire.py MAX_EMPTY_ELEMENTS",
    "keys of a map": "message/mapping.py MAX_OTHER_KEYS",
    "such keys, or elements of a set that an `App` reads, with one hash": "message/mapping.py SAME_HASH",
    "bytes that a codec": "message/codecs.py MAX_BYTES",
    "damaged messages of a consumer": "core/taking.py TORN",
    "damaged deliveries of a message": "providers/amqp/inbound.py _MOST_DAMAGED",
    "messages of a consumer that it can neither": "spi/aside.py MOST_ASIDE",
    "copies of dead letters": "spi/aside.py MOST_COPIES",
    "delivery counts that a STOMP": "providers/stomp/memory.py _LIMIT",
    "delivery counts of large": "providers/amqp/counts.py _MOST_COUNTED",
    "delayed messages of a consumer that": "core/inbox.py _MOST_ASIDE",
    "rolled-back messages that a connection counts": "core/channel.py _MOST_ROLLED_BACK",
    "failed messages that a connection remembers": "core/redelivery.py _MOST_FAILED",
    "failed messages that a listener": "app/retry.py _MOST_FAILED",
    "messages of one iteration of a browser": "core/guard.py SHOWN",
    "entries of a `failover-server-list`": "providers/failover/brokers.py MOST",
    "characters of a host name": "providers/failover/brokers.py _LONGEST_NAME",
    "characters of the file": "providers/failover/brokers.py MOST_CHARACTERS",
    "correlation ids of callers who gave up": "core/requestor.py GIVEN_UP",
    "messages that are refused in one look": "core/taking.py REFUSED_AT_ONCE",
    "seconds that `receive` goes on": "core/receiving.py _PATIENCE",
    "replies to one request": "core/requestor.py REPLIES",
    "the id of a transaction": "providers/amqp/coordinator.py _LONGEST_ID",
    "characters of a broker's condition": "providers/amqp/errors.py _LONGEST",
    "addresses for which": "providers/amqp/caution.py _MOST_ADDRESSES",
    "former names of temporary destinations": "providers/failover/resources.py MOST_NAMES",
    "characters of a text that a cache keeps": "kept.py LONGEST",
    "entries of the cache of sections": "providers/amqp/sections.py _CACHE_LIMIT",
    "entries of the cache of addresses": "providers/amqp/inbound.py _DESTINATIONS_LIMIT",
    "characters of a value in a line": "logging.py _LONGEST",
    "characters of the error of a listener": "loggers.py LONGEST",
    "characters of an ERROR frame": "providers/stomp/errors.py _LONGEST",
    "bytes of a port's answer": "probing.py _MOST",
    "ports that are asked": "io/inquiry.py MOST",
    "names that one connection": "io/names.py MOST",
    "threads with which one connection works on its own files": "io/driver.py _MOST_HELPERS",
    "threads with which one connection of `pyjmsack.aio`": "aio/_runtime.py _MOST_FILES",
    "threads with which one manager of": "management/aio.py _MOST_THREADS",
    "threads with which one connection computes": "io/helpers.py MOST_DIGESTS",
    "queues that are remembered": "providers/stomp/window.py _MOST_REFUSING",
    "queues over STOMP for which": "providers/stomp/caution.py _MOST_QUEUES",
    "bytes that are searched for the name of a queue": "providers/stomp/errors.py _LONGEST_END",
    "queues, consumers or connections": "management/artemis.py _MAX_ROWS",
    "characters in all answers to one question": "management/artemis.py _MOST_CHARACTERS",
    "log lines of the I/O thread that wait": "io/lines.py _MOST_LINES",
    "characters of these lines": "io/lines.py _MOST_CHARACTERS",
    "an answer of Jolokia": "management/jolokia.py _LARGEST",
    "values in an answer of Jolokia": "management/jolokia.py _MOST_VALUES",
    "values in an answer of the management": "management/artemis.py _MOST_VALUES",
    "values in the JSON of a message": "json_text.py MOST_VALUES",
    "the head of such an answer": "management/jolokia.py _LONGEST_HEAD",
    "a SASL frame that arrives": "providers/amqp/sasl.py _MAX_FRAME",
    "SASL mechanisms": "providers/amqp/sasl.py _MOST_NAMES",
    "a SASL frame that is sent": "providers/amqp/name_sizes.py SASL_LIMIT",
    "rounds of hashing": "providers/amqp/mechanisms.py MOST_ITERATIONS",
    "characters of the broker's reason": "providers/amqp/mechanisms.py _LONGEST",
    "the name of a destination at": "spi/spellings.py LONGEST_STORED",
    "the name of a property at": "spi/spellings.py LONGEST_TEXT",
    "a correlation id, a type or a group id at": "spi/spellings.py LONGEST_TEXT",
    "a key of a map in a property at": "providers/amqp/nested.py _LONGEST_KEY",
    "the id of a message that is rejected at": "providers/amqp/deadletter.py _LONGEST_ID",
    "client id and host name": "providers/amqp/name_sizes.py OPEN_LIMIT",
    "a header line of CONNECT": "providers/stomp/heads.py CONNECT_LINE",
    "frames with less than 8 bytes of data": "io/websocket.py _MOST_SMALL",
    "one message of a WebSocket": "io/websocket.py _MOST",
    "a selector, in characters": "selector/__init__.py MAX_LENGTH",
    "nested parentheses": "selector/grammar.py MAX_DEPTH",
    "ended operations that wait": "core/tracing.py MOST",
    "sends of a producer": "core/send_window.py WINDOW",
    "workers of a listener": "app/listener.py _MOST",
    "sends of `app.sender`": "app/sender.py SESSIONS",
    "destinations to which": "app/sender.py REQUESTORS",
    "the header of an AMQP message": "providers/amqp/sections.py _LARGEST_HEADER",
    "message annotations of": "providers/amqp/sections.py _LARGEST_ANNOTATIONS",
    "earlier deliveries of a message over AMQP on Classic": "providers/amqp/deadletter.py _MOST_REFUSED",
    "characters of a message id in `repr": "message/base.py _LONGEST_SHOWN",
    "the properties section of an AMQP message": "providers/amqp/sections.py LARGEST_PROPERTIES",
    "characters of a content type that can name": "providers/amqp/body.py _LONGEST_TYPE",
    "application properties of an AMQP message": "providers/amqp/pieces.py _LARGEST_PROPERTIES",
    "tracing: characters of `baggage`": "otel/limits.py BAGGAGE_LIMIT",
    "tracing: entries of `baggage`": "otel/limits.py BAGGAGE_MEMBERS",
    "tracing: characters of one entry of `baggage`": "otel/limits.py BAGGAGE_LONGEST_MEMBER",
    "tracing: characters of `tracestate`": "otel/limits.py TRACESTATE_LIMIT",
    "tracing: entries of `tracestate`": "otel/limits.py TRACESTATE_MEMBERS",
    "connections of `--health-port`": "cli/health.py _MOST",
    "probes that wait while": "cli/health.py _MOST_WAITING",
    "a request to `--health-port`": "cli/health.py _LARGEST",
    "HTTP answers of a WebSocket handshake": "io/websocket.py _LONGEST_HEAD",
    "one line of such an answer": "io/websocket.py _LONGEST_LINE",
    "dead-letter queues whose refused copies": "providers/stomp/deadletter.py _MOST_QUEUES",
    "connections in a row, each lost while a copy": "providers/stomp/deadletter.py _MOST_LOSSES",
    "a Begin frame of a peer": "providers/amqp/proton_strays.py _LONGEST_BEGIN",
    "connections over STOMP that may end by an error": "providers/stomp/last_message.py _ENDS",
    "the same if the error comes later": "providers/stomp/last_message.py _LATE_ENDS",
    "connections over STOMP that may end behind a message": "providers/stomp/stray_text.py _MOST_ENDS",
    "messages for which such ends are counted": "providers/stomp/stray_text.py _MOST_MESSAGES",
    "the id of such a message": "providers/stomp/stray_text.py _LONGEST_ID",
    "tracing: characters of `traceparent`": "otel/limits.py TRACEPARENT_LIMIT",
    "tracing: characters of another": "otel/limits.py VALUE_LIMIT",
    "tracing: links": "otel/tracing.py LINKS",
    "Celery: characters of a name": "kombu/names.py _LONGEST",
    "Celery: values in the JSON": "json_text.py MOST_VALUES",
    "Celery: bytes of memory": "kombu/compressed.py LZMA_MEMORY",
    "Celery: requeued messages that one": "kombu/receiving.py _MOST_RETURNED",
    "seconds of a time-out": "core/stats.py LONGEST",
    "seconds that a redelivery": "core/redelivery.py _LONGEST",
    "seconds between two tries": "app/retry.py _LONGEST",
    "seconds between two runs": "app/schedule.py _MOST",
    "seconds between two rounds": "providers/failover/search.py LONGEST_WAIT",
    "seconds before the next search": "providers/failover/search.py LONGEST_PAUSE",
    "seconds until the connection returns": "providers/failover/returns.py _LONGEST_PAUSE",
    "connections in a row that are lost while new": "providers/failover/connection.py _MOST_SHORT_LIVED",
    "connections in a row over": "providers/failover/blame.py MOST_LOSSES",
    "connections in a row that may": "providers/failover/blame.py MOST_SILENT_LOSSES",
    "how often this limit begins again": "providers/amqp/drains.py _MOST_EXTENSIONS",
    "sessions, producers and consumers that a restore": "providers/failover/restore.py MOST_TOGETHER",
    "groups of sessions and links": "providers/failover/restore.py MOST_GROUPS",
}
"""Each row of the table with a fixed number, by its beginning, and where the number stands."""
NO_LIMITS = {
    "app/schedule.py _LEAST": "the shortest time that a caller may choose between two runs",
    "app/typed.py _SHOWN": "how much of a key an error shows",
    "backoff.py _LONGEST": "a wait of 1 to 30 s, which nobody chooses",
    "kombu/connection.py WITHOUT_LIMIT": "a prefetch that Celery asks for as no limit",
    "kombu/refused.py _LONGEST": "how much of a reason a log line shows",
    "management/_asking.py _SHOWN": "how much of a reason an error shows",
    "management/model.py _SHOWN": "how much of a reason an error shows",
    "json_text.py _MOST_AT_ONCE": "more values are read too, only by a slower parser",
    "management/model.py _LONGEST": "a name that somebody typed",
    "spi/spellings.py _LONGEST_CRON": "a value that the caller itself sends",
    "spi/spellings.py _SHOWN": "how much of a name an error shows",
    "providers/amqp/nested.py _SHOWN": "how much of a name an error shows",
    "message/properties.py _TTL_LIMIT": "a field of AMQP has 32 bits",
    "providers/amqp/encode.py _LARGEST_SECTION": "a section of AMQP has a length of 32 bits",
    "providers/amqp/encode.py _TTL_LIMIT": "a field of AMQP has 32 bits",
    "providers/amqp/engine/frames.py LEAST_MAX_FRAME_SIZE": "AMQP allows no peer less",
    "providers/amqp/engine/idle.py LEAST_INTERVAL": "in the table as its inverse, checks in a second",
    "providers/amqp/engine/session.py LARGEST_WINDOW": "a field of AMQP has 32 bits",
    "providers/amqp/engine/session.py _HANDLE_MAX": "a field of AMQP has 32 bits",
    "providers/amqp/mechanisms.py LEAST_ITERATIONS": "in the table together with the most",
    "providers/amqp/sasl.py _SHOWN": "how much of an offer an error shows",
    "providers/stomp/dialect.py _SHOWN": "how much of a caller's own name an error shows",
    "providers/stomp/heads.py _SHOWN": "how much of a caller's own name an error shows",
    "providers/stomp/session.py _MOST_HELD": "how many ACKs leave together",
    "providers/amqp/proton_engine.py MOST_UNASKED": "in the table in a row of words",
    "providers/amqp/name_sizes.py _LONGEST": "how much of a caller's own name an error shows",
    "spi/ledger.py LARGEST_COUNT": "a column of a ledger has 32 bits",
    "uri/option.py _INT_MAX": "a number of Java",
    "uri/option.py _SHOWN": "how much of a caller's own value an error shows",
}
"""Numbers whose names look like those of limits, and why the table has no row for them."""


@functools.cache  # when the first test asks, because each worker imports this file
def constants() -> dict[str, float]:
    """Return the numbers that the modules of :data:`ROOMS` give a name in capitals, by file and name."""
    top = TOP / "pyjmsack"
    found = {}
    for room in ROOMS:
        for path in top.glob(room) if room.endswith(".py") else (top / room).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
                if isinstance(target, ast.Name) and target.id.lstrip("_").isupper():
                    value = _number(getattr(node, "value", None))
                    if value is not None:
                        found[f"{path.relative_to(top).as_posix()} {target.id}"] = value
    return found


def _number(node: ast.expr | None) -> float | None:
    if node is None or not all(isinstance(part, ast.Constant | ast.BinOp | ast.operator) for part in ast.walk(node)):
        return None
    value = eval(ast.unparse(node), {})  # of our own code, and there are only numbers in it
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


EVERY_OPTION = {**OPTIONS, **DESTINATION_OPTIONS}


@pytest.mark.parametrize("what", LIMITS)
def test_a_fixed_limit_is_that_of_the_code(what: str) -> None:
    found = [limit for name, limit, _ in ROWS if name.startswith(what)]
    number = constants()[LIMITS[what]]
    value = str(number) if number < 1 else f"{int(number):,}"
    if what == "frames that the peer must accept":
        value = f"at least {value}"
    if what == "rounds of hashing":
        value = f"{constants()['providers/amqp/mechanisms.py LEAST_ITERATIONS']:,} to {value}"
    assert found == [value]


def test_each_limit_of_the_code_is_in_the_table() -> None:
    """A new one needs a row, or a reason why nobody else chooses what it limits."""
    assert set(filter(WORDS.search, constants())) - {*LIMITS.values()} == set(NO_LIMITS)


def test_the_checks_in_a_second_follow_from_the_shortest_time_between_two() -> None:
    (checks,) = [limit for name, limit, _ in ROWS if name.startswith("checks of the idle time-outs")]
    assert int(checks) == round(1 / constants()["providers/amqp/engine/idle.py LEAST_INTERVAL"])


def test_the_links_that_nobody_asked_for_are_on_the_page() -> None:
    unasked = constants()["providers/amqp/proton_engine.py MOST_UNASKED"]
    assert f"although nobody asked for them; {unasked} with `amqp.engine=proton`" in PAGE.read_text()


@pytest.mark.parametrize(
    ("limit", "option"),
    [
        (limit, option)
        for _, limit, cell in ROWS
        for option in re.findall(r"`([a-z]+\.\w+(?:\.\w+)?)`", cell)
        if option != "jms.producerWindowSize"  # it counts bytes, beside a limit of messages that is fixed
    ],
)
def test_an_option_has_the_default_that_the_page_says(limit: str, option: str) -> None:
    assert re.search(r"[\d,]+(?= ms)|^[\d,]+", limit)[0].replace(",", "") == EVERY_OPTION[option].default


def test_the_size_of_an_attach_is_on_the_page() -> None:
    assert f"{name_sizes.ATTACH_BESIDES} bytes more" in PAGE.read_text()
