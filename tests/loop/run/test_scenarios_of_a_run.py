"""Scenarios of the seeds about a whole run: the real command against a scripted server."""

import json
import signal

import pytest

from quintet.roles import ANALYST, ROLES, TESTER
from tests.stub.project import ONE_PASS, RETRY, turns
from tests.stub.replies import FAIL, PASS, TASK
from tests.stub.server import Turn
from tests.stub.simulated import SimulatedProject


def interrupted(project: SimulatedProject, prompts: int) -> None:
    """A run that is stopped while the agent of the given prompt is at work."""
    project.stop_at(prompts, signal.SIGINT)


@pytest.mark.scenario("001", "Create session returns terminal ID and session name")
@pytest.mark.scenario("001", "New run creates 5 terminals")
@pytest.mark.scenario("001", "No auto-resume when no state file exists")
@pytest.mark.scenario("001", "Send input to terminal")
@pytest.mark.scenario("004", "Send input to terminal")
@pytest.mark.scenario("001", "PASS exits with code 0")
def test_a_new_run_creates_5_terminals_sends_each_its_prompt_and_passes(project: SimulatedProject) -> None:
    assert not project.state_file.exists()
    done = project.run()
    assert (done.code, done.err) == (0, "")
    (call,) = project.stub.of("POST", "/sessions")
    assert call.params["provider"] == "codex"
    assert call.params["agent_profile"] == "system_analyst"
    assert call.params["working_directory"] == str(project.wd)
    assert project.state["session_name"] == "stub-session"
    assert project.state["terminals"]["analyst"]["id"] == "00000001"
    profiles = [call.params["agent_profile"] for call in project.stub.of("POST", "/sessions/stub-session/terminals")]
    assert profiles == ["peer_system_analyst", "programmer", "peer_programmer", "tester"]
    assert [terminal.role for terminal in project.stub.terminals.values()] == list(ROLES)
    calls = [call for call in project.stub.of("POST", "/input") if not call.params["message"].startswith("/")]
    ids = [project.state["terminals"][name]["id"] for name in ONE_PASS]
    assert [call.path for call in calls] == [f"/terminals/{terminal}/input" for terminal in ids]
    assert all("RESPONSE FILE INSTRUCTION" in call.params["message"] for call in calls)
    assert calls[0].params["message"].endswith("is not seen.\n")
    assert project.state["final_status"] == "PASS"
    assert project.state["outputs"]["tester"] == PASS


@pytest.mark.scenario("001", "FAIL loops back to analyst")
def test_fail_goes_to_the_programmer_and_never_back_to_the_analyst(project: SimulatedProject) -> None:
    """The seed's scenario is overruled."""
    project.stub.script[TESTER] = turns(FAIL, FAIL, PASS)
    assert project.run().code == 0
    assert project.roles == [*ONE_PASS, *RETRY, *RETRY]
    assert project.roles.count(ANALYST.name) == 1
    assert project.state["current_round"] == 3
    retry = project.stub.prompts[5][1]
    assert "Test failure feedback:" in retry
    assert "greet said goodbye" in retry
    assert "Your previous changes (context):" in retry
    assert "System analyst handoff:" not in retry


@pytest.mark.scenario("001", "MAX_ROUNDS exhausted exits with code 1")
def test_max_rounds_exhausted_exits_with_code_1(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = turns(FAIL)
    done = project.run(MAX_ROUNDS="2")
    assert done.code == 1
    assert project.state["final_status"] == "FAIL"
    assert project.roles == [*ONE_PASS, *RETRY]
    assert "FAIL in round 2" in done.out


@pytest.mark.scenario("001", "SIGINT saves state")
def test_sigint_saves_state(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = [Turn(None, work=60)]
    done = project.stop_at(5, signal.SIGINT)
    assert "Traceback" not in done.err
    state = project.state
    assert state["final_status"] == "RUNNING"
    assert state["current_phase"] == "tester"
    assert state["last_error"] == "interrupted by SIGINT"
    assert project.stub.of("POST", "/exit") == []


@pytest.mark.scenario("001", "Cleanup exits terminals when enabled")
def test_cleanup_exits_terminals_when_enabled(project: SimulatedProject) -> None:
    assert project.run(CLEANUP_ON_EXIT="1").code == 0
    exits = {call.path for call in project.stub.of("POST", "/exit")}
    assert exits == {f"/terminals/{number:08x}/exit" for number in range(1, 6)}


@pytest.mark.scenario("004", "Resume with unreachable terminal fails")
@pytest.mark.scenario("001", "Resume with unreachable terminal fails")
def test_resume_with_unreachable_terminal_fails(project: SimulatedProject) -> None:
    interrupted(project, 3)
    del project.stub.terminals["00000004"]
    done = project.run()
    assert done.code == 1
    assert "peer_programmer" in done.err
    assert "00000004" in done.err
    assert "Traceback" not in done.err
    assert project.state["final_status"] == "RUNNING"
    assert len(project.stub.prompts) == 3


@pytest.mark.scenario("001", "Auto-resume when state file has RUNNING status")
def test_auto_resume_when_state_file_has_running_status(project: SimulatedProject) -> None:
    interrupted(project, 3)
    done = project.run()
    assert done.code == 0
    assert len(project.stub.of("POST", "/sessions")) == 1
    assert project.roles == ONE_PASS, "nothing is asked for twice"


@pytest.mark.scenario("001", "No auto-resume when state file has PASS status")
@pytest.mark.scenario("001", "No auto-resume when state file has FAIL status")
@pytest.mark.parametrize("status", ["PASS", "FAIL"])
def test_no_auto_resume_after_the_end(project: SimulatedProject, status: str) -> None:
    project.stub.script[TESTER] = turns(PASS if status == "PASS" else FAIL)
    project.run(MAX_ROUNDS="1")
    first = project.state
    assert first["final_status"] == status
    project.stub.script[TESTER] = turns(PASS)
    assert project.run().code == 0
    assert project.roles == [*ONE_PASS, *ONE_PASS]
    assert len(project.stub.of("POST", "/sessions")) == 2
    assert project.state["run_id"] != first["run_id"]
    kept = json.loads((project.wd / ".tmp" / first["run_id"] / "quintet-state.json").read_text())
    assert kept == first, "the next run archives the state of the last"


@pytest.mark.scenario("001", "State roundtrip")
def test_state_roundtrip(project: SimulatedProject) -> None:
    """Everything that the seed names is in the file, and a resumed run goes on with all of it."""
    interrupted(project, 4)
    before = project.state
    assert before["version"] == 1
    assert before["api"] == project.stub.url
    assert before["provider"] == "codex"
    assert before["wd"] == str(project.wd)
    assert before["prompt"] == TASK
    assert set(before["outputs"]) == {"analyst", "analyst_review", "programmer", "programmer_review", "tester"}
    assert set(before["terminals"]) == set(ONE_PASS)
    assert {"updated_at", "feedback", "analyst_feedback", "programmer_feedback"} <= set(before)
    assert project.run().code == 0
    after = project.state
    kept = ("api", "provider", "wd", "prompt", "session_name", "terminals", "run_id", "analyst_feedback")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert after["outputs"]["analyst"] == before["outputs"]["analyst"]
