"""One run per directory."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from quintet import files
from quintet.errors import RunError
from quintet.layout import LONGEST_WORD, PID_FILE
from quintet.loop.record.responses import make_tmp
from quintet.processes import PROC, Process, start_time
from quintet.program import program

_TRIES: Final = 10
_PAUSE: Final = 0.02
"""between two tries to get the lock: whoever only looks whether it is held has it for an instant"""


@contextmanager
def directory_lock(wd: Path) -> Iterator[None]:
    """Hold the project directory itself: nothing to delete for an agent, and nothing left by a dead process.

    A run signs, so that others can name it and stop it.
    """
    with _holding(wd):
        sign(wd)
        yield


@contextmanager
def no_run(wd: Path) -> Iterator[None]:
    """Let no run begin in a directory until the block ends; several processes may ask for it at once."""
    with _holding(wd, shared=True):
        yield


@contextmanager
def _holding(wd: Path, *, shared: bool = False) -> Iterator[None]:
    try:
        descriptor = os.open(wd, os.O_RDONLY)
    except OSError as error:
        raise RunError(f"{wd}: cannot be read ({error.strerror})") from None
    try:
        tries = 1
        while not files.try_lock(descriptor, shared=shared):
            if tries == _TRIES:
                raise RunError(f"{wd}: another run is at work here ({_told(wd)}); {program()} stop ends it")
            tries += 1
            time.sleep(_PAUSE)
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
        return not files.try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


def sign(wd: Path) -> None:
    """Leave word of this process, for a second run to name and for `quintet stop` to find."""
    try:
        make_tmp(wd)
        files.write(wd / PID_FILE, f"{os.getpid()} {start_time(os.getpid())}\n", wd)
    except OSError as error:
        raise RunError(f"{error.filename or wd / PID_FILE}: cannot be written ({error.strerror})") from None


def sign_again(wd: Path) -> None:
    """Put the word of this process back where an agent has deleted or changed it."""
    if _signature(wd) != Process(os.getpid(), start_time(os.getpid())):
        sign(wd)


def _signature(wd: Path) -> Process:
    """The process that has signed last; 0 where nobody has."""
    try:
        pid, _, started = files.read(wd / PID_FILE, LONGEST_WORD, wd).decode("ascii").strip().partition(" ")
        return Process(int(pid), started)
    except (OSError, ValueError):
        return Process(0, "")


def find_process(wd: Path) -> Process | None:
    """The process of the run at work in a directory, by its lock and by its word; None where no run is at work."""
    if not is_locked(wd):
        return None
    process = _holder(wd)
    if not process.is_there:
        told = "which process it is cannot be told"
        raise RunError(f"{wd}: a run is at work here, but {told}; stop it with Ctrl-C in its terminal")
    return process


def worker(wd: Path) -> str:
    """Who is at work in a directory, in words; empty where nobody is."""
    return _told(wd) if is_locked(wd) else ""


def _told(wd: Path) -> str:
    pid = _holder(wd).pid
    return f"process {pid}" if pid else "which process it is cannot be told"


def _holder(wd: Path) -> Process:
    """The process that has the lock; 0 where that cannot be told.

    Linux says itself who has it: an agent could write the number of any process into the file that names ours.
    """
    signed = _signature(wd)
    if not (PROC / "self/fdinfo").exists():
        return signed
    pids = dict.fromkeys([signed.pid, *_lock_holders()])
    pid = next((pid for pid in pids if pid > 0 and _holds(pid, wd)), 0)
    return Process(pid, start_time(pid))


def _lock_holders() -> Iterator[int]:
    """All processes that have locked something for themselves alone."""
    with suppress(OSError):
        for line in (PROC / "locks").read_text(encoding="ascii", errors="replace").splitlines():
            _, _, found = line.partition(" WRITE ")
            if found and found.split()[0].isdecimal():
                yield int(found.split()[0])


def _holds(pid: int, wd: Path) -> bool:
    """Whether a process has locked a directory for itself alone, by what Linux tells of its open files."""
    with suppress(OSError):
        wanted, process = wd.stat(), PROC / str(pid)
        for entry in (process / "fd").iterdir():
            with suppress(OSError):  # it was closed in the meantime
                if os.path.samestat(entry.stat(), wanted) and "WRITE" in (process / "fdinfo" / entry.name).read_text():
                    return True
    return False
