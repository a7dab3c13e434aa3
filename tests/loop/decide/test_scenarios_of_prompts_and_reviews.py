"""Scenarios of the seeds that the pure half of the loop decides: prompts, reviews, condensation, the order of steps."""

from dataclasses import replace
from pathlib import Path

import pytest

from quintet.layout import RESPONSE_DIR, response_path_for
from quintet.loop.decide.condense import extract_review_notes, extract_test_evidence
from quintet.loop.decide.flow import next_step
from quintet.loop.decide.gate import is_review_approved
from quintet.loop.decide.outputs import NOT_THERE
from quintet.loop.decide.prompts import BACK_REFERENCE, Prompts
from quintet.loop.decide.state import State, Status
from quintet.loop.decide.steps import Ask, Finished
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, ROLES, TESTER, Phase, Role
from tests.loop.runs import FAIL, PASS, TASK, WD, default_reply, new_state, play, scripted, settings


def review(notes: str) -> str:
    return f"REVIEW_RESULT: APPROVED\nREVIEW_NOTES:\n{notes}"


FILES = {
    "analyst": "analyst_summary.md",
    "analyst_review": "analyst_review.md",
    "programmer": "programmer_summary.md",
    "programmer_review": "programmer_review.md",
    "tester": "test_result.md",
}
WHOLE = review("- artifact and proposal read\n- P1 traceability\n- downstream contract\n- handoff is actionable")


@pytest.mark.scenario("001", "Approved with sufficient analyst evidence on cycle 2")
def test_approved_with_sufficient_analyst_evidence_on_cycle_2() -> None:
    assert is_review_approved(WHOLE, Phase.ANALYST, 2, settings())


@pytest.mark.scenario("001", "Approved rejected on cycle 1")
def test_approved_rejected_on_cycle_1() -> None:
    assert not is_review_approved(WHOLE, Phase.ANALYST, 1, settings())
    assert not is_review_approved(WHOLE, Phase.ANALYST, 1, settings(require_review_evidence=False))


@pytest.mark.scenario("001", "Approved rejected with insufficient evidence")
def test_approved_rejected_with_insufficient_evidence() -> None:
    assert not is_review_approved(review("- the artifacts are fine"), Phase.ANALYST, 2, settings())


@pytest.mark.scenario("001", "Approved without evidence when evidence check disabled")
def test_approved_without_evidence_when_evidence_check_disabled() -> None:
    config = settings(require_review_evidence=False)
    assert is_review_approved("REVIEW_RESULT: APPROVED", Phase.ANALYST, 2, config)


@pytest.mark.scenario("001", "Review notes condensation")
def test_review_notes_condensation() -> None:
    text = "REVIEW_RESULT: REVISE\nchatter\nREVIEW_NOTES:\n" + "\n".join(f"- {number}" for number in range(100))
    short = extract_review_notes(text, settings()).split("\n")
    assert short[0] == "REVIEW_NOTES:"
    assert len(short) == settings().max_feedback_lines == 30


@pytest.mark.scenario("001", "Test evidence condensation")
def test_test_evidence_condensation() -> None:
    text = "chatter\nRESULT: FAIL\nchatter\nEVIDENCE:\n" + "\n".join(f"- {number}" for number in range(200))
    short = extract_test_evidence(text, settings()).split("\n")
    assert short[:3] == ["RESULT: FAIL", "EVIDENCE:", "- 0"]
    assert len(short) == settings().max_test_evidence_lines == 120


@pytest.mark.scenario("001", "First send includes full summary")
def test_first_send_includes_full_summary() -> None:
    prompts = Prompts(settings(), TASK, new_state(settings()))
    assert prompts.explore_block_for(Ask(ANALYST, 1)) == TASK.explore_summary


@pytest.mark.scenario("001", "Repeat send returns condensed")
def test_repeat_send_returns_condensed() -> None:
    played = play(new_state(settings()), settings(), default_reply)
    prompts = Prompts(settings(), TASK, played.before[2])
    assert played.asked[2] == Ask(ANALYST, 1, 2)
    assert prompts.explore_block_for(played.asked[2]) == BACK_REFERENCE
    assert TASK.explore_summary in played.prompts[1], "another terminal has its own first time"


@pytest.mark.scenario("001", "Analyst prompt structure")
def test_analyst_prompt_structure() -> None:
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


@pytest.mark.scenario("001", "Programmer prompt condenses upstream on repeat")
@pytest.mark.scenario("004", "Programmer prompt condenses upstream on repeat")
@pytest.mark.parametrize("condense", [True, False])
def test_programmer_prompt_condenses_upstream_on_repeat(condense: bool) -> None:
    handoff = "## Explicit handoff\nbegin with a.py"
    config = settings(condense_upstream_on_repeat=condense)
    played = play(new_state(config), config, scripted(analyst=handoff))
    first, second = played.prompt_of(PROGRAMMER.name, 0), played.prompt_of(PROGRAMMER.name, 1)
    assert handoff in first
    assert (handoff in second) is not condense
    assert (f"System analyst handoff:\n{BACK_REFERENCE}" in second) is condense


@pytest.mark.scenario("001", "PASS exits with code 0")
def test_pass_exits_with_code_0() -> None:
    """The flow's part of it; the exit code is the driver's."""
    played = play(new_state(settings()), settings(), default_reply)
    assert played.end == Finished(Status.PASS)
    assert played.state.final_status is Status.PASS


@pytest.mark.scenario("001", "MAX_ROUNDS exhausted exits with code 1")
def test_max_rounds_exhausted_exits_with_code_1() -> None:
    """The flow's part of it; the exit code is the driver's."""
    config = settings(max_rounds=3)
    played = play(new_state(config), config, scripted(tester=FAIL))
    assert played.end == Finished(Status.FAIL)
    assert played.state.final_status is Status.FAIL
    assert [ask.round for ask in played.asked if ask.role is TESTER] == [1, 2, 3]


@pytest.mark.scenario("001", "Missing analyst output falls back to analyst phase")
def test_missing_analyst_output_falls_back_to_analyst_phase() -> None:
    state = State(current_phase=Phase.PROGRAMMER)
    assert next_step(state, settings()) == Ask(ANALYST, 1, 1)
    with_output = replace(state, outputs=state.outputs | {ANALYST.output: "x"})
    assert next_step(with_output, settings()) == Ask(PROGRAMMER, 1, 1)


def instruction(step: Ask) -> str:
    prompt = Prompts(settings(), TASK, new_state(settings())).build(step)
    return prompt.partition("RESPONSE FILE INSTRUCTION")[2]


@pytest.mark.scenario("000", "Each role resolves to the correct file")
def test_each_role_resolves_to_the_correct_file() -> None:
    assert Path(".tmp/agent-responses") == RESPONSE_DIR
    assert {role.output: response_path_for(role, WD) for role in ROLES} == {
        output: WD / RESPONSE_DIR / name for output, name in FILES.items()
    }


@pytest.mark.scenario("000", "Analyst prompt includes file instruction")
def test_analyst_prompt_includes_file_instruction() -> None:
    assert "/project/.tmp/agent-responses/analyst_summary.md" in instruction(Ask(ANALYST, 1))


@pytest.mark.scenario("000", "All five agent roles have file instructions")
def test_all_five_agent_roles_have_file_instructions() -> None:
    for role in ROLES:
        assert f"/project/.tmp/agent-responses/{FILES[role.output]}" in instruction(Ask(role, 1))


def starts_at(role: Role) -> str:
    config = settings(start_agent=role.name)
    played = play(new_state(config), config, default_reply)
    assert played.asked[0] == Ask(role, 1, 1)
    return played.prompts[0]


@pytest.mark.scenario("004", "Fresh run starts from programmer role")
def test_fresh_run_starts_from_programmer_role() -> None:
    starts_at(PROGRAMMER)


@pytest.mark.scenario("004", "Fresh run starts from peer analyst role")
def test_fresh_run_starts_from_peer_analyst_role() -> None:
    starts_at(PEER_ANALYST)


@pytest.mark.scenario("004", "Fresh run starts from peer programmer role")
def test_fresh_run_starts_from_peer_programmer_role() -> None:
    starts_at(PEER_PROGRAMMER)


@pytest.mark.scenario("004", "Fresh run starts from tester role")
def test_fresh_run_starts_from_tester_role() -> None:
    starts_at(TESTER)


@pytest.mark.scenario("004", "First-dispatch peer analyst uses placeholder when upstream is missing")
def test_first_dispatch_peer_analyst_uses_placeholder_when_upstream_is_missing() -> None:
    assert f"System analyst output:\n{NOT_THERE}" in starts_at(PEER_ANALYST)


@pytest.mark.scenario("004", "First-dispatch peer programmer uses placeholder when upstream is missing")
def test_first_dispatch_peer_programmer_uses_placeholder_when_upstream_is_missing() -> None:
    assert f"Programmer output:\n{NOT_THERE}" in starts_at(PEER_PROGRAMMER)


def analyst_prompt(number: int) -> str:
    return Prompts(settings(), TASK, new_state(settings())).build_analyst_prompt(Ask(ANALYST, number))


@pytest.mark.scenario("004", "Analyst prompt structure on round 1")
def test_analyst_prompt_structure_on_round_1() -> None:
    prompt = analyst_prompt(1)
    assert "Explore the codebase" in prompt
    assert "Create/update all OpenSpec artifacts using the OpenSpec fast-forward skill" in prompt


@pytest.mark.scenario("004", "Analyst prompt on retry round uses explore-then-ff")
def test_analyst_prompt_on_retry_round_uses_explore_then_ff() -> None:
    prompt = analyst_prompt(2)
    explore = prompt.index("Use the OpenSpec explore skill to investigate the test failure")
    assert explore < prompt.index("use the OpenSpec fast-forward skill to update the artifacts")


@pytest.mark.scenario("004", "Programmer prompt on retry round uses test failure context")
def test_programmer_prompt_on_retry_round_uses_test_failure_context() -> None:
    played = play(new_state(settings()), settings(), scripted(tester=[FAIL, PASS]))
    prompt = played.prompt_of(PROGRAMMER.name, 2)
    assert f"Test failure feedback:\n{FAIL}" in prompt
    assert "Your previous changes (context):\n## Files changed\nprogrammer did 1-2-programmer" in prompt
    assert "System analyst handoff:" not in prompt
