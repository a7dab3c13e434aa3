"""The examples of task files are complete: a run would take them, and lint has nothing to say."""

import pytest

from quintet.loop.lint import lint
from quintet.loop.task import parse_task
from tests.docs.pages import DOCS, blocks

EXAMPLES = [block.text for block in blocks(DOCS / "task-files.md") if block.mark == "task"]


def test_there_are_two() -> None:
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.splitlines()[1])
def test_an_example_is_complete(text: str) -> None:
    task = parse_task(text)
    assert task.explore_summary
    assert task.scenario_test
    assert lint(text) == []
