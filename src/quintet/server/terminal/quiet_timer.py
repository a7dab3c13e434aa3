"""How long a pane has been silent."""

import time
from collections.abc import Callable


class QuietTimer:
    """Begins anew with everything that the pane puts out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()

    def end(self) -> None:
        """The pane has put something out."""
        self._since = self._clock()

    def lasts(self, seconds: float) -> bool:
        """Whether it has lasted that long."""
        return self._clock() - self._since >= seconds
