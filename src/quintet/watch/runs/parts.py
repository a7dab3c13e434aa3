"""The parts of a run as people look at it: tokens, verdicts, handoffs, remarks."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from quintet.loop.journal import Carried
from quintet.roles import TESTER, Role


@dataclass(frozen=True)
class Tokens:
    """What turns have cost, by the agents' own records; the cached ones are part of the input."""

    input: int = 0
    cached: int = 0
    output: int = 0
    cost: float | None = None
    """by the user's prices"""
    unpriced: int = 0
    """tokens that these prices say nothing of"""

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: "Tokens") -> "Tokens":
        known = [tokens.cost for tokens in (self, other) if tokens.cost is not None]
        return Tokens(
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            sum(known) if known else None,
            self.unpriced + other.unpriced,
        )

    @property
    def partly_priced(self) -> bool:
        """Whether the cost is that of a part only."""
        return self.cost is not None and self.unpriced > 0


APPROVED: Final = "APPROVED"
"""the word of a review that approves"""


class Outcome(StrEnum):
    """What a reply was judged to be worth; the names are those of the style sheets' classes."""

    GOOD = "good"
    VOID = "void"
    """approved too early or without the evidence that is needed"""
    AGAIN = "again"
    BAD = "bad"


SIGNS: Final = {Outcome.GOOD: "✓", Outcome.VOID: "⊘", Outcome.AGAIN: "↺", Outcome.BAD: "✗"}
OUTCOME_WORDS: Final = {
    Outcome.GOOD: "approved or passed",
    Outcome.VOID: "approved too early or without evidence",
    Outcome.AGAIN: "changes asked for",
    Outcome.BAD: "failed",
}


def review_outcome(word: str, approved: bool) -> Outcome:
    """What a review is worth: its word alone does not approve anything."""
    return Outcome.GOOD if approved else Outcome.VOID if word == APPROVED else Outcome.AGAIN


@dataclass(frozen=True)
class Verdict:
    """What a reply was judged to be."""

    word: str
    """APPROVED, REVISE, PASS, FAIL, or nothing where the reply had none"""
    outcome: Outcome
    reason: str
    evidence: tuple[str, ...] = ()
    command: str = ""
    """the user's command that had the last word on a PASS"""
    output_file: str = ""
    """what that command said"""

    @property
    def good(self) -> bool:
        """Whether it lets the run go on to the next phase, or to its end."""
        return self.outcome is Outcome.GOOD

    @property
    def label(self) -> str:
        """Its sign and its word; an approval that does not count says so."""
        return labelled(self.word, self.outcome)

    @property
    def why(self) -> str:
        """The evidence of an approval, else the reason."""
        return ", ".join(self.evidence) if self.good and self.evidence else self.reason


def labelled(word: str, outcome: Outcome) -> str:
    """The word of a verdict behind the sign of its outcome."""
    return f"{SIGNS[outcome]} {word or 'no verdict'}" + (", not counted" if outcome is Outcome.VOID else "")


@dataclass(frozen=True)
class Handoff:
    """One prompt and what came back."""

    step: str
    role: Role
    round: int
    cycle: int
    sent: float
    """seconds since the epoch, as all times here"""
    prompt_file: str = ""
    carried: tuple[Carried, ...] = ()
    """what of the prompt could be shortened, and was or was not"""
    taken: float | None = None
    """when its reply was taken, or given up"""
    reply_file: str = ""
    source: str = ""
    verdict: Verdict | None = None
    tokens: Tokens | None = None
    reminders: int = 0
    missed: bool = False
    """the run went on without a reply"""

    @property
    def again(self) -> bool:
        """Whether the tester was asked once more for its verdict."""
        return self.step.endswith("-again")


@dataclass(frozen=True)
class Remark:
    """Something that a reader of the report should know."""

    at: float
    kind: str
    text: str


def kind_of(role: Role) -> str:
    """What sort of work a role does: work, review or test."""
    return "review" if role.reviews else "test" if role is TESTER else "work"
