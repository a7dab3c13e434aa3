"""An undo that is killed at any moment is finished by the next start."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quintet import git
from quintet.guard import Split, Store, finish, load, undo
from tests.guard.projects import NOTHING, Deed, Project, make, state

WRITES = ("open", "write", "replace", "unlink", "mkdir", "rmdir", "symlink", "chmod", "fchmod", "link", "fsync", "sync")

STRIDE = 7
"""every seventh write: what is in between differs mostly in the file that it concerns"""


class Killed(BaseException):
    """The process is no more: not even its clean-up runs."""


class Killer:
    """Lets a number of operations pass, and none after them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, passing: int) -> None:
        self.passing = passing
        for name in WRITES:
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))
        monkeypatch.setattr(git, "run", self._counted(git.run))

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            reads = function.__name__ == "open" and not arguments[1] & os.O_CREAT
            if not reads:
                self.passing -= 1
                if self.passing < 0:
                    raise Killed
            return function(*arguments, **options)

        return call


def many_things(project: Project) -> None:
    project.write("src/main.c", "edited\n")
    (project.tree / "run.sh").unlink()
    project.write("run.sh/inner.txt", "in the way")
    shutil.rmtree(project.tree / "src/deep")
    (project.tree / "link").unlink()
    (project.tree / "link").symlink_to("elsewhere")
    (project.tree / "image.bin").chmod(0o600)
    project.write("new/file.txt", "new")
    project.write(".git/hooks/pre-commit", "#!/bin/sh\n")
    project.git("add", "src/main.c")
    project.git("commit", "--quiet", "--message", "agent")
    project.git("branch", "new")
    project.git("stash", "drop")


def no_repository(project: Project) -> None:
    shutil.rmtree(project.tree / ".git")
    project.write("src/main.c", "edited\n")


@pytest.mark.filterwarnings("ignore:Exception ignored")  # the dead do not close their files
@pytest.mark.parametrize("deed", [many_things, no_repository])
def test_an_undo_killed_at_any_write_is_finished_by_the_next_start(tmp_path: Path, deed: Deed) -> None:
    project = make(tmp_path)
    project.take()
    was = state(project)
    kills, completed = 0, False
    while not completed:
        deed(project)
        split = project.split(NOTHING)
        completed = not killed(project, split, kills)
        project.store.close()
        project.store = Store(project.store.folder)
        project.before = load(project.store, "turn")
        done = finish(project.store)
        assert done is None or done.failed == {}, kills
        if done is None and not completed:
            assert project.undo().failed == {}, kills
        assert state(project) == was, kills
        assert finish(project.store) is None
        kills += STRIDE
    assert kills > 30


def killed(project: Project, split: Split, passing: int) -> bool:
    assert project.before
    with pytest.MonkeyPatch.context() as monkeypatch:
        Killer(monkeypatch, passing)
        try:
            undo(split, project.before, project.store, project.patch)
        except Killed:
            return True
    return False


def test_what_somebody_changed_after_the_kill_is_left_alone(tmp_path: Path) -> None:
    project = make(tmp_path)
    project.take()
    project.write("src/main.c", "by the agent\n")
    project.write("new.txt", "by the agent\n")
    split = project.split(NOTHING)
    passing = 0
    while killed(project, split, passing) and not (project.store.folder / "undo.plan").exists():
        passing += 1
    project.write("src/main.c", "by the user, later\n")
    done = finish(project.store)
    assert done
    assert list(done.failed) == ["src/main.c"]
    assert (project.tree / "src/main.c").read_text() == "by the user, later\n"
    assert not (project.tree / "new.txt").exists()


def test_a_snapshot_outlives_its_process(tmp_path: Path) -> None:
    project = make(tmp_path)
    taken = project.take()
    project.store.close()
    project.store = Store(project.store.folder)
    assert load(project.store, "turn") == taken
    assert load(project.store, "another") is None
    project.before = load(project.store, "turn")
    (project.tree / "run.sh").write_text("edited")
    project.undo()
    assert (project.tree / "run.sh").read_text() == "#!/bin/sh\n"
