"""What came of a run that had something to bear."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

PASSED: Final = "0"
KILLED: Final = "killed"
STOPPED: Final = frozenset({"1", "error"})
"""the exit code of a run that says what is wrong; "error" is one that never came to be a run"""


@dataclass
class Outcome:
    """One plan, carried out."""

    seed: int
    kind: str
    plan: str
    codes: list[str] = field(default_factory=list)
    """how each start ended"""
    steps: int = 0
    """prompts that reached an agent"""
    violations: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    skipped: str = ""
    """why it could not be tried here"""

    @property
    def passed(self) -> bool:
        return bool(self.codes) and self.codes[-1] == PASSED

    @property
    def stopped(self) -> bool:
        """Whether a start ended with a clear error."""
        return bool(STOPPED & set(self.codes))

    def tell(self) -> str:
        """Everything that helps to understand it."""
        return "\n".join([self.plan, *(f"  {line}" for line in self.said), *self._judgement()])

    def _judgement(self) -> Sequence[str]:
        ends = f"starts ended with: {', '.join(self.codes) or self.skipped}"
        return [ends, *(f"VIOLATION: {text}" for text in self.violations)]
