"""One run per directory."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quintet.errors import RunError
from quintet.loop.responses import TMP, make_tmp

PID_FILE = TMP / "quintet.pid"


@contextmanager
def directory_lock(wd: Path) -> Iterator[None]:
    """Hold the project directory itself: nothing to delete for an agent, and nothing left by a dead process."""
    try:
        descriptor = os.open(wd, os.O_RDONLY)
    except OSError as error:
        raise RunError(f"{wd}: cannot be read ({error.strerror})") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"{wd}: another run is at work here ({_holder(wd)}); wait for it or stop it") from None
        sign(wd)
        yield
    finally:
        os.close(descriptor)


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
