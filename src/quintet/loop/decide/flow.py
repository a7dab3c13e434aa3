"""The rules of the loop: which step comes next, and what a step's outcome makes of the state.

`next_step` decides, `apply` makes the next state; nothing else does either. No clock, no files, no network.
"""

from datetime import UTC, datetime
from typing import Final

from quintet.config import Settings
from quintet.loop import journal
from quintet.loop.decide.checks import RED_OFF, all_checks, start_checks
from quintet.loop.decide.judging import Applied, at_step, entered, judge_checks, judge_missing_reply, judge_reply
from quintet.loop.decide.outputs import NOT_THERE, blank, is_empty
from quintet.loop.decide.state import Again, Gate, State, Status, Turn, When, replace, without_terminals
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
)


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
    return first if start.reviews else entered(first, settings)


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
    begun = state.after_pass or state.mark
    if Gate.RESULT in settings.approve and Gate.RESULT not in state.approved and not begun:
        return WaitForPerson(Gate.RESULT, state.sent_back)
    for kind, is_wanted in AFTER_PASS:
        if is_wanted(settings) and kind.key not in state.after_pass:
            return kind(state.mark)
    return Finished(Status.PASS)


def apply(state: State, step: Step, outcome: Outcome, settings: Settings) -> Applied:
    """The state after an outcome of a step; the events say what was decided."""
    match step, outcome:
        case _, TerminalsChanged() | TerminalsEnded() | FileArchived() | Resumed() | Stopped():
            return _run_changed(state, step, outcome, settings), ()
        case Ask(), Dispatched() | Arrived() | NotSent() | Replied() | NoReply() | Retrying():
            return _turn_changed(state, step, outcome, settings)
        case Verify(), ChecksEnded():
            return judge_checks(step.when, _archived(state, outcome.sequence), outcome, settings)
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


def _run_changed(state: State, step: Step, outcome: RunOutcome, settings: Settings) -> State:
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
            state = replace(state, last_error="")
            return state if _waits_on(state, step, settings) else replace(state, waiting="", waiting_since=0.0)
        case Stopped(reason):
            return replace(state, last_error=reason)


def _waits_on(state: State, step: Step, settings: Settings) -> bool:
    """Whether a run that goes on still waits for the same word; where its time may be up, it asks once more."""
    is_same = isinstance(step, WaitForPerson) and step.gate == state.waiting
    return is_same and not (settings.approve_timeout and settings.approve_default == "stop")


def _turn_changed(state: State, step: Ask, outcome: TurnOutcome, settings: Settings) -> Applied:
    match outcome:
        case Dispatched(at, notes):
            sent = state.notes_sent | dict.fromkeys(notes, step.key)
            return replace(_dispatched(at_step(state, step), step, at), notes_sent=sent), ()
        case Arrived():
            return replace(state, arrived=step.key), ()
        case NotSent():
            return replace(state, dispatched="", dispatched_at=0), ()
        case Retrying():
            return replace(state, dispatched="", dispatched_at=0, attempt=state.attempt + 1), ()
        case Replied(sequence=sequence):
            state = _spent(_archived(state, sequence), outcome)
            state, events = judge_reply(state, step, outcome, settings)
            return state, ((outcome.violation, *events) if outcome.violation else events)
        case NoReply(violation=violation) if step.again:
            state, events = judge_missing_reply(_spent(state, outcome), step, settings)
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
        return replace(state, turn=turn, rejection="", approved=state.approved | {gate.value: outcome.by}), (told,)
    again = (PEER_ANALYST,) if gate is Gate.SPEC else (PEER_PROGRAMMER, TESTER)
    back = replace(
        state,
        sent_back=state.sent_back + 1,
        rejection="\n\n".join(filter(None, (state.rejection, outcome.notes))),
        current_phase=Phase.ANALYST if gate is Gate.SPEC else Phase.PROGRAMMER,
        cycle=1,
        turn=Turn.WORK,
        open_notes="",
        checked={},
        outputs=state.outputs | blank(again),
    )
    return back, (told,)


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


def _undone(state: State, step: Ask) -> State:
    """The step is to be done by an agent that knows nothing: one that never saw its first prompt gets that."""
    state = replace(state, dispatched="", dispatched_at=0)
    if not step.again:
        return state
    return replace(at_step(state, step), again=Again.NO, worked=False, outputs=state.outputs | blank((step.role,)))


def _with_input(state: State) -> State:
    """Go back to the work whose output the current step needs and does not have."""
    phase, outputs = state.current_phase, state.outputs
    needed = {Phase.ANALYST: (), Phase.PROGRAMMER: (ANALYST,), Phase.TESTER: (ANALYST, PROGRAMMER)}[phase]
    for role in needed:
        if is_empty(outputs[role.output]):
            return replace(state, current_phase=role.phase, cycle=1, turn=Turn.WORK, again=Again.NO)
    asked = REVIEWER[phase] if state.turn is Turn.REVIEW else WORKER[phase]
    if state.again and is_empty(outputs[asked.output]):
        state = replace(state, again=Again.NO)
    if state.turn in (Turn.REVIEW, Turn.VERIFY) and is_empty(outputs[WORKER[phase].output]):
        return replace(state, turn=Turn.WORK, again=Again.NO)
    return state


def _dispatched(state: State, step: Ask, at: int) -> State:
    terminal = state.terminals[step.role.name].id
    sent = state.full_summary_sent
    if step.role is not TESTER:
        sent = {terminal: step.key, **sent}
    return replace(state, dispatched=step.key, dispatched_at=at, arrived="", full_summary_sent=sent)
