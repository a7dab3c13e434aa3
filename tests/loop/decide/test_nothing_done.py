"""A verdict of a role that did nothing in its turn: asked once more, then negative."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.actions import ActionKind, TurnActions, action, bounded
from quintet.loop import journal
from quintet.loop.decide.flow import apply, next_step
from quintet.loop.decide.state import Again, Status, TerminalRef
from quintet.loop.decide.steps import Ask, Finished, Replied, TerminalsChanged
from quintet.roles import PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER, Phase, Role
from tests.loop.runs import (
    FAIL,
    PASS,
    REVISE,
    approval,
    asked,
    new_state,
    of,
    play,
    run_once,
    settings,
)

NOTHING = TurnActions()
RAN = bounded([action(ActionKind.COMMAND, "make test", 0)])
READ = bounded([action(ActionKind.READ, "slug.py")])
ONE_CYCLE = {"min_review_cycles_before_approval": 1, "max_rounds": 1}


def test_a_pass_of_a_tester_that_ran_nothing_is_asked_for_again_and_then_a_fail() -> None:
    played = run_once(of(TESTER, Replied(PASS, actions=NOTHING)))
    assert asked(played, TESTER) == [Again.NO, Again.ACTIONS]
    assert "you have run nothing in this turn" in played.prompts[-1]
    assert played.end == Finished(Status.FAIL)
    first, last = [event for event in played.events if isinstance(event, journal.TestJudged)]
    assert (first.verdict, first.counts) == ("PASS", False)
    assert (last.verdict, last.counts) == ("FAIL", True)
    assert "has run nothing" in last.reason
    assert "has run nothing" in played.state.feedback, "the next round is told why"


@pytest.mark.parametrize("did", [READ, bounded([action(ActionKind.CHANGE, "x")])])
def test_reading_is_not_testing(did: TurnActions) -> None:
    assert run_once(of(TESTER, Replied(PASS, actions=did))).end == Finished(Status.FAIL)


def test_a_tester_that_runs_something_when_asked_again_decides() -> None:
    for text, status in ((PASS, Status.PASS), (FAIL, Status.FAIL)):
        played = run_once(of(TESTER, Replied(PASS, actions=NOTHING), Replied(text, actions=RAN)))
        assert played.end == Finished(status)


def test_a_negative_verdict_stands_whatever_was_done() -> None:
    played = run_once(of(TESTER, Replied(FAIL, actions=NOTHING)))
    assert asked(played, TESTER) == [Again.NO]
    played = run_once(of(PEER_ANALYST, Replied(REVISE, actions=NOTHING)), max_review_cycles=1)
    assert asked(played, PEER_ANALYST) == [Again.NO]


@pytest.mark.parametrize("role", [PEER_ANALYST, PEER_PROGRAMMER])
def test_an_approval_of_a_reviewer_that_looked_at_nothing_counts_for_nothing(role: Role) -> None:
    played = run_once(of(role, Replied(approval(role.phase), actions=NOTHING)), max_review_cycles=2)
    assert asked(played, role) == [Again.NO, Again.ACTIONS] * 2, "once in each cycle"
    judged = [event for event in played.events if isinstance(event, journal.ReviewJudged) and event.phase == role.phase]
    assert [event.approved for event in judged] == [False] * 4
    assert all("has read and run nothing" in event.reason for event in judged)
    assert any(isinstance(event, journal.ReviewsUsedUp) for event in played.events)
    assert "has read and run nothing" in played.prompt_of(PROGRAMMER.name, 1 if role is PEER_PROGRAMMER else 0)


@pytest.mark.parametrize("did", [READ, RAN])
def test_a_reviewer_that_looks_when_asked_again_may_approve(did: TurnActions) -> None:
    good = approval(Phase.PROGRAMMER)
    played = run_once(of(PEER_PROGRAMMER, Replied(good, actions=NOTHING), Replied(good, actions=did)))
    assert asked(played, PEER_PROGRAMMER) == [Again.NO, Again.ACTIONS]
    assert played.end == Finished(Status.PASS)


def test_no_answer_when_asked_again_is_negative() -> None:
    played = run_once(
        of(PEER_PROGRAMMER, Replied(approval(Phase.PROGRAMMER), actions=NOTHING), None), max_review_cycles=1
    )
    assert any(isinstance(event, journal.ReviewsUsedUp) for event in played.events)
    assert run_once(of(TESTER, Replied(PASS, actions=NOTHING), None)).end == Finished(Status.FAIL)


def test_where_no_record_tells_the_word_counts() -> None:
    assert run_once(of(TESTER, Replied(PASS, actions=None))).end == Finished(Status.PASS)
    assert asked(run_once(of(PEER_ANALYST, Replied(approval()))), PEER_ANALYST) == [Again.NO]


def test_the_setting_turns_it_off() -> None:
    played = run_once(of(TESTER, Replied(PASS, actions=NOTHING)), require_actions=False)
    assert (asked(played, TESTER), played.end) == ([Again.NO], Finished(Status.PASS))


def test_what_was_run_before_a_missing_verdict_counts() -> None:
    played = run_once(of(TESTER, Replied("it went well", actions=RAN), Replied(PASS, actions=NOTHING)))
    assert asked(played, TESTER) == [Again.NO, Again.VERDICT]
    assert played.end == Finished(Status.PASS)


def test_neither_verdict_nor_work_is_one_repetition_and_not_two() -> None:
    played = run_once(of(TESTER, Replied("it went well", actions=NOTHING), Replied("indeed", actions=RAN)))
    assert asked(played, TESTER) == [Again.NO, Again.ACTIONS]
    assert played.end == Finished(Status.FAIL)


def test_a_reviewer_that_is_replaced_when_asked_again_gets_the_whole_review() -> None:
    config = settings(**ONE_CYCLE)
    state = new_state(config)
    for text, did in (("work", RAN), (approval(), NOTHING)):
        step = next_step(state, config)
        state, _ = apply(state, step, Replied(text, actions=did), config)
    step = next_step(state, config)
    assert step == Ask(PEER_ANALYST, 1, 1, Again.ACTIONS)
    fresh = state.terminals | {PEER_ANALYST.name: TerminalRef("new", "codex")}
    state, _ = apply(state, step, TerminalsChanged(fresh, "another"), config)
    assert next_step(state, config) == Ask(PEER_ANALYST, 1, 1)


DID = st.sampled_from([None, NOTHING, RAN, READ])
SAID = st.sampled_from([PASS, FAIL, REVISE, approval(), approval(Phase.PROGRAMMER), "", "nothing to read here"])


@given(st.lists(st.tuples(SAID, DID), min_size=1, max_size=40), st.booleans())
def test_no_run_passes_on_a_turn_that_is_known_to_have_run_nothing(
    turns: list[tuple[str, TurnActions | None]], stops: bool
) -> None:
    """Whatever is said and done, and wherever it is resumed: the limits hold, and a PASS has a command behind it."""
    config, queue = settings(max_rounds=2, max_review_cycles=2), list(turns)
    tested: list[tuple[Again, TurnActions | None]] = []

    def reply(step: Ask) -> Replied:
        text, did = queue.pop(0) if len(queue) > 1 else queue[0]
        if step.role is TESTER:
            tested.append((step.again, did))
        return Replied(text, actions=did)

    pause = replace if stops else (lambda state: state)
    played = play(new_state(config), config, reply, pause=pause)
    steps = [(step.round, step.cycle, step.role, bool(step.again)) for step in played.asked]
    assert len(set(steps)) == len(steps), "no step is asked for more than twice"
    if played.end == Finished(Status.PASS):
        again, did = tested[-1]
        before = tested[-2][1] if again is Again.VERDICT else NOTHING
        assert RAN in (did, before) or None in (did, before)
