"""Which of several worktrees a run goes on in."""

from pathlib import Path

import pytest

from quintet.loop.record.run_record import RunRecord
from quintet.loop.run import choose_workspace
from quintet.workspace.creating import create
from tests.workspace.repositories import TITLE, settings


@pytest.mark.parametrize("first_is_newer", [False, True])
def test_the_newest_unfinished_run_of_a_task_goes_on(
    checkout: Path, first_is_newer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose_workspace, "_is_unfinished", lambda _: True)
    trees = sorted(create(settings(checkout, resume=False), TITLE).tree for _ in range(2))
    ids = ["20260101-000000-aaaaaa", "20260102-000000-aaaaaa"]
    for tree, run_id in zip(trees, reversed(ids) if first_is_newer else ids, strict=True):
        record = RunRecord(tree, run_id)
        record.open()
        record.journal.write_text("", encoding="utf-8")
    chosen = choose_workspace.choose(settings(checkout), names_task=True)
    assert chosen
    assert chosen.tree == trees[0 if first_is_newer else 1]
