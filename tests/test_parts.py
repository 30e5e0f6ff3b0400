"""The shape of the package: no large circle of imports, no object with too many attributes, no class in two files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from test_layers import MODULES, ours, trees

MOST_IN_A_CIRCLE = 3
MOST_ATTRIBUTES = 22

LARGE = {
    "pyjmsack.message.headers.Headers": "one for each header of JMS",
}
"""Classes with more attributes, and why."""
CUT = {
    "pyjmsack.message.headers.Headers": "the headers of a message, apart from its body and properties",
    "pyjmsack.message.properties.TypedProperties": "Java's typed getters and setters, apart from the mapping",
    "pyjmsack.providers.amqp.sections.Sections": "where the sections of a message are, apart from its content",
}
"""Base classes with a single subclass, in another file, and why."""


class Class(NamedTuple):
    """One class of the package."""

    module: str
    node: ast.ClassDef

    def __str__(self) -> str:
        return f"{self.module}.{self.node.name}"

    @property
    def bases(self) -> list[str]:
        """The names of its base classes."""
        named = [base.value if isinstance(base, ast.Subscript) else base for base in self.node.bases]
        return [ast.unparse(base).rpartition(".")[2] for base in named]

    @property
    def attributes(self) -> set[str]:
        """What its methods assign to ``self``."""
        found: set[str] = set()
        for node in ast.walk(self.node):
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else targets
            for target in targets:
                for each in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                    if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self":
                        found.add(each.attr)
        return found


def classes() -> Iterator[Class]:
    """Yield every class at the top of a module."""
    for module, tree in trees():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                yield Class(module, node)


def circles(graph: dict[str, set[str]]) -> Iterator[set[str]]:
    """Yield the sets of modules each of which imports, perhaps by way of others, all others (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(node: str) -> Iterator[set[str]]:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                yield from visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            place = stack.index(node)
            found = set(stack[place:])
            del stack[place:]
            yield found

    for node in graph:
        if node not in index:
            yield from visit(node)


def imported() -> dict[str, set[str]]:
    """Return what each module imports, also for type checkers alone; a package's front is not its parts."""
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for edge in ours():
        if edge.target in MODULES and MODULES[edge.target].name != "__init__.py":
            graph[edge.module].add(edge.target)
    return graph


def test_circles_are_found() -> None:
    """Guards this file against a search that finds nothing."""
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set()}
    assert sorted(map(len, circles(graph))) == [1, 1, 3]


def test_no_more_than_three_files_import_each_other() -> None:
    """Imports for type checkers count: a reader follows them as well."""
    large = [circle for circle in circles(imported()) if len(circle) > MOST_IN_A_CIRCLE]
    assert [sorted(circle) for circle in large] == []


def test_no_object_has_more_attributes_than_a_reader_can_keep_in_mind() -> None:
    """Those that it sets itself; what it is made of has its own."""
    sizes = {str(each): len(each.attributes) for each in classes()}
    assert max(sizes.values()) > 10
    large = {name for name, size in sizes.items() if size > MOST_ATTRIBUTES}
    assert large == LARGE.keys(), {name: sizes[name] for name in large ^ LARGE.keys()}


def test_no_class_is_cut_into_a_base_class_for_it_alone_in_another_file() -> None:
    """Parts have names and are used; a base class is for several, or for one beside it."""
    found = [*classes()]
    heirs: dict[str, list[Class]] = {}
    for each in found:
        for base in each.bases:
            heirs.setdefault(base, []).append(each)
    used = {
        node.func.id
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    cut = {
        str(base)
        for base in found
        if len(subclasses := heirs.get(base.node.name, [])) == 1
        and subclasses[0].module != base.module
        and base.node.name not in used
        and "Protocol" not in base.bases
    }
    assert cut == CUT.keys()
