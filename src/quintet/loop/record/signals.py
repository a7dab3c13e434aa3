"""Interrupts: the first one stops the run at the next safe point, the second one ends the process at once."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final

ECHO_SECONDS: Final = 0.1
"""within which the same signal is one and the same: `timeout` sends it to the process and to its group"""


class Interrupted(BaseException):
    """The user or the system wants the run to stop: no error, and not to be caught as one."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


class Signals:
    """SIGINT and SIGTERM as an exception that breaks even a hanging request, but never a change of the state."""

    def __init__(self) -> None:
        self._pending: int | None = None
        self._deferred = 0
        self._last = False
        self._heard = (0, float("-inf"))
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Signals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Finish what belongs together before a signal is heard."""
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1
        if self._pending and not self._deferred and not self._last:
            raise Interrupted(self._pending)

    def last_words(self) -> None:
        """From here on the run is ending anyway: nothing interrupts it, and the next signal ends the process."""
        self._last = True

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        before, self._heard = self._heard, (number, time.monotonic())
        if before[0] == number and self._heard[1] - before[1] < ECHO_SECONDS:
            return
        if self._pending or self._last:
            os._exit(128 + number)
        self._pending = number
        if not self._deferred:
            raise Interrupted(number)
