"""Bring a project back to what it was before a run that began with uncommitted changes."""

import itertools
from pathlib import Path
from typing import NamedTuple

from quintet import files
from quintet.errors import RunError
from quintet.guard import Area, Split, Store, compare, finish, load, look, undo
from quintet.layout import start_snapshot
from quintet.loop.record.lock import no_run
from quintet.workspace.worktrees import worktree_at, worktree_branches


class Restored(NamedTuple):
    """What was done."""

    number: int
    """of changes that were undone"""
    patch: Path
    """what they were"""
    failed: dict[str, str]
    """what could not be put back, with the reason"""


def restore(archive: Path) -> Restored:
    """Undo everything that has changed since the run of an archive began; it is kept as a patch first."""
    wd, snapshot = archive.parents[1], start_snapshot(archive.name)
    if not snapshot.is_file():
        raise RunError(f"{archive.name}: nothing is kept of before this run; it began without uncommitted changes")
    with no_run(wd):
        store = Store(snapshot.parent)
        finish(store)
        before = load(store, snapshot.stem)
        if before is None or Path(before.place.tree) != wd:
            raise RunError(f"{archive.name}: what is kept of before this run belongs to another folder")
        changes = compare(before, look(before, store))
        inside = tuple(change for change in changes if change.area not in (Area.NESTED, Area.ELSEWHERE))
        worktree = worktree_at(wd)
        others = worktree_branches() - ({worktree.branch} if worktree else set())
        inside = tuple(change for change in inside if not change.is_branch(others))
        if worktree:  # all else in the repository is the user's
            inside = tuple(change for change in inside if not change.is_shared(worktree.branch))
        names = (f"before-restore{f'-{number}' if number > 1 else ''}.patch" for number in itertools.count(1))
        patch = next(archive / name for name in names if files.look(archive / name, wd) is None)
        failed = undo(Split((), inside, ()), before, store, patch).failed if inside else {}
        return Restored(len(inside), patch, failed)
