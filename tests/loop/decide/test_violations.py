"""What follows from changes that a role may not make: it is asked once more, then the verdict is negative."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.actions import ActionKind, TurnActions, action, bounded
from quintet.loop import journal
from quintet.loop.decide.flow import apply
from quintet.loop.decide.state import Again, Status
from quintet.loop.decide.steps import Ask, Finished, NoReply, Replied
from quintet.loop.journal import GuardedChange, GuardViolation
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER, Phase, Role
from tests.loop.runs import (
    FAIL,
    PASS,
    REVISE,
    Played,
    approval,
    asked,
    default_reply,
    new_state,
    of,
    play,
    run_once,
    settings,
)

RAN = bounded([action(ActionKind.COMMAND, "make test", 0)])
EDIT = GuardedChange(path="src/main.c", change="changed")
NEW = GuardedChange(path="out.txt", change="created")


def violation(*paths: GuardedChange, undone: bool = True) -> GuardViolation:
    return GuardViolation(step="s", role="r", paths=paths, undone=undone, serious=EDIT in paths)


EDITED, CREATED = violation(EDIT), violation(NEW)
REPORTED = violation(EDIT, undone=False)


def did(text: str, what: GuardViolation | None = None, actions: TurnActions | None = RAN) -> Replied:
    return Replied(text, actions=actions, violation=what)


def told(played: Played) -> list[GuardViolation]:
    return [event for event in played.events if isinstance(event, GuardViolation)]


def test_a_positive_verdict_where_nobody_knows_what_was_changed_is_negative_at_once() -> None:
    unknown = GuardViolation(step="s", role="r", serious=True, unknown=True)
    played = run_once(of(TESTER, did(PASS, unknown)))
    assert (asked(played, TESTER), played.end) == ([Again.NO], Finished(Status.FAIL))
    assert "could not be found out" in played.state.outputs[TESTER.output]
    played = run_once(of(PEER_PROGRAMMER, did(approval(Phase.PROGRAMMER), unknown)), max_review_cycles=2)
    assert asked(played, PEER_PROGRAMMER) == [Again.NO] * 2
    assert "could not be found out" in played.state.programmer_feedback


def test_a_pass_after_an_edit_is_asked_for_again_and_then_a_fail_with_the_list() -> None:
    played = run_once(of(TESTER, did(PASS, EDITED)), max_rounds=2)
    assert asked(played, TESTER) == [Again.NO, Again.CHANGES] * 2
    assert played.end == Finished(Status.FAIL)
    again = played.prompt_of(TESTER.name, 1)
    assert "- changed src/main.c" in again
    assert "RESULT: <PASS or FAIL>" in again
    first, last = [event for event in played.events if isinstance(event, journal.TestJudged)][:2]
    assert (first.verdict, first.counts) == ("PASS", False)
    assert (last.verdict, last.counts) == ("FAIL", True)
    assert "may not change" in last.reason
    assert "- changed src/main.c" in played.prompt_of(PROGRAMMER.name, 1), "the list is the evidence of the FAIL"
    assert told(played) == [EDITED] * 4


def test_a_tester_that_leaves_the_code_alone_when_asked_again_decides() -> None:
    for text, status in ((PASS, Status.PASS), (FAIL, Status.FAIL)):
        assert run_once(of(TESTER, did(PASS, EDITED), did(text))).end == Finished(status)


def test_a_second_turn_has_to_test_for_itself() -> None:
    """What was run on a project that has been put back since proves nothing."""
    played = run_once(of(TESTER, did(PASS, EDITED), did(PASS, actions=TurnActions())))
    assert played.end == Finished(Status.FAIL)


@pytest.mark.parametrize("role", [PEER_ANALYST, PEER_PROGRAMMER])
def test_an_approval_after_an_edit_counts_for_nothing(role: Role) -> None:
    played = run_once(of(role, did(approval(role.phase), EDITED)), max_review_cycles=2)
    assert asked(played, role) == [Again.NO, Again.CHANGES] * 2
    assert "- changed src/main.c" in played.prompt_of(role.name, 1)
    assert "REVIEW_RESULT: <APPROVED or REVISE>" in played.prompt_of(role.name, 1)
    worker = ANALYST if role is PEER_ANALYST else PROGRAMMER
    assert "- changed src/main.c" in played.prompt_of(worker.name, 1), "the list is in the notes"
    assert any(isinstance(event, journal.ReviewsUsedUp) for event in played.events)


def test_a_reviewer_that_changes_nothing_when_asked_again_may_approve() -> None:
    good = approval(Phase.PROGRAMMER)
    played = run_once(of(PEER_PROGRAMMER, did(good, EDITED), did(good)))
    assert (asked(played, PEER_PROGRAMMER), played.end) == ([Again.NO, Again.CHANGES], Finished(Status.PASS))


def test_new_files_alone_are_told_and_the_verdict_stands() -> None:
    played = run_once(of(TESTER, did(PASS, CREATED)))
    assert (asked(played, TESTER), played.end) == ([Again.NO], Finished(Status.PASS))
    assert told(played) == [CREATED]


def test_where_nothing_is_undone_verdicts_stand() -> None:
    played = run_once(of(TESTER, did(PASS, REPORTED)))
    assert (asked(played, TESTER), played.end, told(played)) == ([Again.NO], Finished(Status.PASS), [REPORTED])


def test_a_negative_verdict_stands() -> None:
    assert asked(run_once(of(TESTER, did(FAIL, EDITED))), TESTER) == [Again.NO]
    assert asked(run_once(of(PEER_ANALYST, did(REVISE, EDITED)), max_review_cycles=1), PEER_ANALYST) == [Again.NO]


def test_no_verdict_and_an_edit_is_one_repetition_and_not_two() -> None:
    played = run_once(of(TESTER, did("it went well", EDITED), did("indeed")))
    assert (asked(played, TESTER), played.end) == ([Again.NO, Again.CHANGES], Finished(Status.FAIL))


def test_an_edit_when_asked_again_for_another_reason_is_negative() -> None:
    for first in (did("it went well"), did(PASS, actions=TurnActions())):
        played = run_once(of(TESTER, first, did(PASS, EDITED)))
        assert (len(asked(played, TESTER)), played.end) == (2, Finished(Status.FAIL))
        assert "- changed src/main.c" in played.state.feedback


def test_no_answer_when_asked_again_is_negative() -> None:
    assert run_once(of(TESTER, did(PASS, EDITED), None)).end == Finished(Status.FAIL)
    played = run_once(of(PEER_PROGRAMMER, did(approval(Phase.PROGRAMMER), EDITED), None), max_review_cycles=1)
    assert any(isinstance(event, journal.ReviewsUsedUp) for event in played.events)
    assert "- changed src/main.c" in played.prompt_of(TESTER.name)


def test_the_event_is_told_also_without_an_answer() -> None:

    config = settings()
    step = Ask(TESTER, 1, 1, Again.CHANGES)
    assert EDITED in apply(new_state(config), step, NoReply(0, EDITED), config)[1]


@pytest.mark.parametrize(("worker", "reviewer"), [(ANALYST, PEER_ANALYST), (PROGRAMMER, PEER_PROGRAMMER)])
def test_a_workers_violation_is_told_to_it_and_to_its_reviewer(worker: Role, reviewer: Role) -> None:
    def reply(step: Ask) -> str | Replied:
        if step.role is worker:
            return did("done", EDITED if step.cycle == 1 else None)
        if step.role is reviewer and step.cycle == 1:
            return REVISE
        return default_reply(step)

    played = run_once(reply)
    assert played.end == Finished(Status.PASS), "it has no verdict that could be refused"
    assert "- changed src/main.c" in played.prompt_of(reviewer.name, 0)
    assert "- changed src/main.c" in played.prompt_of(worker.name, 1)
    assert "- changed src/main.c" not in played.prompt_of(reviewer.name, 1), "its next turn was clean"


SAID = st.sampled_from([PASS, FAIL, REVISE, approval(), approval(Phase.PROGRAMMER), "", "nothing to read here"])
DID = st.sampled_from([None, EDITED, CREATED, REPORTED])


@given(st.lists(st.tuples(SAID, DID), min_size=1, max_size=40))
def test_no_run_passes_on_a_turn_that_edited(turns: list[tuple[str, GuardViolation | None]]) -> None:
    config, queue = settings(max_rounds=2, max_review_cycles=2), list(turns)
    tested: list[GuardViolation | None] = []

    def reply(step: Ask) -> Replied:
        text, what = queue.pop(0) if len(queue) > 1 else queue[0]
        if step.role is TESTER:
            tested.append(what)
        return did(text, what)

    played = play(new_state(config), config, reply)
    steps = [(step.round, step.cycle, step.role, bool(step.again)) for step in played.asked]
    assert len(set(steps)) == len(steps), "no step is asked for more than twice"
    if played.end == Finished(Status.PASS):
        assert tested[-1] is not EDITED
