"""Write the list of all files in docs/architecture.md from their docstrings: `python tools/file_map.py`.

A test compares the two.
"""

import ast
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src" / "quintet"
PAGE: Final = ROOT / "docs" / "architecture.md"
HEADING: Final = "## Every file\n"
INTRODUCTION: Final = "\nWritten by `tools/file_map.py` from the first line of each file's docstring.\n"


def page() -> str:
    """The page with its list brought up to date; the list is the last part of it."""
    before, _, _ = PAGE.read_text(encoding="utf-8").partition(HEADING)
    return "".join((before, HEADING, INTRODUCTION, *_rooms()))


def _rooms() -> Iterator[str]:
    files = sorted(SOURCE.rglob("*.py"), key=lambda path: (path.parent, path.name))
    for folder, inside in groupby(files, lambda path: path.parent):
        room = folder.relative_to(SOURCE).as_posix()
        lines = [f"- `{path.relative_to(SOURCE)}`: {text}\n" for path in inside if (text := _first_line(path))]
        if lines:
            yield "".join((f"\n**{'at the top' if room == '.' else room}**\n\n", *lines))


def _first_line(path: Path) -> str:
    """What a file is; empty for a package's own file, which says what its room is."""
    if path.name in ("__init__.py", "__main__.py") and path.read_text(encoding="utf-8").count("\n") <= 1:
        return ""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
