"""What a run has changed in the project's repository."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, TypeAdapter

from quintet import changed_tests, files, git
from quintet.changed_tests import TestLosses
from quintet.errors import GitError
from quintet.layout import CHANGES, NOT_TMP
from quintet.loop.record.run_record import recorded
from quintet.watch.runs.model import GONE, RUNNING, Run
from quintet.workspace.worktrees import worktree_at

_MOST: Final = 500
_LARGEST: Final = 2_000_000
_KINDS: Final = {"A": "new", "D": "deleted"}

Size = Annotated[int, Field(strict=True, ge=0, le=10**12)]


@dataclass(frozen=True)
class FileChange:
    """A changed file; the counts of lines are None where it is no text."""

    path: str
    kind: str
    added: Size | None = None
    removed: Size | None = None
    before: bool = False
    """it had uncommitted changes when the run began"""


@dataclass(frozen=True)
class Changes:
    """The files that are different from the start commit."""

    files: tuple[FileChange, ...] = ()
    more: Size = 0
    """how many more there are than those listed"""
    note: str = ""
    """why they are not known"""
    lost_tests: TestLosses = TestLosses()
    """what of the project's tests is gone with them"""


def changes_of(folder: Path, run: Run) -> Changes:
    """The changes of a run: those saved at its end, else those that are there now."""
    if is_over(run):
        with suppress(OSError, ValueError):
            return _read((recorded(folder) / CHANGES).read_bytes())
    return changes_now(folder.parents[1], run)


def is_over(run: Run) -> bool:
    """Whether what was saved at the end of a run is of its last end: one that was resumed has changed more since."""
    return run.status not in (RUNNING, GONE)


def save_changes(folder: Path, found: Changes) -> None:
    """Write them into the run's folder, because the work tree goes on changing after the run."""
    text = json.dumps(asdict(found), indent=1)
    for place in {recorded(folder), folder}:
        files.write(place / CHANGES, text, folder.parents[1])


def changes_now(wd: Path, run: Run) -> Changes:
    """What is different from the start commit in the work tree as it is now."""
    if reason := start_unknown(wd, run):
        return Changes(note=reason)
    start = run.start_commit
    try:
        new = (FileChange(path, "new", *_line_counts(wd / path)) for path in new_files(wd))
        found = [*_tracked(wd, start), *new]
    except GitError as error:
        return Changes(note=f"What has changed is not known: {error}")
    found = [replace(change, path=readable(change.path)) for change in found]
    found = [replace(change, before=was_dirty(change.path, run)) for change in found]
    found.sort(key=lambda change: change.path)
    lost_tests = changed_tests.look(wd, start)
    return Changes(tuple(found[:_MOST]), max(len(found) - _MOST, 0), lost_tests=lost_tests)


def start_unknown(wd: Path, run: Run) -> str:
    """Why a work tree cannot be compared with the start of a run; empty where it can."""
    start = run.start_commit
    if not start:
        return "The project was not in a git repository, or had no commit, when the run began."
    if not git.is_hash(start) or git.answer(wd, "cat-file", "-e", f"{start}^{{commit}}") is None:
        return f"The start commit {start[:12]} is not in this repository."
    return ""


def new_files(wd: Path) -> list[str]:
    """The files that git does not know yet, without those that were copied into the worktree of a run."""
    worktree = worktree_at(wd)
    copied = worktree.included if worktree else ()
    found = git.run(wd, "ls-files", "--others", "--exclude-standard", "-z", "--", ".", NOT_TMP).parts
    return [path for path in found if path not in copied]


def _tracked(wd: Path, start: str) -> list[FileChange]:
    """The changes of the files that git knows.

    Git lists a file also where nothing but its time is another one, because it may not refresh the user's index here.
    """
    form = ("--raw", "--numstat", "--no-abbrev", "--no-renames", "--relative", "-z")
    parts = iter(git.run(wd, "diff", *form, start, "--", ".", NOT_TMP).parts)
    raw: dict[str, list[str]] = {}
    found: list[FileChange] = []
    perhaps: list[FileChange] = []
    for part in parts:
        if part.startswith(":"):
            raw[next(parts)] = part[1:].split(" ")
            continue
        added, removed, path = part.split("\t", 2)
        counts = (int(added), int(removed)) if added.isdecimal() and removed.isdecimal() else (None, None)
        old_mode, new_mode, _, _, letter = raw[path]
        change = FileChange(path, _KINDS.get(letter[:1], "changed"), *counts)
        (perhaps if old_mode == new_mode and counts in ((0, 0), (None, None)) else found).append(change)
    unchanged = _unchanged(wd, {change.path: raw[change.path][2] for change in perhaps if change.added is None})
    return [*found, *(change for change in perhaps if change.added is None and change.path not in unchanged)]


def _unchanged(wd: Path, hashes: Mapping[str, str]) -> set[str]:
    """Which of some files, given with the hashes that they had at the start, still have the same content."""
    paths = [path for path in hashes if "\n" not in path]
    feed = b"".join(os.fsencode(path) + b"\n" for path in paths)
    try:
        now = git.run(wd, "hash-object", "--stdin-paths", feed=feed).text.split("\n")
    except GitError:  # a file was deleted meanwhile
        return set()
    return {path for path, found in zip(paths, now, strict=False) if found == hashes[path]}


def _line_counts(path: Path) -> tuple[int, int] | tuple[None, None]:
    """The lines of a file that git does not know yet, all of them added; nothing for what is no text or very large."""
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST:
            return None, None
        data = path.read_bytes()
    except OSError:
        return None, None
    return (None, None) if b"\0" in data else (len(data.splitlines()), 0)


def readable(path: str) -> str:
    """The path of a file as text, whatever bytes are in it."""
    return os.fsencode(path).decode("utf-8", "replace")


def was_dirty(path: str, run: Run) -> bool:
    """Whether a file, or a folder that it is in, had uncommitted changes when the run began."""
    return any(path == item or (item.endswith("/") and path.startswith(item)) for item in run.dirty or ())


_ADAPTER: Final[TypeAdapter[Changes]] = TypeAdapter(Changes)


def _read(text: bytes) -> Changes:
    """The changes from their file. An agent may have changed it: each field is validated."""
    found = _ADAPTER.validate_json(text)
    lost_tests = TestLosses(found.lost_tests.files[:_MOST])
    return Changes(found.files[:_MOST], found.more + max(len(found.files) - _MOST, 0), found.note, lost_tests)
