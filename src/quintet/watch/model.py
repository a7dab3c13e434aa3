"""A run as people look at it: one value, folded from the journal alone."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Any, Final

from quintet.loop import journal
from quintet.loop.journal import Event
from quintet.roles import BY_NAME, TESTER, Role
from quintet.watch.lines import line_for
from quintet.watch.values import Handoff, Remark, Tokens, Verdict

RUNNING, PASS, FAIL, STOPPED, GONE = "RUNNING", "PASS", "FAIL", "STOPPED", "GONE"
"""how a run stands; gone is one that says it is running and whose process is not there"""
COMMITTED: Final = "committed as "
"""how post-processing tells of its commit"""
QUIET_SECONDS: Final = 60.0
"""a resumed run whose journal says nothing of its stop was stopped; this much of the silence may have been work"""


@dataclass(frozen=True)
class Run:
    """Everything that the journal tells of a run."""

    id: str = ""
    wd: str = ""
    start_agent: str = ""
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
    """why the current turn has not been sent again yet: it has failed, or a usage limit is reached"""
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

    @property
    def last(self) -> Handoff | None:
        return self.handoffs[-1] if self.handoffs else None

    def of_role(self, role: Role) -> list[Handoff]:
        return [handoff for handoff in self.handoffs if handoff.role is role]

    def of_round(self, number: int) -> list[Handoff]:
        return [handoff for handoff in self.handoffs if handoff.round == number]

    @property
    def verdicts(self) -> list[Handoff]:
        return [handoff for handoff in self.handoffs if handoff.verdict]


def tokens_of(handoffs: Iterable[Handoff]) -> Tokens | None:
    """The sum over handoffs; None where no record tells anything."""
    known = [handoff.tokens for handoff in handoffs if handoff.tokens]
    return reduce(Tokens.__add__, known) if known else None


def run_from(events: Iterable[Event]) -> Run:
    """The run that a journal tells of."""
    return reduce(fold, events, Run())


def fold(run: Run, event: Event) -> Run:
    """The run after one more event."""
    at = seconds_of(event.at)
    run = replace(_heard(run, event, at), events=run.events + 1)
    match event:
        case journal.RunStarted():
            run = replace(run, id=event.run_id, wd=event.wd, start_agent=event.start_agent)
            return replace(run, start_commit=event.start_commit, dirty=event.dirty)
        case journal.RunResumed():
            run = replace(run, id=event.run_id, status=RUNNING, resumes=run.resumes + 1)
            return replace(run, reason="", waiting="", resumable=True, max_tokens=0, cleaned_up=False, head="")
        case journal.TerminalCreated(role=role):
            return replace(run, terminals={**run.terminals, role: (event.terminal, event.provider)})
        case journal.PromptSent():
            return _sent(run, event, at)
        case journal.ReplyTaken() | journal.ReplyMissed():
            return _taken(run, event, at)
        case journal.RunFinished(status=status):
            return replace(_closed(run, at), status=status, cleaned_up=event.cleaned_up, head=event.head)
        case journal.RunStopped(reason=reason):
            run = replace(run, status=STOPPED, reason=reason, resumable=event.resumable, max_tokens=event.max_tokens)
            return replace(run, cleaned_up=event.cleaned_up, head=event.head)
    return _judged(run, event) or _remarked(run, event, at)


def seconds_of(at: str) -> float:
    """A journal's time as seconds since the epoch; 0 where it is none."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


def _heard(run: Run, event: Event, at: float) -> Run:
    """Stretch the present spell up to the event, or begin another after a stop."""
    if not at:
        return run
    if not run.spells:
        return replace(run, spells=((at, at),))
    begin, end = run.spells[-1]
    if isinstance(event, journal.RunResumed):
        if run.status == RUNNING:
            end = min(end + QUIET_SECONDS, at)  # it was killed and could not say so
        return replace(run, spells=(*run.spells[:-1], (begin, end), (at, at)))
    if run.status != RUNNING and not isinstance(event, journal.RunStopped):
        return run  # what comes after the end, such as a notification that failed
    return replace(run, spells=(*run.spells[:-1], (begin, max(end, at))))


def _sent(run: Run, event: journal.PromptSent, at: float) -> Run:
    role = BY_NAME.get(event.role)
    if role is None:
        return run
    new = Handoff(event.step, role, event.round, event.cycle, at, event.file, event.carried)
    last = run.last
    if last and last.step == event.step and last.taken is None:  # it could not be sent, and is sent again
        run = replace(run, handoffs=run.handoffs[:-1])
    return replace(run, handoffs=(*_closed(run, at).handoffs, new), asking="", waiting="")


def _closed(run: Run, at: float) -> Run:
    """Whatever comes next, a turn that is still open by then had no reply."""
    return _with_last(run, lambda item: item is run.last and item.taken is None, taken=at, missed=True)


def _taken(run: Run, event: journal.ReplyTaken | journal.ReplyMissed, at: float) -> Run:
    told = event.tokens
    unpriced = told.total if told and event.cost is None else 0
    tokens = Tokens(told.input, told.cached, told.output, event.cost, unpriced) if told else None
    changes: dict[str, Any] = {"taken": at, "tokens": tokens, "missed": isinstance(event, journal.ReplyMissed)}
    if isinstance(event, journal.ReplyTaken):
        changes |= {"reply_file": event.file, "source": event.source}
    run = _with_last(replace(run, asking=""), lambda item: item.step == event.step, **changes)
    return replace(run, remarks=(*run.remarks, _remark(at, "no reply", event))) if changes["missed"] else run


def _judged(run: Run, event: Event) -> Run | None:
    match event:
        case journal.ReviewJudged(verdict=word, approved=approved, reason=reason, evidence=evidence):
            verdict = Verdict(word, approved, reason, tuple(evidence))
            return _with_last(run, lambda item: item.role.reviews, verdict=verdict)
        case journal.TestJudged(verdict=word, reason=reason):
            return _with_last(run, _is_test, verdict=Verdict(word, word == PASS, reason))
        case journal.Verified(command=command, exit_code=code):
            word = FAIL if code else PASS
            reason = f"the tester said PASS; the command ended with exit code {code}"
            verdict = Verdict(word, not code, reason, command=command, output_file=event.file)
            return _with_last(run, _is_test, verdict=verdict)
    return None


def _is_test(handoff: Handoff) -> bool:
    return handoff.role is TESTER


def _with_last(run: Run, wanted: Callable[[Handoff], bool], **changes: Any) -> Run:
    """Change the last handoff of a kind."""
    for number in reversed(range(len(run.handoffs))):
        if wanted(run.handoffs[number]):
            changed = replace(run.handoffs[number], **changes)
            return replace(run, handoffs=(*run.handoffs[:number], changed, *run.handoffs[number + 1 :]))
    return run


_WARNINGS: Final = {
    "reviews_used_up": "never approved",
    "guard_released": "forced release",
    "terminal_lost": "terminal lost",
    "turn_failed": "failed turn",
    "limit_reached": "usage limit",
    "status_doubted": "status in doubt",
    "server_fault": "server fault",
    "warned": "warning",
}


def _remark(at: float, kind: str, event: Event) -> Remark:
    """Among warnings nobody has to be told that this is one."""
    return Remark(at, kind, re.sub("^warning: ", "", line_for(event), flags=re.IGNORECASE))


def _remarked(run: Run, event: Event, at: float) -> Run:
    def noted(kind: str) -> Run:
        return replace(run, remarks=(*run.remarks, _remark(at, kind, event)))

    if isinstance(event, journal.LimitReached | journal.TurnFailed):
        run = replace(run, waiting=_remark(at, "", event).text)
    if event.event in _WARNINGS:
        return noted(_WARNINGS[event.event])
    match event:
        case journal.Reminded(role=role):
            run = _with_last(run, lambda item: item.role.name == role, reminders=event.number)
            return noted("reminder")
        case journal.PermissionAsked(role=role, accepted=False):
            run = replace(run, asking=role)
            return noted("permission")
        case journal.Noted(text=text) if text.startswith(COMMITTED):
            return replace(run, commit=text.removeprefix(COMMITTED))
    return run
