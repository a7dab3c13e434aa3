"""Scenarios of the seeds about response files: the real command against a scripted server."""

import pytest

from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, ROLES, TESTER
from tests.stub.project import ONE_PASS
from tests.stub.replies import ANALYST_SUMMARY, SMOOTH
from tests.stub.server import Turn, response_path
from tests.stub.simulated import SimulatedProject

QUICK_GIVING_UP = {"IDLE_GRACE_SECONDS": "0.2", "MAX_FILE_REMINDERS": "0"}


@pytest.mark.scenario("000", "Each role resolves to the correct file")
@pytest.mark.scenario("000", "Directory does not exist")
@pytest.mark.scenario("000", "No stale file exists")
def test_each_role_resolves_to_the_correct_file(project: SimulatedProject) -> None:
    assert not (project.wd / ".tmp").exists()
    done = project.run()
    assert done.code == 0
    assert "stale" not in done.text
    named = {role.output: response_path(text) for role, text in project.stub.prompts}
    folder = project.wd / ".tmp" / "agent-responses"
    assert named == {
        "analyst": folder / "analyst_summary.md",
        "analyst_review": folder / "analyst_review.md",
        "programmer": folder / "programmer_summary.md",
        "programmer_review": folder / "programmer_review.md",
        "tester": folder / "test_result.md",
    }


@pytest.mark.scenario("000", "Stale file from previous run exists")
def test_a_stale_file_of_an_earlier_run_is_archived(project: SimulatedProject) -> None:
    """SPEC.md: it is moved to the archive, not deleted; at its old path it is gone."""
    stale = project.response_file(ANALYST)
    stale.parent.mkdir(parents=True)
    stale.write_text("the answer of last week")
    project.stub.on_prompt = lambda *_: seen.append(stale.exists())
    seen: list[bool] = []
    done = project.run()
    assert done.code == 0
    assert seen[0] is False
    assert project.archived[:2] == ["001-analyst-stale.md", "002-analyst.md"]
    assert (project.archive / "001-analyst-stale.md").read_text() == "the answer of last week"
    assert project.state["outputs"]["analyst"] == ANALYST_SUMMARY
    assert "001-analyst-stale.md" in done.out


@pytest.mark.scenario("000", "Agent writes response file and terminal becomes idle")
@pytest.mark.scenario("003", "Agent writes response file and terminal becomes idle")
def test_agent_writes_response_file_and_terminal_becomes_idle(project: SimulatedProject) -> None:
    """SPEC.md: archived under sequence and role, and gone from its place."""
    project.stub.script[ANALYST] = [Turn(ANALYST_SUMMARY, then="idle")]
    assert project.run().code == 0
    assert project.archived == [
        "001-analyst.md",
        "002-analyst_review.md",
        "003-programmer.md",
        "004-programmer_review.md",
        "005-tester.md",
    ]
    assert (project.archive / "001-analyst.md").read_text() == ANALYST_SUMMARY
    assert not [role for role in ROLES if project.response_file(role).exists()]


@pytest.mark.scenario("000", "Agent ignores file instruction but terminal finishes (default mode)")
@pytest.mark.scenario("003", "Agent ignores file instruction but terminal finishes (default mode)")
def test_agent_ignores_file_instruction_but_terminal_finishes_default_mode(project: SimulatedProject) -> None:
    project.stub.script[ANALYST] = [Turn(None, screen="ANALYST_SUMMARY from the screen")]
    done = project.run(STRICT_FILE_HANDOFF="0", **QUICK_GIVING_UP)
    assert done.code == 0
    assert project.state["outputs"]["analyst"] == "ANALYST_SUMMARY from the screen"
    assert "screen" in done.out
    assert project.events("reply_taken")[0]["source"] == "screen"
    assert project.roles == ONE_PASS


@pytest.mark.scenario("000", "Agent ignores file instruction but terminal finishes (strict mode)")
@pytest.mark.scenario("003", "Agent ignores file instruction but terminal finishes (strict mode)")
def test_agent_ignores_file_instruction_but_terminal_finishes_strict_mode(project: SimulatedProject) -> None:
    project.stub.script[ANALYST] = [Turn(None, screen="ANALYST_SUMMARY from the screen")]
    done = project.run(**QUICK_GIVING_UP)
    assert done.code == 1
    assert "analyst" in done.err
    assert "no response file" in done.err
    assert "Traceback" not in done.err
    assert project.stub.of("GET", "/output") == []
    assert project.state["final_status"] == "RUNNING"
    assert "no response file" in project.state["last_error"]


@pytest.mark.scenario("000", "Normal send-and-wait flow")
def test_normal_send_and_wait_flow(project: SimulatedProject) -> None:
    """Cleared, sent, waited for, returned: for every role of one run."""
    for role in ROLES:
        path = project.response_file(role)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("RESULT: FAIL, says a file of long ago")
    there: list[bool] = []
    project.stub.on_prompt = lambda role, *_: there.append(project.response_file(role).exists())
    assert project.run().code == 0
    assert there == [False] * 5
    outputs = project.state["outputs"]
    assert outputs == {role.output: SMOOTH[role][0] for role in ROLES}
    taken = [name.partition("-")[2] for name in project.archived if "stale" not in name and "late" not in name]
    assert taken == [f"{role.output}.md" for role in ROLES]
    assert [role.name for role in (ANALYST, PEER_ANALYST, PROGRAMMER, PEER_PROGRAMMER, TESTER)] == project.roles
