"""Scenarios of the seeds about the state file: what is saved comes back, and what is damaged does little harm."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from quintet.loop.decide.state import State, TerminalRef
from quintet.loop.record.state_file import load_state, save_state
from quintet.roles import ROLES, Phase
from tests.loop.runs import FAIL, new_state, play, scripted, settings


@pytest.mark.scenario("001", "State roundtrip")
def test_state_roundtrip(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    state = replace(play(new_state(settings()), settings(), scripted(tester=FAIL)).state, updated_at=now.isoformat())
    save_state(state, tmp_path / "state.json", now)
    assert load_state(tmp_path / "state.json") == state
    assert json.loads((tmp_path / "state.json").read_text())["version"] == 1


@pytest.mark.scenario("004", "State roundtrip with per-agent providers")
def test_state_roundtrip_with_per_agent_providers(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    providers = ["codex", "claude_code", "scripted", "codex", "kiro_cli"]
    pairs = zip(ROLES, providers, strict=True)
    terminals = {role.name: TerminalRef(f"id-{role}", provider) for role, provider in pairs}
    state = State(provider="codex", terminals=terminals, updated_at=now.isoformat())
    save_state(state, tmp_path / "state.json", now)
    assert load_state(tmp_path / "state.json") == state


@pytest.mark.scenario("004", "Loading old-format state file")
def test_loading_old_format_state_file(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"terminals": {"analyst": "da33cf00"}}')
    state = load_state(path, "codex")
    assert state is not None
    assert state.terminals["analyst"] == TerminalRef("da33cf00", "codex")
    assert replace(state, terminals=State().terminals) == State()


def loaded(document: dict[str, Any], folder: Path) -> State:
    path = folder / "state.json"
    path.write_text(json.dumps(document))
    state = load_state(path)
    assert state is not None
    return state


@pytest.mark.scenario("001", "Invalid round in state file defaults to 1")
@pytest.mark.scenario("004", "Invalid round in state file defaults to 1")
@pytest.mark.parametrize("raw", ["x", "2", None, 1.5, 0, -3, True])
def test_invalid_round_in_state_file_defaults_to_1(raw: Any, tmp_path: Path) -> None:
    state = loaded({"current_round": raw, "feedback": "kept"}, tmp_path)
    assert (state.current_round, state.feedback) == (1, "kept")


@pytest.mark.scenario("001", "Invalid phase in state file defaults to analyst")
@pytest.mark.scenario("004", "Invalid phase in state file defaults to analyst")
@pytest.mark.parametrize("raw", ["x", "", None, 3])
def test_invalid_phase_in_state_file_defaults_to_analyst(raw: Any, tmp_path: Path) -> None:
    state = loaded({"current_phase": raw, "feedback": "kept"}, tmp_path)
    assert (state.current_phase, state.feedback) == (Phase.ANALYST, "kept")
