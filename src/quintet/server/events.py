"""The events of a server: a bounded log, and the streams that pass them on to watchers."""

import asyncio
import json
import re
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

KEPT: Final = 2000
"""events that a watcher which comes back can still get"""
KEEPALIVE_SECONDS: Final = 15.0
_NUMBER: Final = re.compile("[0-9]{1,18}")
LINGER_SECONDS: Final = 60.0
"""how long after the last watcher has gone the terminals are still watched, so that it can come back"""


@dataclass(frozen=True)
class ServerEvent:
    """One event, for instance that the status of a terminal has changed."""

    number: int
    kind: str
    data: dict[str, Any]


class EventLog:
    """The last events. Numbers begin at 1 with each start of a server, so an id also names the start."""

    def __init__(self) -> None:
        self.start_id = secrets.token_hex(4)
        self._kept: deque[ServerEvent] = deque(maxlen=KEPT)
        self._next = 1
        self._added = asyncio.Event()
        self._watchers = 0
        self._left_at = float("-inf")
        self._closed = False

    @property
    def watched(self) -> bool:
        """Whether there is a watcher, or was one a moment ago."""
        return self._watchers > 0 or time.monotonic() - self._left_at < LINGER_SECONDS

    def add(self, kind: str, **data: Any) -> None:
        """Add an event, and pass it on to all watchers."""
        self._kept.append(ServerEvent(self._next, kind, {**data, "time": round(time.time(), 3)}))
        self._next += 1
        self._wake()

    def close(self) -> None:
        """End every stream."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        added, self._added = self._added, asyncio.Event()
        added.set()

    def resume_point(self, last_id: str | None) -> int | None:
        """The number after which a watcher goes on; None where it has missed something and needs a snapshot."""
        start_id, _, number = (last_id or "").partition("-")
        if start_id != self.start_id or not _NUMBER.fullmatch(number):
            return None
        oldest = self._kept[0].number if self._kept else self._next
        return int(number) if oldest - 1 <= int(number) < self._next else None

    async def stream(
        self, last_id: str | None, snapshot: Callable[[], Awaitable[dict[str, Any]]], *, follow: bool
    ) -> AsyncIterator[str]:
        """Server-sent events: what a watcher that comes back has missed, else a snapshot; then all that follow.

        Events that are added while the snapshot is taken come after it: rather twice than not at all.
        """
        point = self.resume_point(last_id)
        self._watchers += 1
        try:
            if point is None:
                point = self._next - 1
                yield self._frame(point, "snapshot", await snapshot())
            while True:
                added = self._added
                for event in [event for event in self._kept if event.number > point]:
                    yield self._frame(event.number, event.kind, event.data)
                    point = event.number
                if self._closed or not follow:
                    return
                try:
                    async with asyncio.timeout(KEEPALIVE_SECONDS):
                        await added.wait()
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._watchers -= 1
            self._left_at = time.monotonic()

    def _frame(self, number: int, kind: str, data: dict[str, Any]) -> str:
        return f"id: {self.start_id}-{number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"
