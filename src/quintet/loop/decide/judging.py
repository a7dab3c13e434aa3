"""What replies and the results of checks make of the state: verdicts, evidence, the next phase or round.

A part of `flow`, which calls it: as pure as that.
"""

import dataclasses
from functools import partial
from typing import Final

from quintet.config import Settings
from quintet.loop import journal
from quintet.loop.decide import condense, gate
from quintet.loop.decide.checks import RED_STOP, all_checks, passes_already, refuted
from quintet.loop.decide.evidence import did_work
from quintet.loop.decide.gate import Verdict
from quintet.loop.decide.outputs import NOT_THERE, blank, is_empty, missing, size_of
from quintet.loop.decide.state import Again, State, Turn, When, replace
from quintet.loop.decide.steps import Ask, ChecksEnded, Replied
from quintet.roles import PEER_PROGRAMMER, PROGRAMMER, TESTER, Phase, Role

NOTHING_RUN: Final = "by its own record the tester has run nothing"
NOTHING_READ: Final = "by its own record the reviewer has read and run nothing"
CHANGED: Final = "it changed what it may not change, and that was undone"
UNKNOWN: Final = "what it changed could not be found out"
ASKED_AGAIN: Final = "; it is asked once more"

Applied = tuple[State, tuple[journal.Event, ...]]
"""a state, and the events that say what was decided"""


def judge_reply(state: State, step: Ask, replied: Replied, settings: Settings) -> Applied:
    """What a reply makes of the state."""
    role, text = step.role, replied.text
    fault = _fault(state, role, replied, settings)
    state = replace(_answered(state, step), undone=_with_undone(state, role, replied.violation))
    if not step.again or role.reviews:
        reply = f"{NOT_THERE}{role} replied with an empty text.)" if is_empty(text) else text
        state = replace(state, outputs=state.outputs | {role.output: reply})
    if role is TESTER:
        judge = _tested_again if step.again else _tested
        return judge(state, replied, settings, fault)
    if role.reviews:
        return _reviewed(state, step, replied.whole, settings, fault)
    return replace(state, turn=Turn.REVIEW), ()


def judge_missing_reply(state: State, step: Ask, settings: Settings) -> Applied:
    """A role that was asked once more gave no answer: its first reply does not count."""
    state = _answered(state, step)
    if step.role is TESTER:
        return _tested_again(state, Replied(""), settings, Again.NO)
    return _reviewed(state, step, None, settings, step.again)


def entered(state: State, settings: Settings) -> State:
    """The state at the beginning of its phase."""
    checks = state.current_phase is Phase.TESTER and settings.verify_first and all_checks(state.prompt, settings)
    return replace(state, turn=Turn.CHECK if checks else Turn.WORK)


def at_step(state: State, step: Ask) -> State:
    """The state at the step's own place: next_step may have gone back for a missing input."""
    turn = Turn.REVIEW if step.role.reviews else Turn.WORK
    return replace(state, current_phase=step.role.phase, cycle=step.cycle, turn=turn, again=step.again)


def _answered(state: State, step: Ask) -> State:
    return replace(at_step(state, step), dispatched="", dispatched_at=0, attempt=0, again=Again.NO, worked=False)


def _fault(state: State, role: Role, replied: Replied, settings: Settings) -> Again:
    """Why a positive verdict of a turn does not count; NO where it does."""
    violation = replied.violation
    if violation and violation.unknown:
        return Again.UNKNOWN
    if violation and violation.serious and violation.undone:
        return Again.CHANGES
    unworked = settings.require_actions and did_work(role, replied.actions) is False
    return Again.ACTIONS if unworked and not state.worked else Again.NO


def _with_undone(state: State, role: Role, violation: journal.GuardViolation | None) -> dict[str, str]:
    others = {name: text for name, text in state.undone.items() if name != role.name}
    return others | ({role.name: "\n".join(violation.change_lines)} if violation and violation.undone else {})


def _reason(role: Role, fault: Again, *, again: bool) -> str:
    """A fault in words; `again`: the role is asked once more."""
    if fault is Again.UNKNOWN:
        return UNKNOWN
    idle = NOTHING_RUN if role is TESTER else NOTHING_READ
    return f"{CHANGED if fault is Again.CHANGES else idle}{ASKED_AGAIN if again else ', asked twice'}"


def _undone_as_text(state: State, role: Role, fault: Again) -> str:
    return f"\n{state.undone.get(role.name, '')}" if fault is Again.CHANGES else ""


def _reviewed(state: State, step: Ask, whole: gate.Whole | None, settings: Settings, fault: Again) -> Applied:
    role, phase, review = step.role, step.role.phase, state.outputs[step.role.output]
    judged = gate.judge_review(review, phase, state.cycle, settings, whole)
    notes = condense.extract_review_notes(review, settings) if settings.condense_review_feedback else review
    again = judged.approved and fault not in (Again.NO, Again.UNKNOWN) and not step.again
    if judged.approved and fault:
        judged = dataclasses.replace(judged, approved=False, reason=_reason(role, fault, again=again))
        notes = f"This review does not count: {judged.reason}.{_undone_as_text(state, role, fault)}\n\n{notes}"
    event = journal.ReviewJudged(
        phase=phase,
        round=state.current_round,
        cycle=state.cycle,
        verdict=judged.verdict or "",
        approved=judged.approved,
        evidence=judged.evidence,
        reason=judged.reason,
    )
    if again:
        return replace(state, again=fault), (event,)
    sizes = state.whole_sizes | {role.output: whole.size if whole else size_of(review)}
    state, events = _after_review(replace(state, whole_sizes=sizes), phase, judged.approved, notes, settings)
    return state, (event, *events)


def _after_review(state: State, phase: Phase, approved: bool, notes: str, settings: Settings) -> Applied:
    """Go on to the next phase, or back to the worker."""
    events: tuple[journal.Event, ...] = ()
    if phase is Phase.ANALYST:
        state, following = replace(state, analyst_feedback=notes), Phase.PROGRAMMER
    else:
        state, following = replace(state, programmer_feedback=notes), Phase.TESTER
    used_up = not approved and state.cycle >= settings.max_review_cycles
    if used_up:
        events = (journal.ReviewsUsedUp(phase=phase, round=state.current_round, cycles=state.cycle),)
    if approved or used_up:
        state = replace(state, current_phase=following, cycle=1, open_notes=notes if used_up else "")
    else:
        state = replace(state, cycle=state.cycle + 1)
    return entered(state, settings), events


def _tested(state: State, replied: Replied, settings: Settings, fault: Again) -> Applied:
    report = state.outputs[TESTER.output]
    verdict = replied.whole.verdict if replied.whole else gate.read_test_verdict(report)
    if verdict is Verdict.PASS and fault is Again.UNKNOWN:
        return _not_counted(state, report, settings, fault)
    if verdict is not Verdict.FAIL and fault not in (Again.NO, Again.UNKNOWN):
        event = _test_event(state, verdict, _reason(TESTER, fault, again=True), counts=False)
        return replace(state, again=fault), (event,)
    if verdict is None:
        event = _test_event(state, None, "no verdict; the tester is asked again")
        return replace(state, again=Again.VERDICT, worked=True), (event,)
    return _decided(state, verdict, report, settings)


def _tested_again(state: State, replied: Replied, settings: Settings, fault: Again) -> Applied:
    """The second answer decides; without a verdict in it the first reply is the evidence of a FAIL."""
    first, answer = state.outputs[TESTER.output], replied.text
    verdict = replied.whole.verdict if replied.whole else gate.read_test_verdict(answer)
    if verdict is Verdict.PASS and fault:
        return _not_counted(state, answer, settings, fault)
    if verdict is None:
        return _failed(state, first, settings, _test_event(state, Verdict.FAIL, "no verdict, asked twice"))
    complete = gate.section(answer, gate.EVIDENCE) is not None
    report = answer if complete else f"RESULT: {verdict}\n\nEVIDENCE:\n{first}"
    return _decided(replace(state, outputs=state.outputs | {TESTER.output: report}), verdict, report, settings)


def _not_counted(state: State, answer: str, settings: Settings, fault: Again) -> Applied:
    """A PASS that is a FAIL, with the reason as its evidence."""
    why, undone = _reason(TESTER, fault, again=False), _undone_as_text(state, TESTER, fault)
    report = f"RESULT: FAIL\nEVIDENCE:\nThe tester's PASS does not count: {why}.{undone}\n\n{answer}"
    state = replace(state, outputs=state.outputs | {TESTER.output: report})
    return _failed(state, report, settings, _test_event(state, Verdict.FAIL, why))


def _decided(state: State, verdict: Verdict, report: str, settings: Settings) -> Applied:
    event = _test_event(state, verdict, "the tester's verdict")
    if verdict is Verdict.FAIL:
        return _failed(state, report, settings, event)
    turn = Turn.VERIFY if all_checks(state.prompt, settings) else Turn.PASSED
    return replace(state, turn=turn), (event,)


def _test_event(state: State, verdict: Verdict | None, reason: str, *, counts: bool = True) -> journal.TestJudged:
    return journal.TestJudged(round=state.current_round, verdict=verdict or "", reason=reason, counts=counts)


def _verified(state: State, done: ChecksEnded, settings: Settings) -> Applied:
    events = _check_events(state, done)
    if done.last.passed:
        checked = {result.check.title: result.exit_code for result in done.results}
        return replace(state, turn=Turn.PASSED, checked=checked), events
    return _failed(state, refuted("The tester said PASS, but this", done.last), settings, *events)


def _checked_before_test(state: State, done: ChecksEnded, settings: Settings) -> Applied:
    """Where a check fails, the round has failed, and the tester's turn is saved."""
    events = _check_events(state, done, When.BEFORE_TEST)
    if done.last.passed:
        return replace(state, turn=Turn.WORK), events
    return _failed(state, refuted("The tester was not asked, because this", done.last), settings, *events)


def _checked_at_start(state: State, done: ChecksEnded, settings: Settings) -> Applied:
    """A check that passes already proves nothing; where that stops the run, another start checks it again."""
    events = _check_events(state, done, When.START)
    if done.last.passed and settings.red_first == RED_STOP:
        return state, events
    if done.last.passed:
        events = (*events, journal.Warned(text=f"{passes_already(done.results)} (RED_FIRST)"))
    return replace(state, check_first=False), events


def _check_events(state: State, done: ChecksEnded, when: When = When.AFTER_TEST) -> tuple[journal.Event, ...]:
    kind = journal.Verified if when is When.AFTER_TEST else partial(journal.Checked, when=when)
    return tuple(
        kind(round=state.current_round, command=result.check.title, exit_code=result.exit_code, file=result.file)
        for result in done.results
    )


_JUDGES: Final = {
    When.START: _checked_at_start,
    When.BEFORE_TEST: _checked_before_test,
    When.AFTER_TEST: _verified,
}


def judge_checks(when: When, state: State, done: ChecksEnded, settings: Settings) -> Applied:
    """What the results of checks make of the state."""
    return _JUDGES[when](state, done, settings)


def _failed(state: State, report: str, settings: Settings, *judged: journal.Event) -> Applied:
    """The programmer of the next round gets the evidence; the analyst's work stands."""
    last = state.current_round >= settings.max_rounds
    state = replace(state, feedback=condense.extract_test_evidence(report, settings))
    events = (*judged, journal.RoundFailed(round=state.current_round, last=last))
    if last:
        return replace(state, turn=Turn.FAILED), events
    done = state.outputs[PROGRAMMER.output]
    sizes = {TESTER.output: size_of(report), PROGRAMMER.output: size_of(done)}
    return (
        replace(
            state,
            current_round=state.current_round + 1,
            current_phase=Phase.PROGRAMMER,
            cycle=1,
            turn=Turn.WORK,
            programmer_feedback="",
            programmer_context_for_retry="" if missing(done) else condense.condense_for_tester(done, settings),
            outputs=state.outputs | blank((PROGRAMMER, PEER_PROGRAMMER, TESTER)),
            whole_sizes=state.whole_sizes | sizes,
        ),
        events,
    )
