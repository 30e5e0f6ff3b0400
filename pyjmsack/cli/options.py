"""The options that several commands take: the broker and the login."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from pyjmsack import ConnectionFactory, Destination, Queue, Topic, aio
from pyjmsack.cli.contexts import read_context

__all__ = [
    "DEFAULT_URL",
    "Login",
    "broker_options",
    "condition",
    "connection_options",
    "destination_of",
    "ledger_option",
    "login_options",
    "selector_option",
]

DEFAULT_URL = "amqp://localhost:5672"
_URL_VARIABLE = "PYJMSACK_URL"
PASSWORD_VARIABLE = "PYJMSACK_PASSWORD"  # noqa: S105 - the name of a variable
Command = Callable[..., Any]


@dataclass(frozen=True)
class Login:
    """The URL and the login. The password is only in the factories that this object makes."""

    url: str = DEFAULT_URL
    user: str | None = None
    password_file: Path | None = None
    ledger: Path | None = None
    password_variable: str = PASSWORD_VARIABLE
    jolokia: str | None = field(default=None, repr=False)
    """The URL of Jolokia in the context. The URL may hold a password."""
    of_environment: bool = True
    """Whether the URL comes from the environment. Only then does ``PYJMSACK_JOLOKIA`` belong to the same broker."""

    def factory(self, **options: object) -> ConnectionFactory:
        """Return a connection factory. ``options`` are URL options, with ``__`` in place of the dot in their names.

        Raises:
            UsageError: there is a user and no password.
            InvalidURLException: the URL is wrong.
        """
        settings = {name.replace("__", "."): value for name, value in options.items()}
        return ConnectionFactory(
            self.url, username=self.user, password=self._password, options=settings, ledger=self.ledger
        )

    def aio_factory(self) -> aio.ConnectionFactory:
        """Return a connection factory of the asyncio face; see :meth:`factory`."""
        return aio.ConnectionFactory(self.url, username=self.user, password=self._password, ledger=self.ledger)

    @functools.cached_property
    def _password(self) -> str | None:
        """The password from the file, the environment or a prompt. The user is asked only once."""
        if self.user is None:
            return None
        if self.password_file is not None:
            try:
                return self.password_file.read_text(encoding="utf-8").rstrip("\r\n")
            except UnicodeDecodeError:  # the error has a part of the password
                raise click.UsageError(f"--password-file {self.password_file}: expected text in UTF-8") from None
        if self.password_variable in os.environ:
            return os.environ[self.password_variable]
        if not sys.stdin.isatty():
            raise click.UsageError(f"--user needs a password: set {self.password_variable} or give --password-file")
        return str(click.prompt(f"Password of {self.user}", hide_input=True, err=True))


def condition(text: str) -> str:
    """Return the text of an option that chooses messages.

    An empty text is refused, because it would choose all messages. It comes from a variable of a shell that has no
    value: ``pyjmsack purge orders --selector "$OLD"``.
    """
    if not text.strip():
        raise click.BadParameter("expected a condition, got an empty text. Leave the option out to take all messages.")
    return text


def selector_option(command: Command) -> Command:
    """Add ``--selector`` as the argument ``selector``."""
    return click.option(
        "--selector",
        type=condition,
        metavar="TEXT",
        help="Only messages that fulfil this condition, such as \"region = 'EU'\".",
    )(command)


def login_options(command: Command) -> Command:
    """Add ``--user`` and ``--password-file`` as the arguments ``user`` and ``password_file``."""
    command = click.option(
        "--password-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=f"File with the password. Otherwise {PASSWORD_VARIABLE} or a prompt.",
    )(command)
    return click.option("--user", metavar="NAME", help="Log in as NAME.")(command)


def connection_options(command: Command) -> Command:
    """Add ``--url``, ``--context`` and the login options as one argument, a :class:`Login` with the name ``login``."""

    @functools.wraps(command)
    def with_login(
        *args: Any, url: str, context: str | None, user: str | None, password_file: Path | None, **options: Any
    ) -> Any:
        login = _login(url, user, password_file)
        return command(*args, login=login if context is None else _in_context(login, context), **options)

    with_context = click.option(
        "--context",
        envvar="PYJMSACK_CONTEXT",
        metavar="NAME",
        help="Broker and login from ~/.config/pyjmsack/contexts.toml; or PYJMSACK_CONTEXT.",
    )(login_options(with_login))
    return click.option(
        "--url", envvar=_URL_VARIABLE, default=DEFAULT_URL, show_default=True, show_envvar=True, help="The broker."
    )(with_context)


def broker_options(command: Command) -> Command:
    """Add ``--url`` and the login options of a command that needs no broker: the argument ``login`` may be ``None``."""

    @functools.wraps(command)
    def with_login(*args: Any, url: str | None, user: str | None, password_file: Path | None, **options: Any) -> Any:
        return command(*args, login=None if url is None else _login(url, user, password_file), **options)

    return click.option("--url", metavar="URL", help="Ask this broker.")(login_options(with_login))


def _login(url: str, user: str | None, password_file: Path | None) -> Login:
    own = not _typed("url") or url == os.environ.get(_URL_VARIABLE)
    return Login(url, user, password_file, of_environment=own)


def _typed(option: str) -> bool:
    """Whether an option was given on the command line, and not by a variable."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.COMMANDLINE


def _in_context(login: Login, name: str) -> Login:
    """Return the login with the values of the context. A value from the command line replaces the value from the
    context.

    A Jolokia belongs to the broker of its context. If ``--url`` names another broker, the Jolokia of the context is
    left out, because otherwise the command would look at one broker and change another one. If ``--url`` names another
    broker and only a variable names the context, the whole context is left out.
    """
    found = read_context(name)
    if found.url is not None:
        elsewhere = _typed("url") and login.url != found.url
        if elsewhere and not _typed("context"):
            return login
        login = replace(login, of_environment=False)
        if not elsewhere:
            login = replace(login, url=found.url, jolokia=found.jolokia)
    else:
        login = replace(login, jolokia=found.jolokia)
    if login.user is not None or found.user is None:
        return login
    variable = found.password_variable or PASSWORD_VARIABLE
    file = login.password_file or (None if found.password_variable else found.password_file)
    return replace(login, user=found.user, password_file=file, password_variable=variable)


def ledger_option(command: Command) -> Command:
    """Add ``--ledger``, and put its value into the ``login`` of the command. This decorator stands above
    ``connection_options``.
    """

    @functools.wraps(command)
    def with_ledger(*args: Any, login: Login, ledger: Path | None, **options: Any) -> Any:
        return command(*args, login=replace(login, ledger=ledger), **options)

    return click.option(
        "--ledger",
        type=click.Path(file_okay=False, path_type=Path),
        help="Directory for a record of each message, for `pyjmsack audit`.",
    )(with_ledger)


def destination_of(name: str, topic: bool) -> Destination:
    """Return the queue or topic that the argument of a command names."""
    return Topic(name) if topic else Queue(name)
