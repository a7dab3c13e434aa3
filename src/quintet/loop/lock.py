"""One run per directory."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from quintet.errors import RunError
from quintet.loop.responses import TMP, make_tmp

PID_FILE = TMP / "quintet.pid"
_TRIES: Final = 10
_PAUSE: Final = 0.02
"""between two tries to get the lock: whoever only looks whether it is held has it for an instant"""


@contextmanager
def directory_lock(wd: Path) -> Iterator[None]:
    """Hold the project directory itself: nothing to delete for an agent, and nothing left by a dead process."""
    try:
        descriptor = os.open(wd, os.O_RDONLY)
    except OSError as error:
        raise RunError(f"{wd}: cannot be read ({error.strerror})") from None
    try:
        tries = 1
        while not _try(descriptor, fcntl.LOCK_EX):
            if tries == _TRIES:
                raise RunError(f"{wd}: another run is at work here ({_holder(wd)}); wait for it or stop it")
            tries += 1
            time.sleep(_PAUSE)
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
    """Leave the process id for a second run to name."""
    try:
        make_tmp(wd)
        (wd / PID_FILE).write_text(f"{os.getpid()}\n", encoding="utf-8")
    except OSError as error:
        raise RunError(f"{wd / PID_FILE}: cannot be written ({error.strerror})") from None


def sign_again(wd: Path) -> None:
    """Put the process id back where an agent has deleted it."""
    if not (wd / PID_FILE).exists():
        sign(wd)


def worker(wd: Path) -> int:
    """The process of the run that is at work in a directory; 0 where there is none.

    The lock is tried only where the process id is that of a living process: a look never keeps a run from its start.
    """
    try:
        pid = int((wd / PID_FILE).read_text(encoding="utf-8"))
        os.kill(pid, 0)
    except (OSError, ValueError, OverflowError) as error:
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
    try:
        return f"process {int((wd / PID_FILE).read_text(encoding='utf-8'))}"
    except (OSError, ValueError):
        return "it has left no process id"
