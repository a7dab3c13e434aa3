"""The gates: what a reply's verdict is, and whether a review's approval counts."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from quintet.config import Settings
from quintet.loop.decide.markup import (
    DECOR,
    LEAD,
    MOST_FENCES,
    Fences,
    fence_line,
    has_marks,
    label,
    normalise,
    own,
    unwrap,
)
from quintet.roles import Phase


class Verdict(StrEnum):
    """The words that decide."""

    APPROVED = "APPROVED"
    REVISE = "REVISE"
    PASS = "PASS"
    FAIL = "FAIL"


REVIEW_NOTES: Final = label("REVIEW_NOTES")
EVIDENCE: Final = label("EVIDENCE")

EVIDENCE_GROUPS: Final = {
    Phase.ANALYST: (
        ("artifact", "proposal", "design", "task", "spec"),
        ("P1", "P2", "P3", "P4", "traceability", "phase"),
        ("downstream", "contract", "planner", "api", "converter", "revised_document"),
        ("handoff", "actionable", "concrete", "next step", "action item"),
    ),
    Phase.PROGRAMMER: (
        ("implementation", "code", "task", "change", "diff", "file"),
        ("validation", "test", "command", "run", "ran", "not_run", "pytest", "conda"),
        ("risk", "regression", "quality", "coverage", "evidence"),
        ("fix", "issue", "defect", "gap", "failure"),
    ),
}
"""what a review can give evidence of; each group is named by its first word"""

_CLAUSE_END = re.compile(r"[.;,\n]+")
_BLANK = re.compile(r"<(?<!\w<)[A-Za-z][^<> \n]* [^<>\n]*>")
_UNFILLED = "\0"


def _verdict_line(name: str, words: str) -> re.Pattern[str]:
    spelled = name.replace("_", r"\\?_")
    return re.compile(
        rf"{LEAD}{spelled}{DECOR}:{DECOR}({words})(?:{DECOR}[.!])?{DECOR}$",
        re.MULTILINE | re.IGNORECASE | re.ASCII,  # without ASCII a Turkish İ would count as an I
    )


RESULT_LINE: Final = _verdict_line("RESULT", "PASS|FAIL")
REVIEW_LINE: Final = _verdict_line("REVIEW_RESULT", "APPROVED|REVISE")


Text = str | Iterable[str]
"""a text, or its blocks one after the other, each of whole lines with one kind of line end"""


def read_test_verdict(text: Text) -> Verdict | None:
    """PASS or FAIL where the tester says so, None where it says neither."""
    return _verdict(text, RESULT_LINE, Verdict.FAIL)


def read_review_verdict(text: Text) -> Verdict | None:
    """APPROVED or REVISE where the reviewer says so, None where it says neither."""
    return _verdict(text, REVIEW_LINE, Verdict.REVISE)


def _verdict(text: Text, pattern: re.Pattern[str], negative: Verdict) -> Verdict | None:
    """The negative one where any reading of the fences has it, the positive one only where all have it.

    One pass over the lines reads both the text as it is and its inside, for a text that is one fence as a whole.
    """
    whole, inside = _Readings(), _Readings()
    held: tuple[str, str] | None = None
    for line in _lines([normalise(text)] if isinstance(text, str) else text):
        match = pattern.match(line)
        word = match[1].upper() if match else ""
        if held:
            inside.take(*held)
        held = (line, word) if whole.lines else None  # neither the first line nor the last is inside
        whole.take(line, word)
    found = (inside if whole.is_one_fence else whole).words
    if any(negative in words for words in found):
        return negative
    return next(map(Verdict, set.intersection(*found)), None)


def _lines(blocks: Iterable[str]) -> Iterator[str]:
    """The lines that are not blank; of a block without fences and verdicts only the first and the last, for speed."""
    for block in blocks:
        if has_marks(block) or "RESULT" in block.upper():
            yield from (line for line in block.split("\n") if not line.isspace() and line)
        elif body := block.strip():
            yield body.partition("\n")[0]
            yield body.rpartition("\n")[2]


class _Readings:
    """Two ways to read the code fences of a text, line by line: nested in each other, and as Markdown has them."""

    def __init__(self) -> None:
        self.lines = 0
        self._marked = 0
        self._fences = (Fences(nested=True), Fences(nested=False))
        self._words: tuple[set[str], set[str]] = (set(), set())
        self._first_end = [0, 0]
        """by reading the line that ends a fence which began on the first line"""

    def take(self, line: str, word: str) -> None:
        """Go on to the next line, which says a verdict's word or none."""
        self.lines += 1
        marks = None
        if has_marks(line):
            marks = fence_line(line, min(self._marked, MOST_FENCES))
            self._marked += 1
        for number, fences in enumerate(self._fences):
            is_code = fences.take(marks) if marks else fences.is_open
            if word and not is_code:
                self._words[number].add(word)
            if self.lines == 1 and fences.is_open and has_marks(line.lstrip()[:3]):
                self._first_end[number] = -1
            elif self._first_end[number] == -1 and not fences.is_open:
                self._first_end[number] = self.lines

    @property
    def _careful(self) -> int:
        """The reading to go by: the nested one, unless it leaves a fence open."""
        return 1 if self._fences[0].is_open else 0

    @property
    def words(self) -> tuple[set[str], set[str]]:
        """The words outside of the fences, by each reading that counts."""
        return self._words[self._careful], self._words[1]

    @property
    def is_one_fence(self) -> bool:
        """Whether the text is one code fence from its first line to its last."""
        return self.lines > 1 and self._first_end[self._careful] == self.lines


def section(text: str, name: re.Pattern[str]) -> str | None:
    """The text from the line that opens a section to the end, None where no line does."""
    text = unwrap(normalise(text))
    match = next(own(name, text), None)
    return text[match.start() :].strip() if match else None


@dataclass(frozen=True)
class Whole:
    """What is known of a long reply whose text is only its beginning and its end."""

    size: int
    """bytes"""
    verdict: Verdict | None = None
    """by all of its lines"""


@dataclass(frozen=True)
class ReviewJudgement:
    """What a review comes to, and why."""

    verdict: Verdict | None
    evidence: tuple[str, ...]
    approved: bool
    reason: str


def judge_review(
    text: str, phase: Phase, cycle: int, settings: Settings, whole: Whole | None = None
) -> ReviewJudgement:
    """Hold a review against every condition of an approval."""
    verdict = whole.verdict if whole else read_review_verdict(text)
    notes = section(text, REVIEW_NOTES)
    found = evidence(notes or "", phase)
    least, needed = settings.min_review_cycles_before_approval, settings.review_evidence_min_match
    if verdict is None:
        reason = "the review has no verdict, so it counts as REVISE"
    elif verdict is Verdict.REVISE:
        reason = "the reviewer asks for changes"
    elif cycle < least:
        reason = f"approval counts from cycle {least} on"
    elif settings.require_review_evidence and notes is None:
        reason = "approved without a REVIEW_NOTES section"
    elif settings.require_review_evidence and len(found) < needed:
        reason = f"approved with {len(found)} of the {needed} kinds of evidence that are needed"
    else:
        return ReviewJudgement(verdict, found, True, "approved")
    return ReviewJudgement(verdict, found, False, reason)


def is_review_approved(text: str, phase: Phase, cycle: int, settings: Settings) -> bool:
    """Whether a review's approval counts."""
    return judge_review(text, phase, cycle, settings).approved


def _inflections(word: str) -> str:
    """A pattern for a word and the forms that grammar gives it: file, files, filed, filing."""
    if not word.isalpha():
        return r"[\s_-]+".join(re.escape(part) for part in word.split()) + ("s?" if word[-1].isalpha() else "")
    stem, last = word[:-1], word[-1]
    forms = [f"{word}(?:s|es|ed|ing|'s|’s)?"]
    if last == "e":
        forms.append(f"{stem}(?:ed|ing)")
    elif last == "y":
        forms.append(f"{stem}ie(?:s|d)")
    elif last not in "aiouwx":
        forms.append(f"{word}{last}(?:ed|ing)")
    return "|".join(forms)


@cache
def _words(phase: Phase) -> re.Pattern[str]:
    groups = (f"({'|'.join(_inflections(word.lower()) for word in words)})" for words in EVIDENCE_GROUPS[phase])
    return re.compile(rf"(?<!\w)(?:{'|'.join(groups)})(?!\w)")


def evidence(notes: str, phase: Phase) -> tuple[str, ...]:
    """The groups of evidence in a review's notes, matched to clauses so that as many as possible have their own."""
    groups = EVIDENCE_GROUPS[phase]
    clauses = _clauses(notes.lower(), _words(phase), len(groups))
    holder: dict[int, int] = {}

    def place(group: int, tried: set[int]) -> bool:
        for number, mentioned in enumerate(clauses):
            if group in mentioned and number not in tried:
                tried.add(number)
                if number not in holder or place(holder[number], tried):
                    holder[number] = group
                    return True
        return False

    return tuple(groups[group][0] for group in range(len(groups)) if place(group, set()))


def _clauses(notes: str, words: re.Pattern[str], most: int) -> list[frozenset[int]]:
    """Which groups each clause mentions, with at most `most` clauses that mention the same ones.

    A clause with an unfilled <blank> is the form's, not the reviewer's, and mentions nothing.
    """
    kinds: Counter[frozenset[int]] = Counter()
    for clause, times in Counter(_CLAUSE_END.split(_BLANK.sub(_UNFILLED, notes))).items():
        mentioned = frozenset((match.lastindex or 1) - 1 for match in words.finditer(clause))
        if mentioned and _UNFILLED not in clause:
            kinds[mentioned] += times
    return [mentioned for mentioned, times in kinds.items() for _ in range(min(times, most))]
