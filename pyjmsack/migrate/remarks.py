"""Writes the comments of the generated code, each at its place: the sends of a function, and the steps that are left to
the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Final

from pyjmsack.migrate.model import Findings, Function, Place, Row, Send
from pyjmsack.migrate.serving import QUEUE_KEY
from pyjmsack.migrate.values import one_line

__all__ = ["Remarks", "open_text", "remark"]

_WIDTH: Final = 110
_YOURS: Final = '    raise NotImplementedError("your code")\n'


def remark(text: str, indent: str = "") -> str:
    """Return a text as lines of a comment."""
    lines = wrap(one_line(text), _WIDTH - len(indent), break_on_hyphens=False, break_long_words=False)
    return "".join(f"{indent}# {line}\n" for line in lines)


def open_text(row: Row) -> str:
    """Return the text about a step that is left to the user, with its place, for a comment or a line on stderr. The
    text is one line.
    """
    value = f" = {row.value}" if row.value else ""
    python = f" -> {row.python}" if row.python else ""
    why = f": {row.why}" if row.why else ""
    return one_line(f"{row.place}: {row.verdict.value}: {row.key}{value}{python}{why}")


class Remarks:
    """Chooses the place of each comment: each row that leaves a step to the user becomes a comment at one place of the
    generated code.

    Args:
        apps: the name of the app of each connection factory.
        first: the name of the first app.
    """

    def __init__(self, findings: Findings, apps: Mapping[str, str], first: str) -> None:
        self._findings = findings
        self._apps = apps
        self._first = first
        self._left = [row for row in findings.rows if row.verdict.open]
        self._written: dict[int, tuple[str, str]] = {}
        """The comments and code of the functions that are written, by the identity of the method."""
        self._sends = {(send.place, send.source) for function in findings.functions for send in function.sends}

    def function(self, place: Place) -> Function | None:
        """Return the method at a place."""
        return next((each for each in self._findings.functions if each.has(place)), None)

    def of_function(self, function: Function | None) -> tuple[str, str]:
        """Return the comments of a function, and its code. A method with two annotations becomes two functions, which
        have the same code.
        """
        if function is None:
            return "", _YOURS
        if id(function) not in self._written:
            self._written[id(function)] = self._code(function)
        return self._written[id(function)]

    def _code(self, function: Function) -> tuple[str, str]:
        rows = self._take(row for row in self._left if function.has(row.place))
        rows = [row for row in rows if (row.place, row.value) not in self._sends and row.key != QUEUE_KEY]
        comments = "".join(remark(open_text(row), "    ") for row in rows)
        if function.whole and not rows:
            start = "return " if function.returns else ""
            return "", "".join(self._call(send, f"    {start}", "    ") for send in function.sends)
        comments += "".join(self._send(send) for send in function.sends)
        return comments, _YOURS

    def left_functions(self) -> list[Function]:
        """Return the methods that the generated code does not have yet, and that send or have ``@Scheduled``."""
        left = [each for each in self._findings.functions if id(each) not in self._written]
        return [each for each in left if each.sends or "Scheduled" in each.annotations]

    def of_class(self, name: str) -> str:
        """Return the comments of a class."""
        if name not in self._findings.areas:
            return ""
        start, last = self._findings.areas[name]
        inside = (row for row in self._left if row.place.file == start.file and start.line <= row.place.line <= last)
        mine = (
            row
            for row in inside
            if row.key == name
            or row.key.startswith(f"{name}.")
            or (row.key.startswith("@") and self.function(row.place) is None)
        )
        return "".join(remark(open_text(row)) for row in self._take(mine))

    def others(self) -> str:
        """Return the comments of all rows that are not written at any other place."""
        found = self._take(self._left)
        title = "# Steps that are left to you, and have no place of their own below:\n" if found else ""
        return title + "".join(remark(open_text(row)) for row in found)

    def of_key(self, key: str) -> str:
        """Return the comments of all rows with this key, indented for the body of a function."""
        return "".join(remark(open_text(row), "    ") for row in self._take(r for r in self._left if r.key == key))

    def _take(self, rows: Iterable[Row]) -> list[Row]:
        taken = [*rows]
        gone = {id(row) for row in taken}
        self._left = [row for row in self._left if id(row) not in gone]
        return taken

    def _send(self, send: Send) -> str:
        """Return the comment of a send: the Java call with its place, the step that is left to the user, and the Python
        call.
        """
        text = remark(f"{send.place}: {send.source}", "    ")
        text += remark(f"by hand: {send.why}", "    ") if send.why else ""
        return text + (self._call(send, "    # ", "    # ") if send.call else "")

    def _call(self, send: Send, start: str, indent: str) -> str:
        """Return the Python call, in several lines if the call is long."""
        app = self._apps.get(send.factory, self._first)
        python = one_line(send.python(app))
        if len(start) + len(python) <= _WIDTH or not send.arguments:
            return f"{start}{python}\n"
        inner = "".join(f"{indent}    {one_line(each)},\n" for each in send.arguments)
        return f"{start}{app}.sender.{send.call}(\n{inner}{indent})\n"
