"""What ``pip install pyjmsack`` brings along."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import distribution

from packaging.requirements import Requirement

BOTH = {"tomli"}
"""Packages that offer a wheel of pure Python and compiled ones too, of which pip takes a compiled one where it fits."""


def needed(name: str, seen: set[str]) -> Iterator[str]:
    """Yield the names of all packages that a package needs on this Python, without extras."""
    for line in distribution(name).requires or ():
        requirement = Requirement(line)
        if (requirement.marker is None or requirement.marker.evaluate({"extra": ""})) and requirement.name not in seen:
            seen.add(requirement.name)
            yield requirement.name
            yield from needed(requirement.name, seen)


def test_pyjmsack_needs_packages_of_pure_python_only() -> None:
    """A machine without a compiler, with another processor or another C library installs pyjmsack."""
    names = [*needed("pyjmsack", set())]
    assert "tenacity" in names
    compiled = [name for name in names if "Root-Is-Purelib: true" not in (distribution(name).read_text("WHEEL") or "")]
    assert set(compiled) <= BOTH
