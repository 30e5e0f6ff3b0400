"""The text of the error for a missing package of an extra. All parts of the library use this text."""

from __future__ import annotations

__all__ = ["missing_extra"]


def missing_extra(extra: str, purpose: str, error: ImportError | None = None) -> str:
    """Return the text of the error for a package of an extra that is not installed, or cannot be imported.

    Args:
        extra: the name of the extra in pyproject.toml.
        purpose: the feature that needs the package, as the beginning of a sentence.
        error: the error of the import, if the import was tried.
    """
    why = f" ({error})" if error is not None else ""
    command = f"pip install 'pyjmsack[{extra}]', in a clone pip install '.[{extra}]'"
    return f"{purpose} needs the extra {extra}{why}: {command}"
