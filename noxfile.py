"""The six commands one needs, in the environment that nox itself is installed in: ``.venv/bin/nox -s tests``."""

from __future__ import annotations

import sys

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["tests", "lint"]


def python(session: nox.Session, *arguments: str) -> None:
    """Run this Python."""
    session.run(sys.executable, *arguments)


@nox.session
def tests(session: nox.Session) -> None:
    """The fast tier of the tests; what stands behind ``--`` goes to pytest."""
    python(session, "-m", "pytest", *session.posargs)


@nox.session
def full(session: nox.Session) -> None:
    """All tests."""
    python(session, "-m", "pytest", "--tier", "full", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and types, as CI checks them."""
    python(session, "-m", "ruff", "check", ".")
    python(session, "-m", "ruff", "format", "--check", ".")
    python(session, "-m", "mypy")
    python(session, "-m", "pyright", "--pythonpath", sys.executable)


@nox.session
def docs(session: nox.Session) -> None:
    """Write the generated pages anew: features, options, rules."""
    for page in ("features", "options", "rules"):
        python(session, f"docs/generate_{page}.py")


@nox.session
def site(session: nox.Session) -> None:
    """Build the documentation site into dist/docs; needs the extra docs and no network."""
    python(session, "-m", "sphinx", "-n", "-W", "--keep-going", "-q", "docs", "dist/docs")


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the wheel into dist/."""
    python(session, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", "dist", ".")
