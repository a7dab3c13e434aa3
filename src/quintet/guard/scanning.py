"""Taking a snapshot of a project, and looking at the project again."""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from quintet.errors import GitError, NotGuarded
from quintet.guard import repository
from quintet.guard.listing import (
    files_inside,
    is_ignore_file,
    list_by_rules_of_the_tree,
    list_files,
    rules_of,
    staged_paths,
)
from quintet.guard.snapshot import Snapshot, save_snapshot, walk_folders
from quintet.guard.store import Deadline, Entry, Store
from quintet.layout import TMP

START_SECONDS: Final = 60.0
"""for the first snapshot of a run: where it takes longer, the run is not guarded"""
SECONDS: Final = 600.0
"""for all others: where one takes longer, no verdict of the turn counts"""
_RACY_NS: Final = 2_000_000_000
"""how much older than its reading a file has to be before its times can vouch for it; some file systems count time
in steps of two seconds"""
_ROOM: Final = 2 << 30
"""bytes that are read of what an agent has changed; what is more needs no reading to be undone"""
_CHECK_EVERY: Final = 1000


def take(
    tree: Path,
    store: Store,
    name: str,
    protect: Sequence[str] = (),
    *,
    skip: Sequence[str] = (TMP.name,),
    cache: Snapshot | None = None,
    seconds: float = SECONDS,
) -> Snapshot:
    """Take a snapshot and keep it in the store under a name; files that are the same as in the cache are not read.

    `protect` are globs of files that belong to it even where git ignores them, `skip` paths that never do; both are
    relative to the tree. Raises NotGuarded, or TooLarge after the given seconds.
    """
    with _guarding(tree, store, seconds) as deadline:
        place = repository.locate(tree, deadline)
        repository.prepare(store, place)
        new = Snapshot(place, tuple(protect), tuple(skip), time.time_ns())
        _read_repository(new, store, cache, deadline)
        if new.refs is None:
            raise NotGuarded(f"{tree} cannot be guarded: git cannot read its repository")
        listed = list_by_rules_of_the_tree(new, store, cache, deadline)
        _read_files(new, store, cache, [*listed, *staged_paths(new.staged)], deadline)
        new.objects_kept = repository.keep_objects(place, store)
        save_snapshot(new, store, name)
    return new


def save(seen: Snapshot, store: Store, name: str) -> None:
    """Keep what `look` has seen as a snapshot, if it is complete: cheaper than to take one of the same project."""
    with _guarding(Path(seen.place.tree), store, SECONDS):
        save_snapshot(seen, store, name)


def look(before: Snapshot, store: Store, seconds: float = SECONDS) -> Snapshot:
    """Scan the project of an earlier snapshot again, by the ignore rules of that one. Nothing is kept by a name."""
    with _guarding(Path(before.place.tree), store, seconds, _ROOM) as deadline:
        repository.prepare(store, before.place)
        new = Snapshot(before.place, before.protect, before.skip, time.time_ns())
        new.rules, new.sources = before.rules, before.sources
        _read_repository(new, store, before, deadline)
        if _configs(new) != _configs(before) and not repository.is_found(before.place, deadline):
            new.refs = None
        prefix = before.place.prefix
        known = [prefix + path for path in before.files if not path.endswith("/")]
        listed = list_files(new, store, deadline)
        hidden = [
            inner for path in listed if path not in before.nested for inner in files_inside(before.place.top, path)
        ]
        paths = [*known, *before.elsewhere, *staged_paths(before.staged), *listed, *hidden]
        _read_files(new, store, before, paths, deadline)
        new.complete = _is_complete(new, before, listed)
        new.objects_kept = before.objects_kept
        store.sync()
    return new


def _is_complete(new: Snapshot, before: Snapshot, listed: Iterable[str]) -> bool:
    """Whether a scan by the rules of an earlier snapshot has found all that one by the rules of today would find.

    Where refs, HEAD and the index are the same, no object is new that a snapshot has to keep.
    """
    if new.refs is None or _repository(new) != _repository(before):
        return False
    sources = {*before.sources, *filter(is_ignore_file, listed)}
    unread = (entry for entry in new.files.values() if stat.S_ISREG(entry.mode) and not entry.digest)
    return rules_of(new, sources) == before.rules and not any(unread)


def _repository(snapshot: Snapshot) -> tuple[object, ...]:
    """All that decides which files count, and which objects are needed."""
    return snapshot.head, snapshot.refs, snapshot.staged, snapshot.nested.keys(), _own_files(snapshot)


@contextmanager
def _guarding(tree: Path, store: Store, seconds: float, room: int | None = None) -> Iterator[Deadline]:
    """Turn whatever keeps a snapshot from being taken into NotGuarded, or TooLarge where the time is up."""
    deadline = Deadline(seconds, room)
    try:
        yield deadline
    except GitError as error:
        _ = deadline.left
        raise NotGuarded(f"{tree} cannot be guarded: {error}") from error
    except OSError as error:
        raise NotGuarded(f"{tree} cannot be guarded: {error.filename or store.folder}: {error.strerror}") from error


def _read_repository(new: Snapshot, store: Store, cache: Snapshot | None, deadline: Deadline) -> None:
    place, names = new.place, repository.git_files(new.place)
    for root, folder in place.roots.items():
        old = {name.removeprefix(f"{root}/"): entry for name, entry in cache.git.items()} if cache else {}
        found = _scan(folder, names[root], old, trusted=_trusted(cache), store=store, deadline=deadline)
        new.git.update((f"{root}/{name}", entry) for name, entry in found.items())
    new.ref_files = _ref_files(new, store, cache, deadline)
    try:
        if cache and _has_refs_of(cache, new):
            new.head, new.refs = cache.head, cache.refs
        else:
            new.head, new.refs = repository.head_and_refs(place, deadline)
        if cache and cache.refs is not None and new.git.get("git/index") == cache.git.get("git/index"):
            new.staged = cache.staged
        else:
            new.staged = repository.staged(place, deadline)
    except GitError:
        new.refs = None


def _ref_files(new: Snapshot, store: Store, cache: Snapshot | None, deadline: Deadline) -> dict[str, Entry]:
    """The files that git has its refs in; none where it may have them elsewhere: behind a link, or by its config."""
    names, old = repository.ref_files(new.place), cache.ref_files if cache else {}
    found = _scan(new.place.common, names, old, trusted=_trusted(cache), store=store, deadline=deadline)
    read = {name: entry for name, entry in found.items() if stat.S_ISREG(entry.mode) and entry.digest}
    config = new.git.get("common/config")
    is_known = config is not None and config.digest and b"refstorage" not in store.read(config).lower()
    return read if is_known and len(read) == len(names) else {}


def _has_refs_of(cache: Snapshot, new: Snapshot) -> bool:
    """Whether all files that HEAD and the refs depend on are those of an earlier snapshot: git need not be asked."""
    return (
        bool(new.ref_files)
        and cache.refs is not None
        and repository.is_usable(new.place)
        and _digests(new.ref_files) == _digests(cache.ref_files)
        and _own_files(new) == _own_files(cache)
    )


def _digests(entries: dict[str, Entry]) -> dict[str, str]:
    return {name: entry.digest for name, entry in entries.items()}


def _own_files(snapshot: Snapshot) -> dict[str, str]:
    """The digests of the repository's own files in a snapshot, without the index, which git writes anew."""
    return {name: digest for name, digest in _digests(snapshot.git).items() if name != "git/index"}


def _configs(snapshot: Snapshot) -> list[str]:
    """Git's own config, as far as it decides what the work tree of the repository is."""
    return [entry.digest for name in ("common/config", "git/config.worktree") if (entry := snapshot.git.get(name))]


def _read_files(new: Snapshot, store: Store, cache: Snapshot | None, paths: Iterable[str], deadline: Deadline) -> None:
    place, prefix = new.place, new.place.prefix
    inside: dict[str, None] = {}
    for path in dict.fromkeys(paths):
        if path.endswith("/"):
            new.nested.update(repository.nested_states(place, path, store, deadline))
        elif path.startswith(prefix):
            inside[path[len(prefix) :]] = None
        else:
            with suppress(OSError):
                found = os.lstat(f"{place.top}/{path}")
                new.elsewhere[path] = (found.st_mode, found.st_size, found.st_mtime_ns)
    skipped = tuple(f"{path}/" for path in new.skip)
    for path in [path for path in inside if path.startswith(skipped) or path in new.skip]:
        del inside[path]
    old = cache.files if cache else {}
    new.files = _scan(place.tree, inside, old, trusted=_trusted(cache), store=store, deadline=deadline)
    walked = walk_folders(place.tree, new.files, new.skip)
    new.bare = tuple(walked.bare)
    for path in walked.special:
        if entry := store.observe(f"{place.tree}/{path}", deadline):
            new.files[path] = entry
    for path in (prefix + folder for folder in walked.repositories if prefix + folder):
        if path not in new.nested:
            new.nested.update(repository.nested_states(place, path, store, deadline))
    if cache and cache.table and new.files == cache.files and new.elsewhere == cache.elsewhere:
        new.table = cache.table


def _scan(
    root: str,
    names: Iterable[str],
    old: dict[str, Entry],
    *,
    trusted: int,
    store: Store,
    deadline: Deadline,
) -> dict[str, Entry]:
    """What is at each path below a folder, and the folders on the way; what is behind a link is not there.

    A file whose stat fields are those of its old entry is not read, unless they are as young as `trusted` or younger.
    """
    found: dict[str, Entry] = {}
    real = {"": True}
    for number, name in enumerate(names):
        if number % _CHECK_EVERY == 0:
            _ = deadline.left
        folder = name.rpartition("/")[0]
        if not (real[folder] if folder in real else _enter(root, folder, real, found)):
            continue
        path = f"{root}/{name}"
        try:
            now = os.lstat(path)
        except OSError:
            continue
        entry = old.get(name)
        if (
            entry is None
            or entry.ctime != now.st_ctime_ns
            or entry.mtime != now.st_mtime_ns
            or entry.size != now.st_size
            or entry.inode != now.st_ino
            or entry.mode != now.st_mode
            or entry.mtime >= trusted
            or entry.ctime >= trusted
        ):
            entry = None if stat.S_ISDIR(now.st_mode) else store.observe(path, deadline)
        if entry is not None:
            found[name] = entry
    return found


def _trusted(cache: Snapshot | None) -> int:
    """The time from which on a change may have left the same times as one that the cache has seen."""
    return cache.time - _RACY_NS if cache else 0


def _enter(root: str, folder: str, real: dict[str, bool], found: dict[str, Entry]) -> bool:
    """Note a folder with its mode bits; False where it, or one above it, is no folder of its own but a link."""
    above = folder.rpartition("/")[0]
    inside = real[above] if above in real else _enter(root, above, real, found)
    mode = 0
    with suppress(OSError):
        mode = os.lstat(f"{root}/{folder}").st_mode
    real[folder] = inside and stat.S_ISDIR(mode)
    if real[folder]:
        found[f"{folder}/"] = Entry(mode)
    return real[folder]
