"""The runs of a project: finding their folders in `.tmp/` and reading what is in them. Nothing is changed."""

import contextlib
import os
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from quintet.errors import RunError, StateError
from quintet.layout import JOURNAL, TMP, run_folder
from quintet.loop.decide.state import State, Status
from quintet.loop.journal import Event
from quintet.loop.record.journal_file import LONGEST_LINE, Journal
from quintet.loop.record.journal_lines import read_line
from quintet.loop.record.lock import is_locked
from quintet.loop.record.run_record import recorded, recorded_runs
from quintet.loop.record.saved_state import find_state_file
from quintet.loop.record.state_file import load_state
from quintet.program import program
from quintet.roles import ROLES
from quintet.watch.runs.model import GONE, RUNNING, STOPPED, Run, add_events, run_from_events
from quintet.workspace.worktrees import trees_of

_RUN_ID = re.compile(r"\w[\w.-]{0,100}")
_LONGEST_TEXT: Final = 2_000_000
"""characters of a prompt or reply that are shown"""


def run_folders(wd: Path) -> list[Path]:
    """The folders of all runs, the newest first; run ids begin with their time. One with a record may be gone itself.

    What a link leads to belongs to somebody else, and a name that is no run's could be anything.
    """
    try:
        if (wd / TMP).is_symlink():
            return []
        entries = [entry for entry in (wd / TMP).iterdir() if is_run_id(entry.name) and not entry.is_symlink()]
        names = {entry.name for entry in entries if (entry / JOURNAL).is_file()}
    except OSError:
        names = set()
    return [run_folder(wd, name) for name in sorted(names.union(recorded_runs(wd)), reverse=True)]


def project_run_folders(project: Path) -> list[Path]:
    """The folders of all runs of a project, also of those in worktrees; the newest first."""
    found = {folder.name: folder for tree in reversed(trees_of(project)) for folder in run_folders(tree)}
    return [found[name] for name in sorted(found, reverse=True)]


def find_run(wd: Path, name: str | None) -> Path:
    """The folder of a run by its id or the beginning of it; of the newest where none is named."""
    folders = project_run_folders(wd)
    if not folders:
        raise RunError(f"{wd}: there are no runs here; {program()} run starts one")
    if not name:
        return folders[0]
    found = [folder for folder in folders if folder.name.startswith(name)]
    if len(found) != 1:
        what = f"{len(found)} runs begin with" if found else "there is no run"
        raise RunError(f"{what} {name}; there are {', '.join(folder.name for folder in folders[:9])}")
    return found[0]


def read_run(folder: Path) -> Run:
    """The run in a folder."""
    return with_process_status(folder, run_from_events(Journal(recorded(folder) / JOURNAL).read()))


def follow(folder: Path) -> "JournalTail":
    """The journal of the run in a folder, to read while it is being written."""
    return JournalTail(recorded(folder) / JOURNAL)


def with_process_status(folder: Path, run: Run) -> Run:
    """A run with what its journal cannot say.

    A run is GONE where its journal says that it is running but its process is not there: it was killed, or the machine
    went down. A run that has not ended is superseded where another one has begun since.
    """
    if run.status == RUNNING and not has_process(folder, run):
        # a run that has neither all its agents nor any reply of theirs cannot be resumed
        has_begun = len(run.terminals) == len(ROLES) or any(handoff.reply_file for handoff in run.handoffs)
        run = replace(run, status=GONE, resumable=has_begun)
    return replace(run, superseded=not _is_current(folder, run)) if run.status in (GONE, STOPPED) else run


def read_text(folder: Path, name: str) -> str:
    """A prompt or reply from a run's folder, by the name in the journal; empty where it is not there.

    Agents can write into the journal: a name that leads out of the run's folder is not followed.
    """
    for place in dict.fromkeys((recorded(folder), folder)) if name else ():
        with contextlib.suppress(OSError, ValueError):
            root = place.resolve()
            path = (root / name).resolve()
            if path.is_relative_to(root) and path.is_file():
                with path.open(encoding="utf-8", errors="replace") as file:
                    return file.read(_LONGEST_TEXT)
    return ""


def has_process(folder: Path, run: Run) -> bool:
    """Whether the process of a run is there: some process holds the project's lock, and the state is of this run."""
    return run.status == RUNNING and is_locked(folder.parents[1]) and _is_current(folder, run)


def _is_current(folder: Path, run: Run) -> bool:
    """Whether the project's state is of this run."""
    state = read_state(find_state_file(folder.parents[1]))
    if state is None or state.final_status is not Status.RUNNING:
        return run_folders(folder.parents[1])[:1] == [folder]  # it has just begun
    return state.run_id == run.id


def read_state(path: Path) -> State | None:
    """The state of a run from its file; None where there is none, or none that can be read."""
    try:
        return _read_state(path, path.stat().st_mtime_ns)
    except (OSError, StateError):
        return None


@lru_cache(maxsize=4)
def _read_state(path: Path, written: int) -> State | None:  # noqa: ARG001 - read often, and written seldom
    return load_state(path)


def is_run_id(text: str) -> bool:
    return bool(_RUN_ID.fullmatch(text))


@dataclass
class JournalTail:
    """Reads a journal while it is being written: each time what is new, and only whole lines."""

    path: Path
    run: Run = field(default_factory=Run)
    _position: int = 0
    _torn: list[bytes] = field(default_factory=list)
    """the pieces of a line that has not ended yet"""

    def read_new(self) -> list[Event]:
        """The events since the last call; the run is up to date afterwards."""
        try:
            with self.path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._position:  # an agent has deleted it
                    self._position, self._torn, self.run = 0, [], Run()
                file.seek(self._position)
                events = [
                    event
                    for data in iter(partial(file.read, LONGEST_LINE), b"")
                    for line in self._lines(data)
                    if (event := read_line(line))
                ]
        except OSError:
            return []
        self.run = add_events(self.run, events)
        return events

    def _lines(self, data: bytes) -> list[bytes]:
        """The lines that end in a piece; what is too long to be an event is not kept."""
        self._position += len(data)
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._torn, lines[0]])
            self._torn = []
        elif sum(map(len, self._torn)) > LONGEST_LINE:
            self._torn = []
        self._torn.append(rest)
        return lines
