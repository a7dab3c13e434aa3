"""What a report says of a run, as numbers and texts; how it looks is decided elsewhere."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quintet.layout import STATE
from quintet.loop.decide.task import title_of
from quintet.roles import ROLES, TESTER, Role
from quintet.watch.runs.advice import NEVER_APPROVED, Advice, advise
from quintet.watch.runs.changes import Changes, FileChange, changes_of
from quintet.watch.runs.folders import read_run, read_state, read_text, run_folders
from quintet.watch.runs.formatting import count, duration, moment, money
from quintet.watch.runs.model import FAIL, GONE, PASS, RUNNING, STOPPED, Run, tokens_of
from quintet.watch.runs.parts import OUTCOME_WORDS, Handoff, Outcome, Tokens
from quintet.watch.runs.shortened import saved_bytes
from quintet.watch.runs.undo import Undo, undo

LONGEST_EVIDENCE: Final = 200
"""lines of a test report that are shown; the file has them all"""
_NO_PLURAL: Final = (NEVER_APPROVED, "no reply")


@dataclass(frozen=True)
class Evidence:
    """What a test is judged by: the tester's report, or what the user's command has said."""

    handoff: Handoff
    title: str
    word: str
    outcome: Outcome
    text: str
    file: str


@dataclass(frozen=True)
class Summary:
    """One run, ready to be told."""

    folder: Path
    run: Run
    title: str
    changes: Changes
    undo: Undo
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
        rows = [
            ("Began", moment(run.began)),
            ("Ended", _ended(run)),
            ("Time at work", duration(run.seconds())),
            ("Rounds", str(len(run.rounds))),
            ("Turns", str(len(run.handoffs))),
            ("Reviews", self.review_words),
            ("Tokens", self.token_words),
            ("Saved by condensation", f"{max(self.saved, 0):,} of {max(self.saved, 0) + self.prompts:,} bytes"),
            ("Warnings", self.remark_words),
        ]
        if run.resumes:
            rows.insert(3, ("Resumed", f"{run.resumes} times" if run.resumes > 1 else "once"))
        return rows

    @property
    def review_words(self) -> str:
        """How many reviews there were, and what they were worth."""
        reviews = [handoff.verdict.outcome for handoff in self.run.verdicts if handoff.role.reviews and handoff.verdict]
        names = {
            Outcome.GOOD: "approved",
            Outcome.VOID: "not counted",
            Outcome.AGAIN: f"with {OUTCOME_WORDS[Outcome.AGAIN]}",
        }
        told = [f"{reviews.count(item)} {words}" for item, words in names.items() if item in reviews]
        return f"{len(reviews)}: {', '.join(told)}" if told else "none"

    @property
    def token_words(self) -> str:
        if self.tokens is None:
            return "the agents' records tell of none"
        told = f"{count(self.tokens.total)} ({count(self.tokens.cached)} of them cached)"
        if number := sum(handoff.taken is not None and not handoff.tokens for handoff in self.run.handoffs):
            told += f", without {number} of {len(self.run.handoffs)} turns, which tell of none"
        return told + cost_words(self.tokens)

    @property
    def remark_words(self) -> str:
        return ", ".join(map(_counted, sorted(self.remarks.items()))) or "none"

    @property
    def next_steps(self) -> list[Advice]:
        return advise(self.run, self.undo.lines)


def headline(run: Run) -> str:
    """The outcome in a few words."""
    rounds = f"round {run.round}"
    return {
        PASS: f"PASS in {rounds}",
        FAIL: f"FAIL after {rounds}",
        STOPPED: f"Stopped in {rounds}",
        GONE: f"Interrupted in {rounds}",
    }.get(run.status, f"Running, {rounds}")


def _counted(remark: tuple[str, int]) -> str:
    kind, number = remark
    return f"{number} {kind}" if number == 1 or kind in _NO_PLURAL else f"{number} {kind}s"


def cost_words(tokens: Tokens) -> str:
    """What the tokens cost, and of how many of them that is not known."""
    if tokens.cost is None:
        return ""
    if tokens.partly_priced:
        return f", cost at least {money(tokens.cost)}: your prices leave out {count(tokens.unpriced)} tokens"
    return f", cost {money(tokens.cost)} by your prices"


def cost_cell(tokens: Tokens) -> str:
    """The same for a table."""
    if tokens.cost is None:
        return "not priced"
    return f"at least {money(tokens.cost)}" if tokens.partly_priced else money(tokens.cost)


def taken_words(run: Run, handoff: Handoff) -> str:
    """How long a turn has taken."""
    if handoff.taken is None:
        return "no reply yet"
    return duration(run.worked(handoff)) + (", no reply" if handoff.missed else "")


def kind_words(file: FileChange) -> str:
    return f"{file.kind}; not committed before the run either" if file.before else file.kind


def _ended(run: Run) -> str:
    if run.status == RUNNING:
        return "still running"
    return f"last heard of {moment(run.ended)}" if run.status == GONE else moment(run.ended)


def summarise(folder: Path, found: Changes | None = None) -> Summary:
    """Read everything that a report tells; what has changed may be known already."""
    run, wd = read_run(folder), folder.parents[1]
    prompts = sum(len(read_text(folder, handoff.prompt_file).encode()) for handoff in run.handoffs)
    roles = {role: tokens for role in ROLES if (tokens := tokens_of(run.of_role(role)))}
    rounds = {number: tokens for number, turns in run.by_round.items() if (tokens := tokens_of(turns))}
    return Summary(
        folder=folder,
        run=run,
        title=task_title(folder, run.id),
        changes=found if found is not None else changes_of(folder, run),
        undo=undo(wd, run, newest=run_folders(wd)[:1] == [folder]),
        saved=saved_bytes(run),
        prompts=prompts,
        evidence=tuple(item for handoff in run.of_role(TESTER) for item in _evidence(folder, handoff)),
        tokens=tokens_of(run.handoffs),
        by_role=roles,
        by_round=rounds,
        remarks=Counter(remark.kind for remark in run.remarks),
    )


def task_title(folder: Path, run_id: str) -> str:
    """The first line of the task, from the run's state: in its own folder once another run has begun."""
    for path in (folder.parent / STATE, folder / STATE):
        state = read_state(path)
        if state and state.run_id == run_id:
            return title_of(state.prompt)
    return ""


def _evidence(folder: Path, handoff: Handoff) -> list[Evidence]:
    """The command's output where it had the last word, and the tester's report, which by itself said PASS then."""
    verdict, found = handoff.verdict, []
    word, outcome = (verdict.word, verdict.outcome) if verdict else ("", Outcome.BAD)
    if verdict and verdict.command:
        text = _shown(folder, verdict.output_file) or "(its output is not in the archive)"
        found.append(Evidence(handoff, "what your command says", word, outcome, text, verdict.output_file))
        word, outcome = PASS, Outcome.GOOD
    if handoff.reply_file:
        text = _shown(folder, handoff.reply_file)
        found.append(Evidence(handoff, "the tester's report", word, outcome, text, handoff.reply_file))
    return found


def _shown(folder: Path, file: str) -> str:
    """A text, or its beginning and its end where it is long."""
    lines = read_text(folder, file).rstrip().split("\n")
    half = LONGEST_EVIDENCE // 2
    if left_out := max(len(lines) - LONGEST_EVIDENCE, 0):
        lines = [*lines[:half], f"[... {left_out} lines left out ...]", *lines[-half:]]
    return "\n".join(lines)
