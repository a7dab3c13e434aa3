"""Processes by their number, also on a system without /proc."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import quintet
from quintet import processes
from tests.eventually import eventually


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.fixture(params=["linux", "elsewhere"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "elsewhere":
        monkeypatch.setattr(processes, "HAS_PROC", False)


@pytest.mark.usefixtures("system")
def test_a_process_is_told_from_a_later_one_by_its_start(sleeper: "subprocess.Popen[bytes]") -> None:
    started = processes.start_time(sleeper.pid)
    assert started
    assert " " not in started
    assert processes.start_time(sleeper.pid) == started
    assert processes.start_time(1) != started
    sleeper.kill()
    sleeper.wait()
    assert processes.start_time(sleeper.pid) == ""


def test_a_zombie_has_ended(sleeper: "subprocess.Popen[bytes]") -> None:
    assert not processes.has_ended(sleeper.pid)
    os.kill(sleeper.pid, signal.SIGKILL)
    eventually(lambda: processes.has_ended(sleeper.pid))
    assert sleeper.returncode is None, "nobody has asked for its exit code"
    sleeper.wait()
    assert processes.has_ended(sleeper.pid)


def test_a_stopped_process_has_not_ended(sleeper: "subprocess.Popen[bytes]") -> None:
    assert not processes.is_stopped(sleeper.pid)
    os.kill(sleeper.pid, signal.SIGSTOP)
    eventually(lambda: processes.is_stopped(sleeper.pid))
    assert not processes.has_ended(sleeper.pid)


@pytest.mark.parametrize("pid", [0, -1, 2**40])
def test_a_number_that_no_process_can_have(pid: int) -> None:
    assert processes.start_time(pid) == ""
    assert not processes.is_stopped(pid)
    if pid:
        assert processes.has_ended(pid)


def test_the_children_of_a_process(sleeper: "subprocess.Popen[bytes]") -> None:
    assert sleeper.pid in processes.children_of(os.getpid())
    assert processes.children_of(sleeper.pid) == []


def test_a_group_that_does_not_end_is_killed(sleeper: "subprocess.Popen[bytes]") -> None:
    processes.end_groups([sleeper.pid], 0.0)
    assert processes.has_ended(sleeper.pid)


def test_no_other_module_uses_what_only_linux_has() -> None:
    words = re.compile(r"\"/proc|SO_PEERCRED|pidfd_|O_PATH|O_TMPFILE|prctl|inotify|memfd|copy_file_range|os\.sched_")
    source = Path(quintet.__file__).parent
    users = {str(path.relative_to(source)) for path in source.rglob("*.py") if words.search(path.read_text())}
    with_another_way = {"command.py", "processes.py", "server/tmux/servers.py", "supervise.py"}
    with_another_way |= {"guard/watching.py"}
    with_another_way |= {"providers/acp/agent_process.py", "providers/acp/process_tree.py"}
    assert users == {*with_another_way, "sandbox/bubblewrap.py", "sandbox/mounts.py", "sandbox/network/outlets.py"}, (
        "tests take the first way away; the sandbox needs Linux"
    )
