"""SIGINT and SIGTERM: the state is saved, nothing hangs, a second signal ends at once."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.loop.record.signals import Interrupted, Signals
from quintet.roles import PROGRAMMER
from tests.stub.project import ONE_PASS, Project, finish, project_in, until
from tests.stub.replies import PROGRAMMER_SUMMARY
from tests.stub.server import Fault, Turn

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with project_in(tmp_path) as made:
        yield made


@pytest.mark.parametrize("number", CODES)
def test_stopped_while_an_agent_works(project: Project, number: signal.Signals) -> None:
    project.stub.script[PROGRAMMER] = [Turn(PROGRAMMER_SUMMARY, work=1.0)]
    process = project.start()
    project.prompt_number(3)
    process.send_signal(number)
    done = finish(process)
    assert done.code == CODES[number]
    assert done.err.count("\n") == 1
    assert f"interrupted by {number.name}" in done.err
    assert project.state["final_status"] == "RUNNING"
    assert project.state["last_error"] == f"interrupted by {number.name}"
    assert project.run().code == 0
    assert project.roles == ONE_PASS
    assert project.state["last_error"] == ""


@pytest.mark.parametrize(
    ("number", "request_line"), [(signal.SIGINT, "GET /health"), (signal.SIGTERM, "POST /00000003/input")]
)
def test_stopped_in_the_middle_of_a_hanging_request(
    project: Project, number: signal.Signals, request_line: str
) -> None:
    project.saved_run()
    project.stub.faults[request_line] = [Fault(500, after=60)]
    process = project.start()
    until(lambda: project.stub.faulty, "a hanging request")
    process.send_signal(number)
    assert finish(process).code == CODES[number]
    assert project.state["last_error"] == f"interrupted by {number.name}"


def test_cleanup_on_exit_ends_the_terminals_of_an_interrupted_run(project: Project) -> None:
    project.stub.script[PROGRAMMER] = [Turn(None, work=60)]
    process = project.start(CLEANUP_ON_EXIT="1")
    project.prompt_number(3)
    process.send_signal(signal.SIGTERM)
    assert finish(process).code == 143
    assert len(project.stub.of("POST", "/exit")) == 5


@pytest.mark.parametrize("again", [False, True])
def test_a_cleanup_that_hangs_keeps_nobody_and_a_second_signal_ends_at_once(project: Project, again: bool) -> None:
    project.saved_run()
    project.stub.script[PROGRAMMER] = [Turn(None, work=60)]
    project.stub.faults["POST /exit"] = [Fault(500, after=60)] * 5
    process = project.start(CLEANUP_ON_EXIT="1")
    project.prompt_number(1)
    process.send_signal(signal.SIGINT)
    if again:
        until(lambda: len(project.stub.faulty) == 5, "the cleanup")
        process.send_signal(signal.SIGTERM)
    assert finish(process).code == (143 if again else 130)
    assert project.state["last_error"] == "interrupted by SIGINT"


def test_stopped_while_the_users_command_runs(project: Project) -> None:
    process = project.start(VERIFY_CMD="echo $$ > pid; exec sleep 600", RED_FIRST="off")
    pid = int(until(lambda: (project.wd / "pid").exists() and (project.wd / "pid").read_text().strip(), "the command"))
    process.send_signal(signal.SIGTERM)
    assert finish(process).code == 143
    until(lambda: not alive(pid), "the command's end")
    assert project.state["turn"] == "verify"
    assert project.run(VERIFY_CMD="true").code == 0
    assert project.roles == ONE_PASS


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# -- the object itself


def hear(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", CODES)
def test_a_signal_becomes_an_exception_and_handlers_are_put_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Signals():
        with pytest.raises(Interrupted) as caught:
            hear(number)
        assert caught.value.exit_code == CODES[number]
    assert signal.getsignal(number) is before


def test_no_error_handler_catches_it() -> None:
    assert not issubclass(Interrupted, Exception)


def test_what_belongs_together_is_finished_first() -> None:
    done: list[str] = []

    def change() -> None:
        with signals.deferred():
            hear(signal.SIGINT)
            with signals.deferred():
                done.append("inner")
            done.append("outer")

    with Signals() as signals, pytest.raises(Interrupted):
        change()
    assert done == ["inner", "outer"]


def test_an_error_in_a_deferred_part_is_that_error() -> None:
    def change() -> None:
        with signals.deferred():
            hear(signal.SIGINT)
            raise OSError("disk full")

    with Signals() as signals, pytest.raises(OSError, match="disk full"):
        change()


def test_last_words_are_not_interrupted_again() -> None:
    with Signals() as signals:
        with pytest.raises(Interrupted):
            hear(signal.SIGINT)
        signals.last_words()
        with signals.deferred():
            saved = True
    assert saved


def test_a_signal_and_its_echo_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`timeout` sends its signal to the process and to the process's group."""
    moments = iter([10.0, 10.01, 10.5])
    ended: list[int] = []
    monkeypatch.setattr("quintet.loop.record.signals.time.monotonic", lambda: next(moments))
    monkeypatch.setattr("quintet.loop.record.signals.os._exit", ended.append)
    signals = Signals()
    with pytest.raises(Interrupted):
        signals._handle(signal.SIGTERM, None)
    signals._handle(signal.SIGTERM, None)
    assert ended == []
    with pytest.raises(Interrupted):  # the process would have ended here
        signals._handle(signal.SIGTERM, None)
    assert ended == [143]
