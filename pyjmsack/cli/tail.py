"""``pyjmsack tail``: shows messages as they arrive, and takes none."""

from __future__ import annotations

import json
import re
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from hashlib import blake2b

import click

from pyjmsack import Connection, Message, Queue, Session, Topic
from pyjmsack.cli.existing import Checked, check_queue
from pyjmsack.cli.managing import jolokia_option, pause_between_looks, print_json
from pyjmsack.cli.options import Login, connection_options, selector_option
from pyjmsack.cli.receive_output import as_document, body_text
from pyjmsack.cli.stopping import Stop, stop_on_signals
from pyjmsack.cli.terminal import visible
from pyjmsack.cli.values import readable_properties, text_of

__all__ = ["render", "tail"]

_REMEMBERED = 100_000
"""The largest number of messages that are remembered as seen. No message of a queue up to this length is shown
twice."""
_SLICE = 0.2
_TOKEN = re.compile(r"%(?:p\{(?P<property>[^}]*)\}|(?P<letter>.))|\\(?P<escape>[nt\\])", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\"}


def _body(message: Message) -> str:
    body = body_text(message)
    return body if isinstance(body, str) else body.decode("utf-8", "backslashreplace")


def _properties(message: Message) -> str:
    readable, unreadable = readable_properties(message)
    return unreadable or json.dumps(_with_texts(readable), ensure_ascii=False, default=str)


def _with_texts(value: object) -> object:
    """Return the value. Each key that JSON cannot hold is replaced by a text, because a sender over AMQP may choose
    keys of any type.
    """
    if isinstance(value, dict):
        return {_json_key(key): _with_texts(each) for key, each in value.items()}
    return [_with_texts(each) for each in value] if isinstance(value, list) else value


def _json_key(key: object) -> object:
    return key if key is None or isinstance(key, str | int | float) else str(key)


_LETTERS: dict[str, Callable[[Message], object]] = {
    "b": _body,
    "t": lambda message: message.timestamp.isoformat() if message.timestamp else "",
    "i": lambda message: message.message_id,
    "d": lambda message: message.destination,
    "c": lambda message: message.correlation_id,
    "y": lambda message: message.type,
    "n": lambda message: message.priority,
    "p": _properties,
    "%": lambda _: "%",
}


def render(template: str, message: Message) -> str:
    """Return a message in the form of the template of ``tail --format``."""

    def value(found: re.Match[str]) -> str:
        if found["escape"]:
            return _ESCAPES[found["escape"]]
        if found["property"] is not None:
            shown: object = text_of(message, found["property"])
        else:
            shown = _LETTERS[found["letter"]](message)
        return "" if shown is None else str(shown)

    return _TOKEN.sub(value, template)


def _checked(_: click.Context, __: click.Parameter, template: str) -> str:
    unknown = {found["letter"] for found in _TOKEN.finditer(template) if found["letter"]} - _LETTERS.keys()
    if unknown:
        raise click.BadParameter(f"%{min(unknown)} is unknown; expected %p{{NAME}}, %{', %'.join(_LETTERS)}")
    return template


@click.command()
@click.argument("destination")
@connection_options
@jolokia_option
@click.option("--topic", is_flag=True, help="DESTINATION is a topic, to which the command subscribes until it ends.")
@selector_option
@click.option(
    "--lines",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Start with this number of the messages that are already in the queue.",
)
@click.option(
    "--interval",
    type=pause_between_looks,
    metavar="TIME",
    default="1s",
    show_default=True,
    help="Time between two looks into a queue.",
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after N messages.")
@click.option("--format", "template", default="%t %b", show_default=True, callback=_checked, help="See above.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, like `receive --format jsonl`.")
def tail(
    destination: str,
    login: Login,
    jolokia: str | None,
    topic: bool,
    selector: str | None,
    lines: int,
    interval: float,
    count: int | None,
    template: str,
    as_json: bool,
) -> None:
    """Show the messages of DESTINATION as they come, and take none, until Ctrl-C.

    \b
    pyjmsack tail orders
    pyjmsack tail prices --topic --format '%t %p{region} %b'
    pyjmsack tail orders --selector "region = 'EU'" --json

    \b
    --format: %b body, %t time stamp, %i message id, %d destination, %c correlation id, %y type,
    %n priority, %p properties, %p{NAME} one property, %% a percent sign, \\n and \\t.

    The command looks into a queue again and again. It does not see a message that a consumer takes between two looks.
    ActiveMQ Classic may show the first 400 messages only.
    """
    with stop_on_signals() as stop, login.factory(jms__receiveLocalOnly=True).create_connection() as connection:
        # this listener ignores the error of the connection, because receive() and the browser raise it
        connection.exception_listener = lambda error: None
        connection.start()
        coming = _subscribed(connection, destination, selector, stop)
        if not topic:
            checked = check_queue(connection, login, jolokia, destination)
            coming = _browsed(connection, destination, selector, lines, interval, stop, checked)
        for number, message in enumerate(coming, 1):
            _show(message, template, as_json)
            if number == count:
                break


def _show(message: Message, template: str, as_json: bool) -> None:
    if as_json:
        print_json(as_document(message))
        return
    line = render(template, message)
    # half a surrogate pair, which a property may be, has no bytes of its own
    click.echo(visible(line) if sys.stdout.isatty() else line.encode("utf-8", "backslashreplace"))


def _subscribed(connection: Connection, topic: str, selector: str | None, stop: Stop) -> Iterator[Message]:
    with connection.create_session() as session, session.create_consumer(Topic(topic), selector) as consumer:
        while not stop.requested:
            message = consumer.receive(_SLICE)
            if message is not None:
                yield message


def _browsed(
    connection: Connection,
    queue: str,
    selector: str | None,
    lines: int,
    interval: float,
    stop: Stop,
    checked: Checked,
) -> Iterator[Message]:
    seen: OrderedDict[bytes, None] = OrderedDict()
    first = True
    with connection.create_session() as session:
        while not stop.requested:
            fresh = _fresh(session, queue, selector, seen, stop)
            if first:
                last = deque(fresh, maxlen=lines)
                checked.warn_if_empty(len(seen))
                yield from last
            else:
                yield from fresh
            first = False
            if not stop.requested:
                stop.wait(interval)


def _fresh(
    session: Session, queue: str, selector: str | None, seen: OrderedDict[bytes, None], stop: Stop
) -> Iterator[Message]:
    """Look into the queue once, and yield the messages that no earlier look has shown."""
    found = 0
    with session.create_browser(Queue(queue), selector) as browser:
        for message in browser:
            if _is_new(seen, _key(message)):
                found += 1
                yield message
            if found >= _REMEMBERED or stop.requested:
                break


def _key(message: Message) -> bytes:
    """Return 16 bytes that identify the message. The message id itself may be long, because a sender chooses it."""
    identity: bytes | None = message._delivery.identity()
    known = f"{message.timestamp} {_body(message)}".encode(errors="surrogatepass") if identity is None else identity
    return blake2b(known, digest_size=16).digest()


def _is_new(seen: OrderedDict[bytes, None], key: bytes) -> bool:
    known = key in seen
    seen[key] = None
    seen.move_to_end(key)
    if len(seen) > _REMEMBERED:
        seen.popitem(last=False)
    return not known
