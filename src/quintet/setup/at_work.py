"""The projects in which this user has runs at work: one small file for each process, in the user's state directory.

It only says where to look. Whether a run is at work is for the project's lock to say.
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
def at_work(wd: Path) -> Iterator[None]:
    """Leave word of this process's project while it works. A run does not depend on it."""
    word: Path | None = None
    with suppress(OSError, ServerError):
        word = _folder() / str(os.getpid())
        files.write(word, str(wd).encode("utf-8", "surrogateescape"))
    try:
        yield
    finally:
        if word is not None:
            with suppress(OSError):
                word.unlink(missing_ok=True)


def projects() -> list[Path]:
    """The projects of which there is word; that of a process which is gone is removed."""
    found = set()
    for word in (entry for entry in _folder().iterdir() if entry.name.isdecimal()):
        if has_ended(int(word.name)):
            word.unlink(missing_ok=True)
        else:
            found.add(Path(word.read_text(encoding="utf-8", errors="surrogateescape")))
    return sorted(found)


def _folder() -> Path:
    folder = StateFolder().root / "runs"
    make_private(folder)
    return folder
