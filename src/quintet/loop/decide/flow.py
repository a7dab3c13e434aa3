"""The flow: which step comes next, and what a step's outcome makes of the state. No clock, no files, no network."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from quintet.config import Settings
from quintet.loop import journal
from quintet.loop.decide import condense, gate
from quintet.loop.decide.gate import Verdict
from quintet.loop.decide.markup import normalise
from quintet.loop.decide.state import State, Status, Terminal, Turn
from quintet.roles import ANALYST, BY_NAME, PEER_PROGRAMMER, PROGRAMMER, REVIEWER, ROLES, TESTER, WORKER, Phase, Role

NOT_THERE: Final = "(Not available: "
"""how every note begins that stands in for an output which does not exist"""


@dataclass(frozen=True)
class Ask:
    """Send an agent its prompt and wait for the reply."""

    role: Role
    round: int
    cycle: int = 1
    again: bool = False
    """the tester's second chance to give a verdict"""

    @property
    def key(self) -> str:
        """The step's name within its run."""
        return f"{self.round}-{self.cycle}-{self.role.output}{'-again' if self.again else ''}"


@dataclass(frozen=True)
class Verify:
    """Run the user's command, which has the last word on a PASS."""

    round: int
    command: str

    @property
    def key(self) -> str:
        return f"{self.round}-verify"


@dataclass(frozen=True)
class Finished:
    """The run is over."""

    status: Status


Step = Ask | Verify | Finished


@dataclass(frozen=True)
class Dispatched:
    """The prompt of a step is about to be sent."""

    at: int


@dataclass(frozen=True)
class Arrived:
    """The prompt has reached its agent for certain."""


@dataclass(frozen=True)
class Replied:
    """The agent's reply has been taken."""

    text: str
    whole: gate.Whole | None = None
    """where the text is only an excerpt"""


@dataclass(frozen=True)
class Failed:
    """The turn has ended without an answer, and the prompt is to be sent once more."""


@dataclass(frozen=True)
class Replaced:
    """Terminals were lost and others stand in their place; all five, as they are now."""

    terminals: Mapping[str, Terminal]
    session_name: str


@dataclass(frozen=True)
class NoReply:
    """The tester, asked again for its verdict, gave no answer."""


@dataclass(frozen=True)
class Verified:
    """The user's command has ended."""

    exit_code: int
    output: str
    file: str = ""
    """the output in the archive"""


Outcome = Dispatched | Arrived | Replied | Failed | Replaced | NoReply | Verified
Applied = tuple[State, tuple[journal.Event, ...]]


def first_state(state: State, settings: Settings) -> State:
    """The state of a new run, at the start agent; what was skipped is there as a note that says so."""
    start = BY_NAME[settings.start_agent]
    skipped = ROLES[: ROLES.index(start)]
    notes = {role.output: f"{NOT_THERE}this run was started at {start}, without {role}.)" for role in skipped}
    turn = Turn.REVIEW if start.reviews else Turn.WORK
    return replace(state, current_phase=start.phase, turn=turn, outputs=state.outputs | notes)


def next_step(state: State, settings: Settings) -> Step:
    """What to do now."""
    if state.final_status is not Status.RUNNING:
        return Finished(state.final_status)
    if state.current_round > settings.max_rounds:
        return Finished(Status.FAIL)
    state = _with_input(state)
    if state.turn is Turn.VERIFY:
        return Verify(state.current_round, settings.verify_cmd) if settings.verify_cmd else Finished(Status.PASS)
    role = REVIEWER[state.current_phase] if state.turn is Turn.REVIEW else WORKER[state.current_phase]
    cycle = min(state.cycle, settings.max_review_cycles)
    return Ask(role, state.current_round, cycle, again=state.turn is Turn.VERDICT)


def apply(state: State, step: Step, outcome: Outcome, settings: Settings) -> Applied:
    """Fold what came of a step into the state; the events say what was decided."""
    match step, outcome:
        case _, Replaced(terminals, session_name):
            new = isinstance(step, Ask) and terminals[step.role.name] != state.terminals[step.role.name]
            state = replace(state, terminals=dict(terminals), session_name=session_name)
            return (_undone(state, step) if isinstance(step, Ask) and new else state), ()
        case Ask(), Failed():
            return replace(state, dispatched="", dispatched_at=0, attempt=state.attempt + 1), ()
        case Ask(), Dispatched(at):
            return _dispatched(_at(state, step), step, at), ()
        case Ask(), Arrived():
            return replace(state, arrived=step.key), ()
        case Ask(), Replied() as replied:
            return _replied(state, step, replied, settings)
        case Ask(again=True), NoReply():
            return _tested_again(_answered(state, step), "", settings)
        case Verify(command=command), Verified() as verified:
            return _verified(state, command, verified, settings)
        case _:
            raise AssertionError(f"{outcome} does not belong to {step}")


def _replied(state: State, step: Ask, replied: Replied, settings: Settings) -> Applied:
    role, text, whole = step.role, replied.text, replied.whole
    if step.again:
        return _tested_again(_answered(state, step), text, settings, whole)
    reply = f"{NOT_THERE}{role} replied with an empty text.)" if _empty(text) else text
    state = replace(_answered(state, step), outputs=state.outputs | {role.output: reply})
    if role is TESTER:
        return _tested(state, reply, settings, whole)
    if role.reviews:
        return _reviewed(state, role, reply, settings, whole)
    return replace(state, turn=Turn.REVIEW), ()


def _at(state: State, step: Ask) -> State:
    """The state at the step's own place: next_step may have gone back for a missing input."""
    turn = Turn.VERDICT if step.again else Turn.REVIEW if step.role.reviews else Turn.WORK
    return replace(state, current_phase=step.role.phase, cycle=step.cycle, turn=turn)


def _answered(state: State, step: Ask) -> State:
    return replace(_at(state, step), dispatched="", dispatched_at=0, attempt=0)


def _undone(state: State, step: Ask) -> State:
    """The step is to be done by an agent that knows nothing: a tester that never saw the scenario gets it whole."""
    state = replace(state, dispatched="", dispatched_at=0)
    return replace(_at(state, step), turn=Turn.WORK, outputs=state.outputs | _blank((TESTER,))) if step.again else state


def _with_input(state: State) -> State:
    """Go back to the work whose output the current step needs and does not have."""
    phase, outputs = state.current_phase, state.outputs
    needed = {Phase.ANALYST: (), Phase.PROGRAMMER: (ANALYST,), Phase.TESTER: (ANALYST, PROGRAMMER)}[phase]
    for role in needed:
        if _empty(outputs[role.output]):
            return replace(state, current_phase=role.phase, cycle=1, turn=Turn.WORK)
    if state.turn is not Turn.WORK and _empty(outputs[WORKER[phase].output]):
        return replace(state, turn=Turn.WORK)
    return state


def _dispatched(state: State, step: Ask, at: int) -> State:
    terminal = state.terminals[step.role.name].id
    sent = state.full_summary_sent
    if step.role is not TESTER:
        sent = {terminal: step.key, **sent}
    return replace(state, dispatched=step.key, dispatched_at=at, arrived="", full_summary_sent=sent)


def _reviewed(state: State, role: Role, review: str, settings: Settings, whole: gate.Whole | None) -> Applied:
    phase = role.phase
    judged = gate.judge_review(review, phase, state.cycle, settings, whole)
    notes = condense.extract_review_notes(review, settings) if settings.condense_review_feedback else review
    events: list[journal.Event] = [
        journal.ReviewJudged(
            phase=phase,
            round=state.current_round,
            cycle=state.cycle,
            verdict=judged.verdict or "",
            approved=judged.approved,
            evidence=judged.evidence,
            reason=judged.reason,
        )
    ]
    if phase is Phase.ANALYST:
        state, following = replace(state, analyst_feedback=notes), Phase.PROGRAMMER
    else:
        state, following = replace(state, programmer_feedback=notes), Phase.TESTER
    used_up = not judged.approved and state.cycle >= settings.max_review_cycles
    if used_up:
        events.append(journal.ReviewsUsedUp(phase=phase, round=state.current_round, cycles=state.cycle))
    if judged.approved or used_up:
        state = replace(state, current_phase=following, cycle=1, open_notes=notes if used_up else "")
    else:
        state = replace(state, cycle=state.cycle + 1)
    sizes = state.whole_sizes | {role.output: whole.size if whole else size_of(review)}
    return replace(state, turn=Turn.WORK, whole_sizes=sizes), tuple(events)


def _tested(state: State, report: str, settings: Settings, whole: gate.Whole | None) -> Applied:
    verdict = whole.verdict if whole else gate.read_test_verdict(report)
    if verdict is None:
        return replace(state, turn=Turn.VERDICT), (_test_event(state, None, "no verdict; the tester is asked again"),)
    return _decided(state, verdict, report, settings)


def _tested_again(state: State, answer: str, settings: Settings, whole: gate.Whole | None = None) -> Applied:
    """The second answer decides; without a verdict in it the first reply is the evidence of a FAIL."""
    first = state.outputs[TESTER.output]
    verdict = whole.verdict if whole else gate.read_test_verdict(answer)
    if verdict is None:
        return _failed(state, first, settings, _test_event(state, Verdict.FAIL, "no verdict, asked twice"))
    complete = gate.section(answer, gate.EVIDENCE) is not None
    report = answer if complete else f"RESULT: {verdict}\n\nEVIDENCE:\n{first}"
    return _decided(replace(state, outputs=state.outputs | {TESTER.output: report}), verdict, report, settings)


def _decided(state: State, verdict: Verdict, report: str, settings: Settings) -> Applied:
    event = _test_event(state, verdict, "the tester's verdict")
    if verdict is Verdict.FAIL:
        return _failed(state, report, settings, event)
    if settings.verify_cmd:
        return replace(state, turn=Turn.VERIFY), (event,)
    return replace(state, final_status=Status.PASS), (event,)


def _verified(state: State, command: str, done: Verified, settings: Settings) -> Applied:
    event = journal.Verified(round=state.current_round, command=command, exit_code=done.exit_code, file=done.file)
    if done.exit_code == 0:
        return replace(state, final_status=Status.PASS), (event,)
    report = (
        f"RESULT: FAIL\nEVIDENCE:\nThe tester said PASS, but this command ended with exit code {done.exit_code}:\n"
        f"    {command}\nIts output:\n{done.output.strip() or '(none)'}"
    )
    return _failed(state, report, settings, event)


def _failed(state: State, report: str, settings: Settings, event: journal.Event) -> Applied:
    """The programmer of the next round gets the evidence; the analyst's work stands."""
    last = state.current_round >= settings.max_rounds
    state = replace(state, feedback=condense.extract_test_evidence(report, settings))
    events = (event, journal.RoundFailed(round=state.current_round, last=last))
    if last:
        return replace(state, final_status=Status.FAIL), events
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


def _test_event(state: State, verdict: Verdict | None, reason: str) -> journal.TestJudged:
    return journal.TestJudged(round=state.current_round, verdict=verdict or "", reason=reason)
