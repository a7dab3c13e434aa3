"""Links lead somewhere, and every page can be found."""

import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from tests.docs.pages import DOCS, README, ROOT, blocks, pages, without_blocks

LINK = re.compile(r"\]\(([^()\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
ELSEWHERE = ("http://", "https://", "mailto:")


def links(page: Path) -> list[str]:
    found = (match[1] or match[2] for match in LINK.finditer(without_blocks(page)))
    return [link for link in found if not link.startswith(ELSEWHERE)]


def anchors(page: Path) -> set[str]:
    """The names that forges give to headings."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(without_blocks(page)))
    return {heading.strip().replace(" ", "-") for heading in plain}


def target(page: Path, link: str) -> Path:
    path = unquote(link.partition("#")[0])
    return (page.parent / path).resolve() if path else page


def broken(page: Path) -> list[str]:
    return [
        link
        for link in links(page)
        if not target(page, link).exists()
        or not target(page, link).is_relative_to(ROOT)
        or ("#" in link and link.partition("#")[2] not in anchors(target(page, link)))
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](other.md) [b](#one) [c](#two)\n```text\n[d](in-a-block.md)\n```\n")
    assert links(page) == ["other.md", "#one", "#two"]
    assert anchors(page) == {"one"}
    assert "other.md" in broken(page)


def test_every_page_can_be_found_from_the_readme() -> None:
    found, waiting = {README}, [README]
    while waiting:
        page = waiting.pop()
        for link in links(page):
            if (there := target(page, link)).suffix == ".md" and there not in found and there.exists():
                found.add(there)
                waiting.append(there)
    assert set(pages()) - found == set()
    shown = {target(page, link) for page in (README, DOCS / "README.md") for link in links(page)}
    assert set(DOCS.glob("*.md")) - {DOCS / "README.md"} - shown == set(), "name it in docs/README.md"


@pytest.mark.parametrize("picture", sorted((DOCS / "images").glob("*.svg")), ids=lambda picture: picture.name)
def test_a_drawing_needs_nothing_from_outside(picture: Path) -> None:
    drawing = ElementTree.parse(picture)  # noqa: S314 - a file of ours
    text = picture.read_text(encoding="utf-8")
    assert drawing.getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert not re.search(r"<script|@import|@font-face|(?:href=\"|url\()(?!#)", text)


def test_every_picture_is_used() -> None:
    shown = {target(page, link) for page in pages() for link in links(page)}
    assert set((DOCS / "images").iterdir()) - shown == set()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Path) -> None:
    assert not [block for block in blocks(page) if not block.language]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_target_of_make_that_is_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z0-9-]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= targets
