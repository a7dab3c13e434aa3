"""One run per directory."""

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.errors import RunError
from quintet.loop.record import lock
from quintet.loop.record.lock import (
    directory_lock,
    find_process,
    is_locked,
    no_run,
    sign_again,
    worker,
)
from quintet.processes import Process, start_time
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
    until(lambda: project.state["arrived"], "the last change of the state while the analyst is at work")
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


def test_a_holder_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "PROC", tmp_path / "no such system")
    with directory_lock(tmp_path):
        (tmp_path / ".tmp" / "quintet.pid").write_text("nobody")
        with pytest.raises(RunError, match="cannot be told"), directory_lock(tmp_path):
            pass
        with pytest.raises(RunError, match="cannot be told"):
            find_process(tmp_path)


@pytest.fixture
def bystander() -> Iterator[int]:
    """A process that has nothing to do with any run."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


@pytest.mark.skipif(not Path("/proc/self/fdinfo").exists(), reason="only Linux says who holds a lock")
@pytest.mark.parametrize("word", ["gone", "garbage", "bystander", "link", "pipe"])
def test_the_holder_is_found_whatever_is_written_in_its_name(tmp_path: Path, bystander: int, word: str) -> None:
    """An agent that names another process must not make anybody stop that one."""
    with directory_lock(tmp_path):
        pid_file = tmp_path / ".tmp" / "quintet.pid"
        pid_file.unlink()
        if word == "garbage":
            pid_file.write_bytes(b"\xff" * 100_000)
        elif word == "bystander":
            pid_file.write_text(f"{bystander} {start_time(bystander)}\n")
        elif word == "link":
            pid_file.symlink_to("/dev/zero")
        elif word == "pipe":
            os.mkfifo(pid_file)
        assert find_process(tmp_path) == Process(os.getpid(), start_time(os.getpid()))
        assert worker(tmp_path) == f"process {os.getpid()}"
        sign_again(tmp_path)
        assert pid_file.read_text() == f"{os.getpid()} {start_time(os.getpid())}\n"
    assert (find_process(tmp_path), worker(tmp_path)) == (None, "")


def test_while_no_run_may_begin_others_may_ask_for_the_same(tmp_path: Path) -> None:
    with no_run(tmp_path), no_run(tmp_path):
        assert find_process(tmp_path) is None
        with pytest.raises(RunError), directory_lock(tmp_path):
            pass
    with directory_lock(tmp_path), pytest.raises(RunError, match="another run"), no_run(tmp_path):
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
