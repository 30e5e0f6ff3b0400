"""The documentation site: ``sphinx-build -n -W docs dist/docs``, or ``nox -s site``. It needs no network.

The sources stay readable on a code host. Therefore the pages use plain Markdown, and :func:`for_the_site` rewrites what
Sphinx writes in another way: links to files outside ``docs``, anchors in HTML, and sequence charts.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from docutils.nodes import Element
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import pyjmsack
from pyjmsack import errors

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from sequence import charts_drawn  # noqa: E402 - of this folder

project = "pyjmsack"
author = "the pyjmsack founders"
version = release = version_of("pyjmsack")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_click",
    "sphinx_llms_txt",
]
exclude_patterns = ["upstream"]  # reports for other projects

html_theme = "furo"
html_title = f"pyjmsack {release}"
html_show_sourcelink = False

myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # the glossary's words are small headings below the title, on purpose

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_mock_imports = [
    name for name in ("pyarrow", "pyspark", "pandas", "plotly") if importlib.util.find_spec(name) is None
]
"""Libraries of extras that are large, so that the site builds without them."""
autodoc_class_signature = "separated"  # most objects are made by methods: their constructors are no interface
napoleon_numpy_docstring = False

nitpick_ignore_regex = [
    # of the standard library and of other packages, whose indexes are not here, because the build has no network
    (r"py:.*", r"(_?asyncio|collections|concurrent|contextlib|datetime|decimal|enum|os|pathlib)\b.*"),
    (r"py:.*", r"(logging|pyarrow|ssl|str|string|types|typing|uuid)\b.*"),
    (r"py:.*", r"(Any|Callable|Future|Iterable|Iterator|Mapping|PathLike|Path|SSLContext|Self|Sequence)"),
    # annotations that name a module of this project that is no interface, a variable of a type, or an alias
    (r"py:.*", r"pyjmsack\.[a-z_]+\..*"),
    (r"py:.*", r"(core_\w+\.)?[A-Z]\w*"),
]

_REPOSITORY = "https://github.com/pyjmsack/pyjmsack/blob/main/"
_OUTSIDE = re.compile(r"\]\((?:\.\./)+([^)\s]+)\)")
_OF_THE_ROOT = re.compile(r"\]\(docs/")
_COLON = "\ue000"
_ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')


def for_the_site(app: Sphinx, name: str, source: list[str]) -> None:
    """Rewrite a page, whose text is in a list of one.

    Args:
        app: The run of Sphinx, which is not used.
        name: The page without its suffix, such as ``howto/tls``.
        source: The text of the page. The function replaces it.
    """
    depth = name.count("/")
    inside = "../" * depth

    def target(link: re.Match[str]) -> str:
        climbed = link[0].count("../")
        if climbed <= depth:
            return link[0]  # to a page in another folder of docs
        if name != "changelog" and link[1].startswith("CHANGELOG.md"):
            return f"]({inside}changelog.md{link[1].removeprefix('CHANGELOG.md')})"
        return f"]({_REPOSITORY}{link[1]})"

    text = source[0].replace("](upstream/", f"]({_REPOSITORY}docs/upstream/")
    if name == "changelog":
        whole = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n")[2]
        text += _OF_THE_ROOT.sub("](", whole).replace("](SECURITY.md", f"]({_REPOSITORY}SECURITY.md")
    text = charts_drawn(text)
    source[0] = _ANCHOR.sub(r"[]{#\1}", _OUTSIDE.sub(target, text))


def public_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element) -> Element | None:
    """Resolve a name that a docstring shortens, or that it takes from the module that defines it.

    Returns:
        A link, or `None` if the last part of the name is no public one.
    """
    name = str(node.get("reftarget", "")).rpartition(".")[2]
    if node.get("refdomain") != "py" or name not in pyjmsack.__all__:
        return None
    page, module = node.get("refdoc", "index"), "pyjmsack.errors" if name in errors.__all__ else "pyjmsack"
    return env.domains["py"].resolve_xref(env, page, app.builder, "obj", f"{module}.{name}", node, content)


def keep_colon(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Hide the first colon of an attribute's text from napoleon, which takes the words before it for a type."""
    if lines and what in ("attribute", "property", "data"):
        lines[0] = lines[0].replace(": ", _COLON)


def show_colon(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Put the colon back when napoleon is done."""
    lines[:] = [line.replace(_COLON, ": ") for line in lines]


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("missing-reference", public_name)
    app.connect("autodoc-process-docstring", keep_colon, priority=400)
    app.connect("autodoc-process-docstring", show_colon, priority=600)
    app.connect("source-read", for_the_site)
