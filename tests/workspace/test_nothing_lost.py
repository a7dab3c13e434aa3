"""What `quintet clean` offers of worktrees, and what `quintet restore` brings back in one: no work is lost."""

from pathlib import Path

import pytest

from quintet.guard import Store, take
from quintet.layout import start_snapshot
from quintet.setup import run_branches
from quintet.setup.restoring import restore
from quintet.setup.run_branches import merged_worktrees
from quintet.watch.runs.model import STOPPED, Run
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


def test_a_worktree_is_restored_without_what_is_the_users(made: Worktree) -> None:
    (made.tree / "README.md").write_text("before the run\n")
    snapshot = start_snapshot("r1")
    store = Store(snapshot.parent)
    take(made.tree, store, snapshot.stem)
    store.close()
    (made.tree / "README.md").write_text("the run's\n")
    sh(made.tree, "git commit --quiet --all --message Run")
    sh(made.project, "git commit --quiet --allow-empty --message Mine && git branch mine && git config some.key 1")
    (made.tree / ".tmp/r1").mkdir(parents=True)
    restore(made.tree / ".tmp/r1")
    assert (made.tree / "README.md").read_text() == "before the run\n"
    assert sh(made.tree, "git rev-parse HEAD") == made.start
    assert sh(made.project, "git log -1 --format=%s main && git config some.key && git branch --list mine") == (
        "Mine\n1\n  mine"
    )


def test_commits_of_a_submodule_that_only_the_worktree_has_are_not_offered(checkout: Path, tmp_path: Path) -> None:
    sh(tmp_path, "git init --quiet part && cd part && git commit --quiet --allow-empty --message Part")
    allow = "git -c protocol.file.allow=always"
    sh(checkout, f"{allow} submodule --quiet add {tmp_path}/part part && git commit --quiet --message Part")
    made = create(settings(checkout), TITLE).model_copy(update={"pid": 0})
    made.save()
    sh(made.tree, f"{allow} submodule --quiet update --init")
    sh(made.tree / "part", "git commit --quiet --allow-empty --message Work")
    sh(made.tree, "git commit --quiet --all --message Work")
    sh(checkout, f"git merge --quiet {made.branch}")
    assert offered(made) == []
    sh(checkout / "part", f"{allow} fetch --quiet {made.tree}/part HEAD")
    assert offered(made) == ["a worktree whose branch is merged"]


def test_a_run_goes_on_in_a_worktree_that_is_there_and_in_none_that_is_gone(
    made: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made.tree / ".tmp" / "20260101-000000-aaaaaa"
    monkeypatch.setattr(run_branches, "run_folders", lambda _: [folder])
    monkeypatch.setattr(run_branches, "read_run", lambda _: Run(status=STOPPED, resumable=True))
    assert offered(made) == []
    sh(made.project, f"rm -rf {made.top}")
    assert offered(made) == ["a worktree without any work in it"]
