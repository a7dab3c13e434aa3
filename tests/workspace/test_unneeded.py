"""The worktrees that `quintet clean` offers: those that nothing would be lost with."""

from pathlib import Path

import pytest

from quintet.setup.run_branches import merged_worktrees
from quintet.workspace.creating import create
from quintet.workspace.worktrees import Worktree
from tests.workspace.repositories import TITLE, settings, sh


@pytest.fixture
def made(checkout: Path) -> Worktree:
    """A worktree whose maker is gone."""
    found = create(settings(checkout), TITLE).model_copy(update={"pid": 0})
    found.save()
    return found


def offered(made: Worktree) -> list[str]:
    return [left.what for left in merged_worktrees(made.project)]


def test_a_worktree_without_work_is_offered(made: Worktree) -> None:
    assert offered(made) == ["a worktree without any work in it"]


def test_a_worktree_with_a_new_file_is_not(made: Worktree) -> None:
    (made.tree / "late.txt").write_text("x")
    assert offered(made) == []


def test_a_worktree_that_git_cannot_read_is_not(made: Worktree) -> None:
    (made.tree / "late.txt").write_text("x")
    sh(made.project, "rm -rf .git/worktrees")
    assert offered(made) == []


def test_a_worktree_whose_folder_is_gone_is_offered(made: Worktree) -> None:
    sh(made.project, f"rm -rf {made.top}")
    assert offered(made) == ["a worktree without any work in it"]
