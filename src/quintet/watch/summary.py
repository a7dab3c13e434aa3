"""What a report says of a run, as numbers and texts; how it looks is decided elsewhere."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quintet.errors import StateError
from quintet.loop.state import load_state
from quintet.roles import ROLES, TESTER, Role
from quintet.watch.changes import Changes, changes, undo
from quintet.watch.condensed import saved_bytes
from quintet.watch.figures import count, duration, moment, money
from quintet.watch.model import FAIL, PASS, RUNNING, STOPPED, Handoff, Run, Tokens, tokens_of
from quintet.watch.runs import TMP, read_run, read_text, run_folders

STATE: Final = "quintet-state.json"
LONGEST_EVIDENCE: Final = 200
"""lines of a test report that are shown; the file has them all"""
_HEADERS: Final = "***"


@dataclass(frozen=True)
class Evidence:
    """What a tester has reported."""

    handoff: Handoff
    text: str
    left_out: int


@dataclass(frozen=True)
class Summary:
    """One run, ready to be told."""

    folder: Path
    run: Run
    title: str
    changes: Changes
    undo: tuple[str, ...]
    """shell lines that take the changes back"""
    saved: int
    """bytes that condensation kept out of the prompts"""
    prompts: int
    """bytes of all prompts"""
    evidence: tuple[Evidence, ...]
    tokens: Tokens | None
    by_role: dict[Role, Tokens] = field(default_factory=dict)
    by_round: dict[int, Tokens] = field(default_factory=dict)
    remarks: Counter[str] = field(default_factory=Counter)

    @property
    def headline(self) -> str:
        return headline(self.run)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The numbers at the top of a report."""
        run = self.run
        reviews = [handoff for handoff in run.handoffs if handoff.role.reviews and handoff.verdict]
        approved = sum(handoff.verdict is not None and handoff.verdict.good for handoff in reviews)
        rows = [
            ("Began", moment(run.began)),
            ("Ended", moment(run.ended) if run.status != RUNNING else "still running"),
            ("Time at work", duration(run.seconds())),
            ("Rounds", str(len(run.rounds))),
            ("Turns", str(len(run.handoffs))),
            ("Reviews", f"{len(reviews)}, {approved} approved"),
            ("Tokens", self.token_words),
            ("Saved by condensation", f"{self.saved:,} of {self.saved + self.prompts:,} bytes"),
            ("Warnings", self.remark_words),
        ]
        if run.resumes:
            rows.insert(3, ("Resumed", f"{run.resumes} times" if run.resumes > 1 else "once"))
        return rows

    @property
    def token_words(self) -> str:
        if self.tokens is None:
            return "the agents' records tell of none"
        cost = f", cost {money(self.tokens.cost)} by your prices" if self.tokens.cost is not None else ""
        return f"{count(self.tokens.total)} ({count(self.tokens.cached)} of them cached){cost}"

    @property
    def remark_words(self) -> str:
        return ", ".join(f"{number} {kind}" for kind, number in sorted(self.remarks.items())) or "none"

    @property
    def next_steps(self) -> list[str]:
        return next_steps(self)


def headline(run: Run) -> str:
    """The outcome in a few words."""
    rounds = f"round {run.round}"
    return {
        PASS: f"PASS in {rounds}",
        FAIL: f"FAIL after {rounds}",
        STOPPED: f"Stopped in {rounds}",
    }.get(run.status, f"Running, {rounds}")


def summarise(folder: Path, found: Changes | None = None) -> Summary:
    """Read everything that a report tells; what has changed may be known already."""
    run, wd = read_run(folder), folder.parents[1]
    prompts = sum(len(read_text(folder, handoff.prompt_file).encode()) for handoff in run.handoffs)
    roles = {role: tokens for role in ROLES if (tokens := tokens_of(run.of_role(role)))}
    rounds = {number: tokens for number in run.rounds if (tokens := tokens_of(run.of_round(number)))}
    return Summary(
        folder=folder,
        run=run,
        title=task_title(folder, run.id),
        changes=found if found is not None else changes(folder, run),
        undo=undo(wd, run, newest=run_folders(wd)[:1] == [folder]),
        saved=saved_bytes(folder, run),
        prompts=prompts,
        evidence=tuple(_evidence(folder, handoff) for handoff in run.of_role(TESTER) if handoff.reply_file),
        tokens=tokens_of(run.handoffs),
        by_role=roles,
        by_round=rounds,
        remarks=Counter(remark.kind for remark in run.remarks),
    )


def task_title(folder: Path, run_id: str) -> str:
    """The first line of the task, from the run's state: in its own folder once another run has begun."""
    for path in (folder.parent / STATE, folder / STATE):
        try:
            state = load_state(path)
        except StateError:
            continue
        if state and state.run_id == run_id:
            return title_of(state.prompt)
    return ""


def title_of(task: str) -> str:
    """The first line of a task that is no header."""
    lines = (line.strip(" #*-") for line in task.splitlines() if not line.startswith(_HEADERS))
    return next((line for line in lines if line), "")[:160]


def _evidence(folder: Path, handoff: Handoff) -> Evidence:
    lines = read_text(folder, handoff.reply_file).rstrip().split("\n")
    half = LONGEST_EVIDENCE // 2
    left_out = max(len(lines) - LONGEST_EVIDENCE, 0)
    if left_out:
        lines = [*lines[:half], f"[... {left_out} lines left out ...]", *lines[-half:]]
    return Evidence(handoff, "\n".join(lines), left_out)


def next_steps(summary: Summary) -> list[str]:
    """What somebody who finds a run that is not a PASS can do."""
    run = summary.run
    if run.status == FAIL:
        tests = run.of_role(TESTER)
        file = f"{TMP}/{run.id}/{tests[-1].reply_file}" if tests and tests[-1].reply_file else "the test evidence"
        steps = [
            f"Read the evidence of the last test: {file}. Is the scenario test itself right?",
            "Ask the programmer, whose terminal still knows everything: quintet attach programmer",
            "Let it try again from the present code: START_AGENT=programmer quintet run, "
            "with the evidence added to the task's explore summary (MAX_ROUNDS gives it more rounds).",
        ]
        if "never approved" in summary.remarks:
            steps.insert(1, "A phase went on without approval: look at the reviews' open notes first.")
        if summary.undo:
            steps.append(f"Or take the changes back: {' && '.join(summary.undo)}")
        return steps
    if run.status == STOPPED:
        return [f"It stopped because: {run.reason}", "Start it again to go on where it stopped: quintet run"]
    return []
