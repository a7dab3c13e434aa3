"""`quintet stop`: the run's own process ends first, its state is kept, its terminals end, and it can go on."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.layout import STATE_FILE
from quintet.loop.decide.state import State
from quintet.loop.record.lock import find_process
from quintet.loop.record.state_file import save_state
from quintet.processes import Process, start_time
from quintet.roles import ANALYST, PROGRAMMER
from quintet.server.state_folder import StateFolder
from quintet.setup import stopping
from quintet.setup.stopping import KILLED, Target
from tests.eventually import eventually
from tests.stub.preloaded import run
from tests.stub.project import Project, finish, project_in
from tests.stub.server import Turn
from tests.watch.scripted import Scripted, scripted, story

HANG = [[{"hang": True}]]


@pytest.fixture
def project() -> Iterator[Scripted]:
    """A project whose programmer never comes to an end."""
    with scripted(story() | {PROGRAMMER.name: HANG}) as made:
        yield made


def at_programmer(project: Scripted) -> "subprocess.Popen[str]":
    """A run whose programmer has its prompt."""
    process = project.start("run", "--plain")
    project.until_there("20*/prompts/*-programmer.md")
    return process


def state_of(project: Scripted) -> dict[str, object]:
    found: dict[str, object] = json.loads((project.wd / ".tmp/quintet-state.json").read_text(encoding="utf-8"))
    return found


def kinds(project: Scripted) -> list[str]:
    return [event["event"] for event in project.journal]


def test_stop_ends_the_run_and_its_terminals_and_it_goes_on(project: Scripted) -> None:
    process = at_programmer(project)
    pid_file = project.wd / ".tmp/quintet.pid"
    pid_file.write_text("1 1\n")  # an agent can write there, but the run puts the number right
    eventually(lambda: pid_file.read_text().startswith(f"{process.pid} "), "the right number")
    made = kinds(project).count("terminal_created")
    code, said = project.call("stop")
    assert (code, process.wait(timeout=60)) == (0, 128 + signal.SIGTERM), said
    assert f"process {process.pid}" in said
    assert "It has stopped, and its state is saved." in said
    assert re.search(r"Resume it: .+ -m quintet run\n", said)
    assert project.call("ps")[1] == "No terminals.\n"
    assert "terminal_lost" not in kinds(project), "a run that is being stopped replaces no terminal"
    assert kinds(project).count("terminal_created") == made == 5
    last = project.journal[-1]
    assert (last["event"], last["reason"], last["cleaned_up"]) == ("run_stopped", "stopped with quintet stop", True)
    assert "stopped with quintet stop" in (project.folder / "report.md").read_text(encoding="utf-8")
    project.script(story())
    code, said = project.call("run", "--plain", RECOVER_TERMINALS="0")
    assert code == 0, said
    assert len(list(project.wd.glob(".tmp/20*"))) == 1, "the same run went on"


def test_every_way_to_name_a_run(project: Scripted) -> None:
    first = at_programmer(project)
    run, session = (str(state_of(project)[name]) for name in ("run_id", "session_name"))
    first.send_signal(signal.SIGSTOP)
    code, said = project.call("stop", "--keep-terminals")
    assert (code, first.wait(timeout=60)) == (0, 128 + signal.SIGTERM), "a suspended run is stopped too"
    assert "Its terminals stay" in said
    assert len(project.call("ps")[1].splitlines()) == 5
    assert project.call("stop", "--keep-terminals") == (
        1,
        "quintet: no run is running there, so there are only terminals to end\n",
    )
    assert "exclude each other" in project.call("stop", run, "--all")[1]
    assert "there is no run 1999" in project.call("stop", "1999")[1]
    second = resumed(project)
    code, said = project.call("stop", run[:17], "--keep-terminals")
    assert (code, second.wait(timeout=60)) == (0, 128 + signal.SIGTERM), said
    third = resumed(project)
    code, said = project.call("stop", "--session", session)
    assert (code, third.wait(timeout=60)) == (0, 128 + signal.SIGTERM), "a session takes its live run with it"
    assert said.count("Ended") == 1
    assert project.call("ps")[1] == "No terminals.\n"
    assert project.call("stop", run) == (1, f"quintet: the run {run} is not running and has no terminals\n")
    assert project.call("stop")[0] == 1


def resumed(project: Scripted) -> "subprocess.Popen[str]":
    """Start the run again and wait until it is at work."""
    before = kinds(project).count("run_resumed")
    process = project.start("run", "--plain")
    eventually(lambda: kinds(project).count("run_resumed") > before, "a run that continues")
    return process


def test_all_ends_every_run_of_the_user_and_they_continue() -> None:
    with scripted(story() | {ANALYST.name: HANG}) as project:
        first = project.start("run", "--plain")
        other = project.root / "other"
        other.mkdir()
        second = project.start("run", "--plain", WD=str(other))
        project.until_there("20*/prompts/*-analyst.md")
        eventually(lambda: list(other.glob(".tmp/20*/prompts/*-analyst.md")), "the second run")
        code, said = project.call("stop", "--all")
        assert code == 0, said
        assert [process.wait(timeout=60) for process in (first, second)] == [128 + signal.SIGTERM] * 2
        assert re.search(r"Resume it: .+ -m quintet run\n", said)
        assert re.search(rf"Resume it: cd {other} && .+ -m quintet run\n", said)
        assert project.call("ps")[1] == "No terminals.\n"
        assert project.call("stop", "--all") == (0, "")
        project.script(story())
        code, said = project.call("run", "--plain", PROMPT="")
        assert code == 0, "a run that has delivered nothing yet can be resumed"


# -- a run on another server, whose terminals no tmux of ours knows


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Project]:
    with project_in(tmp_path) as made:
        made.stub.script[PROGRAMMER] = [Turn(None, work=600)]
        yield made


def stop(project: Project, *words: str) -> tuple[int, str]:
    done = run(["stop", *words], project.env, project.wd)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("words", [[], ["--all"]])
def test_the_terminals_of_another_server_are_ended_there(elsewhere: Project, words: list[str]) -> None:
    process = elsewhere.start()
    elsewhere.prompt_number(3)
    code, said = stop(elsewhere, *words)
    assert code == 0, said
    assert finish(process).code == 128 + signal.SIGTERM
    assert len(elsewhere.stub.of("POST", "/exit")) == 5
    assert f"at {elsewhere.stub.url}" in said
    assert elsewhere.state["terminals"]["programmer"]["id"] == ""
    assert stop(elsewhere)[0] == 1


# -- the process itself

HOLDER = """
import signal, sys, time
from pathlib import Path
from quintet.loop.record.lock import directory_lock
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with directory_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def deaf(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that holds the directory and does not listen."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_process_that_does_not_listen_is_killed(
    deaf: "subprocess.Popen[str]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "PATIENCE_SECONDS", 0.2)
    said: list[str] = []
    stopping.stop(Target(tmp_path, find_process(tmp_path)), said.append)
    assert deaf.wait(timeout=30) == -signal.SIGKILL
    assert "It did not stop within 0.2 s, so it was killed. Its state is that of its last step." in said
    assert "killed" in KILLED


def test_a_number_that_another_process_has_by_now_is_not_hit(deaf: "subprocess.Popen[str]", tmp_path: Path) -> None:
    holder = Process(deaf.pid, start_time(deaf.pid))
    assert find_process(tmp_path) == holder
    (tmp_path / ".tmp/quintet.pid").unlink()  # a check may clean the work tree
    assert find_process(tmp_path) == holder
    stopping.stop(Target(tmp_path, Process(deaf.pid, "an earlier time")), lambda _: None)
    with pytest.raises(subprocess.TimeoutExpired):
        deaf.wait(timeout=0.3)
    assert not Process(os.getppid(), "").is_there


def test_nobody_holds_it(tmp_path: Path) -> None:
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp/quintet.pid").write_text(f"{os.getpid()} {start_time(os.getpid())}\n")
    assert find_process(tmp_path) is None


def test_of_a_run_without_a_state_none_is_said_to_be_saved(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER.replace("SIG_IGN", "SIG_DFL"), str(tmp_path)]
    said: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        stopping.stop(Target(tmp_path, find_process(tmp_path)), said.append)
    assert said[1:] == ["It has stopped; it had not begun yet."]


def test_a_session_that_has_no_terminal_yet_ends_with_what_is_below_its_folder(tmp_path: Path) -> None:
    name = "20260101-000000-abcdef-0001"
    save_state(State(wd=str(tmp_path), session_name=name), tmp_path / STATE_FILE)
    tmux = ["tmux", "-S", str(StateFolder().socket(name)), "-f", "/dev/null"]
    subprocess.run([*tmux, "new-session", "-d", "-s", name, "sleep 1000"], check=True)
    try:
        stopping.stop_below(tmp_path, lambda _: None)
        assert subprocess.run([*tmux, "has-session"], check=False, capture_output=True).returncode == 1
    finally:
        subprocess.run([*tmux, "kill-server"], check=False, capture_output=True)
