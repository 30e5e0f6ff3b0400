"""The grammar of selectors. This module also checks the types in a selector, as far as the text tells the types (JMS
2.0, section 3.8.1; S187, S188)."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final, NamedTuple

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken, v_args

from pyjmsack.errors import InvalidSelectorException

__all__ = ["parse"]

MAX_DEPTH: Final = 200
"""The largest number of parentheses, ``NOT`` and signs around one operand. There is a limit, because brokers parse
selectors by recursion."""

KEYWORDS: Final = ("AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE")
HEADERS: Final = ("JMSDeliveryMode", "JMSPriority", "JMSMessageID", "JMSTimestamp", "JMSCorrelationID", "JMSType")
"""The header fields that a selector may name."""

# The rules for arithmetic, %, names and blanks are the rules of ActiveMQ. Names and blanks are of ASCII. A rule is
# left-recursive, or MAX_DEPTH bounds its recursion.
GRAMMAR: Final = r"""
start: _or
_or: _and | disjunction
disjunction: _or OR _and -> logical
_and: _not | conjunction
conjunction: _and AND _not -> logical
_not: predicate | negation
negation: NOT _not
?predicate: sum
    | sum EQUALITY sum -> equality
    | sum ORDER sum -> ordering
    | sum NOT? BETWEEN sum AND sum -> between
    | sum NOT? LIKE STRING (ESCAPE STRING)? -> like
    | sum NOT? IN "(" STRING ("," STRING)* ")" -> contained
    | sum IS NOT? NULL -> null
?sum: product | sum (PLUS | MINUS) product -> arithmetic
?product: sign | product (TIMES | OVER) sign -> arithmetic
?sign: primary | (PLUS | MINUS) sign -> signed
?primary: STRING -> string | NUMBER -> number | (TRUE | FALSE) -> boolean | NAME -> name | QUOTED -> quoted
    | LPAR _or ")" -> group

EQUALITY: "=" | "<>"
ORDER: /<=|>=|<(?!>)|>/
PLUS: "+"
MINUS: /-|\ue000/
TIMES: "*"
OVER: /[\/%](?!\*)/
LPAR: "("
STRING: /'(?:[^']|'')*'/
QUOTED: /"(?:[^"]|"")*"/
NUMBER: /0[xX][0-9a-fA-F]+[lL]?|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+\-\ue000]?[0-9]+)?|[0-9]+[eE][+\-\ue000]?[0-9]+|0[0-7]*[lL]?|[1-9][0-9]*[lL]?/
NAME: /[A-Za-z_$][A-Za-z0-9_$]*/
%ignore /[ \t\n\r\f]+/
%ignore /--[^\r\n]*[\r\n]/
%ignore /\/\*(?:[^*]|\*(?!\/))*\*\//
""" + "\n".join(rf"{word}.2: /(?a:{word}(?![\w$]))/i" for word in KEYWORDS)  # noqa: E501 - a terminal stands in one line

_MINUS: Final = "\ue000"
"""The character that replaces a ``-`` which cannot begin a comment. This private character of Unicode has no meaning in
a selector."""
_NO_SIGN: Final = "\ue001"
"""The character that replaces a ``_MINUS`` which the selector itself contains. This character is allowed only inside
strings."""

_SHOWN: Final = {
    "EQUALITY": "'=' or '<>'",
    "ORDER": "'<', '<=', '>' or '>='",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "TIMES": "'*'",
    "OVER": "'/'",
    "LPAR": "'('",
    "RPAR": "')'",
    "COMMA": "','",
    "STRING": "a 'string'",
    "NUMBER": "a number",
    "NAME": "a name",
    "QUOTED": 'a "quoted name"',
    "$END": "the end",
}


class _Refused(Exception):  # noqa: N818 - never leaves this module
    """A mistake in a selector, with its position in the text."""

    def __init__(self, text: str, position: int) -> None:
        super().__init__(text)
        self.position = position


class Operand(NamedTuple):
    """The type of a part of a selector, as far as the text alone tells the type."""

    kind: str
    """``string``, ``number``, ``boolean``, or ``name``. A name is a property or a header, whose type is unknown."""
    position: int
    depth: int = 0
    bare: bool = False
    """Whether the operand is a comparison without parentheses around it."""


@v_args(inline=True)
class _Types(Transformer[Token, Operand]):
    """Finds the types of operands.

    The parser calls these methods while it reads the text, first for the inner parts. So no tree and no recursion are
    needed.
    """

    @staticmethod
    def _want(part: Operand, kind: str, what: str) -> None:
        if part.kind not in (kind, "name"):
            raise _Refused(f"{what} needs a {kind}, not a {part.kind}", part.position)

    @staticmethod
    def _nest(outer: Token, inner: Operand, kind: str) -> Operand:
        if inner.depth >= MAX_DEPTH:
            raise _Refused(
                f"expected at most {MAX_DEPTH} levels of nesting; each parenthesis, each NOT and each sign (+ or -) is"
                " one level",
                _at(outer),
            )
        return Operand(kind, _at(outer), inner.depth + 1)

    @staticmethod
    def _join(kind: str, *parts: Operand) -> Operand:
        return Operand(kind, parts[0].position, max(part.depth for part in parts))

    def _compare(self, *parts: Operand) -> Operand:
        return self._join("boolean", *parts)._replace(bare=True)

    def start(self, whole: Operand) -> Operand:
        self._want(whole, "boolean", "a selector")
        return whole

    def logical(self, left: Operand, operator: Token, right: Operand) -> Operand:
        for part in (left, right):
            self._want(part, "boolean", operator.upper())
        return self._join("boolean", left, right)

    def negation(self, operator: Token, part: Operand) -> Operand:
        self._want(part, "boolean", "NOT")
        if part.bare:  # ActiveMQ and Artemis read NOT a = 1 as (NOT a) = 1, which is never true for a number
            raise _Refused("brokers apply NOT to the first operand alone; write NOT (...)", part.position)
        return self._nest(operator, part, "boolean")

    def equality(self, left: Operand, _operator: Token, right: Operand) -> Operand:
        return self._compare(left, right)  # values of different types may be compared, and the comparison is never true

    def ordering(self, left: Operand, operator: Token, right: Operand) -> Operand:
        for part in (left, right):
            self._want(part, "number", operator)
        return self._compare(left, right)

    def between(self, *parts: Operand | Token) -> Operand:
        operands = [part for part in parts if isinstance(part, Operand)]
        for part in operands:
            self._want(part, "number", "BETWEEN")
        return self._compare(*operands)

    def like(self, left: Operand, *rest: Token) -> Operand:
        self._want(left, "name", "LIKE")
        if rest[-2].type == "ESCAPE" and len(_unquoted(rest[-1])) != 1:
            raise _Refused("ESCAPE needs a string of one character", _at(rest[-1]))
        return self._compare(left)

    def contained(self, left: Operand, *_rest: Token) -> Operand:
        self._want(left, "name", "IN")
        return self._compare(left)

    def null(self, left: Operand, *_rest: Token) -> Operand:
        self._want(left, "name", "IS NULL")
        return self._compare(left)

    def arithmetic(self, left: Operand, operator: Token, right: Operand) -> Operand:
        for part in (left, right):
            self._want(part, "number", operator)
        return self._join("number", left, right)

    def signed(self, operator: Token, part: Operand) -> Operand:
        self._want(part, "number", operator)
        return self._nest(operator, part, "number")

    def group(self, opening: Token, inner: Operand) -> Operand:
        return self._nest(opening, inner, inner.kind)

    def string(self, token: Token) -> Operand:
        return Operand("string", _at(token))

    def number(self, token: Token) -> Operand:
        if not _fits_long(token):
            raise _Refused("expected a whole number of at most 64 bits", _at(token))
        return Operand("number", _at(token))

    def boolean(self, token: Token) -> Operand:
        return Operand("boolean", _at(token))

    def name(self, token: Token) -> Operand:
        if token.startswith("JMS") and not token.startswith(("JMSX", "JMS_")) and token not in HEADERS:
            near = get_close_matches(token, HEADERS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise _Refused(f"{token}: expected one of the headers {', '.join(HEADERS)}{hint}", _at(token))
        return Operand("name", _at(token))

    def quoted(self, token: Token) -> Operand:
        return Operand("name", _at(token))


def _at(token: Token) -> int:
    return token.start_pos or 0


def _unquoted(token: Token) -> str:
    return token[1:-1].replace("''", "'")


def _fits_long(token: Token) -> bool:
    """Return whether a whole number fits in 64 bits. 2**63 fits too, because a minus sign may stand before it."""
    digits = token.lower().rstrip("l")
    if digits.startswith("0x"):
        base, digits = 16, digits[2:]
    elif not digits.isdigit():
        return True
    else:
        base = 8 if digits.startswith("0") else 10
    digits = digits.lstrip("0")
    # 2**63 has 22 octal digits; longer texts are refused here, because int() is slow for them
    return len(digits) <= 22 and int(digits or "0", base) <= 2**63


_PARSER: Final = Lark(GRAMMAR, parser="lalr", lexer="basic", transformer=_Types(), propagate_positions=False)


def _with_plain_minus(text: str) -> str:
    """Return the text with ``_MINUS`` in place of each ``-`` after the last line end.

    A comment begins with ``--`` and ends at a line end. So no comment can begin after the last line end. In this part
    of the text ``--`` means two signs. Without this replacement, the lexer would look for the end of a comment at each
    ``--``, up to the end of the text. For 64,000 signs this took a minute.
    """
    end = max(text.rfind("\n"), text.rfind("\r")) + 1
    text = text.replace(_MINUS, _NO_SIGN)
    return text[:end] + text[end:].replace("-", _MINUS)


def parse(text: str) -> None:
    """Raise ``InvalidSelectorException`` if ``text`` is not a selector, or is nested deeper than ``MAX_DEPTH``."""
    try:
        _PARSER.parse(_with_plain_minus(text))
    except _Refused as error:
        position = error.position
        what = str(error)
    except UnexpectedCharacters as error:
        position = error.pos_in_stream or 0
        found = text[position]
        what = {"'": "a string without its closing '", '"': 'a quoted name without its closing "'}.get(
            found, f"{found!r} is not a part of a selector"
        )
    except UnexpectedToken as error:
        ends = error.token.type == "$END"
        position = len(text) if ends else _at(error.token)
        found = "the end" if ends else repr(error.token.replace(_MINUS, "-"))
        wanted = ", ".join(_SHOWN.get(name, name) for name in sorted(error.accepts))
        what = f"expected {wanted}; found {found[:40]}{_misspelt(text, position)}"
    else:
        return
    what = what.replace(_MINUS, "-")
    raise InvalidSelectorException(f"selector, column {position + 1}: {what}\n{_caret(text, position)}")


def _misspelt(text: str, position: int) -> str:
    """Return a hint with the keyword that the author probably meant. The hint is empty if neither the word at this
    position nor the word before it is nearly a keyword."""
    here = re.compile(r"\w{1,12}").match(text, position)
    before = re.search(r"(\w{1,12})\s*$", text[max(0, position - 40) : position])
    for word in (here and here[0], before and before[1]):
        if word and word.upper() not in KEYWORDS and (near := get_close_matches(word.upper(), KEYWORDS, 1, 0.65)):
            return f"; did you mean {near[0]} for {word}?"
    return ""


def _caret(text: str, position: int) -> str:
    start = max(0, position - 40)
    line = "".join(char if char.isprintable() else " " for char in text[start : position + 30])
    return f"  {line}\n  {' ' * (position - start)}^"
