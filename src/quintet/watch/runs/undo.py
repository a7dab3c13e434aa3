"""The lines that take a run's changes back, or the reason why there are none."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet import git
from quintet.watch.runs.changes import EXCLUDED, changes_now, is_hash, was_dirty
from quintet.watch.runs.model import Run

_MOST_PATHS: Final = 20
_SHORT: Final = 12


@dataclass(frozen=True)
class Undo:
    """Shell lines that lose nothing: a stash for what is not committed, a revert for what is."""

    lines: tuple[str, ...] = ()
    note: str = ""
    """why there is no line, or what the lines leave as it is"""


def undo(wd: Path, run: Run, *, newest: bool) -> Undo:
    """How a run is taken back. Made from what git says now, never read from a file: agents can write there."""
    start, head = run.start_commit, git.answer(wd, "rev-parse", "--verify", "HEAD") or ""
    if not is_hash(start) or not is_hash(head):
        return Undo()
    told = run.commit or run.head
    end = told if is_hash(told) else head if newest else start
    if reason := _cannot_revert(wd, run, end, head):
        return Undo(note=f"No line takes them back: {reason}")
    lines, note = _stash(wd, run) if newest else ((), "")
    if end != start:
        lines = (*lines, _line(wd, "revert", "--no-edit", f"{start[:_SHORT]}..{end[:_SHORT]}"))
    if not lines and not newest:
        note = "No line takes them back: later runs have gone on from there."
    elif lines and run.dirty is None:
        note = "Whether everything was committed when the run began is not known: look at git status first."
    return Undo(lines, note)


def _cannot_revert(wd: Path, run: Run, end: str, head: str) -> str:
    """What stands against a revert of the commits from the start to the end; nothing where nothing does."""
    start = run.start_commit
    if end == start:
        return ""
    if run.dirty:
        return (
            f"its commits may also hold what was not committed when it began ({_named(run.dirty)}). "
            f"git diff {start[:_SHORT]} {end[:_SHORT]} shows both."
        )
    if not _is_behind(wd, start, end):
        return f"its history was rewritten, and the start commit is not behind {end[:_SHORT]}."
    if not _is_behind(wd, end, head):
        return f"its last commit {end[:_SHORT]} is not on the branch that is checked out."
    if git.answer(wd, "rev-list", "--merges", "--max-count=1", f"{start}..{end}"):
        return f"there are merges in {start[:_SHORT]}..{end[:_SHORT]}, of which git revert has to be told the side."
    return ""


def _stash(wd: Path, run: Run) -> tuple[tuple[str, ...], str]:
    """Put away what is not committed below the project, without what was so before the run."""
    if not git.answer(wd, "status", "--porcelain", "--", ".", EXCLUDED):
        return (), ""
    words = ("stash", "push", "--include-untracked", "--message", f"quintet {run.id}", "--")
    if not run.dirty:
        return (_line(wd, *words, "."),), ""
    ours = [file.path for file in changes_now(wd, run).files if not was_dirty(file.path, run)]
    before = f"What was not committed when the run began ({_named(run.dirty)}) stays as it is now"
    if not ours:
        return (), "No line takes them back: none of it was committed when the run began."
    if len(ours) > _MOST_PATHS:
        return (), f"No line takes them back: {len(ours)} files lie among what was not committed when the run began."
    return (_line(wd, *words, *(f":(literal){path}" for path in ours)),), f"{before}, with what the run did to it."


def _line(wd: Path, *words: str) -> str:
    return shlex.join(["git", "-C", str(wd), *words])


def _named(paths: tuple[str, ...]) -> str:
    shown = 3
    more = f" and {len(paths) - shown} more" if len(paths) > shown else ""
    return ", ".join(paths[:shown]) + more


def _is_behind(wd: Path, older: str, newer: str) -> bool:
    return git.answer(wd, "merge-base", "--is-ancestor", older, newer) is not None
