"""One turn of an agent as people look at it: its prompt, its reply, its verdict, its tokens and their cost."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from quintet.actions import TurnActions
from quintet.loop.journal import Carried, GuardViolation
from quintet.roles import TESTER, Role
from quintet.tokens import TokenCount


class PricedTokens(TokenCount):
    """The tokens that turns have used, and what they cost."""

    cost: float | None = None
    """by the prices in the settings"""
    unpriced: int = 0
    """tokens of models that have no price there"""

    @property
    def partly_priced(self) -> bool:
        """Whether the cost covers only a part of the tokens."""
        return self.cost is not None and self.unpriced > 0


APPROVED: Final = "APPROVED"
"""the verdict of a review that approves"""


class VerdictKind(StrEnum):
    """What a verdict counts for; the values are class names in the style sheets."""

    GOOD = "good"
    VOID = "void"
    """an approval that does not count: too early, or without the evidence that is needed"""
    AGAIN = "again"
    BAD = "bad"


SIGNS: Final = {VerdictKind.GOOD: "✓", VerdictKind.VOID: "⊘", VerdictKind.AGAIN: "↺", VerdictKind.BAD: "✗"}
KIND_WORDS: Final = {
    VerdictKind.GOOD: "approved or passed",
    VerdictKind.VOID: "not counted: too early, or without evidence",
    VerdictKind.AGAIN: "changes asked for",
    VerdictKind.BAD: "failed",
}


def review_kind(word: str, approved: bool) -> VerdictKind:
    """What a review counts for: the word APPROVED alone is not enough."""
    return VerdictKind.GOOD if approved else VerdictKind.VOID if word == APPROVED else VerdictKind.AGAIN


@dataclass(frozen=True)
class Judgement:
    """The verdict on a reply, and why."""

    word: str
    """APPROVED, REVISE, PASS, FAIL, or nothing where the reply had none"""
    kind: VerdictKind
    reason: str
    evidence: tuple[str, ...] = ()
    command: str = ""
    """the check that decided, after the tester said PASS"""
    output_file: str = ""
    """the output of that check"""

    @property
    def good(self) -> bool:
        """Whether it lets the run go on to the next phase, or to its end."""
        return self.kind is VerdictKind.GOOD

    @property
    def label(self) -> str:
        """Its sign and its word; an approval that does not count says so."""
        return labelled(self.word, self.kind)

    @property
    def why(self) -> str:
        """The evidence of an approval, else the reason."""
        return ", ".join(self.evidence) if self.good and self.evidence else self.reason


def labelled(word: str, kind: VerdictKind) -> str:
    """A verdict with its sign: `✓ APPROVED`."""
    return f"{SIGNS[kind]} {word or 'no verdict'}" + (", not counted" if kind is VerdictKind.VOID else "")


@dataclass(frozen=True)
class Handoff:
    """A prompt that was sent to an agent, and its reply."""

    step: str
    role: Role
    round: int
    cycle: int
    sent: float
    """seconds since the epoch, as all times here"""
    prompt_file: str = ""
    carried: tuple[Carried, ...] = ()
    """the parts of the prompt that condensation may shorten, with their sizes"""
    taken: float | None = None
    """when its reply was read, or the run went on without one"""
    reply_file: str = ""
    source: str = ""
    verdict: Judgement | None = None
    tokens: PricedTokens | None = None
    actions: TurnActions | None = None
    """what the agent did in its turn; None where no record tells"""
    violation: GuardViolation | None = None
    """what it changed and may not change"""
    reminders: int = 0
    missed: bool = False
    """the run went on without a reply"""

    @property
    def again(self) -> bool:
        """Whether the role was asked once more in the same step."""
        return self.step.endswith("-again")


@dataclass(frozen=True)
class RunWarning:
    """Something that went wrong, or might have, during a run."""

    at: float
    kind: str
    text: str
    subject: str = ""
    """what it is about, where a later event replaces it"""


def kind_of(role: Role) -> str:
    """What a role does: work, review or test. The values are class names in the style sheets."""
    return "review" if role.reviews else "test" if role is TESTER else "work"
