"""Time as a thing that is passed in, so that hours of waiting are tested in milliseconds."""

import time
from typing import Protocol


class Clock(Protocol):
    """A clock that only goes forward, and a way to let it."""

    def now(self) -> float: ...

    def wall(self) -> float:
        """The time of day, in seconds since the epoch: what others mean when they name a time."""
        ...

    def sleep(self, seconds: float) -> None: ...


class RealClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
