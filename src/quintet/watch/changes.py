"""What a run has changed in the project's repository, and the line that takes it back."""

import json
import re
import shlex
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from quintet.watch.model import Run
from quintet.watch.runs import TMP

KEPT: Final = "changes.json"
"""written at the end of a run, because the tree goes on changing afterwards"""
_SECONDS: Final = 30
_MOST: Final = 500
_ENV: Final = ("-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "--no-optional-locks")


@dataclass(frozen=True)
class File:
    """One changed file; the counts are None for what is no text."""

    path: str
    kind: str
    added: int | None = None
    removed: int | None = None


@dataclass(frozen=True)
class Changes:
    """The files that differ from the start commit."""

    files: tuple[File, ...] = ()
    more: int = 0
    """files beyond those listed"""
    note: str = ""
    """why nothing is known"""


def changes(folder: Path, run: Run) -> Changes:
    """The changes of a run: those noted at its end, else those that are there now."""
    kept = folder / KEPT
    try:
        return _read(json.loads(kept.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return look(folder.parents[1], run)


def keep(folder: Path, found: Changes) -> None:
    (folder / KEPT).write_text(json.dumps(asdict(found), indent=1), encoding="utf-8")


def look(wd: Path, run: Run) -> Changes:
    """Ask git what is different from the start commit."""
    start = run.start_commit
    if not start:
        return Changes(note="The project was in no git repository, or had no commit, when the run began.")
    if not _is_hash(start) or _git(wd, "cat-file", "-e", f"{start}^{{commit}}") is None:
        return Changes(note=f"The start commit {start[:12]} is not in this repository.")
    counts = _git(wd, "diff", "--numstat", "--no-renames", "-z", start, "--", ".", f":(exclude){TMP}")
    kinds = _git(wd, "diff", "--name-status", "--no-renames", "-z", start, "--", ".", f":(exclude){TMP}")
    new = _git(wd, "ls-files", "--others", "--exclude-standard", "-z", "--", ".", f":(exclude){TMP}")
    if counts is None or kinds is None or new is None:
        return Changes(note="Git could not tell.")
    files = [*_changed(counts, kinds), *(File(path, "new") for path in _split(new))]
    files.sort(key=lambda file: file.path)
    return Changes(tuple(files[:_MOST]), max(len(files) - _MOST, 0))


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


def undo(wd: Path, run: Run, *, newest: bool) -> tuple[str, ...]:
    """Shell lines that take a run's changes back: a stash what is not committed, a revert what is; nothing is lost.

    They are made from what git says now, never read from a file, because agents can write there.
    """
    start, head = run.start_commit, (_git(wd, "rev-parse", "--verify", "HEAD") or "").strip()
    if not _is_hash(start) or not _is_hash(head):
        return ()
    lines = []
    if newest and _git(wd, "status", "--porcelain", "--", ".", f":(exclude){TMP}"):
        lines.append(f"git stash push --include-untracked --message {shlex.quote(f'quintet {run.id}')}")
    end = run.commit if _is_hash(run.commit) else head if newest else start
    if end != start:
        lines.append(f"git revert --no-edit {start[:12]}..{end[:12]}")
    return tuple(lines)


def _is_hash(text: str) -> bool:
    return bool(re.fullmatch("[0-9a-f]{40,64}", text))


def _split(text: str) -> list[str]:
    return [part for part in text.split("\0") if part]


def _git(wd: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *_ENV, *arguments], cwd=wd, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _read(value: dict[str, object]) -> Changes:
    files = value["files"]
    if not isinstance(files, list):
        raise TypeError("files")
    return Changes(tuple(File(**file) for file in files), int(str(value.get("more", 0))), str(value.get("note", "")))
