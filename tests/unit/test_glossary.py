"""The glossary is sorted, names words that are in use, leads on, and its forbidden phrases stand on no page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
GENERATED = {"rules.md"}
"""Pages that quote the names of tests."""
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted(page for page in (ROOT / "docs").glob("*.md") if page != GLOSSARY and page.name not in GENERATED),
]


def entries() -> dict[str, str]:
    """Return the text below each term."""
    terms, _, _ = GLOSSARY.read_text(encoding="utf-8").partition("\n## ")
    parts = re.split(r"^### (.+)$", terms, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def phrases() -> list[str]:
    """Return the phrases that no page may have."""
    table = GLOSSARY.read_text(encoding="utf-8").partition("## Words that we do not use")[2]
    return [
        phrase for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for phrase in re.findall("`(.+?)`", row)
    ]


def test_the_terms_are_sorted_and_there_are_enough() -> None:
    assert [*entries()] == sorted(entries())
    assert len(entries()) >= 40


@pytest.mark.parametrize("term", entries())
def test_a_term_is_one_sentence_with_a_link_to_more(term: str) -> None:
    """tests/test_docs.py follows the links."""
    text = " ".join(entries()[term].split())
    assert re.fullmatch(r"[A-Z].*[^.] \(\[[^]]+\]\([^)]+\)\)\.", text)
    assert ". " not in text


@pytest.mark.parametrize("term", entries())
def test_a_term_is_used_on_a_page_or_in_the_code(term: str) -> None:
    """In any form of its words: `hand out` is used by `handed out`."""
    used = re.compile(r"\b" + r"\w*[ -]".join(map(re.escape, term.split())), re.IGNORECASE)
    files = [*PAGES, *(ROOT / "pyjmsack").rglob("*.py")]
    assert any(used.search(" ".join(file.read_text(encoding="utf-8").split())) for file in files)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_none_of_the_phrases_that_the_glossary_replaces(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert len(phrases()) > 5
    assert not [phrase for phrase in phrases() if re.search(rf"\b{re.escape(phrase)}\b", text, re.IGNORECASE)]
