"""What a run has changed in the project's repository."""

import json
import re
import subprocess
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, TypeAdapter

from quintet import files
from quintet.layout import CHANGES, TMP
from quintet.watch.runs.model import Run

"""written at the end of a run, because the tree goes on changing afterwards"""
EXCLUDED: Final = f":(exclude){TMP}"
_SECONDS: Final = 30
_MOST: Final = 500
_LARGEST: Final = 2_000_000
_ENV: Final = ("-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "--no-optional-locks")


Size = Annotated[int, Field(strict=True, ge=0, le=10**12)]


@dataclass(frozen=True)
class File:
    """One changed file; the counts are None for what is no text."""

    path: str
    kind: str
    added: Size | None = None
    removed: Size | None = None
    before: bool = False
    """it was not committed already when the run began"""


@dataclass(frozen=True)
class Changes:
    """The files that differ from the start commit."""

    files: tuple[File, ...] = ()
    more: Size = 0
    """files beyond those listed"""
    note: str = ""
    """why nothing is known"""


def changes(folder: Path, run: Run) -> Changes:
    """The changes of a run: those noted at its end, else those that are there now."""
    kept = folder / CHANGES
    try:
        return _read(kept.read_bytes())
    except (OSError, ValueError):
        return look(folder.parents[1], run)


def keep(folder: Path, found: Changes) -> None:
    files.write(folder / CHANGES, json.dumps(asdict(found), indent=1), folder.parents[1])


def look(wd: Path, run: Run) -> Changes:
    """Ask git what is different from the start commit."""
    start = run.start_commit
    if not start:
        return Changes(note="The project was in no git repository, or had no commit, when the run began.")
    if not is_hash(start) or git(wd, "cat-file", "-e", f"{start}^{{commit}}") is None:
        return Changes(note=f"The start commit {start[:12]} is not in this repository.")
    form = ("--relative", "--no-renames", "-z")  # relative to the project, which may be a part of the repository
    counts = git(wd, "diff", "--numstat", *form, start, "--", ".", EXCLUDED)
    kinds = git(wd, "diff", "--name-status", *form, start, "--", ".", EXCLUDED)
    new = git(wd, "ls-files", "--others", "--exclude-standard", "-z", "--", ".", EXCLUDED)
    if counts is None or kinds is None or new is None:
        return Changes(note="Git could not tell.")
    files = [*_changed(counts, kinds), *(File(path, "new", *_sizes(wd / path)) for path in _split(new))]
    files = sorted((replace(file, before=was_dirty(file.path, run)) for file in files), key=lambda file: file.path)
    return Changes(tuple(files[:_MOST]), max(len(files) - _MOST, 0))


def _sizes(path: Path) -> tuple[int, int] | tuple[None, None]:
    """The lines of a file that git does not know yet, all of them added; nothing for what is no text or very large."""
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST:
            return None, None
        data = path.read_bytes()
    except OSError:
        return None, None
    return (None, None) if b"\0" in data else (len(data.splitlines()), 0)


def was_dirty(path: str, run: Run) -> bool:
    """Whether a file was not committed already when the run began, by itself or with its folder."""
    return any(path == item or (item.endswith("/") and path.startswith(item)) for item in run.dirty or ())


def _changed(counts: str, kinds: str) -> list[File]:
    words = _split(kinds)
    names = {"A": "new", "D": "deleted", "M": "changed", "T": "changed"}
    kind_of = {path: names.get(letter[:1], "changed") for letter, path in zip(words[::2], words[1::2], strict=False)}
    files = []
    for item in _split(counts):
        added, removed, path = item.split("\t", 2)
        sizes = (int(added), int(removed)) if added.isdecimal() and removed.isdecimal() else (None, None)
        files.append(File(path, kind_of.get(path, "changed"), *sizes))
    return files


def is_hash(text: str) -> bool:
    return bool(re.fullmatch("[0-9a-f]{40,64}", text))


def _split(text: str) -> list[str]:
    return [part for part in text.split("\0") if part]


def git(wd: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *_ENV, *arguments], cwd=wd, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


_ADAPTER: Final[TypeAdapter[Changes]] = TypeAdapter(Changes)


def _read(text: bytes) -> Changes:
    """What was noted; an agent may have written there too, so each part has to be what it should be."""
    found = _ADAPTER.validate_json(text)
    return Changes(found.files[:_MOST], found.more + max(len(found.files) - _MOST, 0), found.note)
