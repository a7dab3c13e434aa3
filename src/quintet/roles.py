"""The five roles: one table, and no other place that spells a role's name."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """A stretch of the loop, named after the agent that does its work."""

    ANALYST = "analyst"
    PROGRAMMER = "programmer"
    TESTER = "tester"


@dataclass(frozen=True)
class Role:
    """One agent: its terminal, the output that it writes, and where in the loop it acts."""

    name: str
    """the terminal's name, in the config and in the state file"""
    output: str
    """the name of its prompt and of its output"""
    response_file: str
    phase: Phase
    profile: str
    reviews: bool = False
    may_change: tuple[str, ...] = ()
    """globs of files in the project"""
    may_commit: bool = False
    """whether it may also change the index, commits, branches and tags"""

    def __str__(self) -> str:
        return self.name

    @property
    def label(self) -> str:
        """The role as people read it."""
        return in_words(self.name)

    @property
    def judges(self) -> bool:
        """Whether it judges what others have done."""
        return self.reviews or self.phase is Phase.TESTER


def in_words(name: str) -> str:
    """A role's name as people read it: `peer_programmer` is the peer programmer."""
    return name.replace("_", " ")


ANALYST: Final = Role(
    "analyst", "analyst", "analyst_summary.md", Phase.ANALYST, "system_analyst", may_change=("openspec/**",)
)
PEER_ANALYST: Final = Role(
    "peer_analyst", "analyst_review", "analyst_review.md", Phase.ANALYST, "peer_system_analyst", reviews=True
)
PROGRAMMER: Final = Role(
    "programmer",
    "programmer",
    "programmer_summary.md",
    Phase.PROGRAMMER,
    "programmer",
    may_change=("**",),
    may_commit=True,
)
PEER_PROGRAMMER: Final = Role(
    "peer_programmer",
    "programmer_review",
    "programmer_review.md",
    Phase.PROGRAMMER,
    "peer_programmer",
    reviews=True,
)
TESTER: Final = Role("tester", "tester", "test_result.md", Phase.TESTER, "tester")

ROLES: Final = (ANALYST, PEER_ANALYST, PROGRAMMER, PEER_PROGRAMMER, TESTER)
BY_NAME: Final = {role.name: role for role in ROLES}

WORKER: Final = {role.phase: role for role in ROLES if not role.reviews}
"""who does the work of a phase"""
REVIEWER: Final = {role.phase: role for role in ROLES if role.reviews}
"""who reviews it; nobody reviews the tester"""
