"""Every relative link of the documentation leads to a file, and to a heading of that page; the pages stay short."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[3]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", *DOCS]
MOST_WORDS = 45_000
MOST_LINES = 120

_FENCED = re.compile(r"^ *(```+|~~~+)[^\n]*\n.*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]*)>?(?:\s+\"[^\"]*\")?\s*\)|^ {0,3}\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)? *$", re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")


def links(text: str) -> Iterator[str]:
    """The targets of a page's links, those within code aside; a link may begin on one line and end on the next."""
    for match in _LINK.finditer(_CODE.sub("", _FENCED.sub("", text))):
        yield match[1] if match[1] is not None else match[2]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to a page's headings: a heading that is there again gets a number."""
    found: Counter[str] = Counter()
    slugs = set()
    for match in _HEADING.finditer(_FENCED.sub("", text)):
        shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        slugs.add(f"{slug}-{found[slug]}" if found[slug] else slug)
        found[slug] += 1
    return slugs


def broken(page: Path) -> Iterator[str]:
    """The links of a page that lead nowhere."""
    for link in links(page.read_text()):
        path, _, anchor = link.partition("#")
        target = page.parent / unquote(path) if path else page
        if _ELSEWHERE.match(link):
            continue
        if not target.exists():
            yield f"{link}: no such file"
        elif anchor and target.suffix == ".md" and unquote(anchor) not in anchors(target.read_text()):
            yield f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


def test_the_documentation_is_short() -> None:
    words = {str(page.relative_to(ROOT)): len(page.read_text().split()) for page in DOCS}
    assert sum(words.values()) <= MOST_WORDS, sorted(words.items(), key=lambda item: -item[1])[:10]
    lines = {name: len((ROOT / name).read_text().splitlines()) for name in ("CHANGELOG.md", "ARCHITECTURE.md")}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_what_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A `b`: c_d\n\n## A [b](x.md): c_d\n\n```\n# none\n```\n")
    page = tmp_path / "page.md"
    page.write_text("[a\nb](other.md#a-b-c_d) [c](other.md#a-b-c_d-1) `[d](d.md)` [`e`](gone.md)\n[f](other.md#none)\n")
    assert list(broken(page)) == ["gone.md: no such file", "other.md#none: no such heading"]
