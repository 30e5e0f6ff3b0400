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
_LONGEST_NAMESPACE: Final = 200
"""The largest number of characters of a namespace. Attributes contain the namespace, so many attributes repeat it."""
_PIECE: Final = 65_536
"""The number of bytes that the parser gets at once. Only between two pieces, an error ends the work of the parser."""
_XML: Final = "http://www.w3.org/XML/1998/namespace"


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
        # this class finds the namespaces, because the parser copies the namespace into each name, whatever its length
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity
        self.parser.AttlistDeclHandler = self._attributes
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self._open: list[Element] = []
        self._namespaces: dict[str, list[str]] = {"": [""], "xml": [_XML]}
        """For each prefix, its namespaces in the open elements. The last namespace counts."""
        self._declared: list[list[str]] = []
        """The prefixes that each open element declares."""
        self._texts: list[list[str]] = []
        """The pieces of text of each open element. The pieces are joined only at the end, because a file may have
        millions.
        """
        self._count = 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) >= _DEEPEST or self._count > _MOST:
            raise Unreadable(f"expected XML of at most {_MOST} elements, in at most {_DEEPEST} levels")
        self._declared.append([*self._declare(attributes)])
        prefix, _, local = name.rpartition(":")
        plain = {self._whole(key): value for key, value in attributes.items() if not _is_declaration(key)}
        element = Element(self._namespace(prefix), local, self.parser.CurrentLineNumber, plain)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)
        self._texts.append([])

    def _end(self, name: str) -> None:
        del name
        self._open.pop().text = "".join(self._texts.pop())
        for prefix in self._declared.pop():
            self._namespaces[prefix].pop()

    def _declare(self, attributes: dict[str, str]) -> Iterator[str]:
        """Take the namespaces that an element declares, and yield their prefixes."""
        for key, namespace in attributes.items():
            if _is_declaration(key):
                if len(namespace) > _LONGEST_NAMESPACE:
                    raise Unreadable(
                        f"expected XML with namespaces of at most {_LONGEST_NAMESPACE} characters; line"
                        f" {self.parser.CurrentLineNumber} has a longer one"
                    )
                prefix = key.partition(":")[2]
                self._namespaces.setdefault(prefix, []).append(namespace)
                yield prefix

    def _namespace(self, prefix: str) -> str:
        if found := self._namespaces.get(prefix):
            return found[-1]
        raise Unreadable(
            f"expected XML whose prefixes have a namespace; a prefix at line {self.parser.CurrentLineNumber} has none"
        )

    def _whole(self, key: str) -> str:
        """Return the name of an attribute. An attribute without a prefix is in no namespace."""
        prefix, colon, local = key.rpartition(":")
        return f"{self._namespace(prefix)}|{local}" if colon else key

    def _characters(self, text: str) -> None:
        self._texts[-1].append(text)

    def _entity(self, *declaration: object) -> None:
        del declaration
        raise Unreadable("expected XML without entities; replace them by their values")

    def _attributes(self, *declaration: object) -> None:
        del declaration
        raise Unreadable("expected XML that declares no attributes, because each element would repeat their defaults")


def _is_declaration(key: str) -> bool:
    """Return whether an attribute declares a namespace."""
    return key == "xmlns" or key.startswith("xmlns:")


def read_xml(data: bytes) -> Element:
    """Return the root element.

    Raises:
        Unreadable: the text is not XML, declares entities or attributes, has too many elements or levels, has a
            namespace that is too long, or has a prefix without a namespace.
    """
    builder = _Builder()
    try:
        for start in range(0, len(data), _PIECE):
            builder.parser.Parse(data[start : start + _PIECE], False)
        builder.parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise Unreadable(f"expected XML; it is not well-formed at line {error.lineno}") from None
    except (LookupError, ValueError):  # the class of the error depends on the encoding that the file names
        raise Unreadable("expected XML in an encoding that this parser knows, such as UTF-8") from None
    if builder.root is None:
        raise Unreadable("expected XML with at least one element")
    return builder.root
