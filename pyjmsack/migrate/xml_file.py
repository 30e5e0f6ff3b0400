"""Reads XML as a tree with line numbers and namespaces. Nothing outside the file is loaded, and no entity is
expanded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from pyjmsack.migrate.model import Unreadable

__all__ = ["Element", "read_xml"]

_DEEPEST: Final = 100
_MOST: Final = 200_000


@dataclass(slots=True)
class Element:
    """One element. A name in a namespace has the form ``namespace|name``."""

    namespace: str
    name: str
    line: int
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self) -> Iterator[Element]:
        """Yield this element and all elements inside, in the order of the file."""
        stack: list[Element] = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))

    def get(self, name: str, default: str = "") -> str:
        """Return an attribute."""
        return self.attributes.get(name, default)


class _Builder:
    """Builds the tree from the events of the parser, within limits."""

    def __init__(self) -> None:
        self.root: Element | None = None
        self.parser = expat.ParserCreate(namespace_separator="|")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self._open: list[Element] = []
        self._texts: list[list[str]] = []
        """The pieces of text of each open element. The pieces are joined only at the end, because a file may have
        millions.
        """
        self._count = 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) >= _DEEPEST or self._count > _MOST:
            raise Unreadable(f"expected XML of at most {_MOST} elements, in at most {_DEEPEST} levels")
        namespace, _, local = name.rpartition("|")
        element = Element(namespace, local, self.parser.CurrentLineNumber, attributes)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)
        self._texts.append([])

    def _end(self, name: str) -> None:
        del name
        self._open.pop().text = "".join(self._texts.pop())

    def _characters(self, text: str) -> None:
        self._texts[-1].append(text)

    def _entity(self, *declaration: object) -> None:
        del declaration
        raise Unreadable("expected XML without entities; replace them by their values")


def read_xml(data: bytes) -> Element:
    """Return the root element.

    Raises:
        Unreadable: the text is not XML, declares entities, or has too many elements or levels.
    """
    builder = _Builder()
    try:
        builder.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise Unreadable(f"expected XML; it is not well-formed at line {error.lineno}") from None
    except (LookupError, ValueError):  # the class of the error depends on the encoding that the file names
        raise Unreadable("expected XML in an encoding that this parser knows, such as UTF-8") from None
    if builder.root is None:
        raise Unreadable("expected XML with at least one element")
    return builder.root
