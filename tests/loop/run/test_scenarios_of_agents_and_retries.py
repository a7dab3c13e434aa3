"""Scenarios of the seeds about agents of different providers, start agents, names, retries and older states."""

import json
import shutil
import signal
from typing import Any

import pytest

from tests.stub.project import ONE_PASS
from tests.stub.server import Fault
from tests.stub.simulated import SimulatedProject

PLACEHOLDER = "(Not available: "


def config(project: SimulatedProject, **document: Any) -> str:
    path = project.home / "config.json"
    path.write_text(json.dumps(document))
    return str(path)


def interrupted(project: SimulatedProject, prompts: int, *arguments: str) -> None:
    project.stop_at(prompts, signal.SIGINT, *arguments)


def mixed(project: SimulatedProject) -> str:
    return config(
        project,
        agents={
            "analyst": {"provider": "claude_code"},
            "tester": {"provider": "kiro_cli", "model": "m", "args": ["-x"]},
        },
    )


@pytest.mark.scenario("004", "Create terminal with explicit provider")
@pytest.mark.scenario("004", "New run creates 5 terminals with per-agent providers")
@pytest.mark.scenario("004", "Create session with explicit provider")
def test_new_run_creates_5_terminals_with_per_agent_providers(project: SimulatedProject) -> None:
    assert project.run(mixed(project)).code == 0
    made = {terminal.role.name: terminal.provider for terminal in project.stub.terminals.values()}
    expected = dict.fromkeys(ONE_PASS, "codex") | {"analyst": "claude_code", "tester": "kiro_cli"}
    assert made == expected
    assert project.stub.of("POST", "/sessions")[0].params["provider"] == "claude_code"
    tester = project.stub.of("POST", "/terminals")[-1].params
    assert (tester["model"], tester["args"]) == ("m", "-x")


def renamings(project: SimulatedProject) -> list[tuple[str, str]]:
    inputs = project.stub.of("POST", "/input")
    return [(call.path.split("/")[2], call.params["message"]) for call in inputs if call.params["message"][0] == "/"]


@pytest.mark.scenario("004", "Terminal renamed after creation")
@pytest.mark.scenario("004", "Peer analyst terminal renamed with underscore format")
def test_terminal_renamed_after_creation(project: SimulatedProject) -> None:
    assert project.run().code == 0
    ids = {name: project.state["terminals"][name]["id"] for name in ONE_PASS}
    assert renamings(project) == [(ids[name], f"/rename {name}-{ids[name]}") for name in ONE_PASS]


@pytest.mark.parametrize("code", [0, 404, 500])
@pytest.mark.scenario("004", "Rename failure is non-fatal")
def test_rename_failure_is_non_fatal(project: SimulatedProject, code: int) -> None:
    project.stub.faults["POST /input"] = [Fault(code), Fault(code)]
    done = project.run()
    assert done.code == 0
    assert "warning: analyst could not be renamed" in done.out
    assert "warning: peer_analyst could not be renamed" in done.out
    assert len(renamings(project)) == 3
    assert project.roles == ONE_PASS


@pytest.mark.parametrize("code", [0, 409, 422, 500])
@pytest.mark.scenario("004", "Partial creation failure cleans up")
def test_partial_creation_failure_cleans_up(project: SimulatedProject, code: int) -> None:
    stub = project.stub
    stub.faults["POST /sessions/stub-session/terminals"] = []
    creations = iter([None, Fault(code, body=b'{"detail": "no more terminals"}')])

    def plan(method: str, path: str) -> Fault | None:
        return next(creations, None) if method == "POST" and path.endswith("/stub-session/terminals") else None

    stub.fault_for = plan  # type: ignore[method-assign]
    done = project.run()
    assert done.code == 1
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) == 1
    assert {call.path for call in stub.of("POST", "/exit")} == {"/terminals/00000001/exit", "/terminals/00000002/exit"}
    assert stub.prompts == []
    assert project.run().code == 0, "the next start is a new run"
    assert len(stub.of("POST", "/sessions")) == 2


@pytest.mark.scenario("004", "Resume with provider mismatch logs warning")
def test_resume_with_provider_mismatch_logs_warning(project: SimulatedProject) -> None:
    interrupted(project, 2)
    done = project.run(config(project, agents={"analyst": {"provider": "claude_code"}}))
    assert done.code == 0
    (line,) = [line for line in done.out.splitlines() if "claude_code" in line]
    assert "warning: analyst" in line
    assert "codex" in line
    assert len(project.stub.of("POST", "/sessions")) == 1
    assert project.state["terminals"]["analyst"]["provider"] == "codex"


def test_a_state_of_another_tool_restarts_its_phase_in_a_folder_of_its_own(project: SimulatedProject) -> None:
    """SPEC.md: a state without our extra fields."""
    interrupted(project, 4)
    ours = {"run_id", "cycle", "turn", "dispatched", "dispatched_at", "full_summary_sent", "sequence", "start_commit"}
    foreign = {name: value for name, value in project.state.items() if name not in ours}
    shutil.rmtree(project.records)
    project.state_file.write_text(json.dumps(foreign))
    assert project.run().code == 0
    assert project.roles == [*ONE_PASS[:4], *ONE_PASS[2:]]
    assert project.state["run_id"]
    assert next(name for name in project.archived if "late" not in name) == "001-programmer.md"
    assert not list((project.wd / ".tmp").glob("*.md"))
