"""Run a program, and end all that it has started as soon as it ends, also what has cut itself loose.

A script of its own, with the standard library alone: `command_before` is what stands before the program's own words.
Only Linux lets a process adopt the orphans below it.
"""

import ctypes
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from typing import Final

NAME: Final = "quintet-super"
"""of its process, as the kernel tells it"""
COMMAND: Final = "command"
"""it ends with whoever has started it, and at SIGTERM"""
PANE: Final = "pane"
"""signals are for the program, which decides when to end"""
_SET_DEATH_SIGNAL: Final = 1
_SET_NAME: Final = 15
_SET_CHILD_SUBREAPER: Final = 36
_SECONDS: Final = 5.0
"""how long to kill processes that start others all the time"""
_FAILED: Final = 125
_NOT_FOUND: Final = 127
_IGNORED: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


def command_before(kind: str) -> list[str]:
    """What stands before the words of a program that is to be supervised; nothing where the system cannot do it."""
    return [sys.executable, "-I", "-S", __file__, kind] if sys.platform.startswith("linux") else []


class _Ended(BaseException):
    """SIGTERM has come."""


def _end(*_: object) -> None:
    raise _Ended


def main(kind: str, words: list[str]) -> int:
    """Run the program; its exit code, or the end by the signal that has ended it."""
    prctl, starter = ctypes.CDLL(None).prctl, os.getppid()
    prctl(_SET_CHILD_SUBREAPER, 1)
    prctl(_SET_NAME, NAME.encode())
    ends = kind == COMMAND
    signal.signal(signal.SIGTERM, _end if ends else signal.SIG_IGN)
    try:
        if ends:
            prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)
            if os.getppid() != starter:  # it has ended before this
                return _FAILED
        status = _run(words, prctl)
    except _Ended:
        status = _FAILED << 8
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not _end_all():
        return _FAILED
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL) if os.WTERMSIG(status) != signal.SIGKILL else None
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def _run(words: list[str], prctl: "ctypes._NamedFuncPointer") -> int:
    """Start the program and wait for it; orphans are reaped as they end."""
    program = os.fork()
    if program == 0:
        prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        try:
            os.execvp(words[0], words)  # noqa: S606
        except OSError as error:
            os.write(2, f"{words[0]}: {error.strerror}\n".encode("utf-8", "surrogateescape"))
        os._exit(_NOT_FOUND)
    for number in _IGNORED:  # only now: what is ignored would stay so in the program
        signal.signal(number, signal.SIG_IGN)
    while True:
        found, status = os.waitpid(-1, 0)
        if found == program:
            return status


def _end_all() -> bool:
    """Kill the children of this process until none is left: those of one that is killed become its own."""
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        if time.monotonic() > deadline:
            return False
        for pid in _children():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _children() -> list[int]:
    found, own = [], str(os.getpid()).encode()
    for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - names are enough
        with suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb", buffering=0) as file:  # noqa: PTH123
            if file.read().rpartition(b")")[2].split()[1] == own:
                found.append(int(name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
