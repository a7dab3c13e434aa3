"""Following a file that another program appends to: each line is read once, however long the file has become."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from quintet import files

CHUNK: Final = 1 << 20
LONGEST_LINE: Final = 64 << 20
LARGEST_FILE: Final = 1 << 30
"""bytes; what has more is no record, and nobody reads on"""
State = TypeVar("State")


class Follower(Generic[State]):
    """A fold over the lines of a growing file. A torn line waits for its end; a file that was cut is read again.

    The agent can write to the file: only a regular file is read, and below `below` none behind a link.
    """

    def __init__(
        self,
        path: Path,
        begin: State,
        fold: Callable[[State, int, bytes], State],
        since: int = 0,
        below: Path | None = None,
    ) -> None:
        self.path, self.below = path, below
        self.since = since
        """the position of the first line that counts"""
        self._begin, self._fold = begin, fold
        self._restart(None)

    def _restart(self, file: tuple[int, int] | None) -> None:
        self._state = self._begin
        self._file = file
        self._start, self._held = self.since, 0
        self._torn: list[bytes] = []

    def read(self) -> State:
        """Take in what is new."""
        try:
            with files.reading(self.path, self.below) as file:
                found = os.fstat(file.fileno())
                if self._file != (found.st_dev, found.st_ino) or found.st_size < self._start + self._held:
                    self._restart((found.st_dev, found.st_ino))
                if found.st_size > LARGEST_FILE:
                    return self._state
                file.seek(self._start + self._held)
                while self._held < LONGEST_LINE and (chunk := file.read(CHUNK)):
                    self._take(chunk)
        except OSError:
            pass  # not there yet, or gone: what was read still stands
        return self._state

    def _take(self, chunk: bytes) -> None:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line = b"".join([*self._torn, end])
            self._state = self._fold(self._state, self._start, line)
            self._start += len(line) + 1
            self._torn, self._held = [], 0
        if rest:
            self._torn.append(rest)
            self._held += len(rest)


def size_of(path: Path) -> int:
    """How long a regular file is; 0 where there is none."""
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
