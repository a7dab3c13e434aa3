"""What a run has left running: whatever carries its folder in its environment or its command line."""

import os
from pathlib import Path


def processes_of(root: Path) -> dict[int, str]:
    """The living processes that belong to a folder, with their command lines."""
    found = {}
    wanted = os.fsencode(root)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            environment, command = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z" and (wanted in environment or wanted in command):
            found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def sockets_in(root: Path) -> list[str]:
    """The sockets of tmux servers below a folder."""
    return sorted(path.name for path in root.rglob("*") if path.is_socket())
