"""What has happened, for those who watch: a bounded memory and the streams that read from it."""

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
KEEPALIVE_SECONDS: Final = 15.0
_NUMBER: Final = re.compile("[0-9]{1,18}")
LINGER_SECONDS: Final = 60.0
"""how long after the last watcher has gone the terminals are still watched, so that it can come back"""


@dataclass(frozen=True)
class Event:
    """One thing that happened."""

    number: int
    kind: str
    data: dict[str, Any]


class EventLog:
    """The memory. Numbers begin anew with each server, so an id also names the server's life."""

    def __init__(self) -> None:
        self.life = secrets.token_hex(4)
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._next = 1
        self._news = asyncio.Event()
        self._watchers = 0
        self._left = float("-inf")
        self._closed = False

    @property
    def watched(self) -> bool:
        """Whether somebody looks, or has just looked away."""
        return self._watchers > 0 or time.monotonic() - self._left < LINGER_SECONDS

    def add(self, kind: str, **data: Any) -> None:
        """Remember and pass on."""
        self._kept.append(Event(self._next, kind, {**data, "time": round(time.time(), 3)}))
        self._next += 1
        self._wake()

    def close(self) -> None:
        """End every stream."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def resume_point(self, last_id: str | None) -> int | None:
        """The number after which a reader goes on; None where it has missed something and must start afresh."""
        life, _, number = (last_id or "").partition("-")
        if life != self.life or not _NUMBER.fullmatch(number):
            return None
        oldest = self._kept[0].number if self._kept else self._next
        return int(number) if oldest - 1 <= int(number) < self._next else None

    async def stream(
        self, last_id: str | None, snapshot: Callable[[], Awaitable[dict[str, Any]]], *, follow: bool
    ) -> AsyncIterator[str]:
        """Server-sent events: what a returning reader has missed, else a snapshot; then what comes.

        What happens while the snapshot is taken comes after it: rather told twice than lost.
        """
        point = self.resume_point(last_id)
        self._watchers += 1
        try:
            if point is None:
                point = self._next - 1
                yield self._frame(point, "snapshot", await snapshot())
            while True:
                news = self._news
                for event in [event for event in self._kept if event.number > point]:
                    yield self._frame(event.number, event.kind, event.data)
                    point = event.number
                if self._closed or not follow:
                    return
                try:
                    async with asyncio.timeout(KEEPALIVE_SECONDS):
                        await news.wait()
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._watchers -= 1
            self._left = time.monotonic()

    def _frame(self, number: int, kind: str, data: dict[str, Any]) -> str:
        return f"id: {self.life}-{number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"
