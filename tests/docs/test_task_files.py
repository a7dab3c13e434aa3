"""The examples of task files are complete: a run would take them, and lint has nothing to say."""

import re
from pathlib import Path

import pytest

from quintet.loop.decide.lint import lint
from quintet.loop.decide.task import parse_task
from quintet.prose import slug
from tests.docs.pages import DOCS, README, blocks

TASK_FILES = DOCS / "task-files.md"
EXAMPLES = [block.text for page in (TASK_FILES, README) for block in blocks(page) if block.mark == "task"]


def test_there_are_four() -> None:
    assert len(EXAMPLES) == 4


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.splitlines()[1])
def test_an_example_is_complete(text: str) -> None:
    task = parse_task(text)
    assert task.explore_summary
    assert task.scenario_test
    assert lint(text) == []


@pytest.mark.parametrize("page", [README, DOCS / "tutorial.md"], ids=lambda page: page.name)
def test_a_new_task_gets_the_name_that_is_used_below(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wishes = re.findall(r"^quintet new \"(.+?)\"", text, re.MULTILINE)
    assert wishes
    assert not [wish for wish in wishes if f"quintet run tasks/{slug(wish)}.md" not in text]
