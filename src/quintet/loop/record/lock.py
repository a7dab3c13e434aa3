"""One run per directory."""

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from quintet import files
from quintet.errors import RunError
from quintet.layout import PID_FILE
from quintet.loop.record.responses import make_tmp
from quintet.program import program

_TRIES: Final = 10
_PAUSE: Final = 0.02
"""between two tries to get the lock: whoever only looks whether it is held has it for an instant"""


class Process(NamedTuple):
    """A process that cannot be mistaken for a later one with the same number."""

    pid: int
    started: str
    """when it was started, in the system's own words"""

    @property
    def is_there(self) -> bool:
        """Whether it is this very process that has the number now."""
        return bool(self.started) and start_of(self.pid) == self.started


def start_of(pid: int) -> str:
    """When a process was started; empty where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return fields[19]
    except (OSError, IndexError):
        if Path("/proc/self/stat").exists():
            return ""
    # ps tells whole seconds in words: fine to compare, and all that macOS has
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    told = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return "-".join(told.stdout.split())


@contextmanager
def directory_lock(wd: Path, *, signed: bool = True) -> Iterator[None]:
    """Hold the project directory itself: nothing to delete for an agent, and nothing left by a dead process.

    A run signs, so that others can name it and stop it.
    """
    try:
        descriptor = os.open(wd, os.O_RDONLY)
    except OSError as error:
        raise RunError(f"{wd}: cannot be read ({error.strerror})") from None
    try:
        tries = 1
        while not _try(descriptor, fcntl.LOCK_EX):
            if tries == _TRIES:
                raise RunError(f"{wd}: another run is at work here ({_holder(wd)}); {program()} stop ends it")
            tries += 1
            time.sleep(_PAUSE)
        if signed:
            sign(wd)
        yield
    finally:
        os.close(descriptor)


def is_locked(wd: Path) -> bool:
    """Whether a run is at work in a directory. The answer is the lock's own: a killed process does not keep it."""
    try:
        descriptor = os.open(wd, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _try(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def sign(wd: Path) -> None:
    """Leave word of this process, for a second run to name and for `quintet stop` to find."""
    try:
        make_tmp(wd)
        files.write(wd / PID_FILE, f"{os.getpid()} {start_of(os.getpid())}\n", wd)
    except OSError as error:
        raise RunError(f"{error.filename or wd / PID_FILE}: cannot be written ({error.strerror})") from None


def sign_again(wd: Path) -> None:
    """Put the word of this process back where an agent has deleted or changed it."""
    if _signature(wd).pid != os.getpid():
        sign(wd)


def _signature(wd: Path) -> Process:
    """The process that has signed last; 0 where nobody has."""
    try:
        pid, _, started = (wd / PID_FILE).read_text(encoding="utf-8").strip().partition(" ")
        return Process(int(pid), started)
    except (OSError, ValueError):
        return Process(0, "")


def find_process(wd: Path) -> Process | None:
    """The process of the run at work in a directory, by its lock and by its word; None where no run is at work."""
    if not is_locked(wd):
        return None
    process = _signature(wd)
    if not process.is_there:
        told = f"{PID_FILE} does not name its process"
        raise RunError(f"{wd}: a run is at work here, but {told}; stop it with Ctrl-C in its terminal")
    return process


def worker(wd: Path) -> int:
    """The process of the run that is at work in a directory; 0 where there is none.

    The lock is tried only where the process id is that of a living process: a look never keeps a run from its start.
    """
    pid = _signature(wd).pid
    try:
        if pid <= 0:
            return 0
        os.kill(pid, 0)
    except (OSError, OverflowError) as error:
        if not isinstance(error, PermissionError):
            return 0
    try:
        descriptor = os.open(wd, os.O_RDONLY)
    except OSError:
        return 0
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return pid
    finally:
        os.close(descriptor)
    return 0


def _holder(wd: Path) -> str:
    pid = _signature(wd).pid
    return f"process {pid}" if pid else "it has left no process id"
