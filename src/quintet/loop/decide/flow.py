"""The rules of the loop: which step comes next, and what a step's outcome makes of the state.

`next_step` decides, `apply` makes the next state; nothing else does either. No clock, no files, no network.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from quintet.config import Settings
from quintet.loop import journal
from quintet.loop.decide import condense, gate
from quintet.loop.decide.checks import RED_OFF, RED_STOP, all_checks, passes_already, refuted, start_checks
from quintet.loop.decide.evidence import did_work
from quintet.loop.decide.gate import Verdict
from quintet.loop.decide.markup import normalise
from quintet.loop.decide.state import Again, Gate, State, Status, Turn, without_terminals
from quintet.loop.decide.steps import (
    AFTER_PASS,
    ArchiveChange,
    Arrived,
    Ask,
    AskedPerson,
    ChecksEnded,
    Closed,
    Commit,
    Dispatched,
    FileArchived,
    Finished,
    FollowUp,
    FollowUpEnded,
    FollowUpResult,
    Marked,
    NoReply,
    NotSent,
    Outcome,
    PersonAnswered,
    PersonOutcome,
    Push,
    Replied,
    Resumed,
    Retrying,
    RunOutcome,
    Step,
    Stopped,
    TerminalsChanged,
    TerminalsEnded,
    TurnOutcome,
    Verify,
    WaitForPerson,
)
from quintet.loop.journal import When
from quintet.roles import (
    ANALYST,
    BY_NAME,
    PEER_ANALYST,
    PEER_PROGRAMMER,
    PROGRAMMER,
    REVIEWER,
    ROLES,
    TESTER,
    WORKER,
    Phase,
    Role,
)

NOT_THERE: Final = "(Not available: "
"""how every note begins that stands in for an output which does not exist"""
NOTHING_RUN: Final = "by its own record the tester has run nothing"
NOTHING_READ: Final = "by its own record the reviewer has read and run nothing"
CHANGED: Final = "it changed what it may not change, and that was undone"
UNKNOWN: Final = "what it changed could not be found out"
ASKED_AGAIN: Final = "; it is asked once more"
SENT_BACK: Final = "A person has looked at this and sent it back. What they say counts above any review:"


Applied = tuple[State, tuple[journal.Event, ...]]


def first_state(settings: Settings, run_id: str = "", start_commit: str = "") -> State:
    """The state of a new run at its start agent; outputs that are skipped are there as a note that says so."""
    start = BY_NAME[settings.start_agent]
    skipped = ROLES[: ROLES.index(start)]
    notes = {role.output: f"{NOT_THERE}this run was started at {start}, without {role}.)" for role in skipped}
    first = State(
        api=settings.api,
        provider=settings.provider,
        wd=str(settings.workspace.tree),
        prompt=settings.prompt,
        run_id=run_id,
        start_commit=start_commit,
        current_phase=start.phase,
        turn=Turn.REVIEW if start.reviews else Turn.WORK,
        check_first=settings.red_first != RED_OFF and bool(start_checks(settings.prompt, settings)),
        outputs=State().outputs | notes,
    )
    return first if start.reviews else _entered(first, settings)


def _entered(state: State, settings: Settings) -> State:
    """The state at the beginning of its phase."""
    checks = state.current_phase is Phase.TESTER and settings.verify_first and all_checks(state.prompt, settings)
    return replace(state, turn=Turn.CHECK if checks else Turn.WORK)


def resumed_state(saved: State, settings: Settings, run_id: str) -> State:
    """A saved state to go on from; a damaged one may lack its run id or its prompt, and the address may be new."""
    prompt = saved.prompt if saved.prompt.strip() else settings.prompt
    return replace(saved, api=settings.api or saved.api, run_id=run_id, prompt=prompt)


def next_step(state: State, settings: Settings) -> Step:
    """What to do now."""
    if state.final_status is not Status.RUNNING:
        return Finished(state.final_status)
    if state.turn is Turn.PASSED:
        return _after_pass(state, settings)
    if state.turn is Turn.FAILED or state.current_round > settings.max_rounds:
        return Finished(Status.FAIL)
    if state.check_first and (checks := start_checks(state.prompt, settings)):
        return Verify(state.current_round, checks, When.START)
    state = _with_input(state)
    if state.turn is Turn.CHECK and settings.verify_first and (checks := all_checks(state.prompt, settings)):
        return Verify(state.current_round, checks, When.BEFORE_TEST)
    if state.turn is Turn.VERIFY:
        checks = all_checks(state.prompt, settings)
        return Verify(state.current_round, checks) if checks else _after_pass(state, settings)
    if _needs_approval(state, settings):
        return WaitForPerson(Gate.SPEC, state.sent_back)
    role = REVIEWER[state.current_phase] if state.turn is Turn.REVIEW else WORKER[state.current_phase]
    cycle = min(state.cycle, settings.max_review_cycles)
    return Ask(role, state.current_round, cycle, state.again, state.sent_back)


def _needs_approval(state: State, settings: Settings) -> bool:
    """Whether the specification is ready, and a person wants to look at it before anything is built."""
    is_ready = state.current_phase is Phase.PROGRAMMER and state.turn is Turn.WORK and not state.dispatched
    is_written = BY_NAME[settings.start_agent].phase is Phase.ANALYST and (state.current_round, state.cycle) == (1, 1)
    return is_ready and is_written and Gate.SPEC in settings.approve and Gate.SPEC not in state.approved


def _after_pass(state: State, settings: Settings) -> Step:
    if Gate.RESULT in settings.approve and Gate.RESULT not in state.approved:
        return WaitForPerson(Gate.RESULT, state.sent_back)
    for kind, is_wanted in AFTER_PASS:
        if is_wanted(settings) and kind.key not in state.after_pass:
            return kind(state.mark)
    return Finished(Status.PASS)


def apply(state: State, step: Step, outcome: Outcome, settings: Settings) -> Applied:
    """The state after an outcome of a step; the events say what was decided."""
    match step, outcome:
        case _, TerminalsChanged() | TerminalsEnded() | FileArchived() | Resumed() | Stopped():
            return _run_changed(state, step, outcome), ()
        case Ask(), Dispatched() | Arrived() | NotSent() | Replied() | NoReply() | Retrying():
            return _turn_changed(state, step, outcome, settings)
        case Verify(), ChecksEnded():
            return _CHECKED[step.when](_archived(state, outcome.sequence), outcome, settings)
        case WaitForPerson(), AskedPerson() | PersonAnswered():
            return _at_gate(state, step, outcome, settings)
        case FollowUp(), Marked(mark):
            return replace(state, turn=Turn.PASSED, mark=mark), ()
        case FollowUp(), FollowUpEnded(result):
            return _followed_up(state, step, result, outcome.events, settings)
        case Finished(status), Closed(sequence):
            return replace(_archived(state, sequence), final_status=status), ()
        case _:
            raise AssertionError(f"{outcome} does not belong to {step}")


def _run_changed(state: State, step: Step, outcome: RunOutcome) -> State:
    match outcome:
        case TerminalsChanged(terminals, session_name):
            new = isinstance(step, Ask) and terminals[step.role.name] != state.terminals[step.role.name]
            state = replace(state, terminals=dict(terminals), session_name=session_name)
            return _undone(state, step) if isinstance(step, Ask) and new else state
        case TerminalsEnded():
            return without_terminals(state)
        case FileArchived(sequence):
            return _archived(state, sequence)
        case Resumed():
            return replace(state, last_error="")
        case Stopped(reason):
            return replace(state, last_error=reason)


def _turn_changed(state: State, step: Ask, outcome: TurnOutcome, settings: Settings) -> Applied:
    match outcome:
        case Dispatched(at, notes):
            sent = state.notes_sent | dict.fromkeys(notes, step.key)
            return replace(_dispatched(_at(state, step), step, at), notes_sent=sent), ()
        case Arrived():
            return replace(state, arrived=step.key), ()
        case NotSent():
            return replace(state, dispatched="", dispatched_at=0), ()
        case Retrying():
            return replace(state, dispatched="", dispatched_at=0, attempt=state.attempt + 1), ()
        case Replied(sequence=sequence):
            state = _spent(_archived(state, sequence), outcome)
            state, events = _replied(state, step, outcome, settings)
            return state, ((outcome.violation, *events) if outcome.violation else events)
        case NoReply(violation=violation) if step.again:
            state, events = _not_replied(_spent(state, outcome), step, settings)
            return state, ((violation, *events) if violation else events)
        case _:
            raise AssertionError(f"{outcome} does not belong to {step}")


def _spent(state: State, turn: Replied | NoReply) -> State:
    return replace(
        state,
        tokens_used=state.tokens_used + turn.tokens,
        cost_used=state.cost_used + turn.cost,
        seconds_used=state.seconds_used + turn.seconds,
    )


def _at_gate(state: State, step: WaitForPerson, outcome: PersonOutcome, settings: Settings) -> Applied:
    """Wait for a person; then go on, or back to those whose work was sent back."""
    gate = step.gate
    if isinstance(outcome, AskedPerson):
        end = datetime.fromtimestamp(outcome.at + settings.approve_timeout, UTC) if settings.approve_timeout else None
        asked = journal.ApprovalAsked(gate=gate, step=step.key, until=end.isoformat(timespec="seconds") if end else "")
        return replace(state, waiting=gate, waiting_since=outcome.at), (asked,)
    state = replace(state, waiting="", waiting_since=0.0)
    told = journal.PersonDecided(gate=gate, approved=outcome.approved, by=outcome.by, notes=outcome.notes)
    if outcome.approved:
        turn = Turn.PASSED if gate is Gate.RESULT else state.turn
        return replace(state, turn=turn, approved=state.approved | {gate.value: outcome.by}), (told,)
    back = replace(state, sent_back=state.sent_back + 1, cycle=1, turn=Turn.WORK, open_notes="", checked={})
    words = f"{SENT_BACK}\n\n{outcome.notes}"
    if gate is Gate.SPEC:
        outputs = back.outputs | _blank((PEER_ANALYST,))
        return replace(back, current_phase=Phase.ANALYST, analyst_feedback=words, outputs=outputs), (told,)
    outputs = back.outputs | _blank((PEER_PROGRAMMER, TESTER))
    return replace(back, current_phase=Phase.PROGRAMMER, programmer_feedback=words, outputs=outputs), (told,)


def _archived(state: State, sequence: int) -> State:
    return replace(state, sequence=max(sequence, state.sequence))


def _followed_up(
    state: State, step: FollowUp, result: FollowUpResult, events: tuple[journal.Event, ...], settings: Settings
) -> Applied:
    """What fails leaves nothing behind that should be committed, pushed or proposed."""
    results = state.after_pass | {step.key: result.value}
    wanted = [kind for kind, is_wanted in AFTER_PASS if is_wanted(settings) and kind.key not in results]
    if result is FollowUpResult.FAILED and wanted:
        results |= {kind.key: FollowUpResult.SKIPPED.value for kind in wanted}
        left_out = " and ".join(f"no {kind.noun}" for kind in wanted)
        events = (*events, journal.Warned(text=f"{left_out} is made, because there is {_FAILED[type(step)]}"))
    return replace(state, turn=Turn.PASSED, after_pass=results, mark=""), events


_FAILED: Final[dict[type[FollowUp], str]] = {
    ArchiveChange: "an OpenSpec change that could not be archived",
    Commit: "no commit",
    Push: "nothing pushed",
}
"""why nothing follows a step that has failed"""


def _replied(state: State, step: Ask, replied: Replied, settings: Settings) -> Applied:
    role, text = step.role, replied.text
    fault = _fault(state, role, replied, settings)
    state = replace(_answered(state, step), undone=_with_undone(state, role, replied.violation))
    if not step.again or role.reviews:
        reply = f"{NOT_THERE}{role} replied with an empty text.)" if _empty(text) else text
        state = replace(state, outputs=state.outputs | {role.output: reply})
    if role is TESTER:
        judge = _tested_again if step.again else _tested
        return judge(state, replied, settings, fault)
    if role.reviews:
        return _reviewed(state, step, replied.whole, settings, fault)
    return replace(state, turn=Turn.REVIEW), ()


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


def _not_replied(state: State, step: Ask, settings: Settings) -> Applied:
    """A role that was asked once more gave no answer: its first reply does not count."""
    state = _answered(state, step)
    if step.role is TESTER:
        return _tested_again(state, Replied(""), settings, Again.NO)
    return _reviewed(state, step, None, settings, step.again)


def _at(state: State, step: Ask) -> State:
    """The state at the step's own place: next_step may have gone back for a missing input."""
    turn = Turn.REVIEW if step.role.reviews else Turn.WORK
    return replace(state, current_phase=step.role.phase, cycle=step.cycle, turn=turn, again=step.again)


def _answered(state: State, step: Ask) -> State:
    return replace(_at(state, step), dispatched="", dispatched_at=0, attempt=0, again=Again.NO, worked=False)


def _undone(state: State, step: Ask) -> State:
    """The step is to be done by an agent that knows nothing: one that never saw its first prompt gets that."""
    state = replace(state, dispatched="", dispatched_at=0)
    if not step.again:
        return state
    return replace(_at(state, step), again=Again.NO, worked=False, outputs=state.outputs | _blank((step.role,)))


def _with_input(state: State) -> State:
    """Go back to the work whose output the current step needs and does not have."""
    phase, outputs = state.current_phase, state.outputs
    needed = {Phase.ANALYST: (), Phase.PROGRAMMER: (ANALYST,), Phase.TESTER: (ANALYST, PROGRAMMER)}[phase]
    for role in needed:
        if _empty(outputs[role.output]):
            return replace(state, current_phase=role.phase, cycle=1, turn=Turn.WORK, again=Again.NO)
    asked = REVIEWER[phase] if state.turn is Turn.REVIEW else WORKER[phase]
    if state.again and _empty(outputs[asked.output]):
        state = replace(state, again=Again.NO)
    if state.turn in (Turn.REVIEW, Turn.VERIFY) and _empty(outputs[WORKER[phase].output]):
        return replace(state, turn=Turn.WORK, again=Again.NO)
    return state


def _dispatched(state: State, step: Ask, at: int) -> State:
    terminal = state.terminals[step.role.name].id
    sent = state.full_summary_sent
    if step.role is not TESTER:
        sent = {terminal: step.key, **sent}
    return replace(state, dispatched=step.key, dispatched_at=at, arrived="", full_summary_sent=sent)


def _reviewed(state: State, step: Ask, whole: gate.Whole | None, settings: Settings, fault: Again) -> Applied:
    role, phase, review = step.role, step.role.phase, state.outputs[step.role.output]
    judged = gate.judge_review(review, phase, state.cycle, settings, whole)
    notes = condense.extract_review_notes(review, settings) if settings.condense_review_feedback else review
    again = judged.approved and fault not in (Again.NO, Again.UNKNOWN) and not step.again
    if judged.approved and fault:
        judged = replace(judged, approved=False, reason=_reason(role, fault, again=again))
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
    state, events = _judged(replace(state, whole_sizes=sizes), phase, judged.approved, notes, settings)
    return state, (event, *events)


def _judged(state: State, phase: Phase, approved: bool, notes: str, settings: Settings) -> Applied:
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
    return _entered(state, settings), events


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


def _check_events(state: State, done: ChecksEnded, when: When = When.AFTER_PASS) -> tuple[journal.Event, ...]:
    kind = journal.Verified if when is When.AFTER_PASS else partial(journal.Checked, when=when)
    return tuple(
        kind(round=state.current_round, command=result.check.title, exit_code=result.exit_code, file=result.file)
        for result in done.results
    )


_CHECKED: Final = {
    When.START: _checked_at_start,
    When.BEFORE_TEST: _checked_before_test,
    When.AFTER_PASS: _verified,
}


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
            outputs=state.outputs | _blank((PROGRAMMER, PEER_PROGRAMMER, TESTER)),
            whole_sizes=state.whole_sizes | sizes,
        ),
        events,
    )


def size_of(text: str) -> int:
    """The bytes of a text, as a file has them."""
    return len(text.encode("utf-8", "replace"))


def missing(output: str) -> bool:
    """Whether an output is only a note that there is none."""
    return _empty(output) or output.startswith(NOT_THERE)


def _empty(text: str) -> bool:
    """Whether nobody could read anything in a text."""
    return not normalise(text).strip()


def _blank(roles: Iterable[Role]) -> dict[str, str]:
    return {role.output: "" for role in roles}


def _test_event(state: State, verdict: Verdict | None, reason: str, *, counts: bool = True) -> journal.TestJudged:
    return journal.TestJudged(round=state.current_round, verdict=verdict or "", reason=reason, counts=counts)
