"""Finds and ends everything that was started in a home of its own, however it detached itself."""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")
GRACE = 5.0
LOOK = 0.05


def living_in(home: Path) -> dict[int, str]:
    """Process ids and command lines of what has this HOME; daemons keep it, whoever adopted them."""
    wanted = f"HOME={home}".encode()
    return {pid: line for pid, line in _all().items() if wanted in _read(pid, "environ").split(b"\0")}


def end_all_in(home: Path) -> None:
    """Ends what has this HOME: politely, then not. Raises where something is left."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + GRACE
        signalled: set[int] = set()
        while (left := living_in(home)) and time.monotonic() < deadline:
            # Looked up anew each time: what is told to end may start something on its way out.
            signal_all(left.keys() - signalled, sign)
            signalled |= left.keys()
            time.sleep(LOOK)
    if left := living_in(home):
        raise RuntimeError(f"still running: {left}")


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
