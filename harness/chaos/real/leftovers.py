"""What a run has left running: whatever carries its folder in its environment or its command line."""

import os
from pathlib import Path

import psutil

from quintet.processes import has_ended


def processes_of(root: Path | str) -> dict[int, str]:
    """The living processes that belong to a folder, with their command lines."""
    found = {}
    for process in psutil.process_iter():
        try:
            command, environment = process.cmdline(), process.environ().values()
        except (psutil.Error, OSError):
            continue
        is_other = process.pid != os.getpid() and not has_ended(process.pid)
        if is_other and any(str(root) in text for text in (*command, *environment)):
            found[process.pid] = " ".join(command)
    return found


def sockets_in(root: Path) -> list[str]:
    """The sockets of tmux servers below a folder."""
    return sorted(path.name for path in root.rglob("*") if path.is_socket())
