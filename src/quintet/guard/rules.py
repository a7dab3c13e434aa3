"""Who may change what: which changes of a turn a role was allowed to make."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from quintet.guard.changes import Area, Change
from quintet.guard.globs import matches


@dataclass(frozen=True)
class Split:
    """The changes of a turn, by what follows from them."""

    allowed: tuple[Change, ...]
    forbidden: tuple[Change, ...]
    """to be undone"""
    told: tuple[Change, ...]
    """outside of what is guarded: nested repositories, the rest of a larger repository, the user's checkout"""

    @property
    def serious(self) -> bool:
        """Whether a positive verdict of this turn does not count."""
        return any(change.serious for change in self.forbidden)


@dataclass(frozen=True)
class Rules:
    """What one role may change. Globs are relative to the guarded folder; one that names a folder means all in it."""

    may_change: tuple[str, ...] = ()
    may_commit: bool = False
    """it may also change the index, commits, branches and tags, git's config and hooks"""
    protect: tuple[str, ...] = ()
    """what nobody may change; stronger than all else"""
    allow: tuple[str, ...] = ()
    """what everybody may change"""

    def split(self, changes: Iterable[Change]) -> Split:
        """Sort changes by whether this role may make them."""
        allowed: list[Change] = []
        forbidden: list[Change] = []
        told: list[Change] = []
        changes = tuple(changes)
        if any(change.area is Area.REPOSITORY for change in changes) and self.may_commit:
            # a repository comes back as a whole: nobody can have committed to one that is gone
            own = replace(self, may_commit=False)
            return own.split(changes)
        for change in changes:
            if change.area in (Area.NESTED, Area.ELSEWHERE, Area.CHECKOUT):
                told.append(change)
            else:
                (allowed if self.allows(change) else forbidden).append(change)
        return Split(tuple(allowed), tuple(forbidden), tuple(told))

    def allows(self, change: Change) -> bool:
        """Whether this role may make a change."""
        match change.area:
            case Area.FILE | Area.INDEX:
                path = f"{change.name}." if change.name.endswith("/") else change.name
                if matches(path, self.protect) or change.is_special:
                    return False
                free = self.may_commit and change.area is Area.INDEX
                return free or matches(path, (*self.may_change, *self.allow))
            case Area.REPOSITORY | Area.INNER:
                return False
            case _:
                return self.may_commit
