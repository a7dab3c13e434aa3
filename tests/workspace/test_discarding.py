"""A discarded run loses its worktree and its branch, and keeps its archive, whenever the command is killed."""

from pathlib import Path

import pytest

from quintet import files
from quintet.loop.journal import RunStarted
from quintet.loop.record.journal_file import Journal
from quintet.loop.record.run_record import RunRecord
from quintet.setup.run_branches import discard_run
from quintet.watch.runs.folders import find_run, project_run_folders
from quintet.workspace.creating import create
from quintet.workspace.worktrees import Worktree, worktrees_of
from tests.workspace.repositories import TITLE, Killed, kill_after, settings, sh

RUN = "20261116-000000-aaaaaa"


@pytest.fixture
def made(checkout: Path) -> Worktree:
    """A worktree with a run that has committed something and has left a report."""
    found = create(settings(checkout), TITLE).model_copy(update={"pid": 0})
    found.save()
    record = RunRecord(found.tree, RUN)
    record.open()
    record.write("001-analyst.md", "Done.")
    Journal.of(record).write(RunStarted(run_id=RUN, wd=str(found.tree), start_agent="analyst", branch=found.branch))
    files.write(record.archive / "report.md", "# PASS")
    files.write(found.tree / ".tmp/.gitignore", "*\n")
    sh(found.tree, "echo x > built.txt && git add --all && git commit --quiet --message Built")
    return found


@pytest.mark.parametrize("named", [RUN, None])
@pytest.mark.parametrize("calls", range(11))
def test_a_kill_at_any_write_is_completed_by_the_same_command(
    made: Worktree, calls: int, named: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_killed = False
    with monkeypatch.context() as patch:
        kill_after(calls, patch)
        try:
            discard_run(made.project, named, force=True)
        except Killed:
            is_killed = True
    assert is_killed is (calls < 10), "every write has its kill"
    assert len(project_run_folders(made.project)) == 1, "it is listed once, wherever it is"
    if worktrees_of(made.project):
        discard_run(made.project, named, force=True)
    assert worktrees_of(made.project) == []
    assert not made.top.exists()
    assert sh(made.project, "git for-each-ref --format='%(refname:short)' refs/heads") == "main"
    folder = find_run(made.project, RUN)
    assert folder.parents[1] == made.project
    assert {path.name for path in folder.iterdir()} == {"001-analyst.md", "journal.jsonl", "report.md"}
    assert sh(made.project, "git status --porcelain") == ""


def test_a_new_worktree_leaves_the_archive_of_a_killed_removal_alone(
    made: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        kill_after(4, patch)
        with pytest.raises(Killed):
            discard_run(made.project, RUN, force=True)
    create(settings(made.project), "Another")
    discard_run(made.project, RUN, force=True)
    assert (find_run(made.project, RUN) / "report.md").read_text() == "# PASS"
    assert [one.branch for one in worktrees_of(made.project)] == ["quintet/another"]
