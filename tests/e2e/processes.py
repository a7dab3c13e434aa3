"""Finds and ends everything that was started in a home of its own, however it detached itself."""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from tests.eventually import eventually

PROC = Path("/proc")
GRACE = 5.0


def living_in(home: Path) -> dict[int, str]:
    """Process ids and command lines of what has this HOME; daemons keep it, whoever adopted them."""
    wanted = f"HOME={home}".encode()
    return {pid: line for pid, line in _all().items() if wanted in _read(pid, "environ").split(b"\0")}


def end_all_in(home: Path) -> None:
    """End everything that has this HOME: politely, then not. Raise an error if something is left."""
    if _signal_until_gone(home, signal.SIGTERM) and (left := _signal_until_gone(home, signal.SIGKILL)):
        raise RuntimeError(f"still running: {left}")


def _signal_until_gone(home: Path, sign: signal.Signals) -> dict[int, str]:
    """Signal each process once, also those that one starts on its way out; return what is left after a while."""
    signalled: set[int] = set()
    end = time.monotonic() + GRACE

    def look() -> dict[int, str]:
        left = living_in(home)
        signal_all(left.keys() - signalled, sign)
        signalled.update(left)
        return left

    return eventually(look, wanted=lambda left: not left or time.monotonic() > end)


def signal_all(pids: Iterable[int], sign: signal.Signals) -> None:
    """Signals those that have not ended meanwhile."""
    for pid in pids:
        try:
            os.kill(pid, sign)
        except ProcessLookupError:
            continue


def _all() -> dict[int, str]:
    """Every process but this one and what has already ended."""
    if not PROC.is_dir():
        raise RuntimeError("listing processes needs /proc, so these tests run on Linux only")
    pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    lines = {pid: _read(pid, "cmdline") for pid in pids if pid != os.getpid()}
    return {pid: line.replace(b"\0", b" ").decode(errors="replace") for pid, line in lines.items() if line}


def _read(pid: int, name: str) -> bytes:
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""
