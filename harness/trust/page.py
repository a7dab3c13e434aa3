"""The table of the corpus in docs/trust.md."""

from pathlib import Path

from harness.trust.cheats import CHEATS, SECTIONS
from harness.trust.honest import HONEST

PAGE = Path(__file__).parents[2] / "docs" / "trust.md"
BEGIN, END = "<!-- the table begins: python -m harness.trust --write -->", "<!-- the table ends -->"


def table() -> str:
    """All rows as Markdown."""
    lines = [f"{len(CHEATS)} cheats; none of them ends in PASS:", ""]
    for title, rows in SECTIONS.items():
        lines += [f"| {title} | what Quintet does |", "|---|---|"]
        lines += [f"| {_cell(row.name)} | {_cell(', '.join(row.did))} |" for row in rows]
        lines.append("")
    lines += [f"{len(HONEST)} honest behaviours; all of them end in PASS, without a warning:", ""]
    return "\n".join([*lines, *(f"- {row.name}" for row in HONEST)])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def page_with_table(page: str) -> str:
    """The page with the table as it should be."""
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}"


def write_page() -> None:
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
