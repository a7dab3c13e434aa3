"""Processes by their number: whether one lives, when it was started, which ones it has started, and ending them.

psutil asks the kernel, so that it works on Linux, macOS and the BSDs alike.
"""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from quintet.errors import RunError

KILLED_SECONDS: Final = 1.0
"""how long the kernel may take to end a process that was killed"""
PROC: Final = Path("/proc")
HAS_PROC: Final = (PROC / "self" / "stat").exists()
"""on Linux; what is asked often is read there, without what psutil does beside it"""


class Process(NamedTuple):
    """A process that cannot be mistaken for a later one with the same number."""

    pid: int
    started: str
    """when it was started, in the system's own words"""

    @property
    def is_there(self) -> bool:
        """Whether it is this very process that has the number now."""
        return bool(self.started) and start_time(self.pid) == self.started

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, unless another process has the number by now."""
        try:
            if self.is_there:
                os.kill(self.pid, number)
        except ProcessLookupError:
            return
        except PermissionError:
            raise RunError(f"the process {self.pid} is another user's; only that user can stop it") from None


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or is a zombie: it has ended, but its parent has not asked for its exit code."""
    if HAS_PROC:
        return not (words := _stat(pid)) or (words[0] in ("Z", "X") and _has_one_thread(words))
    return _status(pid) in ("", psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


def _has_one_thread(words: list[str]) -> bool:
    """Whether a process has one thread: one whose first thread has ended looks like a zombie, and may have others."""
    return int(words[17]) <= 1 if len(words) > 17 else True  # noqa: PLR2004 - see proc(5)


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal: it exists, but does nothing until it is continued."""
    if HAS_PROC:
        return _stat(pid)[:1] in (["T"], ["t"])
    return _status(pid) in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)


def start_time(pid: int) -> str:
    """When a process was started, as a word that tells it from a later one with the same number; empty if it is gone.

    On Linux these are the clock ticks since the system's start: psutil adds the time of that start, which moves when
    the clock is set.
    """
    if HAS_PROC:
        return words[19] if len(words := _stat(pid)) > 19 else ""  # noqa: PLR2004 - see proc(5)
    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except (psutil.Error, ValueError, OverflowError):
        return ""


def started_at(pid: int) -> float:
    """When a process was started, by the clock of `now_of_starts`; 0 if it is gone."""
    word = start_time(pid) or "0"
    return int(word) / os.sysconf("SC_CLK_TCK") if word.isdecimal() else float(word)


def now_of_starts() -> float:
    """The present by the clock that processes' starts are told by: on Linux, seconds since the system's start."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.time()


def children_of(pid: int) -> list[int]:
    """The processes that a process has started and that still exist."""
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.Error:
        return []


def all_children() -> dict[int, list[int]]:
    """The living processes that each process of the machine has started or adopted, seen in one look."""
    found: dict[int, list[int]] = {}
    for pid in psutil.pids():
        if not has_ended(pid):
            parent = _stat(pid)[1:2] if HAS_PROC else [str(parent_of(pid))]
            for number in parent:  # none where it has ended since
                found.setdefault(int(number), []).append(pid)
    return found


def parent_of(pid: int) -> int:
    """The process that has started a process, or has adopted it; 0 if it is gone."""
    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return 0


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that leads a group, and to its whole group."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def end_groups(pids: list[int], seconds: float = 1.0) -> None:
    """Wait for processes that were told to end, then kill what is left of their groups, the leader or its children."""
    _wait_for_end(pids, seconds)
    for pid in pids:
        signal_group(pid, signal.SIGKILL)
    _wait_for_end(pids, KILLED_SECONDS)


def end_processes(processes: Sequence[psutil.Process], seconds: float) -> None:
    """Ask processes to end, and kill those that do not within so many seconds."""
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in processes:
            with suppress(psutil.Error):  # it has ended meanwhile; psutil knows a later one with its number
                end(process)
        _wait_for_end([process.pid for process in processes], seconds)


def _wait_for_end(pids: list[int], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not all(map(has_ended, pids)) and time.monotonic() < deadline:
        time.sleep(0.005)


def _stat(pid: int) -> list[str]:
    """What Linux tells of a process after its name; nothing where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - twice as fast
            return file.read().rpartition(b")")[2].decode("ascii").split()
    except OSError:
        return []


def _status(pid: int) -> str:
    """The state of a process in psutil's words; empty where there is no such process."""
    try:
        return psutil.Process(pid).status()
    except psutil.AccessDenied:
        return psutil.STATUS_RUNNING
    except (psutil.Error, ValueError, OverflowError):
        return ""
