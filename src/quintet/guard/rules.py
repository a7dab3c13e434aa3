"""Who may change what: which changes of a turn a role was allowed to make."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from quintet.guard.changes import Area, Change


@dataclass(frozen=True)
class Split:
    """The changes of a turn, by what follows from them."""

    allowed: tuple[Change, ...]
    forbidden: tuple[Change, ...]
    """to be undone"""
    told: tuple[Change, ...]
    """outside of what is guarded: nested repositories, the rest of a larger repository"""

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
            if change.area in (Area.NESTED, Area.ELSEWHERE):
                told.append(change)
            else:
                (allowed if self.allows(change) else forbidden).append(change)
        return Split(tuple(allowed), tuple(forbidden), tuple(told))

    def allows(self, change: Change) -> bool:
        """Whether this role may make a change."""
        match change.area:
            case Area.FILE | Area.INDEX:
                path = f"{change.name}." if change.name.endswith("/") else change.name
                if matches(path, self.protect):
                    return False
                free = self.may_commit and change.area is Area.INDEX
                return free or matches(path, (*self.may_change, *self.allow))
            case Area.REPOSITORY:
                return False
            case _:
                return self.may_commit


def matches(path: str, globs: tuple[str, ...]) -> bool:
    """Whether a path, or a folder that it is in, is named by one of the globs: `*` stays in a folder, `**` does not."""
    return bool(globs) and _pattern(globs).fullmatch(path) is not None


@lru_cache
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_translated(glob)})(?:/.*)?" for glob in globs), re.DOTALL)


_PARTS = re.compile(
    r"(?P<deep>(?:^|/)\*\*/)|(?P<rest>(?:^|/)\*\*$)|(?P<stars>\*+)|(?P<one>\?)|(?P<set>\[[^]]+\])", re.DOTALL
)


def _translated(glob: str) -> str:
    glob = glob.removeprefix("./").strip("/")
    out, position = [], 0
    for part in _PARTS.finditer(glob):
        out.append(re.escape(glob[position : part.start()]))
        position = part.end()
        slash = "/" if part[0].startswith("/") else ""
        match part.lastgroup:
            case "deep":
                out.append(f"{slash}(?:.*/)?")
            case "rest":
                out.append(f"{slash}.*")
            case "stars":
                out.append("[^/]*")
            case "one":
                out.append("[^/]")
            case _:
                inner = re.sub(r"([\\\[&|~^])", r"\\\1", part[0][1:-1].lstrip("!^"))
                out.append(f"(?!/)[{'^' * (part[0][1] in '!^')}{inner}]")
    return "".join(out) + re.escape(glob[position:])
