"""What processes take, by the kernel's own account: memory as the proportional set size, processor time in seconds.

The proportional set size counts a page that n processes share as an nth for each, so that the figures of several
processes can be added up.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_KILO: Final = 1024
MEGA: Final = 1_000_000


def memory(pid: int) -> int:
    """Bytes of a process; 0 where it is gone."""
    with suppress(OSError):
        for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * _KILO
    return 0


def cpu_seconds(pid: int) -> float:
    """Processor time of a process, without that of its children; 0 where it is gone."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def parent(pid: int) -> int:
    """The process that has started a process, or has taken it over; 0 where it is gone."""
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def open_files(pid: int) -> int:
    """How many file descriptors a process has open."""
    with suppress(OSError):
        return len(os.listdir(_PROC / str(pid) / "fd"))  # noqa: PTH208 - only the names are wanted
    return 0


def command_line(pid: int) -> str:
    with suppress(OSError):
        return (_PROC / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").replace("\0", " ")
    return ""


def with_mark(mark: str) -> dict[int, str]:
    """The processes whose command lines name a path of ours, with those lines."""
    pids = [int(entry) for entry in os.listdir(_PROC) if entry.isdecimal()]  # noqa: PTH208
    lines = {pid: command_line(pid) for pid in pids if pid != os.getpid()}
    return {pid: line for pid, line in lines.items() if mark in line}


def files_below(folder: Path) -> int:
    """How many files, sockets and folders there are below a folder."""
    return sum(len(folders) + len(names) for _, folders, names in os.walk(folder))


@dataclass
class Peaks:
    """The most that each process of a group has held, by its number."""

    by_pid: dict[int, int] = field(default_factory=dict)

    def look(self, pids: Iterable[int]) -> None:
        for pid in pids:
            self.by_pid[pid] = max(self.by_pid.get(pid, 0), memory(pid))

    def __len__(self) -> int:
        return len(self.by_pid)

    @property
    def total(self) -> int:
        return sum(self.by_pid.values())


def _stat(pid: int) -> list[str]:
    with suppress(OSError):
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return []
