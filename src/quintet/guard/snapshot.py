"""A snapshot of a project: files with their bytes, mode bits and links, the index, HEAD, refs, config and hooks."""

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from quintet import files, git
from quintet.errors import GitError, NotGuarded
from quintet.guard import ignores, repository
from quintet.guard.globs import matches, may_match_below, named_path
from quintet.guard.repository import Place
from quintet.guard.store import Content, Deadline, Entry, Store
from quintet.layout import GITIGNORE, TMP

SECONDS: Final = 10.0
_RACY_NS: Final = 2_000_000_000
"""how much older than its reading a file has to be before its times can vouch for it; some file systems count time
in steps of two seconds"""
_ROOM: Final = 2 << 30
"""bytes that are read of what an agent has changed; what is more needs no reading to be undone"""
_LOOPS: Final = 5
_CHECK_EVERY: Final = 1000
_GITLINK: Final = "160000"
_DOT_GIT: Final = ".git"
_FIELDS: Final = (
    "protect",
    "skip",
    "time",
    "git",
    "head",
    "refs",
    "nested",
    "sources",
    "objects_kept",
    "table",
    "bare",
)
Signature = tuple[int, int, int]


@dataclass
class Snapshot:
    """One moment of a project."""

    place: Place
    protect: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    time: int = 0
    """when the scan began, in nanoseconds"""
    files: dict[str, Entry] = field(default_factory=dict)
    """by path relative to the guarded folder; folders end with a slash"""
    elsewhere: dict[str, Signature] = field(default_factory=dict)
    """mode, size and time of files in the repository outside the guarded folder, by path relative to its top"""
    git: dict[str, Entry] = field(default_factory=dict)
    head: str = ""
    refs: dict[str, str] | None = None
    """None where git cannot read the repository"""
    ref_files: dict[str, Entry] = field(default_factory=dict, compare=False)
    """by path relative to the shared git folder; not stored"""
    staged: bytes = b""
    nested: dict[str, str] = field(default_factory=dict)
    """the state of submodules and nested repositories, by path relative to the top"""
    rules: bytes = b""
    """the ignore rules, as one list"""
    sources: tuple[str, ...] = ()
    """the `.gitignore` files that they are from"""
    objects_kept: bool = False
    bare: tuple[str, ...] = ()
    """folders in which no file is that counts, with a slash at the end: an undo does not remove them"""
    table: str = ""
    """the file of the store that has `files` and `elsewhere`; empty where they are not stored"""
    complete: bool = field(default=False, compare=False)
    """nothing that a new snapshot would have is missing: since the earlier one only files have changed"""


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
        listed = _list_by_rules_of_the_tree(new, store, cache, deadline)
        _read_files(new, store, cache, [*listed, *_staged_paths(new.staged)], deadline)
        new.objects_kept = repository.keep_objects(place, store)
        _save(new, store, name)
    return new


def save(seen: Snapshot, store: Store, name: str) -> None:
    """Keep what `look` has seen as a snapshot, if it is complete: cheaper than to take one of the same project."""
    with _guarding(Path(seen.place.tree), store, SECONDS):
        _save(seen, store, name)


def look(before: Snapshot, store: Store, seconds: float = 6 * SECONDS) -> Snapshot:
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
        listed = _list(new, store, deadline)
        hidden = [inner for path in listed if path not in before.nested for inner in _inside(before.place.top, path)]
        paths = [*known, *before.elsewhere, *_staged_paths(before.staged), *listed, *hidden]
        _read_files(new, store, before, paths, deadline)
        new.complete = _is_complete(new, before, listed)
        new.objects_kept, new.bare = before.objects_kept, before.bare
        store.sync()
    return new


def _is_complete(new: Snapshot, before: Snapshot, listed: Iterable[str]) -> bool:
    """Whether a scan by the rules of an earlier snapshot has found all that one by the rules of today would find.

    Where refs, HEAD and the index are the same, no object is new that a snapshot has to keep.
    """
    if new.refs is None or _repository(new) != _repository(before):
        return False
    sources = {*before.sources, *filter(_is_ignore_file, listed)}
    unread = (entry for entry in new.files.values() if stat.S_ISREG(entry.mode) and not entry.digest)
    return _rules_of(new, sources) == before.rules and not any(unread)


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


def _list_by_rules_of_the_tree(new: Snapshot, store: Store, cache: Snapshot | None, deadline: Deadline) -> list[str]:
    """List the files by the ignore rules that hold now.

    A `.gitignore` can be found only by listing, and changes what is listed: so until no new one is found. One that
    ignores itself is not listed any more, and counts as long as it is there.
    """
    sources = set(cache.sources if cache else ()) | {
        path for path in _staged_paths(new.staged) if _is_ignore_file(path)
    }
    sources.add(GITIGNORE)
    for _ in range(_LOOPS):
        new.sources = tuple(sorted(sources))
        new.rules = _rules_of(new, sources)
        listed = _list(new, store, deadline)
        sources.update(path for path in listed if _is_ignore_file(path))
        if len(sources) == len(new.sources):
            break
    return listed


def _rules_of(new: Snapshot, sources: Iterable[str]) -> bytes:
    """The ignore rules as they are now in the given `.gitignore` files and in those for the whole repository."""
    place = new.place
    shared = (Path(place.excludes), Path(place.common, "info/exclude"))
    skipped = [b"/" + ignores.literal(os.fsencode(place.prefix + path)) for path in new.skip]
    return b"\n".join([ignores.rules(Path(place.top), sources, shared), *skipped, b""])


def _is_ignore_file(path: str) -> bool:
    return path.endswith(GITIGNORE) and f"/{path}".endswith(f"/{GITIGNORE}")


def _list(new: Snapshot, store: Store, deadline: Deadline) -> list[str]:
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
        listed += [place.prefix + path, *_inside(place.top, f"{place.prefix}{path}/")]
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
        for path in _inside(new.place.top, folder)
    ]
    return [path for path in inner if matches(path.removeprefix(prefix), new.protect)]


def _inside(top: str, folder: str) -> Iterator[str]:
    """All files and links in a folder but those of git, relative to the top; nothing for a path without a slash."""
    if not folder.endswith("/") or os.path.islink(f"{top}/{folder[:-1]}"):  # noqa: PTH114 - one of many
        return
    for path, folders, names in os.walk(f"{top}/{folder}"):
        links = [name for name in folders if os.path.islink(f"{path}/{name}")]  # noqa: PTH114 - one of many
        folders[:] = [name for name in folders if name != _DOT_GIT]
        yield from (os.path.relpath(f"{path}/{name}", top) for name in (*names, *links) if name != _DOT_GIT)


@lru_cache(maxsize=2)
def _staged_paths(staged: bytes) -> list[str]:
    """The paths in the index, relative to the top; that of a submodule ends with a slash."""
    rows = os.fsdecode(staged).split("\0")[:-1]
    return [row.partition("\t")[2] + ("/" if row[2:8] == _GITLINK else "") for row in rows]


def _read_files(new: Snapshot, store: Store, cache: Snapshot | None, paths: Iterable[str], deadline: Deadline) -> None:
    place, prefix = new.place, new.place.prefix
    inside: dict[str, None] = {}
    for path in dict.fromkeys(paths):
        if path.endswith("/"):
            new.nested[path] = repository.nested_state(Path(place.top, path), deadline)
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


def _bare_folders(root: str, files: dict[str, Entry]) -> Iterator[str]:
    """The folders beside those that files were found in; of one that is not empty only itself."""
    waiting = ["", *(path for path in files if path.endswith("/"))]
    while waiting:
        folder = waiting.pop()
        with suppress(OSError), os.scandir(f"{root}/{folder}") as entries:
            inside = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            if folder and folder not in files and not all(is_folder for _, is_folder in inside):
                continue
            new = [f"{folder}{name}/" for name, is_folder in inside if is_folder and name != _DOT_GIT]
            new = [path for path in new if path not in files]
            waiting += new
            yield from new


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


def _save(new: Snapshot, store: Store, name: str) -> None:
    """Keep a snapshot so that it outlives the process and a power failure."""
    new.bare = tuple(_bare_folders(new.place.tree, new.files))
    if not new.table:
        rows = {"files": new.files, "elsewhere": new.elsewhere}
        text = json.dumps(rows, separators=(",", ":")).encode()
        new.table = f"table-{hashlib.blake2b(text, digest_size=10).hexdigest()}.json"
        with files.replacing(store.folder / new.table) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # its name becomes durable with that of the snapshot
    fields = {key: getattr(new, key) for key in _FIELDS}
    fields |= {"place": asdict(new.place), "staged": store.add([new.staged]), "rules": store.add([new.rules])}
    store.sync()
    files.write(store.folder / f"{name}.json", json.dumps(fields), durable=True)
    _remove_unused_tables(store)


def _remove_unused_tables(store: Store) -> None:
    used = {_table_of(path) for path in store.folder.glob("*.json") if not path.name.startswith("table-")}
    for path in store.folder.glob("table-*.json"):
        if path.name not in used:
            path.unlink()


def _table_of(path: Path) -> str:
    """The table that a snapshot uses; empty where somebody has damaged it."""
    try:
        return str(_read(path)["table"])
    except (ValueError, KeyError, TypeError):
        return ""


def load(store: Store, name: str) -> Snapshot | None:
    """A snapshot that was kept, by this process or an earlier one; None where there is none of this name."""
    try:
        fields = _read(store.folder / f"{name}.json")
        rows = _read(store.folder / fields["table"])
        fields |= {key: store.read(Content(*fields[key])) for key in ("staged", "rules")}
        fields["place"] = Place(**fields["place"])
        fields["git"] = {key: Entry(*row) for key, row in fields["git"].items()}
        fields |= {key: tuple(fields.get(key, ())) for key in ("protect", "skip", "sources", "bare")}
        new = Snapshot(**fields)
        new.files = {path: Entry(*row) for path, row in rows["files"].items()}
        new.elsewhere = {path: (mode, size, mtime) for path, (mode, size, mtime) in rows["elsewhere"].items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotGuarded(f"the snapshot {name} in {store.folder} cannot be read: {error}") from error
    store.know(new.files.values())
    return new


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found
