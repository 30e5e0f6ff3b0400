"""Writes the findings as Python code that runs, as TOML, and as environment variables."""

from __future__ import annotations

import json
import keyword
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Final

from pyjmsack.migrate.model import Factory, Findings, Listener
from pyjmsack.migrate.serving import CLIENT_ID, destination_of, needs_client_id
from pyjmsack.migrate.values import one_line

__all__ = ["Names", "as_environment", "as_python", "as_toml", "comment", "login", "named"]


_SERVE: Final = '''\
connections = {}


def connected(factory, client_id=None):
    """Return a connection.

    Listeners with the same client id share a connection, because a broker lets only one connection have a client id.
    """
    if (factory, client_id) not in connections:
        connection = connections[factory, client_id] = factory.create_connection()
        if client_id:
            connection.client_id = client_id
    return connections[factory, client_id]


def serve(
    factory, handle, destination, mode, selector=None, subscription=None, durable=False, shared=False, client_id=None
):
    """Prepare one consumer, with a session of its own. A message whose handler raised comes again."""
    session = connected(factory, client_id).create_session(mode)
    if shared and durable:
        consumer = session.create_shared_durable_consumer(destination, subscription, selector)
    elif shared:
        consumer = session.create_shared_consumer(destination, subscription, selector)
    elif durable:
        consumer = session.create_durable_consumer(destination, subscription, selector)
    else:
        consumer = session.create_consumer(destination, selector)

    def in_transaction(message):
        try:
            handle(message, session)
        except Exception:
            logging.exception("%s: rolled back", destination)
            session.rollback()
        else:
            session.commit()

    consumer.message_listener = in_transaction if session.transacted else lambda message: handle(message, session)
'''


def as_python(findings: Findings) -> str:
    """Return the code of a module with the connection factories, a function for each listener, and ``main()``, which
    starts all listeners.

    Args:
        findings: what :func:`pyjmsack.migrate.migrate` returned.
    """
    factories, listeners = named(findings.factories), findings.listeners
    parts = ['"""Made by `pyjmsack migrate`. Secrets come from the environment."""\n']
    secret = any(factory.secrets for factory in factories.values())
    secret = secret or any(needs_client_id(listener, factories.values()) for listener in listeners)
    parts.append(_imports(secret, bool(listeners)))
    parts += [_factory(name, factory) for name, factory in factories.items()]
    if listeners and factories:
        parts.append("\n" + _SERVE)
        handlers = _handlers(listeners)
        parts += [_handler(name, listener) for name, listener in handlers.items()]
        parts.append(_main(factories, handlers))
    return "\n".join(parts).rstrip() + "\n"


def as_toml(findings: Findings) -> str:
    """Return TOML with a table for each factory and each listener.

    Args:
        findings: what :func:`pyjmsack.migrate.migrate` returned.
    """
    lines: list[str] = []
    for name, factory in named(findings.factories).items():
        lines += [f"[factories.{name}]", f"url = {_quoted(factory.url)}"]
        if factory.username or factory.asks_for_user:
            lines.append(f"username = {_quoted(factory.username or f'env:{factory.user_variable}')}")
        lines += [f'{_quoted(option)} = "env:{variable}"' for option, variable in factory.secrets.items()]
        lines.append("")
    for listener in findings.listeners:
        lines += [
            "[[listeners]]",
            f"destination = {_quoted(listener.destination)}",
            f"topic = {str(listener.topic).lower()}",
        ]
        lines += [f'mode = "{listener.mode.name}"', f"concurrency = {_quoted(listener.concurrency)}"]
        if listener.selector:
            lines.append(f"selector = {_quoted(listener.selector)}")
        if listener.subscription:
            lines.append(f"subscription = {_quoted(listener.subscription)}")
            lines += [f"{flag} = {str(getattr(listener, flag)).lower()}" for flag in ("durable", "shared")]
        if listener.client_id:
            lines.append(f"client_id = {_quoted(listener.client_id)}")
        elif needs_client_id(listener, findings.factories):
            lines.append(f'client_id = "env:{CLIENT_ID}"')
        lines.append("")
    return "\n".join(lines)


def as_environment(findings: Findings) -> str:
    """Return variables for a shell: the variables that the commands of pyjmsack read. Some of them are empty, and the
    user has to fill them in: one for each secret, and one for the user name if no file has the user name.

    Args:
        findings: what :func:`pyjmsack.migrate.migrate` returned.
    """
    lines: list[str] = []
    for number, (name, factory) in enumerate(named(findings.factories).items()):
        variable = "PYJMSACK_URL" if number == 0 else f"PYJMSACK_URL_{name.upper()}"
        lines.append(f"{variable}={_shell(factory.url)}")
        if factory.username:
            lines.append(f"# --user {shlex.quote(one_line(factory.username))}")
        lines += [f"{factory.user_variable}="] if factory.asks_for_user else []
        lines += [f"{secret}=" for secret in factory.secrets.values()]
    return "\n".join(dict.fromkeys(lines)) + "\n"


def _quoted(text: str) -> str:
    """Return a string of TOML. It is a string of JSON, but has no half of a surrogate pair, and no DEL."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


class Names:
    """Makes Python names from texts, each different from all others.

    Args:
        taken: names that are never made.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*taken}
        self._last: dict[str, int] = {}
        """For each name that was wanted again, the last number behind it. The search goes on there, because thousands
        of listeners may have one destination.
        """

    def new(self, text: str) -> str:
        """Return a Python name made from a text."""
        name = re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text), flags=re.ASCII).strip("_").lower()
        name = name if name and not name[0].isdigit() else f"the_{name}".rstrip("_")
        name = f"{name}_" if keyword.iskeyword(name) else name
        number, made = self._last.get(name, 1), name
        while made in self._taken:
            number += 1
            made = f"{name}_{number}"
        self._last[name] = number
        self._taken.add(made)
        return made


def named(factories: Iterable[Factory]) -> dict[str, Factory]:
    """Return each connection factory that has a URL. The key is a Python name made from the name of the factory."""
    names = Names()
    return {names.new(factory.name): factory for factory in factories if factory.url}


def _handlers(listeners: Iterable[Listener]) -> dict[str, Listener]:
    names = Names()
    return {names.new(f"on_{listener.name.partition('?')[0]}"): listener for listener in listeners}


def _imports(reads_environment: bool, listening: bool) -> str:
    lines = ["import logging", "import threading"] if listening else []
    if reads_environment:
        lines.insert(1 if listening else 0, "import os")
    names = ["AckMode", "ConnectionFactory", "Queue", "Topic"] if listening else ["ConnectionFactory"]
    return "\n".join([*lines, *([""] if lines else []), f"from pyjmsack import {', '.join(names)}", ""])


def login(factory: Factory) -> Iterator[str]:
    """Yield the arguments for the user and the secrets of a factory. The code reads secrets from the environment."""
    if factory.username:
        yield f"username={factory.username!r}"
    elif factory.asks_for_user:
        yield f'username=os.environ["{factory.user_variable}"]'
    if "jms.password" in factory.secrets:
        yield f'password=os.environ["{factory.secrets["jms.password"]}"]'
    options = {option: variable for option, variable in factory.secrets.items() if option != "jms.password"}
    if options:
        listed = ", ".join(f'"{option}": os.environ["{variable}"]' for option, variable in options.items())
        yield f"options={{{listed}}}"


def _factory(name: str, factory: Factory) -> str:
    arguments = [repr(factory.url), *login(factory)]
    inner = "".join(f"    {argument},\n" for argument in arguments)
    return f"# {comment(str(factory.place))}\n{name} = ConnectionFactory(\n{inner})\n"


def _handler(name: str, listener: Listener) -> str:
    return (
        f'\ndef {name}(message, session):\n    """{comment(str(listener.place))}"""\n'
        '    logging.info("%s", message.body)  # your code\n'
    )


def comment(text: str) -> str:
    """Return a text in a form that is safe in a comment or a docstring."""
    return one_line(text).replace('"', "'").replace("\\", "/")


def _main(factories: dict[str, Factory], handlers: dict[str, Listener]) -> str:
    by_name = {factory.name: name for name, factory in factories.items()}
    first = next(iter(factories))
    lines = ["\ndef main():", "    logging.basicConfig(level=logging.INFO)"]
    for handler, listener in handlers.items():
        kind = "Topic" if listener.topic else "Queue"
        used = by_name.get(listener.factory, first)
        arguments = [used, handler, f"{kind}({destination_of(listener, factories[used])!r})"]
        arguments.append(f"AckMode.{listener.mode.name}")
        if listener.selector:
            arguments.append(f"selector={listener.selector!r}")
        if listener.subscription:
            arguments.append(f"subscription={listener.subscription!r}")
        arguments += [f"{flag}=True" for flag in ("durable", "shared") if getattr(listener, flag)]
        if listener.client_id:
            arguments.append(f"client_id={listener.client_id!r}")
        elif needs_client_id(listener, factories.values()):
            arguments.append(f'client_id=os.environ["{CLIENT_ID}"]')
        least = re.match(r"\d{1,4}", listener.concurrency)
        count = min(int(least[0]), 100) if least else 1
        call = f"serve({', '.join(arguments)})"
        lines += [f"    for _ in range({count}):", f"        {call}"] if count > 1 else [f"    {call}"]
    lines += ["    try:", "        for connection in connections.values():", "            connection.start()"]
    lines += ["        threading.Event().wait()", "    finally:"]
    lines += ["        for connection in connections.values():", "            connection.close()", ""]
    return "\n".join([*lines, "", 'if __name__ == "__main__":', "    main()"])
