"""Which files of a project count: those that no rule ignores, and those that are protected."""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from quintet import git
from quintet.guard import ignores
from quintet.guard.globs import matches, may_match_below, named_path
from quintet.guard.snapshot import DOT_GIT, Snapshot
from quintet.guard.store import Deadline, Store
from quintet.layout import GITIGNORE

_LOOPS: Final = 5
_GITLINK: Final = "160000"


def list_by_rules_of_the_tree(new: Snapshot, store: Store, cache: Snapshot | None, deadline: Deadline) -> list[str]:
    """List the files by the ignore rules that hold now.

    A `.gitignore` can be found only by listing, and changes what is listed: so until no new one is found. One that
    ignores itself is not listed any more, and counts as long as it is there.
    """
    sources = set(cache.sources if cache else ()) | {path for path in staged_paths(new.staged) if is_ignore_file(path)}
    sources.add(GITIGNORE)
    for _ in range(_LOOPS):
        new.sources = tuple(sorted(sources))
        new.rules = rules_of(new, sources)
        listed = list_files(new, store, deadline)
        sources.update(path for path in listed if is_ignore_file(path))
        if len(sources) == len(new.sources):
            break
    return listed


def rules_of(new: Snapshot, sources: Iterable[str]) -> bytes:
    """The ignore rules as they are now in the given `.gitignore` files and in those for the whole repository."""
    place = new.place
    shared = (Path(place.excludes), Path(place.common, "info/exclude"))
    skipped = [b"/" + ignores.literal(os.fsencode(place.prefix + path)) for path in new.skip]
    return b"\n".join([ignores.rules(Path(place.top), sources, shared), *skipped, b""])


def is_ignore_file(path: str) -> bool:
    return path.endswith(GITIGNORE) and f"/{path}".endswith(f"/{GITIGNORE}")


def list_files(new: Snapshot, store: Store, deadline: Deadline) -> list[str]:
    """All files that the rules do not ignore, and those that are protected, by path relative to the top.

    The store's own empty repository lists them: it knows no index, so that nothing in the project's can hide a file.
    A nested repository is listed as one path with a slash at its end.
    """
    place = new.place
    env = {"GIT_DIR": str(store.git), "GIT_WORK_TREE": place.top, "GIT_INDEX_FILE": str(store.git / "no-index")}
    words = ("-c", f"core.ignoreCase={place.ignore_case}", "ls-files", "-z", "--others", "--full-name")
    by_rules = ("--exclude-from=/dev/stdin",)
    listed = git.run(Path(place.top), *words, *by_rules, feed=new.rules, env=env, seconds=deadline.left).parts
    named = {pattern: named_path(pattern) for pattern in new.protect}
    for path in filter(None, named.values()):
        listed += [place.prefix + path, *files_inside(place.top, f"{place.prefix}{path}/")]
    if globs := [f":(glob){pattern}" for pattern, path in named.items() if not path]:
        listed += git.run(Path(place.tree), *words, "--", *globs, env=env, seconds=deadline.left).parts
    return [*listed, *_protected_in_nested(new, listed)]


def _protected_in_nested(new: Snapshot, listed: Iterable[str]) -> list[str]:
    """The protected files in nested repositories: whoever makes one must not get them out of sight."""
    prefix = new.place.prefix
    folders = {path for path in listed if path.endswith("/") and path.startswith(prefix)}
    inner = [
        path
        for folder in folders
        if may_match_below(folder.removeprefix(prefix), new.protect)
        for path in files_inside(new.place.top, folder)
    ]
    return [path for path in inner if matches(path.removeprefix(prefix), new.protect)]


def files_inside(top: str, folder: str) -> Iterator[str]:
    """All files and links in a folder but those of git, relative to the top; nothing for a path without a slash."""
    if not folder.endswith("/") or os.path.islink(f"{top}/{folder[:-1]}"):  # noqa: PTH114 - one of many
        return
    for path, folders, names in os.walk(f"{top}/{folder}"):
        links = [name for name in folders if os.path.islink(f"{path}/{name}")]  # noqa: PTH114 - one of many
        folders[:] = [name for name in folders if name != DOT_GIT]
        yield from (os.path.relpath(f"{path}/{name}", top) for name in (*names, *links) if name != DOT_GIT)


@lru_cache(maxsize=2)
def staged_paths(staged: bytes) -> list[str]:
    """The paths in the index, relative to the top; that of a submodule ends with a slash."""
    rows = os.fsdecode(staged).split("\0")[:-1]
    return [row.partition("\t")[2] + ("/" if row[2:8] == _GITLINK else "") for row in rows]
