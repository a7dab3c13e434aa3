"""The pages of the documentation, and the fenced blocks in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
DOCS: Final = ROOT / "docs"
_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^>\n]*) -->\n)?(?P<fence>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block; the mark is the comment right above it, which no reader sees."""

    mark: str
    language: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    for match in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield Block(match["mark"] or "", match["language"], match["text"])


def without_blocks(page: Path) -> str:
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def pages() -> list[Path]:
    """Every page that a reader may come to."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]
