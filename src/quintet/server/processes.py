"""Whether a process lives, and making sure that it does not."""

import os
import signal
import time
from pathlib import Path


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


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signal a pane's program and its children: it leads a group of its own."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def end_processes(pids: list[int], seconds: float = 1.0) -> None:
    """Wait for processes that were told to go; whoever stays is killed."""
    deadline = time.monotonic() + seconds
    left = pids
    while left := [pid for pid in left if not has_ended(pid)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    for pid in left:
        signal_group(pid, signal.SIGKILL)
