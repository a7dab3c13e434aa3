"""Simulated time: hours pass in milliseconds, and what is planned for a moment happens then."""

import heapq
import itertools
from collections.abc import Callable

from harness.chaos.sim.moments import Moments

EPOCH = 1_800_000_000.0
"""the time of day at which every simulation begins"""


class Overtime(AssertionError):  # noqa: N818 - reads as what happened
    """A run that should have ended long ago."""


class SimulatedClock:
    """Time passes only while somebody sleeps."""

    def __init__(self, moments: Moments) -> None:
        self.time = 0.0
        self.deadline = float("inf")
        self._moments = moments
        self._plan: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return EPOCH + self.time

    def sleep(self, seconds: float) -> None:
        """Let time pass for the orchestrator."""
        self._moments.check_alive()
        assert seconds > 0, "a loop that does not let time pass"
        self.elapse(seconds)
        if self.time > self.deadline:
            raise Overtime(f"still at work after {self.time:g} simulated seconds")

    def elapse(self, seconds: float) -> None:
        """Let time pass for everybody."""
        end = self.time + seconds
        while self._plan and self._plan[0][0] <= end:
            moment, _, action = heapq.heappop(self._plan)
            self.time = max(self.time, moment)
            with self._moments.of_others():
                action()
        self.time = max(self.time, end)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Plan something."""
        heapq.heappush(self._plan, (self.time + seconds, next(self._number), action))
