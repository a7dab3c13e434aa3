"""Recovery: what a step may ask of its agent again before a failure counts."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from quintet.api.status import FailureKind
from quintet.config import Settings
from quintet.errors import QuintetError, RunError, TurnFailed
from quintet.loop import journal
from quintet.loop.clock import Clock
from quintet.loop.flow import Ask
from quintet.loop.journal import Event

PAUSES: Final = (2.0, 10.0, 60.0)
"""before a failed turn is repeated for the first, second and third time; then it counts"""
LIMIT_PAUSES: Final = (300.0, 900.0, 1800.0)
"""before a turn is repeated whose limit ends nobody knows when; the last of them again and again"""
LIMIT_SLACK: Final = 2.0
"""two clocks never agree"""
LOOK_SECONDS: Final = 15.0
"""the longest sleep: a machine that was suspended notices that the time has come"""
MOST_REPLACEMENTS: Final = 2


@dataclass
class Recovery:
    """Counts for the current step. A run that is started again counts anew: somebody has looked at it."""

    settings: Settings
    clock: Clock
    emit: Callable[[Event], None]
    tick: Callable[[], None] = lambda: None
    """called while time passes: a chance to put back what an agent may have deleted"""
    _step: str = ""
    _repeats: int = 0
    _limits: int = 0
    _waited: float = 0.0
    _replacements: int = 0

    def wait_out(self, step: Ask, failed: TurnFailed) -> None:
        """Let pass what has failed the step's turn; raise where it will not pass, or has not."""
        self._enter(step)
        if failed.kind == FailureKind.LOGIN:
            raise failed
        if failed.kind == FailureKind.USAGE_LIMIT:
            self._wait_for_limit(step, failed)
            return
        if self._repeats == len(PAUSES):
            raise RunError(f"{failed}; so have {self._repeats} repetitions") from failed
        pause = PAUSES[self._repeats]
        self._repeats += 1
        self.emit(
            journal.TurnFailed(
                step=step.key,
                role=step.role.name,
                kind=failed.kind,
                text=str(failed),
                number=self._repeats,
                pause=pause,
            )
        )
        self._sleep_until(self.clock.wall() + pause)

    def check_replaceable(self, step: Ask, error: QuintetError) -> None:
        """Raise the error where the step's terminal was lost too often."""
        self._enter(step)
        if self._replacements == MOST_REPLACEMENTS:
            raise RunError(f"{error}; so were the {MOST_REPLACEMENTS} that replaced it") from error
        self._replacements += 1

    def _enter(self, step: Ask) -> None:
        if step.key != self._step:
            self._step, self._repeats, self._limits, self._waited, self._replacements = step.key, 0, 0, 0.0, 0

    def _wait_for_limit(self, step: Ask, failed: TurnFailed) -> None:
        now = self.clock.wall()
        until = self._end_of_limit(now, failed.resets_at)
        most = self.settings.max_limit_wait
        if self._waited + until - now > most:
            when = "" if failed.resets_at is None else f" until {_utc(failed.resets_at)}"
            raise RunError(f"{failed}; waiting{when} would take longer than MAX_LIMIT_WAIT ({most:g} s)") from failed
        self._limits += 1
        self._waited += until - now
        told = journal.LimitReached(step=step.key, role=step.role.name, text=str(failed), until=_utc(until))
        self.emit(told)
        self._sleep_until(until)

    def _end_of_limit(self, now: float, resets_at: float | None) -> float:
        if resets_at is not None and resets_at + LIMIT_SLACK > now:
            return resets_at + LIMIT_SLACK
        if resets_at is not None and not self._limits:
            return now  # it ended while nobody was here
        return now + LIMIT_PAUSES[min(self._limits, len(LIMIT_PAUSES) - 1)]

    def _sleep_until(self, moment: float) -> None:
        while (left := moment - self.clock.wall()) > 0:
            self.tick()
            self.clock.sleep(min(left, LOOK_SECONDS))


def _utc(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
