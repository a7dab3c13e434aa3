"""A run as people look at it: one value, built from the events of its journal alone."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from quintet.loop import journal
from quintet.loop.decide.state import When
from quintet.loop.journal import Event
from quintet.roles import BY_NAME, TESTER, Role
from quintet.tokens import TokenCount
from quintet.watch.runs.checks import VERIFIED, CheckRun, check_run
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.handoffs import Handoff, Judgement, PricedTokens, RunWarning, VerdictKind, kind_of, review_kind

RUNNING, PASS, FAIL, STOPPED, GONE = "RUNNING", "PASS", "FAIL", "STOPPED", "GONE"
"""the status of a run; GONE: its journal says that it is running, but its process is not there"""
COMMITTED: Final = "committed as "
"""the beginning of the line in which post-processing names its commit"""
_LAST_YEAR: Final = 250_000_000_000.0
"""seconds since the epoch; a clock's years have four digits"""
MOST_INTERVALS: Final = 500
"""stops beyond that are not told apart any more"""
QUIET_SECONDS: Final = 60.0
"""a killed run does not write down when: this much of the time after its last event counts as work"""


@dataclass(frozen=True)
class Run:
    """What the journal says of a run."""

    id: str = ""
    wd: str = ""
    start_agent: str = ""
    task_file: str = ""
    """empty where the task was a setting"""
    project: str = ""
    """the user's checkout, where the run works in a worktree of its own"""
    branch: str = ""
    """the branch of that worktree"""
    start_commit: str = ""
    dirty: tuple[str, ...] | None = None
    """the paths that were not committed when it began; None where that is not known"""
    status: str = RUNNING
    reason: str = ""
    """why it stopped"""
    resumable: bool = True
    superseded: bool = False
    """another run has begun since"""
    max_tokens: int = 0
    """the limit that stopped it"""
    cleaned_up: bool = False
    """its terminals were ended when it ended"""
    head: str = ""
    """the commit that it left the project at"""
    active_intervals: tuple[tuple[float, float], ...] = ()
    """from when to when it was at work; between two intervals it was stopped"""
    handoffs: tuple[Handoff, ...] = ()
    warnings: tuple[RunWarning, ...] = ()
    terminals: dict[str, tuple[str, str]] = field(default_factory=dict)
    """by role: the terminal's id and its provider"""
    commit: str = ""
    """what post-processing has committed"""
    checks: tuple[CheckRun, ...] = ()
    """all that were run, in their order"""
    confirmed_by: dict[str, int] = field(default_factory=dict)
    """the checks that have confirmed the PASS: exit codes by title"""
    lost_tests: tuple[str, ...] = ()
    """what the work tree had lost of its tests at the last review of the code: in all, then file by file"""
    asking: str = ""
    """the role that waits for a permission"""
    approval: str = ""
    """the step at which it waits for a person"""
    waiting: str = ""
    """why the current turn has not been sent again yet: it has failed, or a limit is reached"""
    resumes: int = 0

    @property
    def began(self) -> float:
        return self.active_intervals[0][0] if self.active_intervals else 0.0

    @property
    def is_running(self) -> bool:
        return self.status == RUNNING

    @property
    def ended(self) -> float:
        """The time of its end, or of its last event."""
        return self.active_intervals[-1][1] if self.active_intervals else 0.0

    def seconds(self, now: float | None = None) -> float:
        """How long it was at work."""
        running = (now or self.ended) - self.ended if self.is_running else 0.0
        return sum(end - begin for begin, end in self.active_intervals) + max(running, 0.0)

    def worked(self, handoff: Handoff, now: float | None = None) -> float:
        """How long a turn has taken, without the time in which the run was stopped."""
        end = handoff.taken or self.ended
        until_then = sum(max(min(end, last) - max(handoff.sent, first), 0.0) for first, last in self.active_intervals)
        if now is None or handoff.taken or not self.is_running:
            return until_then
        return until_then + max(now - self.ended, 0.0)

    @property
    def current(self) -> Handoff | None:
        """The handoff that has no reply yet."""
        last = self.handoffs[-1] if self.handoffs else None
        return last if last and last.taken is None and self.status in (RUNNING, STOPPED, GONE) else None

    @property
    def round(self) -> int:
        return self.handoffs[-1].round if self.handoffs else 1

    @property
    def rounds(self) -> tuple[int, ...]:
        return tuple(sorted({handoff.round for handoff in self.handoffs}))

    def of_role(self, role: Role) -> list[Handoff]:
        return [handoff for handoff in self.handoffs if handoff.role is role]

    @property
    def by_round(self) -> dict[int, list[Handoff]]:
        """The handoffs of each round, in the order of the rounds."""
        found: dict[int, list[Handoff]] = {}
        for handoff in self.handoffs:
            found.setdefault(handoff.round, []).append(handoff)
        return dict(sorted(found.items()))

    @property
    def tokens(self) -> PricedTokens | None:
        return tokens_of(self.handoffs)

    @property
    def rests_on(self) -> str:
        """What its PASS rests on: checks, or the tester alone; empty where there is no PASS."""
        return "" if self.status != PASS else VERIFIED if self.confirmed_by else TESTER.name

    @property
    def verdicts(self) -> list[Handoff]:
        return [handoff for handoff in self.handoffs if handoff.verdict]


def tokens_of(handoffs: Iterable[Handoff]) -> PricedTokens | None:
    """The sum over handoffs; None where no agent has recorded any."""
    known = [handoff.tokens for handoff in handoffs if handoff.tokens]
    costs = [tokens.cost for tokens in known if tokens.cost is not None]
    unpriced = sum(tokens.unpriced for tokens in known)
    total = sum(known, TokenCount()).model_dump()
    return PricedTokens(**total, cost=sum(costs) if costs else None, unpriced=unpriced) if known else None


def run_from_events(events: Iterable[Event]) -> Run:
    """The run of a journal."""
    return add_events(Run(), events)


def add_event(run: Run, event: Event) -> Run:
    """The run after one more event."""
    return add_events(run, (event,))


def add_events(run: Run, events: Iterable[Event]) -> Run:
    """The run after more events."""
    builder = _RunBuilder(run)
    for event in events:
        builder.add(event)
    return builder.run


def timestamp(at: str) -> float:
    """The time of an event as seconds since the epoch; 0 where it is not a time that can be shown."""
    try:
        seconds = datetime.fromisoformat(at).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return seconds if 0.0 <= seconds < _LAST_YEAR else 0.0


class _RunBuilder:
    """A run to which events are added. Its lists grow in place: a long journal takes no longer per event."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._intervals, self._handoffs, self._warnings = (
            list(run.active_intervals),
            list(run.handoffs),
            list(run.warnings),
        )
        self._terminals = dict(run.terminals)
        self._last: dict[str, int] = {}
        """the number of the last handoff of each step, each role and each kind of work"""
        for number in range(len(self._handoffs)):
            self._index(number)

    @property
    def run(self) -> Run:
        return replace(
            self._run,
            active_intervals=tuple(self._intervals),
            handoffs=tuple(self._handoffs),
            warnings=tuple(self._warnings),
            terminals=self._terminals,
        )

    def add(self, event: Event) -> None:
        at = timestamp(event.at)
        self._extend_interval(event, at)
        match event:
            case journal.RunStarted():
                self._set(id=event.run_id, wd=event.wd, start_agent=event.start_agent, task_file=event.task_file)
                self._set(start_commit=event.start_commit, dirty=event.dirty)
                self._set(project=event.project, branch=event.branch)
            case journal.RunResumed():
                self._set(id=event.run_id, status=RUNNING, resumes=self._run.resumes + 1)
                self._set(reason="", waiting="", resumable=True, max_tokens=0, cleaned_up=False, head="")
            case journal.TerminalCreated(role=role) if role in BY_NAME:
                self._terminals[role] = (event.terminal, event.provider)
            case journal.PromptSent():
                self._add_handoff(event, at)
            case journal.ReplyTaken() | journal.ReplyMissed():
                self._add_reply(event, at)
            case journal.RunFinished(status=status):
                self._close_handoff(at)
                self._set(status=status, cleaned_up=event.cleaned_up, head=event.head)
                self._set(confirmed_by=self._confirmed_by(event))
            case journal.RunStopped(reason=reason):
                self._set(status=STOPPED, reason=reason, resumable=event.resumable, max_tokens=event.max_tokens)
                self._set(cleaned_up=event.cleaned_up, head=event.head)
            case journal.ReviewJudged() | journal.TestJudged() | journal.Verified() | journal.Checked():
                self._add_verdict(event)
            case journal.HostRefused():
                self._add_refused(event, at)
            case _:
                self._add_other(event, at)

    def _set(self, **changes: Any) -> None:
        self._run = replace(self._run, **changes)

    def _extend_interval(self, event: Event, at: float) -> None:
        """Extend the last interval up to the event, or begin another one after a stop."""
        if not at:
            return
        if not self._intervals:
            self._intervals.append((at, at))
            return
        begin, end = self._intervals[-1]
        if isinstance(event, journal.RunResumed) and len(self._intervals) < MOST_INTERVALS:
            if self._run.status == RUNNING:
                self._intervals[-1] = (begin, min(end + QUIET_SECONDS, at))  # it was killed
            self._intervals.append((at, at))
        elif self._run.status == RUNNING or isinstance(event, journal.RunStopped | journal.RunResumed):
            # an event after the end, such as a failed notification, does not count
            self._intervals[-1] = (begin, max(end, at))

    def _add_handoff(self, event: journal.PromptSent, at: float) -> None:
        role = BY_NAME.get(event.role)
        if role is None:
            return
        last = self._handoffs[-1] if self._handoffs else None
        if last and last.step == event.step and last.taken is None:  # the prompt is sent again
            self._handoffs.pop()
        self._close_handoff(at)
        self._handoffs.append(Handoff(event.step, role, event.round, event.cycle, at, event.file, event.carried))
        self._index(len(self._handoffs) - 1)
        self._set(asking="", waiting="")

    def _close_handoff(self, at: float) -> None:
        """Note of a handoff that is still open that it had no reply."""
        if self._handoffs and self._handoffs[-1].taken is None:
            self._handoffs[-1] = replace(self._handoffs[-1], taken=at, missed=True)

    def _index(self, number: int) -> None:
        handoff = self._handoffs[number]
        for key in (f"step {handoff.step}", f"role {handoff.role.name}", kind_of(handoff.role)):
            self._last[key] = number

    def _change(self, last: str, **changes: Any) -> None:
        """Change the last handoff of a step, a role or a kind of work."""
        number = self._last.get(last)
        if number is not None:
            self._handoffs[number] = replace(self._handoffs[number], **changes)

    def _add_reply(self, event: journal.ReplyTaken | journal.ReplyMissed, at: float) -> None:
        used = event.tokens
        unpriced = used.total if used and event.cost is None else 0
        tokens = PricedTokens(**used.model_dump(), cost=event.cost, unpriced=unpriced) if used else None
        missed = isinstance(event, journal.ReplyMissed)
        self._set(asking="")
        self._change(f"step {event.step}", taken=at, tokens=tokens, missed=missed, actions=event.actions)
        if isinstance(event, journal.ReplyTaken):
            self._change(f"step {event.step}", reply_file=event.file, source=event.source)
        else:
            self._warnings.append(_warning(at, "no reply", event))

    def _confirmed_by(self, event: journal.RunFinished) -> dict[str, int]:
        """What the run's state says of it; of an older journal, what it tells of the last round."""
        if event.checks is not None or event.status != PASS:
            return dict(event.checks or {})
        last = (check for check in self._run.checks if check.when == When.AFTER_TEST and check.round == event.round)
        return {check.title: check.exit_code for check in last}

    def _add_verdict(
        self, event: journal.ReviewJudged | journal.TestJudged | journal.Verified | journal.Checked
    ) -> None:
        if isinstance(event, journal.Verified | journal.Checked):
            self._set(checks=(*self._run.checks, check_run(event)))
        match event:
            case journal.ReviewJudged(verdict=word, approved=approved, reason=reason, evidence=evidence):
                self._change("review", verdict=Judgement(word, review_kind(word, approved), reason, tuple(evidence)))
            case journal.TestJudged(verdict=word, reason=reason, counts=counts):
                kind = VerdictKind.BAD if word != PASS else VerdictKind.GOOD if counts else VerdictKind.VOID
                self._change("test", verdict=Judgement(word, kind, reason))
            case journal.Verified(command=command, exit_code=code):
                reason = f"the tester said PASS; the check ended with exit code {code}"
                word, kind = (FAIL, VerdictKind.BAD) if code else (PASS, VerdictKind.GOOD)
                verdict = Judgement(word, kind, reason, command=command, output_file=event.file)
                self._change("test", verdict=verdict)

    def _add_other(self, event: Event, at: float) -> None:
        kind = _WARNINGS.get(event.event, "")
        match event:
            case journal.LimitReached() | journal.TurnFailed():
                self._set(waiting=_warning(at, "", event).text)
            case journal.ApprovalAsked(step=step):
                self._set(waiting=line_for(event), approval=step)
            case journal.PersonDecided():
                self._set(waiting="", approval="")
            case journal.Reminded(role=role):
                self._change(f"role {role}", reminders=event.number)
            case journal.PermissionAsked(role=role, accepted=False):
                self._set(asking=role)
                kind = "permission"
            case journal.GuardViolation(step=step):
                self._change(f"step {step}", violation=event)
            case journal.TestsLost(text=text, files=files):
                self._set(lost_tests=(text, *files))
            case journal.Noted(text=text) if text.startswith(COMMITTED):
                self._set(commit=text.removeprefix(COMMITTED))
        if kind:
            self._warnings.append(_warning(at, kind, event))

    def _add_refused(self, event: journal.HostRefused, at: float) -> None:
        """Keep one warning for each host and role, with its last count."""
        subject = f"{event.role} {event.host}:{event.port}"
        warning = replace(_warning(at, "refused host", event), subject=subject)
        for number, known in enumerate(self._warnings):
            if known.subject == subject:
                self._warnings[number] = replace(warning, at=known.at)
                return
        self._warnings.append(warning)


_WARNINGS: Final = {
    "reviews_used_up": "never approved",
    "guard_released": "forced release",
    "guard_violation": "guard violation",
    "reminded": "reminder",
    "person_decided": "word of a person",
    "person_noted": "note of a person",
    "terminal_lost": "terminal lost",
    "turn_failed": "failed turn",
    "limit_reached": "limit",
    "status_doubted": "status in doubt",
    "hand_typed": "hand-typed prompt",
    "server_fault": "server fault",
    "warned": "warning",
}


def _warning(at: float, kind: str, event: Event) -> RunWarning:
    """The line of an event, without the word "warning" at its beginning."""
    return RunWarning(at, kind, re.sub("^warning: ", "", line_for(event), flags=re.IGNORECASE))
