"""What of the changes in a turn its role may not do: to be undone, or only told, and the event that says so."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from quintet.config import Settings
from quintet.guard import Area, Change, Rules, Snapshot, Split, matches
from quintet.layout import OWN_FILES, user_state_folder
from quintet.loop.decide.steps import Ask
from quintet.loop.journal import GuardViolation
from quintet.loop.run.change_words import guarded_change
from quintet.roles import Role
from quintet.workspace.worktrees import worktree_branches

MOST_CHANGES: Final = 50
"""changes that an event names"""


def protected_files(settings: Settings) -> tuple[str, ...]:
    """The files that no role may change: Quintet's own, and those that the settings name."""
    return (*OWN_FILES, *settings.protect)


def split_changes(
    role: Role, changes: Sequence[Change], before: Snapshot, settings: Settings, *, resumed: bool
) -> Split:
    """What of the changes since a snapshot is to be undone, and what only told.

    Where the turn began in an earlier process, the user may have edited the run's own files in between.
    """
    rules = Rules(role.may_change, role.may_commit, protected_files(settings), settings.guard_allow)
    split = rules.split(changes)
    own = [
        change for change in split.forbidden if resumed and change.area is Area.FILE and matches(change.name, OWN_FILES)
    ]
    told = [change for change in split.told if not _is_ours(change, before)]
    if role.may_commit:
        told = [change for change in told if change.area is not Area.NESTED]
    workspace = settings.workspace
    others = worktree_branches() - {workspace.branch} if changes else set()
    of_others = [change for change in changes if change.is_branch(others)]
    shared = [*of_others]
    if workspace.is_worktree:  # the user and other runs change these too, so nothing of them is undone
        shared += [change for change in changes if change.is_shared(workspace.branch)]
        told = [change for change in (*told, *shared) if change not in of_others]
    forbidden = tuple(change for change in split.forbidden if change not in own and change not in shared)
    return Split(split.allowed, forbidden, (*own, *told))


def _is_ours(change: Change, before: Snapshot) -> bool:
    """Whether it is Quintet that changes a file, where its state directory is in the same repository."""
    if change.area is not Area.ELSEWHERE:
        return False
    state, top = Path(os.path.realpath(user_state_folder())), before.place.top
    return state.is_relative_to(top) and Path(top, change.name).is_relative_to(state)


def violation_of(step: Ask, split: Split, earlier: GuardViolation | None) -> GuardViolation:
    """The event that tells what a role did and may not do; `earlier`: what a process that was killed has found."""
    paths = list(dict.fromkeys([*(earlier.paths if earlier else ()), *map(guarded_change, split.forbidden)]))
    return GuardViolation(
        step=step.key,
        role=step.role.name,
        paths=tuple(paths[:MOST_CHANGES]),
        left_out=len(paths[MOST_CHANGES:]) + (earlier.left_out if earlier else 0),
        serious=split.serious or (earlier is not None and earlier.serious),
        outside=tuple(map(guarded_change, split.told[:MOST_CHANGES])),
    )


def unknown_violation(step: Ask, earlier: GuardViolation | None) -> GuardViolation:
    """Nobody can tell what a role has changed: its verdict is taken as negative."""
    found = earlier or GuardViolation(step=step.key, role=step.role.name)
    return found.model_copy(update={"undone": False, "serious": True, "unknown": True})
