"""The journal: an append-only file of events. The state decides, the journal is a witness."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from quintet import files
from quintet.loop.journal import (
    Event,
    read_line,
)

LONGEST_LINE: Final = 16_000_000
"""bytes of an event; what is longer was not written by a run, and is passed over in pieces"""


class Journal:
    """An append-only file of events."""

    def __init__(
        self, path: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC), below: Path | None = None
    ) -> None:
        self.path = path
        self._below = below
        """the project; no link in it is written through"""
        self._clock = clock

    def write(self, event: Event) -> Event:
        """Append an event in one write, on a line of its own even after a torn one."""
        stamped = event.model_copy(update={"at": self._clock().isoformat(timespec="milliseconds")})
        line = json.dumps(stamped.model_dump(), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        files.append_line(self.path, line, self._below)
        return stamped

    def read(self) -> Iterator[Event]:
        """Every event that can be read; a torn line is passed over."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            while line := file.readline(LONGEST_LINE):
                if event := read_line(line):
                    yield event
