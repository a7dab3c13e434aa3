"""The steps of an undo, each of which can be done twice. No step goes through a symbolic link."""

import errno
import os
import posixpath
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet import files, git
from quintet.errors import GitError, NotGuarded
from quintet.guard import repository
from quintet.guard.changes import Area, Change, staged_entries
from quintet.guard.repository import STASH_LOG, Place
from quintet.guard.store import Deadline, Entry, Store

_LOCK_SECONDS: Final = 2.0
_SECONDS: Final = 600.0
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK_DRAFT: Final = ".quintet-link.tmp"
_DRAFT: Final = re.compile(r"\.(.+)\.[0-9a-f]{8}\.tmp", re.DOTALL)
"""what a file is called while it is being written"""
_EMPTY_BLOBS: Final = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
"""the empty file by SHA-1 and SHA-256, which also stands for a file that is only intended to be added"""
_AGAIN: Final = "something goes on writing there"
_SINCE: Final = "it has changed since, and was left as it is"


@dataclass
class UndoPlan:
    """All that an undo does, so that another process can do it."""

    place: Place
    changes: list[Change]
    index: Entry | None
    """the index file of the snapshot"""
    whole_index: bool
    """all changes of the index are taken back, and so the file as a whole"""
    refs: dict[str, str]
    """all refs of the snapshot, for a repository that has to be made anew"""
    folders: dict[str, int]
    """the folders above what comes back, with their mode bits"""
    emptied: list[str]
    """folders that are removed where nothing is left in them"""
    kept: list[str]
    notes: list[str]
    taken_out: dict[str, str]
    """by the path of a `.git` that an agent has made, the path to move it to"""

    def of(self, area: Area) -> list[Change]:
        """The changes of one area."""
        return [change for change in self.changes if change.area is area]


class Restoring:
    """Carries a plan out. What fails is noted, and the other steps are done all the same."""

    def __init__(self, plan: UndoPlan, store: Store, force: bool) -> None:
        self.failed: dict[str, str] = {}
        """names, each with a reason"""
        self._plan, self._place, self._store, self._force = plan, plan.place, store, force
        self._deadline = Deadline(_SECONDS)

    def run(self) -> None:
        """Do all steps. The repository's own files come first, because git may not run without them."""
        if not self._force:
            self._remove_drafts()
        broken = bool(self._plan.of(Area.REPOSITORY))
        common = Path(self._place.common)
        for folder in (common / "objects", common / "refs", Path(self._place.git_dir)) if broken else ():
            with self._noting(str(folder)):
                folder.mkdir(parents=True, exist_ok=True)
        for name, target in self._plan.taken_out.items():
            with self._noting(name):
                _take_out(self._place.tree, name, Path(target))
        own = self._plan.of(Area.GIT)
        self._git_files(change for change in own if change.name != STASH_LOG)
        if broken or self._plan.of(Area.REF) or self._plan.of(Area.HEAD):
            with self._noting("objects"):
                repository.put_objects_back(self._place, self._store)
            with self._noting("refs"):
                self._refs(broken)
        with self._noting("index"):
            self._index()
        self._git_files(change for change in own if change.name == STASH_LOG)  # git wrote to it with the ref
        self._files()
        with suppress(GitError):  # another git holds the index: it only shows files as changed that are not
            self._forget_sizes()

    def written_again(self) -> bool:
        """Whether a file is not as it should be although it was put back; noted as a failure."""
        for change in self._plan.of(Area.FILE):
            if change.name not in self.failed and not _same(self._now(self._place.tree, change.name), change.before):
                self.failed[change.name] = _AGAIN
        for name in self._plan.taken_out:
            if name not in self.failed and os.path.lexists(f"{self._place.tree}/{name}"):
                self.failed[name] = _AGAIN
        return _AGAIN in self.failed.values()

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failed[name] = error.strerror or str(error)
        except (GitError, NotGuarded) as error:
            self.failed[name] = str(error)

    def _is_due(
        self, name: str, now: Entry | str | None, before: Entry | str | None, after: Entry | str | None
    ) -> bool:
        """Whether something is to be put back: not where it is, nor where somebody has changed it since the plan."""
        if _same(now, before):
            return False
        if not self._force and not _same(now, after):
            self.failed[name] = _SINCE
            return False
        return True

    # the repository

    def _git_files(self, changes: Iterable[Change]) -> None:
        for change in changes:
            root, _, path = change.name.partition("/")
            with self._noting(change.name):
                folder = self._place.roots[root]
                if self._is_due(change.name, self._now(folder, path), change.before, change.after):
                    self._put(folder, path, change.before)

    def _refs(self, broken: bool) -> None:
        head, refs = repository.head_and_refs(self._place, self._deadline)
        wanted = {change.name: (change.before, change.after) for change in self._plan.of(Area.REF)}
        if broken:
            guarded = [name for name in refs if name.startswith(repository.GUARDED_REFS)]
            wanted = {name: (self._plan.refs.get(name), refs.get(name)) for name in (*guarded, *self._plan.refs)}
        due = {
            name: str(old or "") for name, (old, new) in wanted.items() if self._is_due(name, refs.get(name), old, new)
        }
        for name in due.keys() - refs.keys():  # a file that is no ref would keep git from writing one
            with suppress(OSError):
                files.remove(Path(self._place.common, name), Path(self._place.common))
        self._update_refs(f"delete {name}" for name, value in due.items() if not value)
        self._update_refs(f"update {name} {value}" for name, value in due.items() if value and not _link(value))
        for name, value in due.items():
            if _link(value):
                self._run("symbolic-ref", name, _link(value))
        for change in self._plan.of(Area.HEAD):
            old, new = (str(value).rpartition(" ")[0] for value in (change.before, change.after))
            if self._is_due("HEAD", head, old, new):
                self._run("symbolic-ref", "HEAD", _link(old)) if _link(old) else self._update_refs(
                    [f"update HEAD {old}"]
                )

    def _update_refs(self, lines: Iterable[str]) -> None:
        if feed := "".join(f"{line}\n" for line in lines):
            self._run("update-ref", "--no-deref", "-m", "quintet: put back", "--stdin", feed=feed.encode())

    def _index(self) -> None:
        """Put the index file back as it was, or where some changes of it may stay, single entries."""
        changes = self._plan.of(Area.INDEX)
        if not changes:
            return
        prefix, now = self._place.prefix, staged_entries(repository.staged(self._place, self._deadline))
        paths = {posixpath.normpath(prefix + change.name): change for change in changes}
        due = [
            path for path, change in paths.items() if self._is_due("index", now.get(path), change.before, change.after)
        ]
        if not due or "index" in self.failed:
            return
        self._wait_for_lock()
        if self._plan.whole_index:
            self._put(self._place.git_dir, "index", self._plan.index)
            return
        rows = []
        for path in due:
            rows.append(f"0 {'0' * 40}\t{path}")
            rows += [f"{row[2:]}\t{path}" for row in str(paths[path].before or "").splitlines()]
        self._write_index(rows)

    def _forget_sizes(self) -> None:
        """Let git compare the files that were put back by content.

        An agent's git may have noted another size for the same content (`core.autocrlf`), and a file whose size differs
        is a changed one to git, without a second look.
        """
        if "index" in self.failed or _same(self._now(self._place.git_dir, "index"), self._plan.index):
            return  # the second: the sizes are those of the snapshot
        names = {
            posixpath.normpath(self._place.prefix + change.name)
            for change in self._plan.of(Area.FILE)
            if _size(change.before) != _size(change.after) and change.name not in self.failed
        }
        if not names:
            return
        now = staged_entries(repository.staged(self._place, self._deadline))
        rows = [f"{now[path][2:]}\t{path}" for path in names & now.keys() if _is_plain(now[path])]
        if rows:
            self._write_index(rows)

    def _write_index(self, rows: Iterable[str]) -> None:
        feed = os.fsencode("".join(f"{row}\0" for row in rows))
        self._run("update-index", "-z", "--index-info", feed=feed)

    def _wait_for_lock(self) -> None:
        """Wait while another git writes the index; its lock is the user's and is not broken."""
        lock, end = Path(self._place.git_dir, "index.lock"), time.monotonic() + _LOCK_SECONDS
        while lock.exists():
            if time.monotonic() > end:
                raise GitError(f"{lock} is held by another git; remove it if none is running")
            time.sleep(0.02)

    def _run(self, *arguments: str, feed: bytes = b"") -> None:
        git.run(Path(self._place.top), *arguments, feed=feed, env=self._place.env)

    # files

    def _files(self) -> None:
        """First remove what is new, then make folders, then write."""
        tree, changes = self._place.tree, self._plan.of(Area.FILE)
        for change in sorted(changes, key=lambda change: change.name, reverse=True):
            if change.before is None:
                self._file(change)
        for folder in reversed(self._plan.emptied):
            with suppress(OSError), _parent(tree, folder) as (handle, name):
                os.rmdir(name, dir_fd=handle)
        for folder, mode in self._plan.folders.items():
            if any(change.before and change.name.startswith(folder) for change in changes):
                with self._noting(folder):
                    _make_folder(tree, folder, mode)
        for change in changes:
            if change.before is not None:
                self._file(change)

    def _file(self, change: Change) -> None:
        with self._noting(change.name):
            if self._is_due(change.name, self._now(self._place.tree, change.name), change.before, change.after):
                self._put(self._place.tree, change.name, change.before)

    def _now(self, root: str, path: str) -> Entry | None:
        """What is at a path that leads over no link."""
        try:
            found = files.look(Path(root, path), Path(root))
        except OSError:
            return None
        if found is None or (stat.S_ISDIR(found.st_mode) and not path.endswith("/")):
            return None
        return self._store.observe(f"{root}/{path}".removesuffix("/"), self._deadline)

    def _put(self, root: str, path: str, entry: Entry | str | None) -> None:
        target = Path(root, path)
        if not isinstance(entry, Entry):
            with suppress(FileNotFoundError):
                files.remove(target, Path(root))
        elif stat.S_ISDIR(entry.mode):
            _make_folder(root, path, entry.mode)
        elif not entry.digest:
            raise OSError(errno.EOPNOTSUPP, "its bytes were not readable or too many, or it is no file or link")
        elif stat.S_ISLNK(entry.mode):
            with _parent(root, path) as (handle, name):
                with suppress(FileNotFoundError):
                    os.unlink(_LINK_DRAFT, dir_fd=handle)
                os.symlink(self._store.read(entry), _LINK_DRAFT, dir_fd=handle)
                os.replace(_LINK_DRAFT, name, src_dir_fd=handle, dst_dir_fd=handle)
        else:
            with files.replacing(target, Path(root), private=False) as file:
                self._store.write_to(entry, file)
                file.flush()
                os.fchmod(file.fileno(), stat.S_IMODE(entry.mode))
                if (root, path) == (self._place.git_dir, "index") and entry.mtime > 0:
                    # git reads files that are as young as its index; with a new time it would take an edit for none
                    os.utime(file.fileno(), ns=(entry.mtime, entry.mtime))

    def _remove_drafts(self) -> None:
        """Remove what a killed process was writing beside the files of the plan."""
        named = [(self._place.tree, change.name) for change in self._plan.of(Area.FILE)]
        for change in self._plan.of(Area.GIT):
            root, _, path = change.name.partition("/")
            named.append((self._place.roots[root], path))
        for root, path in (*named, (self._place.git_dir, "index")):
            with suppress(OSError), _parent(root, path) as (handle, own):
                for name in os.listdir(handle):  # noqa: PTH208 - by a handle
                    draft = _DRAFT.fullmatch(name)
                    if name == _LINK_DRAFT or (draft and draft[1] == own[:200]):
                        os.unlink(name, dir_fd=handle)


@contextmanager
def _parent(root: str, path: str) -> Iterator[tuple[int, str]]:
    """A handle of the folder that something is in, reached over no link, and its name there."""
    *folders, name = path.removesuffix("/").split("/")
    handle = os.open(root, _FOLDER)
    try:
        for folder in folders:
            above, handle = handle, os.open(folder, _FOLDER, dir_fd=handle)
            os.close(above)
        yield handle, name
    finally:
        os.close(handle)


def _take_out(root: str, path: str, target: Path) -> None:
    """Move a `.git` away, unless that is done. Its config is moved aside, so that it runs nothing there either."""
    with _parent(root, path) as (handle, name):
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
                os.chmod(name, stat.S_IRWXU, dir_fd=handle)  # a folder that is moved has to be writable
            os.replace(name, target, src_dir_fd=handle)
        except FileNotFoundError:
            return
    for config in ("config", "config.worktree"):
        with suppress(OSError), _parent(str(target), config) as (handle, name):
            os.replace(name, f"{name}.taken-out", src_dir_fd=handle, dst_dir_fd=handle)


def _make_folder(root: str, path: str, mode: int) -> None:
    with _parent(root, path) as (handle, name):
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=handle)
        if stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            os.chmod(name, stat.S_IMODE(mode), dir_fd=handle)


def _same(one: Entry | str | None, other: Entry | str | None) -> bool:
    if isinstance(one, Entry) and isinstance(other, Entry):
        return one.same(other)
    return one == other


def _size(entry: Entry | str | None) -> int | None:
    return entry.size if isinstance(entry, Entry) else None


def _is_plain(staged: str) -> bool:
    """Whether an entry of the index can be written again as it is listed: one stage, no flags, not intent-to-add."""
    flags, _, entry = staged.partition(" ")
    return flags == "H" and "\n" not in staged and entry.split()[1] not in _EMPTY_BLOBS


def _link(value: str) -> str:
    """What a symbolic ref points to; empty for a commit."""
    return value.removeprefix("ref: ") if value.startswith("ref: ") else ""
