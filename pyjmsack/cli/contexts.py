"""Named brokers: ``--context prod`` takes the URL and the login from a file. The file holds no password."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports] - only Python 3.10 needs it

__all__ = ["BrokerContext", "context_file", "read_context"]

_FILE_VARIABLE = "PYJMSACK_CONTEXTS"
_KEYS = ("url", "user", "password-file", "password-env", "jolokia", "jolokia-env")


@dataclass(frozen=True)
class BrokerContext:
    """One broker in the file with contexts. The file has a table for each broker."""

    url: str | None = None
    user: str | None = None
    password_file: Path | None = None
    password_variable: str | None = None
    jolokia: str | None = None


def context_file() -> Path:
    """Return the path of the file with contexts, which are named brokers with their logins.

    The variable ``PYJMSACK_CONTEXTS`` names the file. By default the file is ``pyjmsack/contexts.toml`` in the user's
    directory for settings.
    """
    if given := os.environ.get(_FILE_VARIABLE):
        return Path(given)
    settings = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(settings, "pyjmsack", "contexts.toml").expanduser()


def read_context(name: str) -> BrokerContext:
    """Read the context ``name`` from the file with contexts.

    Raises:
        UsageError: there is no such context, it holds a secret, or it cannot be read.
    """
    path = context_file()
    table = _table(path, name)
    if unknown := sorted(table.keys() - {*_KEYS}):
        hint = "; name a file with password-file, or a variable with password-env" if "password" in unknown else ""
        raise click.UsageError(f"{path}, [{name}]: expected {', '.join(_KEYS)}, not {unknown[0]!r}{hint}")
    for key, value in table.items():
        if not isinstance(value, str):
            raise click.UsageError(f"{path}, [{name}]: {key} must be a string in quotes")
    if _has_password(table.get("jolokia", "")):
        raise click.UsageError(
            f"{path}, [{name}]: the URL in jolokia holds a password; put the URL into a variable, and name the variable"
            " with jolokia-env"
        )
    file = table.get("password-file")
    jolokia = table.get("jolokia")
    if variable := table.get("jolokia-env"):
        jolokia = _variable(path, name, variable)
    if variable := table.get("password-env"):
        _variable(path, name, variable)
    return BrokerContext(
        table.get("url"),
        table.get("user"),
        None if file is None else Path(file).expanduser(),
        table.get("password-env"),
        jolokia,
    )


def _table(path: Path, name: str) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            tables = tomllib.load(file)
    except OSError as error:
        raise click.UsageError(f"--context {name}: {path}: {error.strerror}") from error
    except (ValueError, RecursionError):  # not TOML, not UTF-8, or nested too deeply
        # the text of the error may hold a secret
        raise click.UsageError(f"--context {name}: {path} is not a valid TOML file") from None
    table = tables.get(name)
    if not isinstance(table, dict):
        known = ", ".join(sorted(tables)) or "none"
        raise click.UsageError(f"--context {name}: {path} has no [{name}]; it has these contexts: {known}")
    return table


def _has_password(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "@" in url
    # for urlsplit() a password with / ? or # is a part of what follows the host
    return parts.password is not None or "@" in parts.path + parts.query + parts.fragment


def _variable(path: Path, name: str, variable: str) -> str:
    if variable not in os.environ:
        raise click.UsageError(f"{path}, [{name}]: the variable {variable} is not set")
    return os.environ[variable]
