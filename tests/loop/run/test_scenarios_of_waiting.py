"""Scenarios of the seeds about waiting, as it shows from outside. Exact times are tested with a simulated clock."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.roles import ANALYST, TESTER
from tests.stub.project import ONE_PASS
from tests.stub.replies import ANALYST_SUMMARY, PASS
from tests.stub.server import Turn
from tests.stub.simulated import SimulatedProject, simulated_project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[SimulatedProject]:
    with simulated_project(tmp_path) as made:
        made.env["MAX_FILE_REMINDERS"] = "0"
        yield made


@pytest.mark.scenario("003", "Agent writes response file and terminal becomes idle")
def test_agent_writes_response_file_and_terminal_becomes_idle(project: SimulatedProject) -> None:
    project.stub.script[ANALYST] = [Turn(ANALYST_SUMMARY, rest_after=0.3, then="idle")]
    assert project.run().code == 0
    assert (project.archive / "001-analyst.md").read_text() == ANALYST_SUMMARY
    assert not project.response_file(ANALYST).exists()


@pytest.mark.scenario("003", "Startup guard blocks premature grace timer")
def test_startup_guard_blocks_premature_grace_timer(project: SimulatedProject) -> None:
    """The terminal shows the status of the turn before for longer than the grace, then works, then answers."""
    project.stub.script[ANALYST] = [Turn(ANALYST_SUMMARY, seen="completed", work=19.0)]
    done = project.run(IDLE_GRACE_SECONDS="20")
    assert done.code == 0
    assert "not seen at work" not in done.out


@pytest.mark.scenario("003", "Agent starts processing and then completes")
def test_agent_starts_processing_and_then_completes(project: SimulatedProject) -> None:
    project.stub.first_status = "completed"
    assert project.run(IDLE_GRACE_SECONDS="5").code == 0
    assert project.roles == ONE_PASS


@pytest.mark.scenario("003", "Startup timeout releases guard")
def test_startup_timeout_releases_guard(project: SimulatedProject) -> None:
    project.stub.script[ANALYST] = [Turn(None, seen="completed")]
    done = project.run(IDLE_GRACE_SECONDS="0.3")
    assert done.code == 1
    assert "warning: analyst was not seen at work" in done.out
    (released,) = project.events("guard_released")
    assert released["role"] == "analyst"
    assert released["seconds"] >= 0.3


@pytest.mark.scenario("003", "Response file appears during startup guard")
def test_response_file_appears_during_startup_guard(project: SimulatedProject) -> None:
    project.stub.script[ANALYST] = [Turn(ANALYST_SUMMARY, seen="idle", then="idle")]
    done = project.run(IDLE_GRACE_SECONDS="3600")
    assert done.code == 0
    assert "not seen at work" not in done.out


@pytest.mark.scenario("003", "Agent ignores file instruction but terminal finishes (default mode)")
def test_agent_ignores_file_instruction_but_terminal_finishes_default_mode(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = [Turn(None, screen=PASS)]
    assert project.run(STRICT_FILE_HANDOFF="no", IDLE_GRACE_SECONDS="0.2").code == 0
    assert project.state["outputs"]["tester"] == PASS
    assert project.events("reply_taken")[-1]["source"] == "screen"


@pytest.mark.scenario("003", "Agent ignores file instruction but terminal finishes (strict mode)")
def test_agent_ignores_file_instruction_but_terminal_finishes_strict_mode(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = [Turn(None, screen=PASS)]
    done = project.run(IDLE_GRACE_SECONDS="0.2")
    assert done.code == 1
    assert "no response file" in done.err
    assert project.stub.of("GET", "/output") == []


@pytest.mark.scenario("003", "Terminal enters error state")
def test_terminal_enters_error_state(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = [Turn(PASS, then="error")]
    done = project.run()
    assert done.code == 1
    assert "tester" in done.err
    assert project.state["outputs"]["tester"] == ""


@pytest.mark.scenario("003", "Timeout with terminal still processing")
def test_timeout_with_terminal_still_processing(project: SimulatedProject) -> None:
    project.stub.script[ANALYST] = [Turn(None, work=60)]
    done = project.run(RESPONSE_TIMEOUT="0.4")
    assert done.code == 1
    assert "processing" in done.err


@pytest.mark.scenario("003", "waiting_user_answer counts as agent started")
def test_waiting_user_answer_counts_as_agent_started(project: SimulatedProject) -> None:
    project.stub.script[ANALYST] = [Turn(None, seen="waiting_user_answer", work=0.3, then="idle")]
    done = project.run(IDLE_GRACE_SECONDS="0.5")
    assert done.code == 1
    assert "not seen at work" not in done.out
    assert project.events("guard_released") == []


@pytest.mark.scenario("003", "Idle grace resets on processing observation")
def test_idle_grace_resets_on_processing_observation(project: SimulatedProject) -> None:
    """Idle and at work by turns, for longer than the grace in all."""

    def flicker(*_: object) -> None:
        terminal = next(terminal for terminal in project.stub.terminals.values() if terminal.role is ANALYST)
        for second in range(4):
            project.clock.after(second, lambda: setattr(terminal, "status", "idle"))
            project.clock.after(second + 0.9, lambda: setattr(terminal, "status", "processing"))

    project.stub.on_prompt = lambda role, *_: flicker() if role is ANALYST else None
    project.stub.script[ANALYST] = [Turn(ANALYST_SUMMARY, work=4.0)]
    done = project.run(IDLE_GRACE_SECONDS="1.5")
    assert done.code == 0, done.text
    assert project.roles == ONE_PASS
