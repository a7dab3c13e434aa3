"""The page of settings is the settings table, with nothing left out."""

import re

import pytest

from quintet.config import TABLE
from quintet.config.table import AGENT_KINDS, Row
from tools.settings_page import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tools/settings_page.py"


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_every_setting_is_there_once(row: Row) -> None:
    cells = re.escape(f"| `{row.flag}` | `{row.env}` | `{row.key}` | ")
    lines = re.findall(rf"^{cells}(.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == 1
    default, _, meaning = lines[0].partition(" | ")
    assert default
    assert meaning.startswith(row.meaning)


def test_every_part_of_an_agent_is_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert not [part for part in AGENT_KINDS if f"| `agents.ROLE.{part}` |" not in text]
