"""Scenarios of the seeds about waiting, as it shows from outside. Exact times are tested with a simulated clock."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.roles import ANALYST
from tests.stub.project import ONE_PASS
from tests.stub.replies import ANALYST_SUMMARY
from tests.stub.server import Turn
from tests.stub.simulated import SimulatedProject, simulated_project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[SimulatedProject]:
    with simulated_project(tmp_path) as made:
        made.env["MAX_FILE_REMINDERS"] = "0"
        yield made


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
