"""The checks of a run as people look at them, and what its PASS rests on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quintet.loop import journal
from quintet.loop.decide.state import When

VERIFIED: Final = "verified"
"""what a PASS rests on that checks have confirmed"""
ALONE: Final = "on the tester's word alone"


@dataclass(frozen=True)
class CheckRun:
    """A check that was run."""

    round: int
    when: str
    title: str
    exit_code: int
    file: str = ""
    """its output"""

    @property
    def failed_round(self) -> bool:
        """Whether its round has failed by it; at the start a check has to fail."""
        return self.exit_code != 0 and self.when != When.START

    @property
    def when_words(self) -> str:
        words = {When.START.value: "before anything was done", When.BEFORE_TEST.value: "before the test"}
        return words.get(self.when, "after the tester's PASS")


def check_run(event: journal.Verified | journal.Checked) -> CheckRun:
    """The check that an event tells of."""
    when = event.when if isinstance(event, journal.Checked) else When.AFTER_TEST
    return CheckRun(event.round, when, event.command, event.exit_code, event.file)


def verified_words(checks: Mapping[str, int]) -> str:
    """Checks with their exit codes: `make test` (exit code 0)."""
    return ", ".join(f"{title} (exit code {code})" for title, code in checks.items())


def ground_words(checks: Mapping[str, int]) -> str:
    """What a PASS rests on, after a comma."""
    return f"verified by {verified_words(checks)}" if checks else ALONE
