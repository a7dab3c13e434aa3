"""The agent's program: started with pipes, written to without waiting, ended with everything that it has started."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Final

from quintet.providers.acp.process_tree import become_subreaper, end_descendants, reap

_PIECE: Final = 1 << 16
_SET_DEATH_SIGNAL: Final = 1
_KEPT_LINES: Final = 20
"""of what it writes to standard error"""
_LONGEST_LINE: Final = 500
EXIT_SECONDS: Final = 1.0
"""how long it may take to end by itself, once its standard input is closed; the server waits little longer"""


class AgentProcess:
    """One run of the agent's program."""

    def __init__(self, command: Sequence[str]) -> None:
        become_subreaper()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # without the terminal: no tool can draw into the pane or read its keys
            preexec_fn=_die_with_parent(),  # noqa: PLW1509 - the host has no threads
        )
        self.stdin, self.stdout, self.stderr = map(_descriptor, self._streams)
        for descriptor in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(descriptor, False)
        self._unsent: deque[memoryview] = deque()
        self._errors: deque[str] = deque(maxlen=_KEPT_LINES)
        self._torn = ""

    @property
    def _streams(self) -> tuple[IO[bytes], ...]:
        found = (self._process.stdin, self._process.stdout, self._process.stderr)
        return tuple(stream for stream in found if stream is not None)

    @property
    def exit_code(self) -> int | None:
        """How it has ended; None while it runs. Also collects what its tools have left as zombies."""
        for pid, code in reap():
            if pid == self._process.pid:
                self._process.returncode = code
        return self._process.returncode

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def send(self, data: bytes) -> None:
        """Write as much as the pipe takes now, and the rest when `flush` is called."""
        self._unsent.append(memoryview(data))
        self.flush()

    def flush(self) -> None:
        """Go on with what the pipe did not take. Where nobody reads any more, the end of the program tells it."""
        while self._unsent:
            try:
                written = os.write(self.stdin, self._unsent[0][:_PIECE])
            except BlockingIOError:
                return
            except OSError:
                self._unsent.clear()
                return
            self._unsent[0] = self._unsent[0][written:]
            if not self._unsent[0]:
                self._unsent.popleft()

    def read(self) -> bytes | None:
        """What it has written; empty at its end, None where there is nothing just now."""
        return _read(self.stdout)

    def read_errors(self) -> bool:
        """Keep the last lines of its standard error; False at the end of it."""
        data = _read(self.stderr)
        if data:
            *lines, self._torn = (self._torn + data.decode("utf-8", "replace")).split("\n")
            self._torn = self._torn[-_LONGEST_LINE:]
            self._errors.extend(line[:_LONGEST_LINE] for line in lines if line.strip())
        return data != b""

    @property
    def errors(self) -> list[str]:
        """The last lines of its standard error."""
        return [*self._errors, *([self._torn] if self._torn.strip() else [])]

    def wait(self, seconds: float) -> int | None:
        """Give it so long to end by itself; its exit code, or None."""
        deadline = time.monotonic() + seconds
        while self.exit_code is None and time.monotonic() < deadline:
            time.sleep(0.005)
        return self._process.returncode

    def close(self) -> None:
        """Let it end by itself: its standard input is at an end. Then end whatever is left."""
        with suppress(OSError):
            self._streams[0].close()
        self.wait(EXIT_SECONDS)
        self.end()

    def end(self) -> None:
        """End the program and everything that it has started, now."""
        for pid, code in end_descendants():
            if pid == self._process.pid:
                self._process.returncode = code
        for stream in self._streams:
            with suppress(OSError):
                stream.close()


def _descriptor(stream: IO[bytes]) -> int:
    return stream.fileno()


def _read(descriptor: int) -> bytes | None:
    try:
        return os.read(descriptor, _PIECE)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _die_with_parent() -> Callable[[], None] | None:
    """What the new process does first: ask the kernel for its own end where the host is killed."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
