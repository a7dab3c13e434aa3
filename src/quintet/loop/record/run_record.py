"""What Quintet keeps of its runs in the user's state directory, where agents have nothing to do.

This is what a run goes by. The files below `.tmp/` are copies of it, for people and tools.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from quintet import files
from quintet.errors import RunError
from quintet.layout import JOURNAL, LONGEST_WORD, PROMPTS, STATE, record_folder, run_folder, user_state_folder

PROJECT: Final = "project"
"""the file in a run's record that names its project"""


class RunRecord:
    """The record of one run. Every file of it has the same name in the archive, where its copy is."""

    def __init__(self, wd: Path, run_id: str) -> None:
        self.wd, self.run_id = wd, run_id
        self.folder, self.archive = record_folder(run_id), run_folder(wd, run_id)
        self._seen: tuple[int, ...] = (-1,)

    @property
    def state(self) -> Path:
        return self.folder / STATE

    @property
    def journal(self) -> Path:
        return self.folder / JOURNAL

    @property
    def is_known(self) -> bool:
        """Whether there is a record of this run, and it is of this project."""
        return _project_of(self.folder) == self.wd

    @property
    def is_taken(self) -> bool:
        """Whether a run of another project has the same name, as in a copy of that project."""
        return _project_of(self.folder) not in (None, self.wd)

    def open(self) -> None:
        """Make the folder. A run that comes from elsewhere brings along what its archive has."""
        try:
            for folder in (user_state_folder(), self.folder.parent, self.folder):
                files.make_folder(folder)
            if not self.is_known:
                self._adopt()
                files.write(self.folder / PROJECT, os.fsencode(self.wd))
        except OSError as error:
            raise RunError(f"{error.filename or self.folder}: cannot be written ({error.strerror})") from None

    def move_to(self, project: Path) -> None:
        """Let the run belong to another folder: a copy of its archive is there before the record says so."""
        target = run_folder(project, self.run_id)
        try:
            for path in sorted(self.archive.rglob("*")):
                if path.is_file() and not path.is_symlink():
                    with files.reading(path, self.wd) as file:
                        files.copy(file, target / path.relative_to(self.archive), project)
            if self.is_known:
                files.write(self.folder / PROJECT, os.fsencode(project), durable=True)
        except OSError as error:
            raise RunError(f"{error.filename or target}: cannot be copied ({error.strerror})") from None

    def write(self, name: Path | str, content: str | bytes) -> Path:
        """Write a file and its copy; where the copy is."""
        target = self.archive / name
        files.write(self.folder / name, content)
        files.make_folder(target.parent, self.wd)
        files.write(target, content, self.wd)
        return target

    def write_copy(self, name: Path | str) -> None:
        """Write the copy of a file anew."""
        with files.reading(self.folder / name) as file:
            files.copy(file, self.archive / name, self.wd)

    def append_copy(self, name: str, line: bytes, size: int) -> None:
        """Append to the copy of a file what was appended to the file; where they differ in size, copy all of it."""
        with contextlib.suppress(OSError):  # the record is what counts
            if files.append_line(self.archive / name, line, self.wd) != size:
                self.write_copy(name)

    def keep_copy(self, name: Path | str) -> None:
        """Take a file of the archive into the record, unless it is a link, a folder or the like."""
        with contextlib.suppress(OSError), files.reading(self.archive / name, self.wd) as file:
            files.copy(file, self.folder / name)

    def restore_copies(self) -> None:
        """Put back the copies that somebody has deleted, or that have another size."""
        if self._seen == (seen := self._changed_at()):
            return
        for name in _names(self.folder):
            wanted = (self.folder / name).stat().st_size
            with contextlib.suppress(OSError):  # something else is in its place, and the record is what counts
                found = files.look(self.archive / name, self.wd)
                if found is None or found.st_size != wanted:
                    self.write_copy(name)
        self._seen = self._changed_at() if seen else ()

    def _changed_at(self) -> tuple[int, ...]:
        """When files came to the archive or went; nothing where that is not known."""
        with contextlib.suppress(OSError):
            return tuple(path.stat().st_mtime_ns for path in (self.archive, self.archive / PROMPTS))
        return ()

    def _adopt(self) -> None:
        for name in _names(self.archive):
            self.keep_copy(name)


def _names(folder: Path) -> Iterator[Path]:
    """The files of a run that have copies: the journal, replies, outputs and prompts."""
    for path in sorted((*folder.glob(JOURNAL), *folder.glob("[0-9]*"), *folder.glob(f"{PROMPTS}/*.md"))):
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(folder)


def recorded(archive: Path) -> Path:
    """Where to read about the run of an archive: in its record, or in the archive itself where there is none."""
    record = RunRecord(archive.parents[1], archive.name)
    return record.folder if record.is_known else archive


def recorded_runs(wd: Path) -> list[str]:
    """The names of a project's runs that there are records of."""
    try:
        return [entry.name for entry in (user_state_folder() / "records").iterdir() if _is_run_of(wd, entry)]
    except OSError:
        return []


def _is_run_of(wd: Path, record: Path) -> bool:
    return _project_of(record) == wd and (record / JOURNAL).is_file()


def projects_of_records() -> dict[Path, Path]:
    """The project of every record."""
    with contextlib.suppress(OSError):
        folders = sorted((user_state_folder() / "records").iterdir())
        return {folder: wd for folder in folders if (wd := _project_of(folder))}
    return {}


def _project_of(record: Path) -> Path | None:
    try:
        return _read_project(record / PROJECT, (record / PROJECT).stat().st_mtime_ns)
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _read_project(path: Path, written: int) -> Path:  # noqa: ARG001 - read often, and written once
    return Path(os.fsdecode(files.read(path, LONGEST_WORD)))


# -- which run a state file belongs to


def unfinished_run(state_file: Path, wd: Path) -> RunRecord | None:
    """The unfinished run that a state file belongs to, also where the file itself is gone or says something else."""
    try:
        run_id, _, place = files.read(_mark(state_file), LONGEST_WORD).decode("ascii").partition(" ")
    except (OSError, ValueError):
        return None
    record = RunRecord(wd, run_id)
    if not record.is_known or not record.state.is_file():
        return None
    # a new folder under an old name is another project, which has nothing to go on with
    return record if state_file.exists() or place == _place(wd) else None


def mark_unfinished(record: RunRecord, state_file: Path) -> None:
    """Write down that a state file belongs to a run."""
    mark, text = _mark(state_file), f"{record.run_id} {_place(record.wd)}".encode("ascii")
    with contextlib.suppress(OSError):
        if files.read(mark, LONGEST_WORD) == text:
            return
    files.write(mark, text)


def unmark(state_file: Path) -> None:
    """Write down that a state file belongs to no unfinished run any more."""
    with contextlib.suppress(FileNotFoundError):
        files.remove(_mark(state_file))


def _mark(state_file: Path) -> Path:
    return user_state_folder() / "unfinished" / hashlib.sha256(os.fsencode(state_file)).hexdigest()[:32]


def _place(wd: Path) -> str:
    try:
        return str(wd.stat().st_ino)
    except OSError:
        return ""
