"""A run as people look at it: one value, folded from the journal alone."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Any, Final

from quintet.loop import journal
from quintet.loop.journal import Event
from quintet.roles import BY_NAME, Role
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.parts import Handoff, Outcome, Remark, Tokens, Verdict, kind_of, review_outcome

RUNNING, PASS, FAIL, STOPPED, GONE = "RUNNING", "PASS", "FAIL", "STOPPED", "GONE"
"""how a run stands; gone is one that says it is running and whose process is not there"""
COMMITTED: Final = "committed as "
"""how post-processing tells of its commit"""
_LAST_YEAR: Final = 250_000_000_000.0
"""seconds since the epoch; a clock's years have four digits"""
MOST_SPELLS: Final = 500
"""a run that is resumed more often than that is taken as one that went on"""
QUIET_SECONDS: Final = 60.0
"""a resumed run whose journal says nothing of its stop was stopped; this much of the silence may have been work"""


@dataclass(frozen=True)
class Run:
    """Everything that the journal tells of a run."""

    id: str = ""
    wd: str = ""
    start_agent: str = ""
    task_file: str = ""
    """empty where the task was a setting"""
    start_commit: str = ""
    dirty: tuple[str, ...] | None = None
    """what was not committed when it began; None where that is not known"""
    status: str = RUNNING
    reason: str = ""
    """why it stopped"""
    resumable: bool = True
    left_behind: bool = False
    """another run has begun since"""
    max_tokens: int = 0
    """the limit that stopped it"""
    cleaned_up: bool = False
    """its terminals were ended with it"""
    head: str = ""
    """the commit that it left the project at"""
    spells: tuple[tuple[float, float], ...] = ()
    """the stretches of time in which it was at work, without those in which it was stopped"""
    handoffs: tuple[Handoff, ...] = ()
    remarks: tuple[Remark, ...] = ()
    terminals: dict[str, tuple[str, str]] = field(default_factory=dict)
    """by role: the terminal's id and its provider"""
    commit: str = ""
    """what post-processing has committed"""
    asking: str = ""
    """the role that waits for a permission"""
    waiting: str = ""
    """why the current turn has not been sent again yet: it has failed, or a limit is reached"""
    resumes: int = 0
    events: int = 0

    @property
    def began(self) -> float:
        return self.spells[0][0] if self.spells else 0.0

    @property
    def ended(self) -> float:
        """When it ended, or when it was last heard of."""
        return self.spells[-1][1] if self.spells else 0.0

    def seconds(self, now: float | None = None) -> float:
        """How long it was at work."""
        running = (now or self.ended) - self.ended if self.status == RUNNING else 0.0
        return sum(end - begin for begin, end in self.spells) + max(running, 0.0)

    def worked(self, handoff: Handoff, now: float | None = None) -> float:
        """How long a turn has taken, without the time in which the run was stopped."""
        end = handoff.taken or self.ended
        until_then = sum(max(min(end, last) - max(handoff.sent, first), 0.0) for first, last in self.spells)
        if now is None or handoff.taken or self.status != RUNNING:
            return until_then
        return until_then + max(now - self.ended, 0.0)

    @property
    def current(self) -> Handoff | None:
        """The handoff that waits for its reply."""
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
    def verdicts(self) -> list[Handoff]:
        return [handoff for handoff in self.handoffs if handoff.verdict]


def tokens_of(handoffs: Iterable[Handoff]) -> Tokens | None:
    """The sum over handoffs; None where no record tells anything."""
    known = [handoff.tokens for handoff in handoffs if handoff.tokens]
    return reduce(Tokens.__add__, known) if known else None


def run_from(events: Iterable[Event]) -> Run:
    """The run that a journal tells of."""
    return fold_all(Run(), events)


def fold(run: Run, event: Event) -> Run:
    """The run after one more event."""
    return fold_all(run, (event,))


def fold_all(run: Run, events: Iterable[Event]) -> Run:
    """The run after more events; nothing is copied between them, so that a long journal takes no longer per line."""
    growing = _Growing(run)
    for event in events:
        growing.add(event)
    return growing.run


def seconds_of(at: str) -> float:
    """A journal's time as seconds since the epoch; 0 where it is none, or none that a clock can show."""
    try:
        seconds = datetime.fromisoformat(at).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return seconds if 0.0 <= seconds < _LAST_YEAR else 0.0


class _Growing:
    """A run while events are folded in."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._spells, self._handoffs, self._remarks = list(run.spells), list(run.handoffs), list(run.remarks)
        self._terminals = dict(run.terminals)
        self._last: dict[str, int] = {}
        """the last handoff of each step, each role and each kind of work"""
        for number in range(len(self._handoffs)):
            self._note_last(number)

    @property
    def run(self) -> Run:
        return replace(
            self._run,
            spells=tuple(self._spells),
            handoffs=tuple(self._handoffs),
            remarks=tuple(self._remarks),
            terminals=self._terminals,
        )

    def add(self, event: Event) -> None:
        at = seconds_of(event.at)
        self._hear(event, at)
        self._set(events=self._run.events + 1)
        match event:
            case journal.RunStarted():
                self._set(id=event.run_id, wd=event.wd, start_agent=event.start_agent, task_file=event.task_file)
                self._set(start_commit=event.start_commit, dirty=event.dirty)
            case journal.RunResumed():
                self._set(id=event.run_id, status=RUNNING, resumes=self._run.resumes + 1)
                self._set(reason="", waiting="", resumable=True, max_tokens=0, cleaned_up=False, head="")
            case journal.TerminalCreated(role=role) if role in BY_NAME:
                self._terminals[role] = (event.terminal, event.provider)
            case journal.PromptSent():
                self._send(event, at)
            case journal.ReplyTaken() | journal.ReplyMissed():
                self._take(event, at)
            case journal.RunFinished(status=status):
                self._close(at)
                self._set(status=status, cleaned_up=event.cleaned_up, head=event.head)
            case journal.RunStopped(reason=reason):
                self._set(status=STOPPED, reason=reason, resumable=event.resumable, max_tokens=event.max_tokens)
                self._set(cleaned_up=event.cleaned_up, head=event.head)
            case journal.ReviewJudged() | journal.TestJudged() | journal.Verified():
                self._judge(event)
            case _:
                self._warn(event, at)

    def _set(self, **changes: Any) -> None:
        self._run = replace(self._run, **changes)

    def _hear(self, event: Event, at: float) -> None:
        """Stretch the present spell up to the event, or begin another after a stop."""
        if not at:
            return
        if not self._spells:
            self._spells.append((at, at))
            return
        begin, end = self._spells[-1]
        if isinstance(event, journal.RunResumed) and len(self._spells) < MOST_SPELLS:
            if self._run.status == RUNNING:
                self._spells[-1] = (begin, min(end + QUIET_SECONDS, at))  # it was killed and could not say so
            self._spells.append((at, at))
        elif self._run.status == RUNNING or isinstance(event, journal.RunStopped | journal.RunResumed):
            # what comes after the end, such as a notification that failed, does not count
            self._spells[-1] = (begin, max(end, at))

    def _send(self, event: journal.PromptSent, at: float) -> None:
        role = BY_NAME.get(event.role)
        if role is None:
            return
        last = self._handoffs[-1] if self._handoffs else None
        if last and last.step == event.step and last.taken is None:  # it could not be sent, and is sent again
            self._handoffs.pop()
        self._close(at)
        self._handoffs.append(Handoff(event.step, role, event.round, event.cycle, at, event.file, event.carried))
        self._note_last(len(self._handoffs) - 1)
        self._set(asking="", waiting="")

    def _close(self, at: float) -> None:
        """Whatever comes next, a turn that is still open by then had no reply."""
        if self._handoffs and self._handoffs[-1].taken is None:
            self._handoffs[-1] = replace(self._handoffs[-1], taken=at, missed=True)

    def _note_last(self, number: int) -> None:
        handoff = self._handoffs[number]
        for key in (f"step {handoff.step}", f"role {handoff.role.name}", kind_of(handoff.role)):
            self._last[key] = number

    def _change(self, last: str, **changes: Any) -> None:
        """Change the last handoff of a step, a role or a kind of work."""
        number = self._last.get(last)
        if number is not None:
            self._handoffs[number] = replace(self._handoffs[number], **changes)

    def _take(self, event: journal.ReplyTaken | journal.ReplyMissed, at: float) -> None:
        told = event.tokens
        unpriced = told.total if told and event.cost is None else 0
        tokens = Tokens(told.input, told.cached, told.output, event.cost, unpriced) if told else None
        missed = isinstance(event, journal.ReplyMissed)
        self._set(asking="")
        self._change(f"step {event.step}", taken=at, tokens=tokens, missed=missed)
        if isinstance(event, journal.ReplyTaken):
            self._change(f"step {event.step}", reply_file=event.file, source=event.source)
        else:
            self._remarks.append(_remark(at, "no reply", event))

    def _judge(self, event: journal.ReviewJudged | journal.TestJudged | journal.Verified) -> None:
        match event:
            case journal.ReviewJudged(verdict=word, approved=approved, reason=reason, evidence=evidence):
                self._change("review", verdict=Verdict(word, review_outcome(word, approved), reason, tuple(evidence)))
            case journal.TestJudged(verdict=word, reason=reason):
                self._change("test", verdict=Verdict(word, Outcome.GOOD if word == PASS else Outcome.BAD, reason))
            case journal.Verified(command=command, exit_code=code):
                reason = f"the tester said PASS; the command ended with exit code {code}"
                word, outcome = (FAIL, Outcome.BAD) if code else (PASS, Outcome.GOOD)
                verdict = Verdict(word, outcome, reason, command=command, output_file=event.file)
                self._change("test", verdict=verdict)

    def _warn(self, event: Event, at: float) -> None:
        kind = _WARNINGS.get(event.event, "")
        match event:
            case journal.LimitReached() | journal.TurnFailed():
                self._set(waiting=_remark(at, "", event).text)
            case journal.Reminded(role=role):
                self._change(f"role {role}", reminders=event.number)
            case journal.PermissionAsked(role=role, accepted=False):
                self._set(asking=role)
                kind = "permission"
            case journal.Noted(text=text) if text.startswith(COMMITTED):
                self._set(commit=text.removeprefix(COMMITTED))
        if kind:
            self._remarks.append(_remark(at, kind, event))


_WARNINGS: Final = {
    "reviews_used_up": "never approved",
    "guard_released": "forced release",
    "reminded": "reminder",
    "terminal_lost": "terminal lost",
    "turn_failed": "failed turn",
    "limit_reached": "limit",
    "status_doubted": "status in doubt",
    "hand_typed": "hand-typed prompt",
    "server_fault": "server fault",
    "warned": "warning",
}


def _remark(at: float, kind: str, event: Event) -> Remark:
    """Among warnings nobody has to be told that this is one."""
    return Remark(at, kind, re.sub("^warning: ", "", line_for(event), flags=re.IGNORECASE))
