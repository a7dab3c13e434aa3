"""Seed 001, the scenarios that the core decides."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from quintet.loop.decide.condense import extract_review_notes, extract_test_evidence
from quintet.loop.decide.flow import Ask, Finished, next_step
from quintet.loop.decide.gate import is_review_approved
from quintet.loop.decide.prompts import BACK_REFERENCE, Prompts
from quintet.loop.decide.state import State, Status
from quintet.loop.record.state_file import load_state, save_state
from quintet.roles import ANALYST, PROGRAMMER, TESTER, Phase
from tests.loop.runs import FAIL, TASK, default_reply, new_state, play, scripted, settings
from tests.spec.shared import defaults, invalid_phase, invalid_round, repeated_handoff


def review(notes: str) -> str:
    return f"REVIEW_RESULT: APPROVED\nREVIEW_NOTES:\n{notes}"


WHOLE = review("- artifact and proposal read\n- P1 traceability\n- downstream contract\n- handoff is actionable")


def test_001_default_configuration_matches_shell_script(tmp_path: Path) -> None:
    defaults(tmp_path)


def test_001_approved_with_sufficient_analyst_evidence_on_cycle_2() -> None:
    assert is_review_approved(WHOLE, Phase.ANALYST, 2, settings())


def test_001_approved_rejected_on_cycle_1() -> None:
    assert not is_review_approved(WHOLE, Phase.ANALYST, 1, settings())
    assert not is_review_approved(WHOLE, Phase.ANALYST, 1, settings(require_review_evidence=False))


def test_001_approved_rejected_with_insufficient_evidence() -> None:
    assert not is_review_approved(review("- the artifacts are fine"), Phase.ANALYST, 2, settings())


def test_001_approved_without_evidence_when_evidence_check_disabled() -> None:
    config = settings(require_review_evidence=False)
    assert is_review_approved("REVIEW_RESULT: APPROVED", Phase.ANALYST, 2, config)


def test_001_review_notes_condensation() -> None:
    text = "REVIEW_RESULT: REVISE\nchatter\nREVIEW_NOTES:\n" + "\n".join(f"- {number}" for number in range(100))
    short = extract_review_notes(text, settings()).split("\n")
    assert short[0] == "REVIEW_NOTES:"
    assert len(short) == settings().max_feedback_lines == 30


def test_001_test_evidence_condensation() -> None:
    text = "chatter\nRESULT: FAIL\nchatter\nEVIDENCE:\n" + "\n".join(f"- {number}" for number in range(200))
    short = extract_test_evidence(text, settings()).split("\n")
    assert short[:3] == ["RESULT: FAIL", "EVIDENCE:", "- 0"]
    assert len(short) == settings().max_test_evidence_lines == 120


def test_001_first_send_includes_full_summary() -> None:
    prompts = Prompts(settings(), TASK, new_state(settings()))
    assert prompts.explore_block_for(Ask(ANALYST, 1)) == TASK.explore_summary


def test_001_repeat_send_returns_condensed() -> None:
    played = play(new_state(settings()), settings(), default_reply)
    prompts = Prompts(settings(), TASK, played.before[2])
    assert played.asked[2] == Ask(ANALYST, 1, 2)
    assert prompts.explore_block_for(played.asked[2]) == BACK_REFERENCE
    assert TASK.explore_summary in played.prompts[1], "another terminal has its own first time"


def test_001_analyst_prompt_structure() -> None:
    state = replace(new_state(settings()), feedback="from the tester", analyst_feedback="from the peer")
    prompt = Prompts(settings(), TASK, state).build_analyst_prompt(Ask(ANALYST, 1, 2))
    parts = [
        TASK.explore_summary,
        "Round 1",
        "cycle 2",
        "from the tester",
        "from the peer",
        "no testing",
        "no code",
        "ANALYST_SUMMARY",
        "Artifact review per file",
        "P1-P4 traceability",
        "Phased delivery coverage",
        "Downstream contract impact",
        "Explicit handoff",
        "RESPONSE FILE INSTRUCTION",
    ]
    positions = [prompt.find(part) for part in parts]
    assert -1 not in positions
    assert positions == sorted(positions)


def test_001_programmer_prompt_condenses_upstream_on_repeat() -> None:
    repeated_handoff()


def test_001_state_roundtrip(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    state = replace(play(new_state(settings()), settings(), scripted(tester=FAIL)).state, updated_at=now.isoformat())
    save_state(state, tmp_path / "state.json", now)
    assert load_state(tmp_path / "state.json") == state
    assert json.loads((tmp_path / "state.json").read_text())["version"] == 1


@pytest.mark.parametrize("raw", ["x", "2", None, 1.5, 0, -3, True])
def test_001_invalid_round_in_state_file_defaults_to_1(raw: Any, tmp_path: Path) -> None:
    invalid_round(raw, tmp_path)


@pytest.mark.parametrize("raw", ["x", "", None, 3])
def test_001_invalid_phase_in_state_file_defaults_to_analyst(raw: Any, tmp_path: Path) -> None:
    invalid_phase(raw, tmp_path)


def test_001_pass_exits_with_code_0() -> None:
    """The flow's part of it; the exit code is the driver's."""
    played = play(new_state(settings()), settings(), default_reply)
    assert played.end == Finished(Status.PASS)
    assert played.state.final_status is Status.PASS


def test_001_max_rounds_exhausted_exits_with_code_1() -> None:
    """The flow's part of it; the exit code is the driver's."""
    config = settings(max_rounds=3)
    played = play(new_state(config), config, scripted(tester=FAIL))
    assert played.end == Finished(Status.FAIL)
    assert played.state.final_status is Status.FAIL
    assert [ask.round for ask in played.asked if ask.role is TESTER] == [1, 2, 3]


def test_001_missing_analyst_output_falls_back_to_analyst_phase() -> None:
    state = State(current_phase=Phase.PROGRAMMER)
    assert next_step(state, settings()) == Ask(ANALYST, 1, 1)
    with_output = replace(state, outputs=state.outputs | {ANALYST.output: "x"})
    assert next_step(with_output, settings()) == Ask(PROGRAMMER, 1, 1)
