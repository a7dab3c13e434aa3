"""What a report says of a run, as numbers and texts; the reports only lay it out."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet.layout import STATE
from quintet.loop.decide.state import When
from quintet.loop.decide.task import title_of
from quintet.loop.record.run_record import recorded
from quintet.loop.record.state_file import state_file_of
from quintet.roles import ROLES, TESTER
from quintet.watch.runs.action_words import action_lines, doubt_words
from quintet.watch.runs.advice import NEVER_APPROVED, Advice, advise
from quintet.watch.runs.changes import Changes, FileChange, changes_of
from quintet.watch.runs.checks import CheckRun, ground_words
from quintet.watch.runs.condensation import left_out_bytes
from quintet.watch.runs.folders import read_run, read_state, read_text, run_folders
from quintet.watch.runs.formatting import date_time, duration, money, short_number, time_of_day
from quintet.watch.runs.handoffs import KIND_WORDS, Handoff, PricedTokens, VerdictKind
from quintet.watch.runs.model import FAIL, GONE, PASS, STOPPED, Run, tokens_of
from quintet.watch.runs.undo import Undo, undo

LONGEST_EVIDENCE: Final = 200
"""lines of a test report that are shown; the file has them all"""
_NO_PLURAL: Final = (NEVER_APPROVED, "no reply")
VIOLATIONS: Final = ("Changes that a role may not make", ("When", "Agent", "What", "What became of it", "Kept as"))
"""the title of their table in a report, and its head"""


@dataclass(frozen=True)
class EvidenceText:
    """What a test was judged by: the tester's report, or the output of a check."""

    round: int
    title: str
    word: str
    kind: VerdictKind
    text: str
    file: str


@dataclass(frozen=True)
class Summary:
    """A run, with all that its report says."""

    folder: Path
    run: Run
    title: str
    changes: Changes
    undo: Undo
    left_out_bytes: int
    """what condensation has left out of the prompts"""
    prompt_bytes: int
    """all prompts together"""
    evidence: tuple[EvidenceText, ...]

    @property
    def headline(self) -> str:
        return headline(self.run)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The numbers at the top of a report."""
        run, left_out = self.run, max(self.left_out_bytes, 0)
        rows = [
            ("Began", date_time(run.began)),
            ("Ended", _ended(run)),
            ("Time at work", duration(run.seconds())),
            ("Rounds", str(len(run.rounds))),
            ("Turns", str(len(run.handoffs))),
            ("Reviews", self.review_words),
            ("Tokens", self.token_words),
            ("Left out by condensation", f"{left_out:,} of {left_out + self.prompt_bytes:,} bytes"),
            ("Warnings", self.warning_words),
        ]
        if run.rests_on:
            rows.insert(0, ("The PASS", ground_words(run.confirmed_by)))
        if lost := self.changes.lost_tests.words:
            rows.append(("Tests", f"{lost} since the start commit"))
        if run.branch:
            rows.append(("Branch", f"{run.branch}, in a worktree of {run.project}"))
        if run.resumes:
            rows.insert(3, ("Resumed", f"{run.resumes} times" if run.resumes > 1 else "once"))
        return rows

    @property
    def review_words(self) -> str:
        """How many reviews there were, and what they counted for."""
        reviews = [handoff.verdict.kind for handoff in self.run.verdicts if handoff.role.reviews and handoff.verdict]
        names = {
            VerdictKind.GOOD: "approved",
            VerdictKind.VOID: "not counted",
            VerdictKind.AGAIN: f"with {KIND_WORDS[VerdictKind.AGAIN]}",
        }
        counts = [f"{reviews.count(item)} {words}" for item, words in names.items() if item in reviews]
        return f"{len(reviews)}: {', '.join(counts)}" if counts else "none"

    @property
    def token_words(self) -> str:
        tokens = self.run.tokens
        if tokens is None:
            return "unknown: the agents have recorded none"
        words = f"{short_number(tokens.total)} ({short_number(tokens.cached)} of them cached)"
        if number := sum(handoff.taken is not None and not handoff.tokens for handoff in self.run.handoffs):
            words += f", unknown for {number} of {len(self.run.handoffs)} turns"
        return words + _cost_words(tokens)

    @property
    def token_table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The head and the rows of a table of tokens, by role and by round; no rows where none are known."""
        run = self.run
        if run.tokens is None:
            return (), []
        parts = [(role.label, run.of_role(role)) for role in ROLES]
        parts += [(f"round {number}", turns) for number, turns in run.by_round.items()]
        rows = [
            (name, *(f"{number:,}" for number in (used.input, used.cached, used.output, used.total)), _cost_cell(used))
            for name, turns in [*parts, ("whole run", list(run.handoffs))]
            if (used := tokens_of(turns))
        ]
        head = ("", "Input", "of it cached", "Output", "Total", "Cost")
        priced = len(head) if run.tokens.cost is not None else -1
        return head[:priced], [row[:priced] for row in rows]

    @property
    def warning_words(self) -> str:
        counts = Counter(warning.kind for warning in self.run.warnings)
        return ", ".join(map(_counted, sorted(counts.items()))) or "none"

    @property
    def violations(self) -> list[tuple[str, str, str, str, str]]:
        """What roles changed and may not change: when, who, what, what became of it, and the patch that has it."""
        rows = []
        for handoff in self.run.handoffs:
            if (found := handoff.violation) and found.paths:
                fate = "undone" if found.undone else "not undone"
                fate += f", but for {', '.join(found.failed)}" if found.failed else ""
                what = ", ".join(line.removeprefix("- ") for line in found.change_lines)
                rows.append((time_of_day(handoff.taken or handoff.sent), handoff.role.label, what, fate, found.file))
        return rows

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


def _counted(warning: tuple[str, int]) -> str:
    kind, number = warning
    return f"{number} {kind}" if number == 1 or kind in _NO_PLURAL else f"{number} {kind}s"


def _cost_words(tokens: PricedTokens) -> str:
    """What the tokens cost, and how many of them have no price."""
    if tokens.cost is None:
        return ""
    if tokens.partly_priced:
        return f", cost at least {money(tokens.cost)} ({short_number(tokens.unpriced)} tokens have no price)"
    return f", cost {money(tokens.cost)}"


def _cost_cell(tokens: PricedTokens) -> str:
    if tokens.cost is None:
        return "no price"
    return f"at least {money(tokens.cost)}" if tokens.partly_priced else money(tokens.cost)


def turn_time_words(run: Run, handoff: Handoff) -> str:
    """How long a turn took, and whether it had a reply."""
    if handoff.taken is None:
        return "no reply yet"
    return duration(run.worked(handoff)) + (", no reply" if handoff.missed else "")


def change_words(file: FileChange) -> str:
    """How a file was changed, and whether it was changed before the run already."""
    return f"{file.kind}; it had uncommitted changes before the run" if file.before else file.kind


def _ended(run: Run) -> str:
    if run.is_running:
        return "still running"
    return f"unknown; last event at {date_time(run.ended)}" if run.status == GONE else date_time(run.ended)


def summarise(folder: Path, found: Changes | None = None) -> Summary:
    """Read all that a report says from a run's folder; what it has changed may be known already."""
    run, wd = read_run(folder), folder.parents[1]
    return Summary(
        folder=folder,
        run=run,
        title=task_title(folder, run.id),
        changes=found if found is not None else changes_of(folder, run),
        undo=undo(wd, run, newest=run_folders(wd)[:1] == [folder]),
        left_out_bytes=left_out_bytes(run),
        prompt_bytes=sum(len(read_text(folder, handoff.prompt_file).encode()) for handoff in run.handoffs),
        evidence=tuple(item for number in run.rounds for item in _evidence(folder, run, number)),
    )


def task_title(folder: Path, run_id: str) -> str:
    """The first line of the task, from the run's state, which is in its own folder once another run has begun."""
    for path in (recorded(folder) / STATE, state_file_of(folder.parents[1]), folder / STATE):
        state = read_state(path)
        if state and state.run_id == run_id:
            return title_of(state.prompt)
    return ""


def _evidence(folder: Path, run: Run, number: int) -> list[EvidenceText]:
    """What the checks of a round said, those that decided first, then what the tester did and reported."""
    checks = [_check_text(folder, check) for check in run.checks if check.round == number]
    turns = [handoff for handoff in run.of_role(TESTER) if handoff.round == number]
    return [*reversed(checks), *(item for handoff in turns for item in _test_texts(folder, handoff))]


def _check_text(folder: Path, check: CheckRun) -> EvidenceText:
    word, kind = (FAIL, VerdictKind.BAD) if check.failed_round else (PASS, VerdictKind.GOOD)
    if check.when == When.START:
        is_red = check.exit_code != 0
        word, kind = ("fails, as it should", VerdictKind.GOOD) if is_red else ("passes already", VerdictKind.AGAIN)
    title = f"the output of {check.title}, {check.when_words}"
    text = _shown(folder, check.file) or "(its output is not in the archive)"
    return EvidenceText(check.round, title, word, kind, text, check.file)


def _test_texts(folder: Path, handoff: Handoff) -> list[EvidenceText]:
    verdict, found = handoff.verdict, []
    word, kind = (verdict.word, verdict.kind) if verdict else ("", VerdictKind.BAD)
    if verdict and verdict.command:
        word, kind = PASS, VerdictKind.GOOD
    if handoff.actions is not None and verdict:
        title = "; ".join(filter(None, ("what the tester did", doubt_words(handoff))))
        text = "\n".join(action_lines(handoff.actions)) or "(nothing, by its own record)"
        found.append(EvidenceText(handoff.round, title, word, kind, text, ""))
    if handoff.reply_file:
        text = _shown(folder, handoff.reply_file)
        found.append(EvidenceText(handoff.round, "the tester's report", word, kind, text, handoff.reply_file))
    return found


def _shown(folder: Path, file: str) -> str:
    """A text, or its beginning and its end where it is long."""
    lines = read_text(folder, file).rstrip().split("\n")
    half = LONGEST_EVIDENCE // 2
    if left_out := max(len(lines) - LONGEST_EVIDENCE, 0):
        lines = [*lines[:half], f"[... {left_out} lines left out ...]", *lines[-half:]]
    return "\n".join(lines)
