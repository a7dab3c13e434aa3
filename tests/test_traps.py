"""Every trap is covered by a test that exists, or waits for an issue that is named."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ISSUES = {"Driving the loop", "Real agents"}
COVERED_NOW = {"Verdicts and gates", "Configuration"}


def rows() -> list[tuple[str, str, str]]:
    """Section, trap and cover of every row of the tables."""
    found, section = [], ""
    for line in (ROOT / "tests" / "traps.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0] != "trap":
            assert len(cells) == 2, line
            found.append((section, cells[0], cells[1]))
    return found


@cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize(("section", "trap", "cover"), rows())
def test_a_trap_is_covered_or_waits_for_an_issue(section: str, trap: str, cover: str) -> None:
    if cover.startswith("next: "):
        assert cover.removeprefix("next: ") in ISSUES, trap
        assert section not in COVERED_NOW, trap
    else:
        path, _, name = cover.partition("::")
        assert re.fullmatch(r"test_\w+", name), trap
        assert name in functions_of(path), f"{trap}: {cover} does not exist"


def test_every_section_of_the_list_is_there() -> None:
    sections = [section for section, _, _ in rows()]
    assert list(dict.fromkeys(sections)) == [
        "Verdicts and gates",
        "Files",
        "State and resume",
        "Configuration",
        "Terminals",
        "Git and post-processing",
        "Security",
        "Agents of the Agent Client Protocol",
    ]
