"""One run per directory."""

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.errors import RunError
from quintet.loop.record.lock import directory_lock, is_locked
from quintet.roles import ANALYST
from tests.stub.project import ONE_PASS, Project, finish, killed, project_in, turns, until
from tests.stub.replies import ANALYST_SUMMARY
from tests.stub.server import Turn


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with project_in(tmp_path) as made:
        yield made


def test_a_second_run_exits_1_and_names_the_first(project: Project) -> None:
    project.stub.script[ANALYST] = [Turn(None, work=60)]
    first = project.start()
    project.prompt_number(1)
    before = project.state_file.read_bytes()
    second = project.run()
    assert second.code == 1
    assert f"process {first.pid}" in second.err
    assert len(second.err.splitlines()) == 1
    assert project.state_file.read_bytes() == before
    assert len(project.stub.of("POST", "/sessions")) == 1
    assert first.poll() is None


def test_a_killed_run_leaves_no_lock(project: Project) -> None:
    process = project.start()
    project.prompt_number(1)
    process.send_signal(signal.SIGKILL)
    killed(process)
    assert project.run().code == 0
    assert project.roles == ONE_PASS


def test_git_clean_does_not_open_the_door(project: Project) -> None:
    """The lock is not in the work tree, and the name of its holder is put back."""
    subprocess.run(["git", "init", "--quiet"], cwd=project.wd, check=True, env=project.env)
    pid_file = project.wd / ".tmp" / "quintet.pid"
    second: list[object] = []

    def clean() -> None:
        # not checked: what the run puts back at that very moment is a complaint of git's
        subprocess.run(["git", "clean", "-fdxq"], cwd=project.wd, check=False, env=project.env, capture_output=True)
        until(pid_file.exists, "the name of the holder")
        second.append(project.run())

    project.stub.script[ANALYST] = turns(ANALYST_SUMMARY, act=clean)
    process = project.start()
    assert finish(process).code == 0
    (refused,) = second
    assert f"process {process.pid}" in str(refused)
    assert "code=1" in str(refused)


def test_another_directory_is_another_lock(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with directory_lock(tmp_path / "a"), directory_lock(tmp_path / "b"):
        assert (tmp_path / "b" / ".tmp" / "quintet.pid").exists()


def test_the_lock_is_given_back(tmp_path: Path) -> None:
    for _ in range(2):
        with directory_lock(tmp_path), pytest.raises(RunError, match="another run"), directory_lock(tmp_path):
            pass


def test_a_holder_without_a_name(tmp_path: Path) -> None:
    with directory_lock(tmp_path):
        (tmp_path / ".tmp" / "quintet.pid").write_text("nobody")
        with pytest.raises(RunError, match="no process id"), directory_lock(tmp_path):
            pass


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be read"), directory_lock(tmp_path / "nowhere"):
        pass


def test_whether_a_directory_is_held_can_be_asked_without_taking_it(tmp_path: Path) -> None:
    assert not is_locked(tmp_path)
    with directory_lock(tmp_path):
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
    assert not is_locked(tmp_path / "nowhere")


def test_somebody_who_only_looks_keeps_no_run_from_starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look has the lock for an instant; the run tries again."""
    looking = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
    with directory_lock(tmp_path):
        assert is_locked(tmp_path)
    os.close(looking)
