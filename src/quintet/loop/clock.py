"""Time as a thing that is passed in, so that hours of waiting are tested in milliseconds."""

import time
from typing import Protocol


class Clock(Protocol):
    """A clock that only goes forward, and a way to let it."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class RealClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
