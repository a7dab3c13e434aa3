"""Whether a process lives, and making sure that it does not."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

KILLED_SECONDS: Final = 1.0
"""how long the kernel may take to end a process that was killed"""


def is_alive(pid: int) -> bool:
    """Whether a process exists; asked of the kernel."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def has_ended(pid: int) -> bool:
    """Whether a process does nothing any more, though nobody may have asked for its exit code yet."""
    if not is_alive(pid):
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return not is_alive(pid)
    return state == "Z"


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped a process: it lives, but does nothing until it is told to go on."""
    command = ["ps", "-o", "stat=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()[:1] in ("T", "t")


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signal a pane's program and its children: it leads a group of its own."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    command = ["ps", "-A", "-o", "pid=", "-o", "ppid="]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return [int(child) for child, parent in zip(listed[::2], listed[1::2], strict=False) if int(parent) == pid]


def end_processes(pids: list[int], seconds: float = 1.0) -> None:
    """Wait for processes that were told to go; whoever stays is killed."""
    left = _until_ended(pids, seconds)
    for pid in left:
        signal_group(pid, signal.SIGKILL)
    _until_ended(left, KILLED_SECONDS)


def _until_ended(pids: list[int], seconds: float) -> list[int]:
    """Wait; who is left."""
    deadline = time.monotonic() + seconds
    left = pids
    while left := [pid for pid in left if not has_ended(pid)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    return left
