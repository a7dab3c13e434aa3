"""When checks run, and what becomes of a run by them: the rules alone."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.loop import journal
from quintet.loop.decide.checks import Check, CheckOutcome
from quintet.loop.decide.flow import apply, next_step
from quintet.loop.decide.lint import EXPLORE_HEADER, SCENARIO_HEADER
from quintet.loop.decide.state import State, Status, Turn, When
from quintet.loop.decide.steps import Ask, ChecksEnded, Finished, Verify
from quintet.loop.record.state_file import load_state, save_state
from quintet.roles import ANALYST, ROLES, TESTER, Phase
from tests.loop.runs import FAIL, PASS, default_reply, new_state, play, scripted, settings

TASK = f"{EXPLORE_HEADER}\nx\n{SCENARIO_HEADER}\n```verify\none\n```\n~~~verify\ntwo\n~~~\n"
ONE, TWO = Check("verify block 1", "one", True), Check("verify block 2", "two", True)
COMMAND = Check("make", "make")


def ended(*codes: int) -> ChecksEnded:
    return ChecksEnded(tuple(map(CheckOutcome, (ONE, TWO, COMMAND), codes)))


def in_test(**changes: object) -> State:
    """A state in the tester's phase that lacks no input."""
    outputs = {role.output: "x" for role in ROLES if role is not TESTER}
    return State(current_phase=Phase.TESTER, prompt=TASK, outputs=State().outputs | outputs, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["warn", "stop"])
def test_the_checks_of_the_task_come_before_the_first_prompt(mode: str) -> None:
    config = settings(prompt=TASK, verify_cmd="make", red_first=mode)
    state = new_state(config)
    step = next_step(state, config)
    assert step == Verify(1, (ONE, TWO), When.START), "the project's command has no part in it"
    after, events = apply(state, step, ended(0, 1), config)
    assert next_step(after, config) == Ask(ANALYST, 1)
    assert [event.event for event in events] == ["checked", "checked"]


def test_the_projects_command_stands_in_for_a_check_of_the_task() -> None:
    config = settings(verify_cmd="make")
    step = next_step(new_state(config), config)
    assert step == Verify(1, (COMMAND,), When.START)
    after, events = apply(new_state(config), step, ChecksEnded((CheckOutcome(COMMAND, 0),)), config)
    assert next_step(after, config) == Ask(ANALYST, 1)
    assert "`make` succeeds before anything is done" in events[-1].text  # type: ignore[union-attr]


@pytest.mark.parametrize("changes", [{"red_first": "off", "verify_cmd": "make", "prompt": TASK}, {}])
def test_without_a_check_or_a_wish_for_it_nothing_comes_before_the_first_prompt(changes: dict[str, str]) -> None:
    config = settings(**changes)
    assert next_step(new_state(config), config) == Ask(ANALYST, 1)


def test_checks_that_pass_already_are_a_warning_or_stay_the_next_step() -> None:
    warn, stop = settings(prompt=TASK), settings(prompt=TASK, red_first="stop")
    step = next_step(new_state(warn), warn)
    after, events = apply(new_state(warn), step, ended(0, 0), warn)
    assert isinstance(events[-1], journal.Warned)
    assert events[-1].text.startswith(
        "verify block 1 and verify block 2 succeed before anything is done, so they prove"
    )
    assert not after.check_first
    after, events = apply(new_state(stop), step, ended(0, 0), stop)
    assert next_step(after, stop) == step
    assert not [event for event in events if isinstance(event, journal.Warned)]


def test_the_check_before_the_first_prompt_is_not_run_again_by_a_saved_run(tmp_path: Path) -> None:
    config = settings(prompt=TASK)
    state, _ = apply(new_state(config), next_step(new_state(config), config), ended(1), config)
    save_state(state, tmp_path / "state.json")
    loaded = load_state(tmp_path / "state.json")
    assert loaded is not None
    assert next_step(loaded, config) == Ask(ANALYST, 1)


def test_a_failed_check_before_the_test_is_the_rounds_fail() -> None:
    config = settings(prompt=TASK, verify_first=True, verify_cmd="make", max_rounds=2)
    state = in_test(turn=Turn.CHECK)
    step = next_step(state, config)
    assert step == Verify(1, (ONE, TWO, COMMAND), When.BEFORE_TEST)
    after, events = apply(state, step, ended(0, 3), config)
    assert (after.current_round, after.current_phase, after.turn) == (2, Phase.PROGRAMMER, Turn.WORK)
    assert "verify block 2" not in after.feedback, "the script itself says more than its number"
    assert "two" in after.feedback
    assert [event.event for event in events] == ["checked", "checked", "round_failed"]
    passed, _ = apply(state, step, ended(0, 0, 0), config)
    assert next_step(passed, config) == Ask(TESTER, 1)


def test_verify_first_that_was_switched_off_is_not_waited_for() -> None:
    assert next_step(in_test(turn=Turn.CHECK), settings(prompt=TASK)) == Ask(TESTER, 1)


def test_a_missing_input_comes_before_a_check() -> None:
    config = settings(prompt=TASK, verify_first=True)
    state = in_test(turn=Turn.CHECK)
    lost = replace(state, outputs=state.outputs | {ANALYST.output: ""})
    assert next_step(lost, config) == Ask(ANALYST, 1)


def test_a_pass_is_confirmed_by_all_checks_and_the_state_knows_them() -> None:
    config = settings(prompt=TASK, verify_cmd="make")
    state = replace(in_test(turn=Turn.VERIFY), outputs={role.output: "x" for role in ROLES})
    step = next_step(state, config)
    assert step == Verify(1, (ONE, TWO, COMMAND), When.AFTER_TEST)
    after, _ = apply(state, step, ended(0, 0, 0), config)
    assert next_step(after, config) == Finished(Status.PASS)
    assert after.checked == {"verify block 1": 0, "verify block 2": 0, "make": 0}
    refuted, _ = apply(state, step, ended(0, 0, 2), config)
    assert refuted.checked == {}
    assert refuted.current_round == 2


def test_a_run_that_starts_with_the_tester_begins_with_its_checks() -> None:
    config = settings(prompt=TASK, verify_first=True, start_agent=TESTER.name, red_first="off", max_rounds=1)
    played = play(new_state(config), config, default_reply, exit_code=1)
    assert (played.asked, played.end) == ([], Finished(Status.FAIL))


@given(st.integers(0, 1), st.integers(1, 4), st.sampled_from(["warn", "off"]), st.lists(st.sampled_from([FAIL, "?"])))
def test_no_tester_is_asked_in_a_round_whose_checks_have_failed(
    exit_code: int, rounds: int, mode: str, replies: list[str]
) -> None:
    config = settings(prompt=TASK, verify_first=True, red_first=mode, max_rounds=rounds)
    played = play(new_state(config), config, scripted(tester=[*replies, PASS]), exit_code=exit_code)
    asked = {ask.round for ask in played.asked if ask.role is TESTER}
    failed = {event.round for event in played.events if isinstance(event, journal.Checked) and event.when != When.START}
    assert not (asked & failed if exit_code else set())
    assert bool(asked) is not bool(exit_code)
    assert (played.end.status is Status.PASS) == (played.verified > 0)
