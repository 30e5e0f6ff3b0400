"""Turns an exception into one line on standard error with the next step."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import click

from pyjmsack import (
    ConnectionLostException,
    InvalidSelectorException,
    InvalidURLException,
    JMSException,
    JMSSecurityException,
    RequestTimedOutException,
    TransactionRolledBackException,
)
from pyjmsack.cli.terminal import visible

__all__ = ["Failure", "Stopped", "about_file", "as_click_error", "explain", "fail_because"]

_NEXT_STEPS: tuple[tuple[type[JMSException], str], ...] = (
    (JMSSecurityException, "give --user NAME, and the password in PYJMSACK_PASSWORD or --password-file"),
    (InvalidSelectorException, "a selector looks like \"region = 'EU' AND amount > 10\""),
    (TransactionRolledBackException, "nothing of this transaction took effect; run the command again"),
    (
        RequestTimedOutException,
        "the broker is silent: look at its log, or let `pyjmsack doctor` find out what its port speaks",
    ),
)
_UNREACHABLE = "start one with `pyjmsack broker`, or point --url (PYJMSACK_URL) at a running one"
_NOBODY_HERE = "or point --url (PYJMSACK_URL) at a running one"
_NO_JOLOKIA = "look at the URL in --jolokia, in PYJMSACK_JOLOKIA, or in the context"
_LOST = "look at the broker's log, and run the command again; a message that was not confirmed may then come twice"
_IN_DOUBT = "the transaction may have taken effect: see what the broker has before you run the command again"


class Failure(click.ClickException):
    """The command could not do its work. The exit code is 1."""

    exit_code = 1

    def format_message(self) -> str:
        """Return the message with its control characters escaped, because a broker may have chosen its text."""
        return visible(super().format_message())


class Stopped(Failure):
    """A signal stopped the command before all of its work was done. The exit code is 128 plus the number of the signal,
    as shells have it, so that a script does not go on as if all were done.

    Args:
        signum: the number of the signal.
        reasons: why messages were left out before the signal.
    """

    def __init__(self, signum: int, reasons: Sequence[str] = ()) -> None:
        name = signal.Signals(signum).name
        super().__init__(". ".join([*reasons, f"{name} stopped the command before the end of its work"]))
        self.signum = signum
        self.exit_code = 128 + signum  # type: ignore[misc] # click reads the attribute of the exception


def fail_because(reasons: Sequence[str], stopped: Stopped | None = None) -> None:
    """Raise an error with all reasons why a command left out a part of its work. Without a reason do nothing.

    Args:
        reasons: why messages were left out.
        stopped: the error of a signal that stopped the command. Its exit code is used, also if there are reasons.

    Raises:
        Failure: there is a reason, or ``stopped`` is given.
    """
    if stopped is not None:
        raise Stopped(stopped.signum, reasons)
    if reasons:
        raise Failure(". ".join(reasons))


def about_file(error: OSError) -> str:
    """Return one line with the error of a file or of the disk."""
    names = " ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    return f"{names}: {error.strerror or error}" if names else str(error.strerror or error)


def explain(error: BaseException) -> str:
    """Return one line with the error and the next step."""
    text = visible(" ".join(str(error).split())) or type(error).__name__
    step = _next_step(error)
    if step is None:
        return text
    said, learn_more, rule = text.partition(" Learn more: ")
    return f"{said.rstrip('.')}; {step}{'.' if rule else ''}{learn_more}{rule}"


def _next_step(error: BaseException) -> str | None:
    if isinstance(error, ConnectionLostException):
        if "cannot connect to Jolokia" in str(error):
            return _NO_JOLOKIA
        if not isinstance(error.__cause__, OSError) or "cannot connect" not in str(error):
            return _LOST
        return _NOBODY_HERE if str(error).endswith("`pyjmsack broker`") else _UNREACHABLE
    if isinstance(error, TransactionRolledBackException) and error.in_doubt:
        return _IN_DOUBT
    if isinstance(error, JMSSecurityException) and (
        (error.error_code or "").startswith("tls:") or str(error).startswith("Jolokia at")
    ):
        return None  # --user would not help; the text of the error has the next step
    return next((step for kind, step in _NEXT_STEPS if isinstance(error, kind)), None)


def as_click_error(error: JMSException) -> click.ClickException:
    """Return click's exception for a library error: a usage error for a wrong URL, a failure for all others."""
    if isinstance(error, InvalidURLException):
        return click.UsageError(f"--url: {explain(error)}")
    return Failure(explain(error))
