"""What may be tried again in a step before a failure counts: failed turns and lost terminals."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from quintet.api.status import FailureKind
from quintet.config import Settings
from quintet.errors import QuintetError, RunError, TurnFailure
from quintet.loop import journal
from quintet.loop.decide.steps import Ask
from quintet.loop.record.store import RunStore
from quintet.loop.run.clock import Clock
from quintet.program import program

PAUSES: Final = (2.0, 10.0, 60.0)
"""before a failed turn is repeated for the first, second and third time; then it counts, or is a limit"""
LIMIT_PAUSES: Final = (300.0, 900.0, 1800.0)
"""before a turn is repeated whose limit ends nobody knows when; the last of them again and again"""
LIMIT_SLACK: Final = 2.0
"""two clocks never agree"""
LOOK_SECONDS: Final = 15.0
"""the longest sleep: a machine that was suspended notices that the time has come"""
MOST_REPLACEMENTS: Final = 2


@dataclass
class Recovery:
    """Counts the tries of the current step. A run that is started again counts anew: somebody has looked at it."""

    settings: Settings
    clock: Clock
    store: RunStore
    _step: str = ""
    _repeats: int = 0
    _rates: int = 0
    """repetitions after a rate limit"""
    _limits: int = 0
    _waited: float = 0.0
    _replacements: int = 0

    def wait_out(self, step: Ask, failed: TurnFailure) -> None:
        """Let pass what has failed the step's turn; raise where it will not pass, or has not."""
        self._enter(step)
        if failed.kind == FailureKind.LOGIN:
            how = f"log in there ({program()} attach {step.role.name}) or with the CLI by itself, then start again"
            raise TurnFailure(f"{failed}; {how}", failed.kind) from failed
        if failed.kind == FailureKind.MODEL:
            how = f"name another (agents.{step.role.name}.model), then start again"
            raise TurnFailure(f"{failed}; {how}", failed.kind) from failed
        if failed.kind == FailureKind.USAGE_LIMIT:
            self._wait_for_limit(step, failed)
        elif failed.kind == FailureKind.RATE_LIMIT:
            self._wait_for_rate(step, failed)
        elif self._repeats == len(PAUSES):
            raise RunError(f"{failed}; so have {self._repeats} repetitions") from failed
        else:
            self._repeats += 1
            self._pause(step, failed, self._repeats, PAUSES[self._repeats - 1])

    def count_replacement(self, step: Ask, error: QuintetError) -> None:
        """Count that the step's terminal is replaced; raise the error where it was lost too often."""
        self._enter(step)
        if self._replacements == MOST_REPLACEMENTS:
            raise RunError(f"{error}; so were the {MOST_REPLACEMENTS} that replaced it") from error
        self._replacements += 1

    def _enter(self, step: Ask) -> None:
        if step.key != self._step:
            self._step, self._repeats, self._rates, self._limits = step.key, 0, 0, 0
            self._waited, self._replacements = 0.0, 0

    def _pause(self, step: Ask, failed: TurnFailure, number: int, seconds: float) -> None:
        event = {"step": step.key, "role": step.role.name, "kind": failed.kind, "text": str(failed)}
        self.store.emit(journal.TurnFailed.model_validate(event | {"number": number, "pause": round(seconds, 1)}))
        self._sleep_until(self.clock.wall() + seconds)

    def _wait_for_rate(self, step: Ask, failed: TurnFailure) -> None:
        """Too many requests: most often that passes like an overload. One that lasts is a limit."""
        named = failed.resets_at - self.clock.wall() if failed.resets_at is not None else 0.0
        if self._rates == len(PAUSES) or named > PAUSES[-1]:
            self._wait_for_limit(step, failed)
            return
        self._rates += 1
        self._pause(step, failed, self._rates, max(PAUSES[self._rates - 1], named))

    def _wait_for_limit(self, step: Ask, failed: TurnFailure) -> None:
        now = self.clock.wall()
        until = self._end_of_limit(now, failed)
        most = self.settings.max_limit_wait
        if self._waited + until - now > most:
            when = "" if failed.resets_at is None else f" until {_utc(failed.resets_at)}"
            raise RunError(f"{failed}; waiting{when} would take longer than MAX_LIMIT_WAIT ({most:g} s)") from failed
        self._limits += 1
        self._waited += until - now
        told = journal.LimitReached(step=step.key, role=step.role.name, text=str(failed), until=_utc(until))
        self.store.emit(told)
        self._sleep_until(until)

    def _end_of_limit(self, now: float, failed: TurnFailure) -> float:
        pause = LIMIT_PAUSES[min(self._limits, len(LIMIT_PAUSES) - 1)]
        if failed.resets_at is None:
            return now + pause
        end = failed.resets_at + LIMIT_SLACK
        if failed.kind == FailureKind.RATE_LIMIT:
            return max(end, now + pause)  # the short waits that it names have not helped
        if end > now:
            return end
        return now + pause if self._limits else now  # it ended while nobody was here

    def _sleep_until(self, moment: float) -> None:
        while (left := moment - self.clock.wall()) > 0:
            self.store.restore_deleted_files()
            self.clock.sleep(min(left, LOOK_SECONDS))


def _utc(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
