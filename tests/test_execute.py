"""The one way to start a run, used as a library: everything goes in as one value and comes out as another."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from quintet.api.client import ApiClient
from quintet.config import load_settings
from quintet.errors import ConfigError, TaskError
from quintet.execute import Result, RunSpec, execute
from quintet.loop.decide.state import Status
from quintet.loop.journal import Event, RunFinished, RunResumed, Warned
from quintet.roles import ANALYST, TESTER
from tests.stub.fake import FakeClock
from tests.stub.project import ONE_PASS, Project, project_in, turns
from tests.stub.replies import ANALYST_SUMMARY, FAIL
from tests.stub.server import Turn


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "x"))
    with project_in(tmp_path) as made:
        yield made


def wait_for(event: threading.Event) -> None:
    assert event.wait(60)


def spec_of(project: Project, listeners: Sequence[list[Event]] = (), **env: str) -> RunSpec:
    settings = load_settings(None, project.env | env, {}, project.wd).settings
    return RunSpec(settings, listeners=[events.append for events in listeners])


def test_a_pass_comes_back_with_its_run_its_folder_and_its_report(project: Project) -> None:
    result = execute(spec_of(project))
    assert (result.exit_code, result.status, result.reason) == (0, Status.PASS, "")
    assert result.run_id == project.state["run_id"]
    assert result.folder == project.wd / ".tmp" / result.run_id
    assert result.report == result.folder / "report.html"
    assert result.report.read_text().startswith("<!doctype html>")
    assert result.api == project.stub.url


def test_a_fail_is_no_error(project: Project) -> None:
    project.stub.script[TESTER] = turns(FAIL)
    result = execute(spec_of(project, MAX_ROUNDS="1"))
    assert (result.exit_code, result.status, result.reason) == (1, Status.FAIL, "")
    assert result.report


def test_a_run_does_not_start_without_the_sandbox_that_it_asks_for(project: Project) -> None:
    with pytest.raises(ConfigError, match="only Quintet's own terminal server can make a sandbox"):
        execute(spec_of(project, SANDBOX="on"))
    assert project.roles == []


def test_what_stopped_a_run_is_named_and_the_next_start_goes_on(project: Project) -> None:
    may_reply = threading.Event()
    project.stub.script[ANALYST] = [Turn(ANALYST_SUMMARY, act=lambda: wait_for(may_reply))]
    stopped = execute(spec_of(project, RESPONSE_TIMEOUT="0.1"))
    assert (stopped.exit_code, stopped.status) == (1, Status.RUNNING)
    assert ANALYST.name in stopped.reason
    may_reply.set()
    events: list[Event] = []
    result = execute(spec_of(project, [events]))
    assert (result.run_id, result.status, result.reason) == (stopped.run_id, Status.PASS, "")
    assert [event for event in events if isinstance(event, RunResumed)]


def test_every_listener_gets_every_event_and_the_warnings_too(project: Project) -> None:
    first, second = list[Event](), list[Event]()
    spec = spec_of(project, [first, second])
    execute(RunSpec(spec.settings, ["the moon is full"], spec.listeners))
    assert first == second
    assert "the moon is full" in [event.text for event in first if isinstance(event, Warned)]
    assert isinstance(first[-1], RunFinished)


def test_what_keeps_a_run_from_starting_is_raised(project: Project) -> None:
    with pytest.raises(TaskError):
        execute(spec_of(project, PROMPT="*** SCENARIO TEST ***\nx\n"))
    assert project.stub.calls == []


def test_a_worker_thread_can_start_a_run(project: Project) -> None:
    results: list[Result] = []
    worker = threading.Thread(target=lambda: results.append(execute(spec_of(project))))
    worker.start()
    worker.join(timeout=60)
    assert [result.status for result in results] == [Status.PASS]


def test_the_server_and_the_clock_can_be_passed_in(project: Project) -> None:
    """Minutes without a reply pass at once."""
    asked: list[str] = []

    def connect(api: str, _sessions: Sequence[str], _warn: Callable[[str], None]) -> ApiClient:
        asked.append(api)
        return ApiClient(project.stub.url, str(project.wd))

    project.stub.script[ANALYST] = [Turn(None, work=3600)]
    settings = spec_of(project, API="", RESPONSE_TIMEOUT="120", POLL_SECONDS="10").settings
    result = execute(RunSpec(settings, clock=FakeClock(), connect=connect))
    assert asked == [""]
    assert result.status is Status.RUNNING
    assert "120 s" in result.reason
    assert project.roles == ONE_PASS[:1]


def test_a_report_that_cannot_be_written_changes_no_outcome(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quintet.execute.write_report", full)
    result = execute(spec_of(project))
    assert (result.exit_code, result.report) == (0, None)
    assert "No space left" in result.report_error
