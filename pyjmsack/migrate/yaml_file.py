"""Reads Spring's YAML files as dotted keys, with the line of each key. This needs the extra ``migrate``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, islice
from typing import Any, Final

from pyjmsack.extras import missing_extra
from pyjmsack.migrate.model import Unreadable
from pyjmsack.migrate.properties_file import Entry

__all__ = ["read_yaml"]

_MOST_KEYS: Final = 100_000
_MOST_DOCUMENTS: Final = 1000
_MOST_NODES: Final = 1_000_000
_DEEPEST: Final = 100
_LONGEST_PATH: Final = 1000
"""The largest number of characters of a key with the keys around it, because each value under it gets a copy."""
_PROFILE_KEYS: Final = ("spring.config.activate.on-profile", "spring.profiles")


def read_yaml(text: str) -> list[Entry]:
    """Return the entries of all documents of a file, each with its profile.

    Raises:
        Unreadable: the text is not YAML, has more than 1000 documents, or has more than 100,000 keys after its aliases
            are expanded; or PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise Unreadable(missing_extra("migrate", "reading YAML", error)) from None
    try:
        nodes = yaml.compose_all(text, Loader=yaml.SafeLoader)
        documents = [node for node in islice(nodes, _MOST_DOCUMENTS + 1) if node is not None]
        if len(documents) > _MOST_DOCUMENTS:
            raise Unreadable(f"expected YAML of at most {_MOST_DOCUMENTS} documents")
        return _bounded(documents)
    # PyYAML raises a ValueError for the escape "\U00110000"
    except (yaml.YAMLError, OverflowError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise Unreadable(f"expected YAML; it is not well-formed{where}") from None


def _bounded(documents: Iterable[Any]) -> list[Entry]:
    """Return the entries. The nodes are counted while aliases are expanded, because aliases of aliases can make any
    number of nodes, also if they are all empty.
    """
    entries: list[Entry] = []
    nodes = count(1)
    for document in documents:
        unfolded = [*islice(_entries(document, "", 0, nodes), _MOST_KEYS + 1 - len(entries))]
        entries += _with_profile(unfolded)
        if len(entries) > _MOST_KEYS:
            raise Unreadable(f"expected YAML of at most {_MOST_KEYS} keys, with its aliases expanded")
    return entries


def _entries(node: Any, path: str, depth: int, nodes: Iterator[int]) -> Iterator[Entry]:
    if depth > _DEEPEST:
        raise Unreadable(f"expected YAML of at most {_DEEPEST} levels")
    if next(nodes) > _MOST_NODES:
        raise Unreadable(f"expected YAML of at most {_MOST_NODES} nodes, with its aliases expanded")
    if len(path) > _LONGEST_PATH:
        raise Unreadable(f"expected YAML whose keys have at most {_LONGEST_PATH} characters")
    if node.id == "mapping":
        for key, value in node.value:
            name = str(key.value) if key.id == "scalar" else "?"
            yield from _entries(value, f"{path}.{name}" if path else name, depth + 1, nodes)
    elif node.id == "sequence":
        for index, item in enumerate(node.value):
            yield from _entries(item, f"{path}[{index}]", depth + 1, nodes)
    else:
        yield Entry(node.start_mark.line + 1, path, str(node.value))


def _with_profile(entries: list[Entry]) -> list[Entry]:
    profile = next((entry.value for entry in entries if entry.key in _PROFILE_KEYS), "")
    return [Entry(entry.line, entry.key, entry.value, profile) for entry in entries]
