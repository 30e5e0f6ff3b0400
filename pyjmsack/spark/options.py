"""The options of the format ``jms``. An error about an unknown option names the nearest known option."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyjmsack import Connection, ConnectionFactory

__all__ = ["OptionError", "Options", "parse_options"]

SPARKS_OWN = frozenset(("checkpointlocation", "queryname"))
"""The options that Spark itself adds to a source."""
MODES = ("stream", "drain", "browse")
UNSENDABLE = ("fail", "skip", "failAtEnd")
"""What a write does with a row that cannot be sent, or that the broker refuses for good."""
_MOST_BYTES = 1 << 30
"""The largest value of ``maxBytesPerPartition``, because a column of Arrow cannot have more than 2 GiB.

A pull may have one message more than its bytes, and the JSON of maps and streams takes more bytes than the wire.
"""


class OptionError(ValueError):
    """An option of the format ``jms`` is missing, misspelt or has a wrong value."""


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("expected a string that is not empty")
    return value


def _count(value: str) -> int:
    number = int(value) if value.isascii() and value.isdigit() else 0
    if number < 1:
        raise ValueError("expected a whole number of at least 1")
    return number


def _bytes(value: str) -> int:
    if (number := _count(value)) > _MOST_BYTES:
        raise ValueError(
            f"expected at most {_MOST_BYTES}, which is 1 GiB, because a column of Arrow cannot have more than 2 GiB"
        )
    return number


def _seconds_from_ms(value: str) -> float:
    if not (value.isascii() and value.isdigit()):
        raise ValueError("expected a whole number of milliseconds")
    return int(value) / 1000


def _wait_from_ms(value: str) -> float:
    """Return the value of an option in milliseconds as seconds. 0 is refused, because a wait of 0 seconds makes every
    queue seem empty.
    """
    return _count(value) / 1000


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return value.lower() == "true"


def _one_of(*known: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in known:
            raise ValueError(f"expected one of {', '.join(known)}")
        return value

    return parse


def _directory(value: str) -> Path:
    """Return the path of a directory that driver and executors share.

    The directory must be mounted, because the spool needs ``link()``, which object stores do not have.
    """
    parts = urlsplit(value)
    if parts.scheme not in ("", "file"):
        raise ValueError(f"expected a mounted directory, not {parts.scheme}: the spool needs link() and fsync()")
    path = Path(unquote(parts.path) if parts.scheme else value)
    if not path.is_absolute():
        raise ValueError("expected an absolute path, the same on the driver and all executors")
    return path


def _name(value: str) -> str:
    if not value.replace("-", "").replace("_", "").replace(".", "").isalnum() or value.startswith("."):
        raise ValueError(
            "expected letters, digits, '-', '_' and '.', at least one letter or digit, and no '.' at the beginning"
        )
    return value


def _secret_reference(value: str) -> str:
    kind, _, name = value.partition(":")
    if kind not in ("env", "file") or not name:
        raise ValueError("expected env:VARIABLE or file:/path, not the secret itself: Spark shows options in plans")
    return value


@dataclass(frozen=True, kw_only=True)
class Options:
    """The checked options. Times are in seconds.

    The object holds no secret, because Spark sends the pickled object to the executors.
    """

    url: str
    user: str | None = None
    credentialRef: str | None = None
    queue: str | None = None
    mode: str | None = None
    spoolLocation: Path | None = None
    drainId: str | None = None
    limit: int | None = None
    partitions: int = 2
    maxMessagesPerPartition: int = 5000
    maxBytesPerPartition: int = 64 << 20
    idleMs: float = 0.3
    maxWaitMs: float = 5.0
    pollMs: float = 1.0
    credit: int = 1000
    selector: str | None = None
    dedup: bool = True
    dedupWindow: float = 3600.0
    dedupKey: str | None = None
    includeBody: bool = True
    dedupColumn: str | None = None
    brokerIdCacheSize: int = 20_000
    anyPropertyName: bool = False
    unsendable: str = "fail"
    confirmMs: float = 60.0

    def connect(self, credit: int | None = None) -> Connection:
        """Return an open connection. The secrets are read here, on the host that needs them.

        Args:
            credit: the prefetch. ``None`` means the value of the option ``credit``.

        Raises:
            OptionError: the variable or the file that ``credentialRef`` names is not on this host.
            JMSException: the broker cannot be reached, or refuses the login.
        """
        factory = ConnectionFactory(
            self.url,
            username=self.user,
            password=None if self.credentialRef is None else _reveal(self.credentialRef),
            options={
                "jms.prefetchPolicy.all": credit or self.credit,
                # a full queue makes a sender wait for ever, unless there is a time limit (S66)
                "jms.sendTimeout": round(self.confirmMs * 1000),
                "jms.sendTimeoutForcesSync": False,
            },
        )
        connection = factory.create_connection()
        # this listener ignores the error of the connection, because the next call on the connection raises the error
        connection.exception_listener = lambda error: None
        return connection

    def require(self, *names: str) -> None:
        """Check that these options were given."""
        for name in names:
            if getattr(self, name) is None:
                raise OptionError(f"option {name!r} is missing")

    @property
    def spool(self) -> Path:
        """The spool's directory."""
        self.require("spoolLocation")
        assert self.spoolLocation is not None
        return self.spoolLocation


_PARSERS: dict[str, Callable[[str], Any]] = {
    "credentialRef": _secret_reference,
    "mode": _one_of(*MODES),
    "spoolLocation": _directory,
    "drainId": _name,
    "limit": _count,
    "partitions": _count,
    "maxMessagesPerPartition": _count,
    "maxBytesPerPartition": _bytes,
    "idleMs": _wait_from_ms,
    "maxWaitMs": _wait_from_ms,
    "pollMs": _seconds_from_ms,
    "credit": _count,
    "dedup": _flag,
    "dedupWindow": lambda value: float(_count(value)),
    "includeBody": _flag,
    "brokerIdCacheSize": _count,
    "anyPropertyName": _flag,
    "unsendable": _one_of(*UNSENDABLE),
    "confirmMs": _wait_from_ms,
}
_NAMES = {field.name.lower(): field.name for field in fields(Options)}


def parse_options(given: Mapping[str, str]) -> Options:
    """Return the options of a source.

    Args:
        given: the text of each option, by its name. As usual in Spark, the case of a name does not matter.

    Raises:
        OptionError: a name is unknown, a value is wrong, ``url`` is missing, or an option holds a secret.
        InvalidURLException: the URL is wrong.
    """
    values: dict[str, Any] = {}
    for written, value in given.items():
        name = _NAMES.get(written.lower())
        if name is None:
            if written.lower() in SPARKS_OWN:
                continue
            raise OptionError(f"option {written!r} is not known{_nearest(written)}")
        try:
            values[name] = _PARSERS.get(name, _text)(value)
        except ValueError as error:
            raise OptionError(f"option {name!r}: {error}") from None
    if "url" not in values:
        raise OptionError("option 'url' is missing, such as amqp://broker:5672")
    _check_url(values["url"])
    if ("user" in values) != ("credentialRef" in values):
        raise OptionError("options 'user' and 'credentialRef' must be given together")
    return Options(**values)


def _nearest(written: str) -> str:
    close = get_close_matches(written.lower(), _NAMES, n=1)
    return f"; did you mean {_NAMES[close[0]]!r}?" if close else f"; expected: {', '.join(sorted(_NAMES.values()))}"


def _check_url(url: str) -> None:
    """Check the URL on the driver, before a task uses it. A URL with a secret is refused, because Spark shows options
    in plans and logs.
    """
    if not ConnectionFactory(url)._shows_no_secret:
        raise OptionError(
            "option 'url' holds a login or a password, or an option whose value may be secret, such as a header of"
            " HTTP; use 'user' and 'credentialRef' for the login"
        )


def _reveal(reference: str) -> str:
    kind, _, name = reference.partition(":")
    if kind == "env":
        if name not in os.environ:
            raise OptionError(f"option 'credentialRef': the variable {name} is not set on this host")
        return os.environ[name]
    try:
        return Path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise OptionError(f"option 'credentialRef': {error}") from error
