"""Reads values in configuration files: placeholders, durations and secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = [
    "HIDDEN",
    "Missing",
    "holds_secret",
    "is_secret",
    "milliseconds",
    "one_line",
    "resolve",
    "seconds",
    "shortened",
    "shown",
]

HIDDEN: Final = "***"
_SECRET: Final = re.compile(r"pass(word|wd|code|phrase)|\bpwd\b|secret|token|credential|api.?key|(?:^|[._-])key$", re.I)
_NO_SECRET: Final = re.compile(r"codec|keystorepath|location", re.I)
_INNERMOST: Final = re.compile(r"[$#]\{([^{}]*)\}")
_WORD: Final = re.compile(r"[\w.-]+")
_BEHIND: Final = re.compile(r"""( ?\\?(?:=|:(?!:)))\s*\S|( ?[\s"'(>\])])\W*\w""")
"""What stands between a word and its value. A list of settings, code and XML have different marks. ``::`` stands in the
name of a queue of Artemis.
"""
_NAMES_KEY: Final = re.compile(r"key\Z", re.I)
"""A word that is a secret only before ``=`` or ``:``. In code and XML, ``key`` is the name of any key."""
_DURATION: Final = re.compile(r"([+-]?\d+)\s*(ns|us|ms|s|m|h|d|)", re.I)
_ISO: Final = re.compile(r"([+-]?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.I)
_AUTHORITY: Final = re.compile(r"//([^\s?=]*)")
_PARAMETER: Final = re.compile(r"[?&;]([^=&;]*)(=?)")
_IN_MILLIS: Final = {"ns": 1e-6, "us": 1e-3, "": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MOST_ROUNDS: Final = 50
_LONGEST_GROWTH: Final = 8192
"""By this number of characters at most, placeholders make a text longer. Very many texts may have the same one."""
_LONGEST_SHOWN: Final = 65_536
"""The largest number of characters of a value that are looked at to show its beginning."""
_LONGEST_DURATION: Final = 40


class Missing(Exception):  # noqa: N818 - the name says what is missing
    """A placeholder has no value. The text gives the reason and the next step."""


def is_secret(key: str) -> bool:
    """Return whether the value of a key with this name is a password or another secret."""
    return bool(_SECRET.search(key)) and not _NO_SECRET.search(key)


def shown(key: str, value: str, limit: int = 120) -> str:
    """Return a value for printing: in one line, shortened, and without secrets.

    A value may hold several settings, as a URL, a list of settings, or code does. So nothing is shown behind a word
    that is the name of a secret, and the logins of URLs are not shown.
    """
    if is_secret(key) and value:
        return HIDDEN
    if len(value) > _LONGEST_SHOWN:
        # if the cut is inside the address of a URL, what comes before the cut may be a login
        value = f"{value[:_LONGEST_SHOWN]}@"
    line = " ".join(value.split())
    if "//" in line:
        line = _AUTHORITY.sub(_without_login, line)
    # a codec of Artemis has parameters without a URL: passwordCodec=CLASS;key=SECRET
    found = next((one for one in _PARAMETER.finditer(line) if one[2] and is_secret(one[1])), None)
    line = line if found is None else line[: found.end()] + HIDDEN
    # a constructor in a file of Camel: one of its arguments may be a password
    bracket = line.find("(", line.find("#class:")) if "#class:" in line else -1
    if bracket >= 0:
        line = f"{line[: bracket + 1]}{HIDDEN})"
    return shortened(_without_secrets(line[:limit]), limit)


def shortened(line: str, limit: int = 120) -> str:
    """Return at most ``limit`` characters of a text without secrets, in one line."""
    line = one_line(line[:limit])
    return line if len(line) < limit else line[: limit - 1] + "…"


def holds_secret(value: str) -> bool:
    """Return whether a value holds several settings, and one of these is a secret."""
    return _secret_in(value) is not None


def _without_secrets(line: str) -> str:
    start = _secret_in(line)
    return line if start is None else line[:start] + HIDDEN


def _secret_in(text: str) -> int | None:
    """Return the index at which the value of the first secret begins, or ``None`` if the text holds no secret."""
    for word in _WORD.finditer(text):
        behind = _BEHIND.match(text, word.end()) if is_secret(word[0]) else None
        if behind and (behind[1] or not _NAMES_KEY.fullmatch(word[0])):
            return behind.end(behind.lastindex or 0)
    return None


def one_line(text: str) -> str:
    """Return a text with ``?`` in the place of each character that is not printable.

    The result has no character that ends a line of Python, of a shell, or of a terminal. So a text from a file stays
    inside its comment.
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def _without_login(authority: re.Match[str]) -> str:
    _, at, address = authority[1].rpartition("@")
    return f"//***@{address}" if at else authority[0]


def resolve(text: str, known: Mapping[str, str]) -> str:
    """Return a text with its ``${NAME}``, ``${NAME:default}`` and ``${NAME:-default}`` replaced.

    Raises:
        Missing: a name has neither a value nor a default, or refers to itself, or the values are too long.
    """
    longest = len(text) + _LONGEST_GROWTH
    for _ in range(_MOST_ROUNDS):
        found = _INNERMOST.search(text)
        if found is None:
            return text
        name, colon, default = found[1].partition(":")
        if found[0].startswith("#"):
            raise Missing(
                f"{shown('name', found[0])} is an expression of Spring, which cannot be evaluated; replace the"
                " expression by its value"
            )
        value = known.get(name.strip())
        if value is None:
            if not colon:
                name = shown("name", name)
                raise Missing(f"the given files have no value for {name}: give -D {name}=VALUE")
            value = default.removeprefix("-")
        text = text[: found.start()] + value + text[found.end() :]
        if len(text) > longest:
            raise Missing(
                f"the values of the placeholders have more than {_LONGEST_GROWTH} characters, or one contains itself;"
                " replace the placeholder by its value"
            )
    raise Missing("a placeholder must not contain itself; replace the placeholder by its value")


def milliseconds(text: str) -> int:
    """Return a duration as Spring Boot reads it: ``5s``, ``PT5S``, ``500`` (milliseconds).

    Raises:
        ValueError: ``text`` is not a duration.
    """
    text = text.strip()
    if len(text) > _LONGEST_DURATION:
        raise ValueError(f"expected a duration of at most {_LONGEST_DURATION} characters")
    if plain := _DURATION.fullmatch(text):
        return int(int(plain[1]) * _IN_MILLIS[plain[2].lower()])
    iso = _ISO.fullmatch(text)
    if iso is None or not any(iso.groups()[1:]):
        raise ValueError("expected a duration such as 5s, 500ms or PT5S")
    days, hours, minutes, rest = (float(part or 0) for part in iso.groups()[1:])
    total = (((days * 24 + hours) * 60 + minutes) * 60 + rest) * 1000
    return int(-total if iso[1] == "-" else total)


def seconds(text: str) -> str:
    """Return a duration of Spring Boot in seconds, as the text of a Python number.

    Raises:
        ValueError: ``text`` is not a duration.
    """
    return f"{milliseconds(text) / 1000:g}"
