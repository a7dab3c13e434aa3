"""What a connection may cost before its token is known: any user of the machine can open one.

The server inside a run shares its process, so its connections must leave the run enough descriptors and memory.
"""

import asyncio
import resource
import sys
from functools import cache
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

ADMITTED: Final = "quintet_admitted"
"""the key in a request's scope that says that its sender may use the server"""
LONGEST_HEAD: Final = 16 * 1024 * 1024
"""bytes of a request line with its headers: CAO's clients send the message there"""
MOST_CONNECTIONS: Final = 256
HEAD_SECONDS: Final = 10.0
"""for a request line with its headers to arrive"""
_ALL_HEADS: Final = 2 * LONGEST_HEAD
"""bytes of all requests together that are not complete"""
_SHORT_HEAD: Final = 64 * 1024
"""bytes; so many of each connection need not be counted"""
_MOST_LINES: Final = 500
"""of a request with its headers"""
_ENOUGH_DESCRIPTORS: Final = 4096
_FEWEST_CONNECTIONS: Final = 16


@cache
def reserve_descriptors() -> int:
    """Raise the limit of this process, and return how many connections leave three quarters of it to the run.

    Not to the hard limit where that is a million: programs that the run starts inherit it, and some close each.
    """
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (sys.maxsize if limit == resource.RLIM_INFINITY else limit for limit in limits)
    wanted = min(hard, _ENOUGH_DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, limits[1]))
    return max(_FEWEST_CONNECTIONS, min(MOST_CONNECTIONS, max(soft, wanted) // 4))


class LimitedProtocol(H11Protocol):
    """uvicorn's connection with limits on their number, and on the size and time of what comes before a token.

    uvicorn's own limit counts requests, not connections, and it waits for a request line as long as it takes.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.idle_since = 0.0
        self.head_size = 0
        """bytes of a request line with its headers that is not complete"""
        self._head_lines = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self.idle_since = self.loop.time()
        self._expect_head()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        if self._is_waiting_for_head:
            self._head_lines += data.partition(b"\r\n\r\n")[0].count(b"\n")
            if self._head_lines > _MOST_LINES:  # before h11 makes an object of each
                self.transport.abort()
                return
        super().data_received(data)
        if self._is_waiting_for_head:
            self.head_size += len(data)
            self._expect_head()
            if self.head_size > _SHORT_HEAD:
                self._bound_heads()
        else:
            self._forget_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        super().on_response_complete()

    @property
    def is_busy(self) -> bool:
        """Whether it serves somebody who may use the server; an event stream does so for hours."""
        is_serving = self.cycle is not None and not self.cycle.response_complete
        return is_serving and bool(self.cycle.scope.get(ADMITTED))

    @property
    def _is_waiting_for_head(self) -> bool:
        return self.conn.their_state is h11.IDLE

    def _expect_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _forget_head(self) -> None:
        self.head_size = self._head_lines = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _others(self) -> "list[LimitedProtocol]":
        """All connections that are open, this one included."""
        opened = (one for one in self.connections if isinstance(one, LimitedProtocol))
        return [one for one in opened if not one.transport.is_closing()]

    def _make_room(self) -> None:
        """Close the connection that is idle for longest if there are too many; this one if all others are busy."""
        opened = self._others()
        if len(opened) > reserve_descriptors():
            idle = [one for one in opened if one is not self and not one.is_busy]
            min(idle, key=lambda one: one.idle_since, default=self).transport.abort()

    def _bound_heads(self) -> None:
        """Close the connection with the longest unfinished request if all of them together are too long."""
        opened = self._others()
        if sum(one.head_size for one in opened) > _ALL_HEADS:
            max(opened, key=lambda one: one.head_size).transport.abort()
