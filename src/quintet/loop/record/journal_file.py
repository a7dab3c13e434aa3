"""The journal: an append-only file of events. The state decides, the journal is a witness."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from quintet import files
from quintet.layout import JOURNAL
from quintet.loop.journal import Event
from quintet.loop.record.journal_lines import read_line
from quintet.loop.record.run_record import RunRecord

LONGEST_LINE: Final = 16_000_000
"""bytes of an event; what is longer was not written by a run, and is passed over in pieces"""


class Journal:
    """An append-only file of events."""

    def __init__(
        self, path: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC), record: RunRecord | None = None
    ) -> None:
        self.path = path
        self._record = record
        """of the run; it knows where the journal's copy is"""
        self._clock = clock

    @classmethod
    def of(cls, record: RunRecord) -> "Journal":
        """The journal of a run, which writes its copy along."""
        return cls(record.journal, record=record)

    def write(self, event: Event) -> Event:
        """Append an event in one write, on a line of its own even after a torn one."""
        stamped = event.model_copy(update={"at": self._clock().isoformat(timespec="milliseconds")})
        line = json.dumps(stamped.model_dump(), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        size = files.append_line(self.path, line)
        if self._record:
            self._record.append_copy(JOURNAL, line, size)
        return stamped

    def read(self) -> Iterator[Event]:
        """Every event that can be read; a torn line is passed over."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            while line := file.readline(LONGEST_LINE):
                if event := read_line(line):
                    yield event
