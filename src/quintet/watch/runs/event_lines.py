"""The events of a run as lines of text."""

from typing import Final

from quintet.loop import journal
from quintet.loop.decide.state import GATES
from quintet.loop.journal import Event
from quintet.loop.record.journal_lines import event_in_words
from quintet.program import program
from quintet.prose import first_few
from quintet.roles import in_words
from quintet.watch.runs.checks import check_run, ground_words
from quintet.watch.runs.formatting import local_date_time, one_line, short_number
from quintet.watch.runs.handoffs import SIGNS, VerdictKind, review_kind

_SHOWN: Final = 5
"""changes that a line names"""


def line_for(event: Event) -> str:
    """An event as one line."""
    match event:
        case journal.RunStarted(run_id=run_id, start_agent=agent):
            return f"run {run_id} starts with {in_words(agent)}"
        case journal.RunResumed(run_id=run_id, step=step):
            return f"run {run_id} resumes at step {step or 'the end'}"
        case journal.TerminalCreated(role=role, terminal=terminal, provider=provider, seconds=seconds, continues=old):
            return f"{in_words(role)} is ready: {provider} in terminal {terminal}, {seconds:.1f} s" + (
                f", with the conversation of {old}" if old else ""
            )
        case journal.PromptSent(role=role, round=number, cycle=cycle, characters=size):
            return f"round {number}, cycle {cycle}: {in_words(role)} gets its prompt ({size} characters)"
        case journal.ReplyTaken(role=role, characters=size, source=source, file=file, tokens=tokens):
            origin = "" if source == "file" else ", read from its screen"
            used = f", {short_number(tokens.total)} tokens" if tokens else ""
            return f"{in_words(role)} has replied ({size} characters{used}{origin}): {file}"
        case journal.ReplyMissed(role=role):
            return f"warning: {in_words(role)} was asked again and gave no reply; the run continues without it"
        case journal.RunFinished(status=status, round=number):
            ground = event.checks if status == "PASS" else None
            return f"{status} in round {number}" + (f", {ground_words(ground)}" if ground is not None else "")
        case journal.RunStopped(reason=reason, resumable=resumable):
            return f"stopped: {reason}" + ("; start it again to resume" if resumable else "")
    return _judgement(event) or _wait(event) or _trespass(event) or _trouble(event)


def _judgement(event: Event) -> str:
    match event:
        case journal.ReviewJudged():
            return _review(event)
        case journal.ReviewsUsedUp(phase=phase, cycles=cycles):
            number = f"{cycles} reviews" if cycles > 1 else "its one review"
            return f"WARNING: {phase} phase NOT APPROVED after {number}; the run continues with its open notes"
        case journal.TestJudged(round=number, verdict=verdict, reason=reason, counts=counts):
            word = f"{verdict}, not counted" if verdict and not counts else verdict
            return f"test of round {number}: {word or 'no verdict'} ({reason})"
        case journal.TestsLost(text=text):
            return f"the tests since the start commit: {text}"
        case journal.Checked() | journal.Verified():
            found = check_run(event)
            told = f"check {found.when_words}: {found.title}, exit code {found.exit_code}"
            return told + (f", {found.file}" if found.file else "")
        case journal.RoundFailed(round=number, last=last):
            return f"round {number} failed; " + ("it was the last" if last else "the evidence goes to the programmer")
    return ""


def _review(event: journal.ReviewJudged) -> str:
    outcome = review_kind(event.verdict, event.approved)
    said = {
        VerdictKind.GOOD: f"APPROVED, with evidence of {', '.join(event.evidence) or 'nothing'}",
        VerdictKind.VOID: f"APPROVED, not counted: {event.reason}",
    }.get(outcome, f"{event.verdict or 'no verdict'}: {event.reason}")
    return f"{SIGNS[outcome]} {event.phase} review {event.cycle}: {said}"


def violation_words(event: journal.GuardViolation) -> str:
    """What a role changed and may not change, and what became of it."""
    parts = ["may have changed what it may not change: the project could not be compared"] if event.unknown else []
    if event.paths:
        done = f"undone, kept as {event.file}" if event.undone else "not undone"
        parts.append(f"changed what it may not change ({first_few(event.paths, left_out=event.left_out)}): {done}")
    if event.failed:
        parts.append(f"could not be undone: {', '.join(event.failed[:_SHOWN])}")
    if event.outside:
        parts.append(f"changed what is not guarded, or somebody did meanwhile: {first_few(event.outside)}")
    return "; ".join(parts)


def _wait(event: Event) -> str:
    match event:
        case journal.PermissionAsked(role=role, accepted=True):
            return f"{in_words(role)} asks for permission; answered yes"
        case journal.PermissionAsked(role=role, terminal=terminal, reason=reason) if reason:
            return f"warning: {in_words(role)} cannot start without you: {reason} (terminal {terminal})"
        case journal.PermissionAsked(role=role, terminal=terminal, question=True):
            return (
                f"warning: {in_words(role)} asks something that only you can answer; answer it in terminal {terminal}"
            )
        case journal.PermissionAsked(role=role, terminal=terminal):
            return f"warning: {in_words(role)} asks for permission; answer it in terminal {terminal}"
        case journal.ApprovalAsked(gate=gate, until=until):
            limit = f", until {local_date_time(until)}" if until else ""
            ways = f"{program()} approve, or {program()} reject"
            return f"waits for you to approve the {GATES.get(gate, gate)}{limit}: {ways}"
        case journal.PersonDecided(gate=gate, approved=True, by=by):
            return f"{by} has approved the {GATES.get(gate, gate)}"
        case journal.PersonDecided(gate=gate, by=by, notes=notes):
            return f"{by} has sent the {GATES.get(gate, gate)} back: {one_line(notes)}"
        case journal.PersonNoted(role=role, by=by, text=text):
            return f"a note of {by} goes to {in_words(role)}: {one_line(text)}"
        case journal.StatusDoubted(role=role, status=status, text=text):
            return f"warning: the status of {in_words(role)} is not clear: {text}; it counts as {status}"
    return ""


def _trespass(event: Event) -> str:
    match event:
        case journal.GuardViolation(role=role):
            return f"warning: {in_words(role)} {violation_words(event)}"
        case journal.HostRefused(role=role, host=host, port=port, times=times, allow=allow):
            who, often = in_words(role) if role else "a check", "" if times == 1 else f" {times} times"
            return f"warning: the sandbox refused {host}:{port} to {who}{often}; to allow it: {allow}"
    return ""


def _trouble(event: Event) -> str:
    match event:
        case journal.GuardReleased(role=role, seconds=seconds):
            return f"warning: {in_words(role)} was not seen at work within {seconds:.0f} s"
        case journal.Reminded(role=role, number=number):
            return f"warning: {in_words(role)} is idle without a response file; reminder {number}"
        case journal.TerminalLost(role=role, terminal=terminal, reason=reason):
            return f"warning: the terminal {terminal} of {in_words(role)} is lost ({reason}); it is started again"
        case journal.TurnFailed(text=text, number=number, pause=pause):
            return f"warning: {text}; retry {number} in {pause:g} s"
        case journal.LimitReached(role=role, text=text, until=until):
            return f"warning: {in_words(role)} waits until {local_date_time(until)} for the end of a limit: {text}"
        case journal.HandTyped(role=role, terminal=terminal):
            return f"warning: somebody typed into the {in_words(role)}'s terminal ({terminal})"
        case journal.ServerFault(text=text) | journal.Warned(text=text):
            return f"warning: {text}"
        case journal.Noted(text=text):
            return text
    return event_in_words(event.model_dump())
