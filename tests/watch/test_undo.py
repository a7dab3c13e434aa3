"""The line that takes a run's changes back takes back these and nothing else, or there is none and a reason."""

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from quintet.config import Settings
from quintet.guard import Store, take
from quintet.layout import start_snapshot
from quintet.loop.run.work_tree import dirty_paths
from quintet.setup.restoring import restore
from quintet.watch.runs.changes import changes_now
from quintet.watch.runs.model import Run
from quintet.watch.runs.undo import undo


def git(wd: Path, *words: str) -> str:
    identity = ["-c", "user.name=T", "-c", "user.email=t@localhost"]
    done = subprocess.run(["git", *identity, *words], cwd=wd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(wd: Path, name: str) -> str:
    (wd / name).write_text(f"{name}\n")
    git(wd, "add", name)
    git(wd, "commit", "--quiet", "--message", f"Add {name}")
    return git(wd, "rev-parse", "HEAD")


def follow(line: str, cwd: Path) -> None:
    """Do what a user does who pastes the line into a shell, wherever that is."""
    identity = ["-c", "user.name=T", "-c", "user.email=t@localhost"]
    subprocess.run(["git", *identity, *shlex.split(line)[1:]], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "a project"
    (top / "part").mkdir(parents=True)
    git(top, "init", "--quiet", "--initial-branch", "main")
    (top / "kept.txt").write_text("a\n")
    (top / "part" / "old.txt").write_text("a\n")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "Begin")
    return top


def begun(wd: Path) -> Run:
    """A run as its journal tells of it, right after its start."""
    return Run(id="r1", wd=str(wd), start_commit=git(wd, "rev-parse", "HEAD"), dirty=dirty_paths(Settings(wd=wd)))


def test_what_is_not_committed_is_put_away(top: Path, tmp_path: Path) -> None:
    run = begun(top)
    assert run.dirty == ()
    (top / "kept.txt").write_text("b\n")
    (top / "new").mkdir()
    (top / "new" / "file.txt").write_text("n\n")
    git(top, "add", "new")
    found = undo(top, run, newest=True)
    assert found.note == ""
    (line,) = found.lines
    follow(line, tmp_path)
    assert git(top, "status", "--porcelain") == ""
    git(top, "stash", "pop")
    assert (top / "kept.txt").read_text() == "b\n", "nothing is lost"
    older = undo(top, run, newest=False)
    assert older.lines == (), "what is there now is not the old run's"
    assert "later runs" in older.note


def test_what_was_made_in_a_worktree_is_not_undone_in_the_checkout(top: Path, tmp_path: Path) -> None:
    git(top, "worktree", "add", "--quiet", "-b", "quintet/x", str(tmp_path / "tree"))
    run = replace(begun(tmp_path / "tree"), project=str(top), branch="quintet/x")
    for wd in (tmp_path / "tree", top):
        (wd / "kept.txt").write_text("b\n")
    found = undo(tmp_path / "tree", run, newest=True)
    assert found.lines == ()
    assert "quintet discard r1" in found.note
    git(top, "worktree", "remove", "--force", str(tmp_path / "tree"))
    found = undo(top, run, newest=True)
    assert found.lines == (), "these are changes of the user"
    assert "quintet discard" not in found.note


def test_a_project_that_is_a_part_of_its_repository(top: Path, tmp_path: Path) -> None:
    wd = top / "part"
    run = begun(wd)
    (top / "kept.txt").write_text("the user's, meanwhile\n")
    (top / "elsewhere.txt").write_text("the user's too\n")
    (wd / "old.txt").write_text("b\n")
    (wd / "new.txt").write_text("n\n")
    assert [file.path for file in changes_now(wd, run).files] == ["new.txt", "old.txt"]
    (line,) = undo(wd, run, newest=True).lines
    follow(line, tmp_path)
    assert (wd / "old.txt").read_text() == "a\n"
    assert not (wd / "new.txt").exists()
    assert (top / "kept.txt").read_text() == "the user's, meanwhile\n"
    assert (top / "elsewhere.txt").exists()


def test_what_was_not_committed_before_the_run_is_left_alone(top: Path, tmp_path: Path) -> None:
    (top / "kept.txt").write_text("the user's\n")
    (top / "drafts").mkdir()
    (top / "drafts" / "idea.txt").write_text("the user's\n")
    run = begun(top)
    assert run.dirty == ("kept.txt", "drafts/")
    (top / "part" / "old.txt").write_text("the run's\n")
    (top / "[new] *.txt").write_text("the run's\n")
    files = {file.path: file.before for file in changes_now(top, run).files}
    assert files == {"kept.txt": True, "drafts/idea.txt": True, "part/old.txt": False, "[new] *.txt": False}
    found = undo(top, run, newest=True)
    (line,) = found.lines
    assert "kept.txt, drafts/" in found.note
    follow(line, tmp_path)
    assert (top / "part" / "old.txt").read_text() == "a\n"
    assert not (top / "[new] *.txt").exists()
    assert (top / "kept.txt").read_text() == "the user's\n"
    assert (top / "drafts" / "idea.txt").exists()


def test_nothing_but_what_was_there_before(top: Path) -> None:
    (top / "kept.txt").write_text("the user's\n")
    run = begun(top)
    found = undo(top, run, newest=True)
    assert found.lines == ()
    assert found.note.startswith("They cannot be undone")


def test_a_commit_that_holds_the_users_work_too_is_not_reverted(top: Path) -> None:
    (top / "kept.txt").write_text("the user's\n")
    run = begun(top)
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "Both")
    found = undo(top, replace(run, commit=git(top, "rev-parse", "HEAD")), newest=True)
    assert found.lines == ()
    assert "kept.txt" in found.note


@pytest.mark.parametrize("committed", [False, True])
def test_what_git_cannot_undo_is_brought_back_by_the_snapshot_of_before_the_run(
    top: Path, committed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (top / "kept.txt").write_text("the user's\n")
    run = begun(top)
    store = Store(start_snapshot(run.id).parent)
    take(top, store, start_snapshot(run.id).stem)
    store.close()
    (top / "kept.txt").write_text("the run's\n")
    if committed:
        git(top, "commit", "--quiet", "--all", "--message", "Both")
    assert undo(top, run, newest=False).lines == (), "later runs would be undone with it"
    found = undo(top, run, newest=True)
    assert found.lines == (f"quintet restore r1 --wd '{top}'",)
    assert "the moment before the run" in found.note
    (top / ".tmp/r1").mkdir(parents=True)
    restore(top / ".tmp/r1")
    assert (top / "kept.txt").read_text() == "the user's\n"
    assert git(top, "rev-parse", "HEAD") == run.start_commit


def test_commits_are_reverted_and_later_ones_are_not(top: Path, tmp_path: Path) -> None:
    run = begun(top)
    commit(top, "one.txt")
    head = commit(top, "two.txt")
    commit(top, "users.txt")
    (line,) = undo(top, replace(run, head=head, status="PASS"), newest=True).lines
    follow(line, tmp_path)
    assert not (top / "one.txt").exists()
    assert not (top / "two.txt").exists()
    assert (top / "users.txt").exists()


def test_merges_have_no_line(top: Path) -> None:
    run = begun(top)
    git(top, "checkout", "--quiet", "-b", "side")
    commit(top, "side.txt")
    git(top, "checkout", "--quiet", "main")
    commit(top, "main.txt")
    git(top, "merge", "--quiet", "--no-edit", "side")
    found = undo(top, run, newest=True)
    assert found.lines == ()
    assert "merges" in found.note


def test_a_history_that_was_rewritten_has_no_line(top: Path) -> None:
    commit(top, "more.txt")
    run = begun(top)
    git(top, "reset", "--quiet", "--hard", "HEAD~1")
    commit(top, "other.txt")
    found = undo(top, run, newest=True)
    assert found.lines == ()
    assert "rewritten" in found.note


def test_commits_of_another_branch_have_no_line(top: Path) -> None:
    run = begun(top)
    git(top, "checkout", "--quiet", "-b", "side")
    head = commit(top, "side.txt")
    git(top, "checkout", "--quiet", "main")
    found = undo(top, replace(run, head=head), newest=True)
    assert found.lines == ()
    assert "not on the current branch" in found.note


def test_a_journal_that_does_not_tell_is_not_guessed_at(top: Path) -> None:
    run = replace(begun(top), dirty=None)
    (top / "kept.txt").write_text("b\n")
    found = undo(top, run, newest=True)
    assert len(found.lines) == 1
    assert "git status" in found.note


def test_no_repository_and_no_commit(top: Path, tmp_path: Path) -> None:
    assert undo(top, Run(start_commit="0; rm -rf /"), newest=True).lines == ()
    assert undo(tmp_path, Run(start_commit="0" * 40), newest=True).lines == ()
    assert dirty_paths(Settings(wd=tmp_path)) is None
