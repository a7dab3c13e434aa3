"""The guard is exact whatever the user's git settings say."""

from pathlib import Path

import pytest

from tests.guard.projects import Project, git, make, state
from tests.guard.test_undo import HARMLESS, SERIOUS


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = make(tmp_path)
    made.git("config", "core.autocrlf", "true")
    return made


@pytest.mark.parametrize("name", ["checks everything out", "resets hard", "stashes", "commits"])
def test_an_undo_is_exact_if_git_converts_line_ends(project: Project, name: str) -> None:
    project.take()
    was = state(project)
    (SERIOUS | HARMLESS)[name](project)

    assert project.undo().failed == {}
    assert state(project) == was


def test_an_undo_is_whole_while_another_git_holds_the_index(project: Project) -> None:
    project.take()
    project.git("checkout", "--quiet", "HEAD", "--", ".")  # notes other sizes in the index
    lock = project.write(".git/index.lock", "")
    bytes_before = (project.tree / ".git/index").read_bytes()

    assert project.undo().failed == {}
    assert (project.tree / "run.sh").read_bytes() == b"#!/bin/sh\n"
    assert (project.tree / ".git/index").read_bytes() == bytes_before
    lock.unlink()


def test_an_undo_keeps_the_flags_of_the_index(project: Project) -> None:
    project.git("update-index", "--assume-unchanged", "run.sh")
    project.write("intended.txt", "")
    project.git("add", "--intent-to-add", "intended.txt")
    project.take()
    was = state(project)
    project.write("run.sh", "#!/bin/sh\nexit 1\n")
    project.write("intended.txt", "more\n")
    project.write("src/main.c", "changed by an agent\n")

    assert project.undo().failed == {}
    assert state(project) == was


def test_untracked_files_of_a_nested_repository_count_if_git_shows_none(project: Project) -> None:
    git(project.tree, "init", "--quiet", "nested")
    nested = project.tree / "nested"
    git(nested, "commit", "--quiet", "--allow-empty", "--message", "one")
    git(nested, "config", "status.showUntrackedFiles", "no")
    project.take()
    (nested / "new.c").write_text("new\n")

    assert "nested changed nested/" in project.kinds()
