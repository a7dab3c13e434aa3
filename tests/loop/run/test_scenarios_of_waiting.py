"""Scenarios of the seeds about waiting, as it shows from outside. Exact times are tested with a simulated clock."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.roles import ANALYST, TESTER
from tests.stub.project import ONE_PASS, Project, finish, project_in, until
from tests.stub.replies import ANALYST_SUMMARY, PASS
from tests.stub.server import Stub, Terminal, Turn


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with project_in(tmp_path) as made:
        made.env["MAX_FILE_REMINDERS"] = "0"
        yield made


def analyst(stub: Stub) -> Terminal:
    return next(terminal for terminal in stub.terminals.values() if terminal.role is ANALYST)


def polls(stub: Stub) -> int:
    """Status requests for the analyst since its prompt."""
    path = f"/terminals/{analyst(stub).id}"
    calls = list(stub.calls)
    sent = max(i for i, call in enumerate(calls) if call.path == f"{path}/input")
    return sum(call.method == "GET" and call.path == path for call in calls[sent:])


@pytest.mark.scenario("003", "Agent writes response file and terminal becomes idle")
def test_agent_writes_response_file_and_terminal_becomes_idle(project: Project) -> None:
    project.stub.script[ANALYST] = [Turn(ANALYST_SUMMARY, rest_after=0.3, then="idle")]
    assert project.run().code == 0
    assert (project.archive / "001-analyst.md").read_text() == ANALYST_SUMMARY
    assert not project.response_file(ANALYST).exists()


@pytest.mark.scenario("003", "Startup guard blocks premature grace timer")
def test_startup_guard_blocks_premature_grace_timer(project: Project) -> None:
    """The terminal shows the status of the turn before for longer than the grace, then works, then answers."""
    begin = threading.Event()
    project.stub.script[ANALYST] = [Turn(ANALYST_SUMMARY, seen="completed", act=lambda: (begin.wait(30), None)[1])]
    process = project.start(IDLE_GRACE_SECONDS="20")
    project.prompt_number(1)
    until(lambda: polls(project.stub) > 10, "ten polls of an idle terminal")
    assert process.poll() is None
    begin.set()
    done = finish(process)
    assert done.code == 0
    assert "not seen at work" not in done.out


@pytest.mark.scenario("003", "Agent starts processing and then completes")
def test_agent_starts_processing_and_then_completes(project: Project) -> None:
    project.stub.first_status = "completed"
    assert project.run(IDLE_GRACE_SECONDS="5").code == 0
    assert project.roles == ONE_PASS


@pytest.mark.scenario("003", "Startup timeout releases guard")
def test_startup_timeout_releases_guard(project: Project) -> None:
    project.stub.script[ANALYST] = [Turn(None, seen="completed")]
    done = project.run(IDLE_GRACE_SECONDS="0.3")
    assert done.code == 1
    assert "warning: analyst was not seen at work" in done.out
    (released,) = project.events("guard_released")
    assert released["role"] == "analyst"
    assert released["seconds"] >= 0.3


@pytest.mark.scenario("003", "Response file appears during startup guard")
def test_response_file_appears_during_startup_guard(project: Project) -> None:
    project.stub.script[ANALYST] = [Turn(ANALYST_SUMMARY, seen="idle", then="idle")]
    done = project.run(IDLE_GRACE_SECONDS="3600")
    assert done.code == 0
    assert "not seen at work" not in done.out


@pytest.mark.scenario("003", "Agent ignores file instruction but terminal finishes (default mode)")
def test_agent_ignores_file_instruction_but_terminal_finishes_default_mode(project: Project) -> None:
    project.stub.script[TESTER] = [Turn(None, screen=PASS)]
    assert project.run(STRICT_FILE_HANDOFF="no", IDLE_GRACE_SECONDS="0.2").code == 0
    assert project.state["outputs"]["tester"] == PASS
    assert project.events("reply_taken")[-1]["source"] == "screen"


@pytest.mark.scenario("003", "Agent ignores file instruction but terminal finishes (strict mode)")
def test_agent_ignores_file_instruction_but_terminal_finishes_strict_mode(project: Project) -> None:
    project.stub.script[TESTER] = [Turn(None, screen=PASS)]
    done = project.run(IDLE_GRACE_SECONDS="0.2")
    assert done.code == 1
    assert "no response file" in done.err
    assert project.stub.of("GET", "/output") == []


@pytest.mark.scenario("003", "Terminal enters error state")
def test_terminal_enters_error_state(project: Project) -> None:
    project.stub.script[TESTER] = [Turn(PASS, then="error")]
    done = project.run()
    assert done.code == 1
    assert "tester" in done.err
    assert project.state["outputs"]["tester"] == ""


@pytest.mark.scenario("003", "Timeout with terminal still processing")
def test_timeout_with_terminal_still_processing(project: Project) -> None:
    project.stub.script[ANALYST] = [Turn(None, work=60)]
    done = project.run(RESPONSE_TIMEOUT="0.4")
    assert done.code == 1
    assert "processing" in done.err


@pytest.mark.scenario("003", "waiting_user_answer counts as agent started")
def test_waiting_user_answer_counts_as_agent_started(project: Project) -> None:
    project.stub.script[ANALYST] = [Turn(None, seen="waiting_user_answer", work=0.3, then="idle")]
    done = project.run(IDLE_GRACE_SECONDS="0.5")
    assert done.code == 1
    assert "not seen at work" not in done.out
    assert project.events("guard_released") == []


@pytest.mark.scenario("003", "Idle grace resets on processing observation")
def test_idle_grace_resets_on_processing_observation(project: Project) -> None:
    """Idle and at work by turns, for longer than the grace in all."""

    def flicker() -> None:
        terminal = analyst(project.stub)
        for _ in range(12):
            for status in ("idle", "processing"):
                terminal.status = status
                seen = polls(project.stub)
                until(lambda seen=seen: polls(project.stub) > seen + 2, "polls")  # type: ignore[misc]

    project.stub.script[ANALYST] = [Turn(ANALYST_SUMMARY, act=flicker)]
    done = project.run(IDLE_GRACE_SECONDS="1.5")
    assert done.code == 0, done.text
    assert project.roles == ONE_PASS
