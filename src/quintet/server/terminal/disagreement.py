"""Whether the two readers of an agent are at odds: its screen and its own record, on one turn and for long."""

import time
from collections.abc import Callable
from typing import Final

from quintet.api.status import AT_REST, TerminalStatus
from quintet.providers.base import TurnRecord

LONG_SECONDS: Final = 15.0
"""a screen lags behind its record, and a record behind its screen; more than that is a disagreement"""


class DisagreementTimer:
    """Follows what both say of the turns of a terminal."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._words = ""
        self._since = 0.0
        self._turn = 0

    def see(self, turn: int, shown: TerminalStatus, record: TurnRecord | None) -> str | None:
        """What they say at this moment; the answer tells of a disagreement that has lasted."""
        words = _disagreement(shown, record)
        if not words or (turn, words) != (self._turn, self._words):
            self._turn, self._words, self._since = turn, words, self._clock()
        return words if words and self._clock() - self._since >= LONG_SECONDS else None


def _disagreement(shown: TerminalStatus, record: TurnRecord | None) -> str:
    if record is None:
        return ""
    if record.ended and shown is TerminalStatus.PROCESSING:
        return "its record says that the turn has ended, its screen shows work"
    if not record.ended and shown in AT_REST:
        return "its record says that the turn is running, its screen shows none"
    return ""
