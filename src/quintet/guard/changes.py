"""What differs between two snapshots of a project."""

import os
import posixpath
import stat
from collections.abc import Container, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from quintet.guard.repository import GUARDED_REFS, SUBMODULE
from quintet.guard.snapshot import DOT_GIT, Snapshot
from quintet.guard.store import Entry

CACHES: Final = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".gradle", ".nyc_output"}
"""folders that running a test writes to; they are seen only where git does not ignore them"""
_TOLD_OTHERWISE: Final = ("git/HEAD", "git/index", "git/sharedindex.")


class Area(StrEnum):
    """What a change is a change of."""

    FILE = "file"
    INDEX = "index"
    HEAD = "head"
    REF = "ref"
    GIT = "git"
    """a file of the repository itself: its config, a hook, the state of a merge"""
    REPOSITORY = "repository"
    """git cannot read it any more"""
    NESTED = "nested"
    """a submodule or a repository in the project"""
    INNER = "inner"
    """a `.git` that has appeared in the guarded folder: to git, all around it is another repository from then on"""
    ELSEWHERE = "elsewhere"
    """a file of the same repository outside the guarded folder"""
    CHECKOUT = "checkout"
    """a file or the branch of the user's checkout, where the guarded folder is a worktree"""


@dataclass(frozen=True)
class Change:
    """One difference. `before` and `after` are None where there is nothing."""

    area: Area
    name: str
    """a path relative to the guarded folder (a folder's ends with a slash), a ref, or `git/NAME`, `common/NAME`"""
    before: Entry | str | None
    after: Entry | str | None

    @property
    def kind(self) -> str:
        """created, deleted, changed, mode (only its mode bits), or type (a file has become a link, for instance)."""
        if self.before is None or self.after is None:
            return "created" if self.before is None else "deleted"
        if isinstance(self.before, Entry) and isinstance(self.after, Entry):
            if stat.S_IFMT(self.before.mode) != stat.S_IFMT(self.after.mode):
                return "type"
            if self.before.digest == self.after.digest and self.before.mode != self.after.mode:
                return "mode"
        return "changed"

    def is_branch(self, names: Container[str]) -> bool:
        """Whether it is a change of one of these branches."""
        return self.area is Area.REF and self.name.removeprefix("refs/heads/") in names

    def is_shared(self, branch: str) -> bool:
        """Whether it is a change of what all worktrees of a repository share, seen from the worktree of a branch."""
        match self.area:
            case Area.REF:
                return self.name != f"refs/heads/{branch}"
            case Area.GIT:
                return self.name.startswith("common/")
            case _:
                return False

    @property
    def is_special(self) -> bool:
        """Whether it makes a pipe, a socket or a device: whatever reads one may wait for ever."""
        kind = stat.S_IFMT(self.after.mode) if isinstance(self.after, Entry) else stat.S_IFREG
        return kind not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)

    @property
    def serious(self) -> bool:
        """Whether something that was there was changed or deleted; a new file, ref or index entry is not serious.

        Nor is a cache: whoever runs the tests writes there.
        """
        match self.area:
            case Area.FILE:
                return self.before is not None and CACHES.isdisjoint(self.name.split("/"))
            case Area.REF:
                return self.before is not None and self.name != GUARDED_REFS[-1]
            case _:
                return self.area in (Area.HEAD, Area.REPOSITORY)


def compare(before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """Everything that differs, in the order of areas and names."""
    found = [*_files(before, after), *_repository(before, after), *_told(before, after)]
    order = list(Area)
    return tuple(sorted(found, key=lambda change: (order.index(change.area), change.name)))


def _files(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    for path, old in before.files.items():
        new = after.files.get(path)
        if new is not old and not old.same(new) and not (new is None and path.endswith("/")):
            yield Change(Area.FILE, path, old, new)
    created = [path for path in after.files.keys() - before.files.keys() if not path.endswith("/")]
    yield from (Change(Area.FILE, path, None, after.files[path]) for path in created)
    if before.place.ignore_case == "true" and created:
        yield from _other_case(before, after, created)


def _other_case(before: Snapshot, after: Snapshot, created: list[str]) -> Iterator[Change]:
    """Files whose name has got another case where that is the same name: to remove the new one removes the old one."""
    by_name = {path.casefold(): path for path in before.files}
    for path in created:
        old = by_name.get(path.casefold(), "")
        if old in after.files and after.files[old].inode == after.files[path].inode:
            yield Change(Area.FILE, old, before.files[old], after.files[old])


def _repository(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    broken = after.refs is None
    for name in before.git.keys() | after.git.keys():
        old, new = before.git.get(name), after.git.get(name)
        if (name.startswith(_TOLD_OTHERWISE) and not broken) or name.endswith("/"):
            continue
        if not (old.same(new) if old else new is None):
            yield Change(Area.GIT, name, old, new)
    if after.refs is None:
        yield Change(Area.REPOSITORY, ".git", before.head, None)
        return
    old_refs, new_refs = _guarded(before), _guarded(after)
    for name in old_refs.keys() | new_refs.keys():
        if old_refs.get(name) != new_refs.get(name):
            yield Change(Area.REF, name, old_refs.get(name), new_refs.get(name))
    if head_of(before) != head_of(after):
        yield Change(Area.HEAD, "HEAD", head_of(before), head_of(after))
    yield from _index(before, after)


def _guarded(snapshot: Snapshot) -> dict[str, str]:
    return {name: value for name, value in (snapshot.refs or {}).items() if name.startswith(GUARDED_REFS)}


def head_of(snapshot: Snapshot) -> str:
    """HEAD and the commit that it is at: `ref: NAME COMMIT`, or `COMMIT COMMIT` where it is detached."""
    branch = snapshot.head.removeprefix("ref: ")
    return f"{snapshot.head} {(snapshot.refs or {}).get(branch, '' if branch != snapshot.head else branch)}"


def _index(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    if before.staged == after.staged:  # the file may differ all the same: `git status` notes times in it
        return
    old, new = staged_entries(before.staged), staged_entries(after.staged)
    for path in old.keys() | new.keys():
        if old.get(path) != new.get(path):
            name = posixpath.relpath(path, before.place.prefix or ".")
            yield Change(Area.INDEX, name, old.get(path), new.get(path))


def staged_entries(staged: bytes) -> dict[str, str]:
    """The entries of the index by path relative to the top: flags, mode, object, stage; one line for each stage."""
    found: dict[str, str] = {}
    for row in os.fsdecode(staged).split("\0")[:-1]:
        entry, _, path = row.partition("\t")
        found[path] = f"{found[path]}\n{entry}" if path in found else entry
    return found


def _told(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    prefix = before.place.prefix
    for path in before.nested.keys() | after.nested.keys():
        old, new = before.nested.get(path), after.nested.get(path)
        if new and not old and path.startswith(prefix) and not new.startswith(SUBMODULE):
            yield Change(Area.INNER, f"{path.removeprefix(prefix)}{DOT_GIT}", None, new)
        elif old != new:
            yield Change(Area.NESTED, path, old, new)
    for path in before.elsewhere.keys() | after.elsewhere.keys():
        was, now = before.elsewhere.get(path), after.elsewhere.get(path)
        if was != now:
            yield Change(Area.ELSEWHERE, path, was and Entry(*was), now and Entry(*now))
