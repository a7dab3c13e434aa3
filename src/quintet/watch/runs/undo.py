"""The commands that undo a run's changes, or the reason why there are none."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet import git
from quintet.layout import NOT_TMP, start_snapshot
from quintet.program import program
from quintet.prose import first_few
from quintet.watch.runs.changes import changes_now, was_dirty
from quintet.watch.runs.model import Run

_MOST_PATHS: Final = 20
_SHORT: Final = 12


@dataclass(frozen=True)
class Undo:
    """Commands that lose nothing: a stash for what is not committed, a revert for what is, or `quintet restore`."""

    lines: tuple[str, ...] = ()
    note: str = ""
    """why there are no commands, or what they do not undo"""


def undo(wd: Path, run: Run, *, newest: bool) -> Undo:
    """How to undo a run. Made from what git says now and not from a file, which an agent could have changed."""
    if run.project:
        return Undo(note=f"They were made in a worktree, on the branch {run.branch}.{_discard(run)}")
    found = _by_git(wd, run, newest=newest)
    if found.lines or not found.note or not (newest and run.dirty and start_snapshot(run.id).is_file()):
        return found
    return Undo(
        (f"{program()} restore {shlex.join([run.id, '--wd', str(wd)])}",),
        "It brings the whole project back to the moment before the run, with what was not committed then; "
        "what has changed since is kept as a patch.",
    )


def _discard(run: Run) -> str:
    return f" To throw them away: {program()} discard {run.id}" if Path(run.wd).is_dir() else ""


def _by_git(wd: Path, run: Run, *, newest: bool) -> Undo:
    start = run.start_commit
    head = git.answer(wd, "rev-parse", "--verify", "HEAD") if git.is_hash(start) else None
    if not head or not git.is_hash(head):
        return Undo()
    told = run.commit or run.head
    end = told if git.is_hash(told) else head if newest else start
    if reason := _cannot_revert(wd, run, end, head):
        return Undo(note=f"They cannot be undone by a command: {reason}")
    lines, note = _stash(wd, run) if newest else ((), "")
    if end != start:
        lines = (*lines, _line(wd, "revert", "--no-edit", f"{start[:_SHORT]}..{end[:_SHORT]}"))
    if not lines and not newest:
        note = "They cannot be undone by a command: later runs have changed the project since."
    elif lines and run.dirty is None:
        note = "It is not known whether there were uncommitted changes before the run: check git status first."
    return Undo(lines, note)


def _cannot_revert(wd: Path, run: Run, end: str, head: str) -> str:
    """Why the commits from the start to the end cannot be reverted; empty where they can."""
    start = run.start_commit
    if end == start:
        return ""
    if run.dirty:
        return (
            f"its commits may contain changes from before the run ({first_few(run.dirty, 3)}). "
            f"git diff {start[:_SHORT]} {end[:_SHORT]} shows all of them."
        )
    if not _is_behind(wd, start, end):
        return f"the history was rewritten, and {end[:_SHORT]} does not contain the start commit any more."
    if not _is_behind(wd, end, head):
        return f"its last commit {end[:_SHORT]} is not on the current branch."
    if git.answer(wd, "rev-list", "--merges", "--max-count=1", f"{start}..{end}"):
        return f"there are merges in {start[:_SHORT]}..{end[:_SHORT]}, and git revert cannot choose a parent."
    return ""


def _stash(wd: Path, run: Run) -> tuple[tuple[str, ...], str]:
    """The command that stashes the uncommitted changes of the run, without those from before it."""
    if not git.answer(wd, "status", "--porcelain", "--", ".", NOT_TMP):
        return (), ""
    words = ("stash", "push", "--include-untracked", "--message", f"quintet {run.id}", "--")
    if not run.dirty:
        return (_line(wd, *words, "."),), ""
    ours = [file.path for file in changes_now(wd, run).files if not was_dirty(file.path, run)]
    if not ours:
        return (), "They cannot be undone by a command: all these files had uncommitted changes before the run."
    if len(ours) > _MOST_PATHS:
        return (
            (),
            f"They cannot be undone by one command: {len(ours)} files, mixed with changes from before the run.",
        )
    kept = f"Files that had uncommitted changes before the run ({first_few(run.dirty, 3)}) stay as they are now."
    return (_line(wd, *words, *(f":(literal){path}" for path in ours)),), kept


def _line(wd: Path, *words: str) -> str:
    return shlex.join(["git", "-C", str(wd), *words])


def _is_behind(wd: Path, older: str, newer: str) -> bool:
    return git.answer(wd, "merge-base", "--is-ancestor", older, newer) is not None
