"""Seed 004, the scenarios that the core decides."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from quintet.config import Settings, load_settings
from quintet.loop.decide.flow import NOT_THERE, Ask
from quintet.loop.decide.prompts import Prompts
from quintet.loop.decide.state import State, Terminal
from quintet.loop.record.state_file import load_state, save_state
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, ROLES, TESTER, Role
from tests.loop.runs import FAIL, PASS, TASK, default_reply, new_state, play, scripted, settings
from tests.spec.shared import defaults, invalid_phase, invalid_round, repeated_handoff


def loaded(tmp_path: Path, document: Any = None, **env: str) -> Settings:
    file = None
    if document is not None:
        file = tmp_path / "config.json"
        file.write_text(json.dumps(document))
    return load_settings(file, env, {}, tmp_path).settings


def test_004_default_configuration_matches_shell_script(tmp_path: Path) -> None:
    defaults(tmp_path)


def test_004_config_file_values_apply_when_env_vars_absent(tmp_path: Path) -> None:
    document = {"limits": {"max_rounds": 3}}
    assert loaded(tmp_path, document).max_rounds == 3
    assert loaded(tmp_path, document, MAX_ROUNDS="5").max_rounds == 5


def test_004_default_start_agent_is_analyst(tmp_path: Path) -> None:
    assert loaded(tmp_path).start_agent == "analyst"


def test_004_post_processing_defaults_to_disabled(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    assert config.post_openspec_archive is False
    assert config.post_git_commit is False


def test_004_post_processing_enabled_via_env_var(tmp_path: Path) -> None:
    document = {"post_processing": {"openspec_archive": False}}
    assert loaded(tmp_path, document, POST_OPENSPEC_ARCHIVE="1").post_openspec_archive is True


def starts_at(role: Role) -> str:
    config = settings(start_agent=role.name)
    played = play(new_state(config), config, default_reply)
    assert played.asked[0] == Ask(role, 1, 1)
    return played.prompts[0]


def test_004_fresh_run_starts_from_programmer_role() -> None:
    starts_at(PROGRAMMER)


def test_004_fresh_run_starts_from_peer_analyst_role() -> None:
    starts_at(PEER_ANALYST)


def test_004_fresh_run_starts_from_peer_programmer_role() -> None:
    starts_at(PEER_PROGRAMMER)


def test_004_fresh_run_starts_from_tester_role() -> None:
    starts_at(TESTER)


def test_004_first_dispatch_peer_analyst_uses_placeholder_when_upstream_is_missing() -> None:
    assert f"System analyst output:\n{NOT_THERE}" in starts_at(PEER_ANALYST)


def test_004_first_dispatch_peer_programmer_uses_placeholder_when_upstream_is_missing() -> None:
    assert f"Programmer output:\n{NOT_THERE}" in starts_at(PEER_PROGRAMMER)


def analyst_prompt(number: int) -> str:
    return Prompts(settings(), TASK, new_state(settings())).build_analyst_prompt(Ask(ANALYST, number))


def test_004_analyst_prompt_structure_on_round_1() -> None:
    prompt = analyst_prompt(1)
    assert "Explore the codebase" in prompt
    assert "Create/update all OpenSpec artifacts using the OpenSpec fast-forward skill" in prompt


def test_004_analyst_prompt_on_retry_round_uses_explore_then_ff() -> None:
    prompt = analyst_prompt(2)
    explore = prompt.index("Use the OpenSpec explore skill to investigate the test failure")
    assert explore < prompt.index("use the OpenSpec fast-forward skill to update the artifacts")


def test_004_programmer_prompt_condenses_upstream_on_repeat() -> None:
    repeated_handoff()


def test_004_programmer_prompt_on_retry_round_uses_test_failure_context() -> None:
    played = play(new_state(settings()), settings(), scripted(tester=[FAIL, PASS]))
    prompt = played.prompt_of(PROGRAMMER.name, 2)
    assert f"Test failure feedback:\n{FAIL}" in prompt
    assert "Your previous changes (context):\n## Files changed\nprogrammer did 1-2-programmer" in prompt
    assert "System analyst handoff:" not in prompt


def test_004_state_roundtrip_with_per_agent_providers(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    providers = ["codex", "claude_code", "scripted", "codex", "kiro_cli"]
    pairs = zip(ROLES, providers, strict=True)
    terminals = {role.name: Terminal(f"id-{role}", provider) for role, provider in pairs}
    state = State(provider="codex", terminals=terminals, updated_at=now.isoformat())
    save_state(state, tmp_path / "state.json", now)
    assert load_state(tmp_path / "state.json") == state


def test_004_loading_old_format_state_file(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"terminals": {"analyst": "da33cf00"}}')
    state = load_state(path, "codex")
    assert state is not None
    assert state.terminals["analyst"] == Terminal("da33cf00", "codex")
    assert replace(state, terminals=State().terminals) == State()


@pytest.mark.parametrize("raw", ["x", "2", None, 1.5, 0, -3, True])
def test_004_invalid_round_in_state_file_defaults_to_1(raw: Any, tmp_path: Path) -> None:
    invalid_round(raw, tmp_path)


@pytest.mark.parametrize("raw", ["x", "", None, 3])
def test_004_invalid_phase_in_state_file_defaults_to_analyst(raw: Any, tmp_path: Path) -> None:
    invalid_phase(raw, tmp_path)
