"""Repositories inside of the project are data: git never runs in them, and none may appear in a turn."""

import os
import socket
from pathlib import Path

import pytest

from tests.guard.projects import EVERYTHING, NOTHING, Project, git, make


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make(tmp_path)


def nested(project: Project, name: str) -> Path:
    """Make a repository with one commit whose `git status` runs a command."""
    folder = project.tree / name
    git(project.tree, "init", "--quiet", name)
    (folder / "f").write_text("a\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "inner")
    mark = project.tree.parent / "mark"
    for key in ("core.fsmonitor", "filter.x.clean", "core.sshCommand"):
        git(folder, "config", key, f"touch {mark}; cat")
    (folder / ".gitattributes").write_text("* filter=x\n")
    (folder / "f").write_text("b\n")
    mark.unlink(missing_ok=True)
    return folder


@pytest.mark.parametrize("name", ["lib", "src/deep", "src"])
def test_a_new_one_runs_nothing_and_is_taken_out(project: Project, name: str) -> None:
    """Finding 1."""
    project.take()
    folder = nested(project, name)
    assert f"inner created {name}/.git" in project.kinds()
    assert project.undo(EVERYTHING).failed == {}
    assert not (folder / ".git").exists()
    assert (folder / "f").read_text() == "b\n"
    kept = project.patch.with_suffix(".1.git")
    assert (kept / "HEAD").exists()
    assert not (kept / "config").exists()
    project.take()
    assert project.changes() == ()
    assert not (project.tree.parent / "mark").exists()


def test_an_old_one_runs_nothing_and_its_changes_are_told(project: Project) -> None:
    folder = nested(project, "lib")
    project.take()
    assert project.kinds() == set()
    found = (folder / "f").stat()
    (folder / "f").write_text("c\n")
    os.utime(folder / "f", ns=(found.st_atime_ns, found.st_mtime_ns))
    assert project.kinds() == {"nested changed lib/"}, "a forged time hides nothing"
    assert project.split(NOTHING).forbidden == ()
    assert not (project.tree.parent / "mark").exists()


def test_what_git_does_not_take_for_a_repository_is_seen_too(project: Project) -> None:
    project.take()
    project.write("src/.git", "gitdir: /nowhere\n")
    project.write("empty/.git/config", "[core]\n")
    (project.tree / "bare").mkdir()
    (project.tree / "bare" / ".git").symlink_to("/nowhere")
    (project.tree / "harmless" / ".git").mkdir(parents=True)
    assert project.kinds() == {f"inner created {name}/.git" for name in ("src", "empty", "bare")}
    assert project.undo(EVERYTHING).failed == {}
    project.take()
    assert project.changes() == ()


def test_one_in_an_old_one_is_taken_out(project: Project) -> None:
    folder = nested(project, "lib")
    project.take()
    nested(project, "lib/inner")
    assert "inner created lib/inner/.git" in project.kinds()
    assert project.undo(EVERYTHING).failed == {}
    assert not (folder / "inner" / ".git").exists()
    assert (folder / ".git").is_dir()


def test_pipes_and_sockets_are_nobodys_to_make(project: Project) -> None:
    """Finding 26."""
    os.mkfifo(project.tree / "old")
    project.take()
    (project.tree / "new").mkdir()
    os.mkfifo(project.tree / "new" / "pipe")
    (project.tree / "src" / "main.c").unlink()
    os.mkfifo(project.tree / "src" / "main.c")
    here = Path.cwd()
    os.chdir(project.tree)  # the path of a socket has to be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket")
    finally:
        os.chdir(here)
    forbidden = {f"{change.kind} {change.name}" for change in project.split(EVERYTHING).forbidden}
    assert forbidden == {"created new/pipe", "created socket", "type src/main.c"}
    assert project.undo(EVERYTHING).failed == {}
    assert project.changes() == ()
    assert not (project.tree / "new").exists()
    assert (project.tree / "old").exists()
