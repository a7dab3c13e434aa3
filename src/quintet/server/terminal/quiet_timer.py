"""How long a pane has put nothing out."""

import time
from collections.abc import Callable


class QuietTimer:
    """The time since the last output."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()

    def restart(self) -> None:
        """There was output."""
        self._since = self._clock()

    def has_lasted(self, seconds: float) -> bool:
        """Whether there was no output for so long."""
        return self._clock() - self._since >= seconds
