"""What pyjmsack can do with more packages: how a missing one is told of, in one way everywhere."""

from __future__ import annotations

__all__ = ["missing_extra"]


def missing_extra(extra: str, purpose: str, error: ImportError | None = None) -> str:
    """Return what to say where a package of an extra is not installed, or is one that cannot be imported.

    Args:
        extra: its name in pyproject.toml.
        purpose: what is not possible without it, as the beginning of a sentence.
        error: why the import failed, if one was tried.
    """
    why = f" ({error})" if error is not None else ""
    return f"{purpose} needs the extra {extra}{why}: pip install 'pyjmsack[{extra}]'"
