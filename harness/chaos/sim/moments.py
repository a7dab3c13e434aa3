"""The moments at which a process touches the world: each can be its last."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Killed(BaseException):
    """The orchestrator is gone, as after SIGKILL: nobody catches this, and it touches nothing any more."""


class Moments:
    """Counts what the orchestrator does to its disk and its server, and strikes at a planned number."""

    def __init__(self) -> None:
        self.count = 0
        self.dead = False
        self.log: list[str] = []
        self.planned: dict[int, Callable[[], None]] = {}
        """what happens to the world right before the moment of this number"""
        self._watching = False

    @property
    def watching(self) -> bool:
        """Whether it is the orchestrator that acts: agents and the threads of a clean-up are not counted."""
        return self._watching and threading.current_thread() is threading.main_thread()

    @contextmanager
    def of_a_process(self) -> Iterator[None]:
        """Within this a process lives; whatever killed an earlier one is over."""
        self.dead, self._watching = False, True
        try:
            yield
        finally:
            self._watching = False

    @contextmanager
    def of_others(self) -> Iterator[None]:
        """Within this somebody else acts."""
        before, self._watching = self._watching, False
        try:
            yield
        finally:
            self._watching = before

    def pass_by(self, what: str) -> None:
        """One more moment; raises where it is the last."""
        if not self.watching:
            return
        self.check_alive()
        self.count += 1
        self.log.append(what)
        strike = self.planned.pop(self.count, None)
        if strike is not None:
            with self.of_others():
                strike()
            self.check_alive()

    def check_alive(self) -> None:
        if self.dead:
            raise Killed

    def kill(self) -> None:
        """The process dies at its next breath."""
        self.dead = True
