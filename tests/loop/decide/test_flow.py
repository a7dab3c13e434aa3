"""The flow: which step comes next, whatever the agents say."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.config import Settings
from quintet.layout import response_path_for
from quintet.loop import journal
from quintet.loop.decide.checks import Check
from quintet.loop.decide.condense import condense_for_programmer, condense_for_tester
from quintet.loop.decide.flow import apply, next_step
from quintet.loop.decide.outputs import NOT_THERE, missing
from quintet.loop.decide.prompts import BACK_REFERENCE
from quintet.loop.decide.state import Again, State, Status, TerminalRef, Turn
from quintet.loop.decide.steps import (
    Ask,
    ChecksEnded,
    Dispatched,
    Finished,
    NoReply,
    Replied,
    Retrying,
    TerminalsChanged,
    Verify,
)
from quintet.loop.record.state_file import load_state, save_state
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, ROLES, TESTER, Phase, Role
from tests.loop.runs import (
    FAIL,
    PASS,
    REVISE,
    TASK,
    Played,
    approval,
    default_reply,
    new_state,
    play,
    scripted,
    settings,
)
from tests.loop.texts import readable_texts

ALL = [role.name for role in ROLES]


def kinds(played: Played) -> list[type]:
    return [type(event) for event in played.events]


def test_a_good_run_goes_through_all_five_with_two_cycles_each() -> None:
    played = play(new_state(settings()), settings(), default_reply)
    assert played.roles == [*ALL[:2], *ALL[:2], *ALL[2:4], *ALL[2:4], ALL[4]]
    assert played.end == Finished(Status.PASS)
    assert played.state.final_status is Status.PASS


def test_with_a_minimum_of_one_cycle_the_first_approval_counts() -> None:
    config = settings(min_review_cycles_before_approval=1)
    assert play(new_state(config), config, default_reply).roles == ALL


def test_a_fail_goes_to_the_programmer_and_keeps_the_analysts_work() -> None:
    config = settings()
    played = play(new_state(config), config, scripted(tester=[FAIL, PASS]))
    retry = played.asked[9]
    assert (retry.role, retry.round, retry.cycle) == (PROGRAMMER, 2, 1)
    state = played.before[9]
    assert not missing(state.outputs[ANALYST.output])
    assert not missing(state.outputs[PEER_ANALYST.output])
    assert [state.outputs[role.output] for role in (PROGRAMMER, PEER_PROGRAMMER, TESTER)] == ["", "", ""]
    assert state.feedback == FAIL
    assert "programmer did 1-2-programmer" in state.programmer_context_for_retry
    assert state.programmer_feedback == ""
    assert played.end == Finished(Status.PASS)
    assert played.state.current_round == 2


@pytest.mark.parametrize("rounds", [1, 2, 8])
def test_after_the_last_round_the_run_has_failed(rounds: int) -> None:
    config = settings(max_rounds=rounds)
    played = play(new_state(config), config, scripted(tester=FAIL))
    assert played.end == Finished(Status.FAIL)
    assert played.state.final_status is Status.FAIL
    assert played.roles.count(TESTER.name) == rounds
    assert played.roles.count(ANALYST.name) == 2, "never back to the analyst"
    assert [event.last for event in played.events if isinstance(event, journal.RoundFailed)][-1]


@pytest.mark.parametrize("cycles", [1, 2, 3])
def test_used_up_reviews_go_on_with_their_notes(cycles: int) -> None:
    config = settings(max_review_cycles=cycles)
    played = play(new_state(config), config, scripted(analyst_review=REVISE, programmer_review=REVISE))
    assert played.roles.count(PEER_ANALYST.name) == played.roles.count(PEER_PROGRAMMER.name) == cycles
    assert kinds(played).count(journal.ReviewsUsedUp) == 2
    assert "say which file" in played.prompt_of(PROGRAMMER.name)
    assert "say which file" in played.prompt_of(TESTER.name)
    assert played.end == Finished(Status.PASS)


def test_notes_are_no_longer_open_once_a_review_approves() -> None:
    config = settings(max_review_cycles=2)
    played = play(new_state(config), config, scripted(analyst_review=REVISE))
    assert "Open review notes" in played.prompt_of(PROGRAMMER.name)
    assert "Open review notes" not in played.prompt_of(TESTER.name)


def test_a_review_without_a_verdict_is_a_revise() -> None:
    config = settings()
    played = play(new_state(config), config, scripted(analyst_review=["looks good", approval()]))
    assert "looks good" in played.prompt_of(ANALYST.name, 1)
    first = next(event for event in played.events if isinstance(event, journal.ReviewJudged))
    assert not first.approved
    assert first.verdict == ""


def test_a_report_without_a_verdict_is_asked_for_once_more() -> None:
    config = settings()
    played = play(new_state(config), config, scripted(tester=["it went well", PASS]))
    assert [ask.again for ask in played.asked if ask.role is TESTER] == [Again.NO, Again.VERDICT]
    assert played.end == Finished(Status.PASS)


@pytest.mark.parametrize("second", [None, "", "no idea", "RESULT: PASS|FAIL"])
def test_a_report_without_a_verdict_twice_is_a_fail_with_the_first_as_evidence(second: str | None) -> None:
    config = settings(max_rounds=2)

    def reply(step: Ask) -> str | None:
        if step.role is not TESTER:
            return default_reply(step)
        return second if step.again else "the first report"

    played = play(new_state(config), config, reply)
    assert played.end == Finished(Status.FAIL)
    assert played.state.feedback == "the first report"
    assert "Test failure feedback:\nthe first report" in played.prompt_of(PROGRAMMER.name, 2)


def test_a_late_verdict_keeps_the_first_report_as_its_evidence() -> None:
    config = settings()
    played = play(new_state(config), config, scripted(tester=["exit code 3 instead of 0", "RESULT: FAIL", PASS]))
    assert "exit code 3 instead of 0" in played.prompt_of(PROGRAMMER.name, 2)
    assert "RESULT: FAIL" in played.prompt_of(PROGRAMMER.name, 2)


@pytest.mark.scenario("004", "Fresh run starts from programmer role")
@pytest.mark.scenario("004", "Fresh run starts from peer analyst role")
@pytest.mark.scenario("004", "Fresh run starts from peer programmer role")
@pytest.mark.scenario("004", "Fresh run starts from tester role")
@pytest.mark.parametrize("start", ROLES, ids=str)
def test_a_new_run_begins_at_the_start_agent(start: Any) -> None:
    config = settings(start_agent=start.name)
    played = play(new_state(config), config, default_reply)
    assert played.asked[0] == Ask(start, 1, 1)
    assert played.end == Finished(Status.PASS)
    for role in ROLES[: ROLES.index(start)]:
        note = played.before[0].outputs[role.output]
        assert note.startswith(NOT_THERE)
        assert role.name in note


@pytest.mark.scenario("004", "First-dispatch peer analyst uses placeholder when upstream is missing")
@pytest.mark.scenario("004", "First-dispatch peer programmer uses placeholder when upstream is missing")
def test_what_was_skipped_shows_in_later_prompts() -> None:
    for start in ROLES[1:]:
        config = settings(start_agent=start.name)
        played = play(new_state(config), config, default_reply)
        assert NOT_THERE in played.prompt_of(start.name)


def test_a_fail_of_a_run_started_at_the_tester_goes_to_the_programmer() -> None:
    config = settings(start_agent=TESTER.name)
    played = play(new_state(config), config, scripted(tester=[FAIL, PASS]))
    assert played.roles[:2] == [TESTER.name, PROGRAMMER.name]
    assert "Your previous changes" not in played.prompt_of(PROGRAMMER.name)


@pytest.mark.scenario("004", "Resume ignores start agent override")
def test_a_saved_phase_stands_whatever_the_start_agent_is() -> None:
    config = settings(start_agent=ANALYST.name)
    state = replace(new_state(settings(start_agent=TESTER.name)), turn=Turn.WORK)
    assert next_step(state, config) == Ask(TESTER, 1, 1)


@pytest.mark.scenario("001", "Missing analyst output falls back to analyst phase")
@pytest.mark.parametrize(
    ("phase", "turn", "outputs", "role"),
    [
        (Phase.PROGRAMMER, Turn.WORK, {}, ANALYST),
        (Phase.PROGRAMMER, Turn.REVIEW, {"analyst": "x"}, PROGRAMMER),
        (Phase.TESTER, Turn.WORK, {"programmer": "x"}, ANALYST),
        (Phase.TESTER, Turn.WORK, {"analyst": "x"}, PROGRAMMER),
        (Phase.TESTER, Turn.WORK, {"analyst": "x", "programmer": " \n"}, PROGRAMMER),
        (Phase.TESTER, Turn.VERIFY, {"analyst": "x", "programmer": "x"}, TESTER),
        (Phase.ANALYST, Turn.REVIEW, {}, ANALYST),
        (Phase.ANALYST, Turn.REVIEW, {"analyst": "\ufeff"}, ANALYST),
    ],
)
def test_a_missing_input_goes_back_to_the_work_that_makes_it(
    phase: Phase, turn: Turn, outputs: dict[str, str], role: Any
) -> None:
    state = State(current_phase=phase, turn=turn, outputs=State().outputs | outputs)
    assert next_step(state, settings()) == Ask(role, 1, 1)


def test_an_empty_reply_is_kept_as_a_note() -> None:
    config = settings()
    for empty in ("", "  \r\n", "\ufeff\n"):
        played = play(new_state(config), config, scripted(programmer=empty, tester=[FAIL, PASS]))
        assert f"{NOT_THERE}programmer replied with an empty text.)" in played.prompt_of(PEER_PROGRAMMER.name)
        assert "Your previous changes" not in played.prompt_of(PROGRAMMER.name, 2)


@pytest.mark.parametrize(("exit_code", "status"), [(0, Status.PASS), (1, Status.FAIL), (-9, Status.FAIL)])
def test_a_command_has_the_last_word_on_a_pass(exit_code: int, status: Status) -> None:
    config = settings(verify_cmd="make check", max_rounds=1)
    played = play(new_state(config), config, default_reply, exit_code=exit_code)
    assert played.verified == 1
    assert played.end == Finished(status)
    assert ("output of the command" in played.state.feedback) == (status is Status.FAIL)


def test_a_fail_is_not_verified() -> None:
    config = settings(verify_cmd="make check", max_rounds=2)
    assert play(new_state(config), config, scripted(tester=FAIL)).verified == 0


def test_a_command_that_was_taken_out_of_the_config_is_not_waited_for() -> None:
    outputs = {role.output: "x" for role in ROLES}
    state = State(current_phase=Phase.TESTER, turn=Turn.VERIFY, outputs=outputs)
    assert next_step(state, settings(verify_cmd="c")) == Verify(1, (Check("c", "c"),))
    assert next_step(state, settings()) == Finished(Status.PASS)


def test_a_cycle_beyond_the_limit_is_the_last_one() -> None:
    state = State(cycle=99, turn=Turn.REVIEW, outputs=State().outputs | {"analyst": "x"})
    step = next_step(state, settings())
    assert step == Ask(PEER_ANALYST, 1, 3)
    after, events = apply(state, step, Replied(REVISE), settings())
    assert after.current_phase is Phase.PROGRAMMER
    assert isinstance(events[-1], journal.ReviewsUsedUp)


@pytest.mark.parametrize("status", [Status.PASS, Status.FAIL])
def test_a_finished_run_stays_finished(status: Status) -> None:
    assert next_step(State(final_status=status), settings()) == Finished(status)


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        (Ask(ANALYST, 1), NoReply()),
        (Ask(ANALYST, 1), ChecksEnded(())),
        (Verify(1, ()), Replied("x")),
        (Finished(Status.PASS), Dispatched(1)),
    ],
)
def test_an_outcome_that_does_not_belong_to_its_step_is_a_bug(step: Any, outcome: Any) -> None:
    with pytest.raises(AssertionError):
        apply(State(), step, outcome, settings())


def test_a_state_is_a_value() -> None:
    state = new_state(settings())
    before = replace(state, outputs=dict(state.outputs), full_summary_sent=dict(state.full_summary_sent))
    play(state, settings(), scripted(tester=[FAIL, PASS]))
    assert state == before


some_settings = st.builds(
    settings,
    max_rounds=st.integers(1, 4),
    max_review_cycles=st.integers(1, 4),
    min_review_cycles_before_approval=st.integers(0, 5),
    require_review_evidence=st.booleans(),
    review_evidence_min_match=st.integers(0, 4),
    condense_cross_phase=st.booleans(),
    max_cross_phase_lines=st.integers(1, 60),
    condense_upstream_on_repeat=st.booleans(),
    condense_explore_on_repeat=st.booleans(),
    condense_review_feedback=st.booleans(),
    max_feedback_lines=st.integers(1, 40),
    max_test_evidence_lines=st.integers(1, 150),
    start_agent=st.sampled_from(ALL),
    verify_cmd=st.sampled_from(["", "make check"]),
    project_test_cmd=st.sampled_from(["", "pytest -q"]),
)
whole_replies = st.sampled_from(
    [PASS, FAIL, REVISE, approval(Phase.ANALYST), approval(Phase.PROGRAMMER), "", "no verdict at all", "```\n```"]
)
replies = st.lists(whole_replies | readable_texts, min_size=1, max_size=8)


def in_turn(texts: list[str], *, silent: bool = False) -> Any:
    """The texts one after the other and again from the first; a tester that is asked again may say nothing."""
    count = iter(range(10**9))
    return lambda step: None if silent and step.again else texts[next(count) % len(texts)]


@given(some_settings, replies, st.integers(0, 1), st.booleans())
def test_a_run_always_ends_within_its_limits(config: Settings, texts: list[str], exit_code: int, silent: bool) -> None:
    played = play(new_state(config), config, in_turn(texts, silent=silent), exit_code=exit_code)
    assert played.end.status in {Status.PASS, Status.FAIL}
    assert played.state.final_status is played.end.status
    assert played.asked[0].role.name == config.start_agent
    assert all(1 <= ask.round <= config.max_rounds for ask in played.asked)
    assert all(1 <= ask.cycle <= config.max_review_cycles for ask in played.asked)
    assert all(ask.round == 1 for ask in played.asked if ask.role.phase is Phase.ANALYST)
    keys = [ask.key for ask in played.asked]
    assert len(set(keys)) == len(keys), "no step is asked for twice"
    assert played.verified == 0 or config.verify_cmd


@given(some_settings, replies)
def test_no_prompt_ever_lacks_its_input(config: Settings, texts: list[str]) -> None:
    played = play(new_state(config), config, in_turn(texts))
    briefed: set[Role] = set()
    for ask, prompt, state in zip(played.asked, played.prompts, played.before, strict=True):
        assert str(response_path_for(ask.role, config.wd)) in prompt
        assert "RESPONSE FILE INSTRUCTION" in prompt
        if ask.role is TESTER:
            assert ask.again or TASK.scenario_test in prompt
        elif ask.role not in briefed or not config.condense_explore_on_repeat:
            assert TASK.explore_summary in prompt
        if ask.role is PROGRAMMER:
            assert TASK.scenario_test in prompt
        for shown in upstream(ask, state, config, first=ask.role not in briefed):
            assert shown.strip()
            assert shown.strip("\n") in prompt
        briefed.add(ask.role)


def upstream(ask: Ask, state: State, config: Settings, *, first: bool) -> list[str]:
    """The texts that a prompt has to show: whole ones as they are, shortened ones by what follows their label."""
    outputs = state.outputs
    if ask.again or ask.role is ANALYST:
        return []
    if ask.role in (PEER_ANALYST, PEER_PROGRAMMER):
        return [outputs[ANALYST.output if ask.role is PEER_ANALYST else PROGRAMMER.output]]
    if ask.role is PROGRAMMER and ask.round > 1:
        return [state.feedback]
    if ask.role is TESTER:
        return [condense_for_tester(outputs[PROGRAMMER.output], config)]
    if ask.cycle > 1 and not first and config.condense_upstream_on_repeat:
        return [BACK_REFERENCE]
    return [condense_for_programmer(outputs[ANALYST.output], config)]


@given(some_settings, replies, st.integers(0, 1))
def test_stopping_and_resuming_after_any_event_gives_the_same_prompts(
    tmp_path_factory: pytest.TempPathFactory, config: Settings, texts: list[str], exit_code: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "resumed.json"

    def resumed(state: State) -> State:
        save_state(state, path)
        loaded = load_state(Path(path))
        assert loaded is not None
        return replace(loaded, updated_at=state.updated_at)

    through = play(new_state(config), config, in_turn(texts), exit_code=exit_code)
    with patch("os.fsync"):  # no power is cut here, and the disk is slow
        stopped = play(new_state(config), config, in_turn(texts), exit_code=exit_code, pause=resumed)
    assert stopped.prompts == through.prompts
    assert stopped.asked == through.asked
    assert stopped.state == through.state


def test_a_failed_turn_leaves_the_step_where_it_is() -> None:
    state = new_state(settings())
    step = next_step(state, settings())
    assert isinstance(step, Ask)
    sent, _ = apply(state, step, Dispatched(7), settings())
    again, _ = apply(sent, step, Retrying(), settings())
    assert (again.dispatched, again.attempt) == ("", 1)
    assert next_step(again, settings()) == step
    taken, _ = apply(again, step, Replied("done"), settings())
    assert taken.attempt == 0


def replaced(state: State, *roles: Role) -> TerminalsChanged:
    fresh = {role.name: TerminalRef(f"new-{role.name}", "codex") for role in roles}
    return TerminalsChanged(state.terminals | fresh, "another session")


def test_a_replaced_agent_gets_its_prompt_again_and_in_full() -> None:
    state = new_state(settings())
    step = next_step(state, settings())
    assert isinstance(step, Ask)
    state, _ = apply(state, step, Dispatched(7), settings())
    other, _ = apply(state, step, replaced(state, TESTER), settings())
    assert other.dispatched == step.key, "the analyst is at work, whatever became of the tester"
    lost, _ = apply(state, step, replaced(state, ANALYST), settings())
    assert (lost.dispatched, lost.session_name) == ("", "another session")
    assert next_step(lost, settings()) == step
    assert lost.full_summary_sent.get(lost.terminals[ANALYST.name].id) is None


def test_a_tester_that_is_replaced_when_asked_again_gets_the_whole_test() -> None:
    state = replace(
        new_state(settings()),
        current_phase=Phase.TESTER,
        again=Again.VERDICT,
        outputs={role.output: "text" for role in ROLES},
    )
    step = next_step(state, settings())
    assert step == Ask(TESTER, 1, again=Again.VERDICT)
    state, _ = apply(state, step, replaced(state, TESTER), settings())
    assert next_step(state, settings()) == Ask(TESTER, 1)
    assert state.outputs[TESTER.output] == ""
