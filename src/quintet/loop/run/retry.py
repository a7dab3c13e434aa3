"""Trying again after a fault of the terminal server that may pass."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from quintet.errors import PassingFault
from quintet.loop.run.clock import Clock

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
T = TypeVar("T")


@dataclass
class Backoff:
    """A pause that doubles with every failure in a row."""

    pause: float = 0.0
    """0: the last try did not fail"""

    def failed(self) -> float:
        """The pause before the next try."""
        self.pause = min(max(2 * self.pause, FIRST_PAUSE), LONGEST_PAUSE)
        return self.pause

    def succeeded(self) -> None:
        """Forget the failures."""
        self.pause = 0.0


def retry(
    call: Callable[[], T], clock: Clock, seconds: float, on_fault: Callable[[PassingFault], None] = lambda _: None
) -> T:
    """Repeat a call until it succeeds; raise its fault when the seconds are up. `on_fault` hears of the first one."""
    deadline, backoff = clock.now() + seconds, Backoff()
    while True:
        try:
            return call()
        except PassingFault as fault:
            if not backoff.pause:
                on_fault(fault)
            if clock.now() + backoff.failed() > deadline:
                raise
            clock.sleep(backoff.pause)
