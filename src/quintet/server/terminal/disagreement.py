"""Notices where an agent's screen and its own record disagree on a turn for long."""

import time
from collections.abc import Callable
from typing import Final

from quintet.api.status import AT_REST, TerminalStatus
from quintet.providers.base import TurnRecord

LONG_SECONDS: Final = 15.0
"""a screen lags behind its record, and a record behind its screen; more than that is a disagreement"""


class DisagreementTimer:
    """How long screen and record of a terminal have disagreed on the same turn in the same way."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._current = (0, "")
        self._since = 0.0

    def disagreement(self, turn: int, shown: TerminalStatus, record: TurnRecord | None) -> str | None:
        """Compare what both say now; the words for a disagreement that has lasted, else None."""
        words = _compare(shown, record)
        if not words or (turn, words) != self._current:
            self._current, self._since = (turn, words), self._clock()
        return words if words and self._clock() - self._since >= LONG_SECONDS else None


def _compare(shown: TerminalStatus, record: TurnRecord | None) -> str:
    if record is None:
        return ""
    if record.ended and shown is TerminalStatus.PROCESSING:
        return "its record says that the turn has ended, its screen shows work"
    if not record.ended and shown in AT_REST:
        return "its record says that the turn is running, its screen shows none"
    return ""
