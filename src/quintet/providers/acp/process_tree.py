"""Everything that a program has started: found and ended, with the standard library alone."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_SET_CHILD_SUBREAPER: Final = 36
_ASKED_SECONDS: Final = 0.2
"""how long processes may take to end when they are asked to; tmux's server kills the host soon after"""
_KILLED_SECONDS: Final = 2.0


def become_subreaper() -> None:
    """Adopt what the agent's tools cut loose, so that it can be found; only Linux can do that."""
    _older()
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)


def reap() -> Iterator[tuple[int, int]]:
    """The children that have ended, each with its exit code: negative where a signal ended it."""
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found[0], os.waitstatus_to_exitcode(found[1])


def end_descendants() -> list[tuple[int, int]]:
    """End all processes that were started below this one: ask them first, then kill. Return those that were its own."""
    ended: list[tuple[int, int]] = []
    _send(signal.SIGTERM)
    _wait(ended, _ASKED_SECONDS)
    deadline = time.monotonic() + _KILLED_SECONDS
    while _send(signal.SIGKILL) and time.monotonic() < deadline:
        _wait(ended, 0.02)
    ended += reap()
    return ended


def _send(number: signal.Signals) -> bool:
    found = _started()
    for pid in found:
        with suppress(OSError):
            os.kill(pid, number)
    return bool(found)


def _wait(ended: list[tuple[int, int]], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended += reap()
        if not _started():
            return
        time.sleep(0.005)


@cache
def _older() -> frozenset[int]:
    """The children from before the first agent, such as the sandbox's way to the network, which later agents need."""
    return frozenset(_below(os.getpid()))


def _started() -> list[int]:
    return [pid for pid in descendants(os.getpid()) if pid not in _older()]


def descendants(root: int) -> list[int]:
    """The processes below one, whatever their groups and sessions; zombies are left out.

    Where none is found it looks again: one whose parent ended during the first look was below nobody then.
    """
    return _below(root) or _below(root)


def _below(root: int) -> list[int]:
    children: defaultdict[int, list[int]] = defaultdict(list)
    for pid, parent in _parents():
        children[parent].append(pid)
    found, todo = [], [root]
    while todo:
        below = children[todo.pop()]
        found += below
        todo += below
    return found


def _parents() -> Iterator[tuple[int, int]]:
    """Every process with its parent."""
    if not (_PROC / "self" / "stat").exists():
        yield from _parents_by_ps()
        return
    for name in os.listdir(_PROC):  # noqa: PTH208 - names are enough, thousands of times
        if name.isdecimal():
            with suppress(OSError, ValueError, IndexError):
                state, parent = (_PROC / name / "stat").read_bytes().rpartition(b")")[2].split()[:2]
                if state not in (b"Z", b"X"):
                    yield int(name), int(parent)


def _parents_by_ps() -> Iterator[tuple[int, int]]:
    with subprocess.Popen(["ps", "-A", "-o", "pid=,ppid=,stat="], stdout=subprocess.PIPE) as listing:
        told = listing.communicate()[0].decode("ascii", "replace")
    for line in told.splitlines():
        pid, parent, state = line.split(None, 2)
        if not state.startswith("Z") and int(pid) != listing.pid:
            yield int(pid), int(parent)
