"""The projects in which this user has running runs: one small file for each process, in the user's state directory.

The files only say where to look; whether a run is running is decided by the project's lock.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from quintet import files
from quintet.errors import ServerError
from quintet.processes import has_ended
from quintet.server.state_folder import StateFolder, make_private


@contextmanager
def registered(project: Path) -> Iterator[None]:
    """List a project as this process's while the block runs. A run starts also where that fails."""
    entry: Path | None = None
    with suppress(OSError, ServerError):
        entry = _folder() / str(os.getpid())
        files.write(entry, str(project).encode("utf-8", "surrogateescape"))
    try:
        yield
    finally:
        if entry is not None:
            with suppress(OSError):
                entry.unlink(missing_ok=True)


def running_projects() -> list[Path]:
    """The projects that are listed; an entry whose process has ended is removed."""
    found = set()
    for entry in (path for path in _folder().iterdir() if path.name.isdecimal()):
        if has_ended(int(entry.name)):
            entry.unlink(missing_ok=True)
        else:
            found.add(Path(entry.read_text(encoding="utf-8", errors="surrogateescape")))
    return sorted(found)


def _folder() -> Path:
    folder = StateFolder().root / "runs"
    make_private(folder)
    return folder
