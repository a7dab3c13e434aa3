"""The protected files of a run as they were at its start: kept, put back before each check, and compared after it.

No ignore rules and no git are asked: what matches a protected glob counts. The baseline has a folder of its own, with
one file of contents and a list that is written last, so that a kill leaves a whole baseline or none.
"""

import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

from quintet import files
from quintet.errors import NotGuarded
from quintet.guard.changes import CACHES
from quintet.guard.globs import matches, may_match_below, named_path
from quintet.guard.watching import EVERYTHING, FolderWatch
from quintet.layout import TMP

_LIST: Final = "list.json"
_CONTENTS: Final = "contents-"
_LARGEST: Final = 1 << 30
"""bytes of a file that is kept; a larger one is compared by its size and times, and cannot be put back"""
_CHUNK: Final = 1 << 20
_DOT_GIT: Final = ".git"


class KeptFile(NamedTuple):
    """A protected file or link at the start of the run."""

    mode: int
    size: int
    mtime: int
    digest: str = ""
    """of its bytes, or of a link's target; empty for what cannot be kept"""
    offset: int = 0


class _Stat(NamedTuple):
    """What no rewrite leaves as it was: nobody but the kernel sets a ctime."""

    mode: int
    size: int
    mtime: int
    ctime: int
    inode: int
    device: int


class ProtectedFiles:
    """The baseline, and the files in the tree that it is about."""

    def __init__(self, tree: Path, globs: tuple[str, ...], kept: dict[str, KeptFile], contents: Path) -> None:
        self.tree, self.globs = tree, globs
        self.kept = kept
        """by path relative to the tree"""
        self.contents = contents
        self._seen: dict[str, _Stat] = {}
        """the files as they were when their contents were compared last"""
        self._watch: FolderWatch | None = None

    @property
    def folders(self) -> list[str]:
        """The folders that are protected as a whole, as far as they are there."""
        named = filter(None, map(named_path, self.globs))
        return [path for path in named if path not in self.kept and _is_folder(self.tree, path)]

    @property
    def single_files(self) -> list[str]:
        """The protected files in no such folder."""
        inside = tuple(f"{folder}/" for folder in self.folders)
        return [path for path in self.kept if not path.startswith(inside)]

    def restore(self, *, for_good: bool = True) -> list[str]:
        """Bring all protected files back to their contents at the start, and remove new ones; those that differed.

        Unless it is `for_good`, they are only looked at, and `changed` tells what differs from now on.
        Contents are read, whatever the times of a file say: a process that has one mapped can write to it and leave
        no trace until the kernel writes it to the disk.
        """
        self._seen = {}
        self._end_watch()
        put_back: list[str] = []
        with _translate_errors(), files.reading(self.contents) as contents:
            found = _scan(self.tree, self.globs)
            for path in sorted({*found, *self.kept}):
                kept, now = self.kept.get(path), found.get(path)
                if kept is None or now is None or not self._is_same(path, kept, now):
                    put_back.append(path)
                    if for_good:
                        self._put_back(path, kept, contents.fileno())
            found = _scan(self.tree, self.globs)
        if for_good and found.keys() != self.kept.keys():
            path = min(found.keys() ^ self.kept.keys())
            raise NotGuarded(f"{path} cannot be put back: something writes to it")
        self._seen = found
        return [path for path in put_back if not _is_cache(path)]

    def watch(self) -> None:
        """Begin to note what comes and goes, for `changed`."""
        folders: list[str] = []
        with _translate_errors():
            _scan(self.tree, self.globs, folders)
        self._watch = FolderWatch(self.tree, folders)

    def changed(self) -> list[str]:
        """The protected files that were touched since `restore`, also those that have their bytes back by now.

        What a test tool has written to its cache does not count; `restore` removes it.
        """
        moved = [path for path in self._end_watch() if self._concerns(path)]
        with _translate_errors():
            found = _scan(self.tree, self.globs)
        differing = [path for path in {*found, *self._seen} if found.get(path) != self._seen.get(path)]
        return sorted(path for path in {*differing, *moved} if not _is_cache(path))

    def _end_watch(self) -> set[str]:
        watch, self._watch = self._watch, None
        return watch.finish() if watch else set()

    def _concerns(self, path: str) -> bool:
        """Whether it is a protected path, or a folder on the way to one, that has come or gone."""
        if path == EVERYTHING or _is_protected(path.removesuffix("/"), self.globs):
            return True
        return path.endswith("/") and any(kept.startswith(path) for kept in self.kept)

    def _is_same(self, path: str, kept: KeptFile, now: _Stat) -> bool:
        if kept.mode != now.mode or kept.size != now.size:
            return False
        return kept.digest == _digest(self.tree, path, now) if kept.digest else kept.mtime == now.mtime

    def _put_back(self, path: str, kept: KeptFile | None, contents: int) -> None:
        target = self.tree / path
        _clear_way(self.tree, path)
        found = files.look(target, self.tree)
        if found is not None and (kept is None or stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(kept.mode)):
            _remove(target, self.tree)
        if kept is None:
            return
        if not kept.digest:
            raise NotGuarded(f"{path} was changed, and is no file that can be put back")
        if stat.S_ISLNK(kept.mode):
            link = b"".join(_pieces(contents, kept))
            if hashlib.blake2b(link, digest_size=20).hexdigest() != kept.digest:
                raise NotGuarded(f"the baseline of {path} is damaged")
            files.make_link(target, os.fsdecode(link), self.tree)
            return
        with files.replacing(target, self.tree, private=False) as file:
            hashed = hashlib.blake2b(digest_size=20)
            for piece in _pieces(contents, kept):
                hashed.update(piece)
                file.write(piece)
            if hashed.hexdigest() != kept.digest:
                raise NotGuarded(f"the baseline of {path} is damaged")
            file.flush()
            os.fchmod(file.fileno(), stat.S_IMODE(kept.mode))
            os.utime(file.fileno(), ns=(kept.mtime, kept.mtime))


def keep_protected(tree: Path, folder: Path, globs: tuple[str, ...]) -> ProtectedFiles:
    """Keep all protected files as they are now, in a folder that nobody else writes to."""
    with _translate_errors():
        shutil.rmtree(folder, ignore_errors=True)
        files.make_folder(folder)
        return _extend(ProtectedFiles(tree, (), {}, folder / _CONTENTS), globs)


def load_protected(tree: Path, folder: Path, globs: tuple[str, ...]) -> ProtectedFiles:
    """Read the baseline of a run; NotGuarded where it is missing or damaged.

    Files that only globs of today protect are kept as they are now.
    """
    try:
        found = json.loads(files.read(folder / _LIST, _LARGEST))
        kept = {os.fsdecode(bytes.fromhex(path)): KeptFile(*row) for path, row in found["files"].items()}
        known = ProtectedFiles(tree, tuple(found["globs"]), kept, folder / Path(found["contents"]).name)
        if known.contents.stat().st_size != found["size"]:
            raise NotGuarded(f"{known.contents} has another size")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotGuarded(f"{folder / _LIST} cannot be read: {error}") from error
    if known.globs == globs:
        return known
    with _translate_errors():
        return _extend(known, globs)


def _extend(known: ProtectedFiles, globs: tuple[str, ...]) -> ProtectedFiles:
    """The baseline for other globs: files that they share with the old ones stay as they were kept."""
    folder, kept = known.contents.parent, dict[str, KeptFile]()
    contents = folder / f"{_CONTENTS}{secrets.token_hex(4)}"
    with files.replacing(contents, durable=True) as new:
        old = [path for path in known.kept if _is_protected(path, globs)]
        if old:
            with files.reading(known.contents) as earlier:
                for path in old:
                    entry = known.kept[path]
                    kept[path] = entry._replace(offset=new.tell())
                    new.writelines(_pieces(earlier.fileno(), entry) if entry.digest else ())
        for path, now in _scan(known.tree, globs).items():
            if path not in kept and not _is_protected(path, known.globs):
                kept[path] = _keep(known.tree, path, now, new)
        size = new.tell()
    rows = {os.fsencode(path).hex(): entry for path, entry in kept.items()}
    listed = {"globs": globs, "contents": contents.name, "size": size, "files": rows}
    files.write(folder / _LIST, json.dumps(listed), durable=True)
    known.contents.unlink(missing_ok=True)
    return ProtectedFiles(known.tree, globs, kept, contents)


def _keep(tree: Path, path: str, now: _Stat, contents: IO[bytes]) -> KeptFile:
    entry = KeptFile(now.mode, now.size, now.mtime)
    if not (stat.S_ISREG(now.mode) or stat.S_ISLNK(now.mode)) or now.size > _LARGEST:
        return entry
    offset, hashed = contents.tell(), hashlib.blake2b(digest_size=20)
    for piece in _read(tree, path, now):
        hashed.update(piece)
        contents.write(piece)
    return KeptFile(now.mode, contents.tell() - offset, now.mtime, hashed.hexdigest(), offset)


def _digest(tree: Path, path: str, now: _Stat) -> str:
    hashed = hashlib.blake2b(digest_size=20)
    for piece in _read(tree, path, now):
        hashed.update(piece)
    return hashed.hexdigest()


def _read(tree: Path, path: str, now: _Stat) -> Iterator[bytes]:
    """The bytes of a file, or the target of a link."""
    if stat.S_ISLNK(now.mode):
        yield os.fsencode(os.readlink(tree / path))  # noqa: PTH115 - of bytes as they are
        return
    with files.reading(tree / path, tree) as file:
        while piece := file.read(_CHUNK):
            yield piece


def _pieces(contents: int, kept: KeptFile) -> Iterator[bytes]:
    for position in range(0, kept.size, _CHUNK):
        yield os.pread(contents, min(_CHUNK, kept.size - position), kept.offset + position)


def _is_protected(path: str, globs: tuple[str, ...]) -> bool:
    return matches(path, globs) or path in map(named_path, globs)


def _is_cache(path: str) -> bool:
    return not CACHES.isdisjoint(path.split("/"))


def _scan(tree: Path, globs: tuple[str, ...], folders: list[str] | None = None) -> dict[str, _Stat]:
    """All protected files, links and other things that are no folders. What is behind a link is not there.

    `folders` gets those that were looked into.
    """
    found: dict[str, _Stat] = {}
    todo = [""] if globs else []
    while todo:
        folder = todo.pop()
        if folders is not None:
            folders.append(folder)
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(tree / folder) as entries:
            for entry in entries:
                path = f"{folder}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    is_own = entry.name == _DOT_GIT or path == TMP.name
                    if not is_own and may_match_below(f"{path}/", globs):
                        todo.append(f"{path}/")
                elif _is_protected(path, globs):
                    now = entry.stat(follow_symlinks=False)
                    fields = (now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino, now.st_dev)
                    found[path] = _Stat(now.st_mode, *fields)
    return found


def _clear_way(tree: Path, path: str) -> None:
    """Remove a file or link that has taken the place of a folder on the way to a path."""
    for above in reversed(Path(path).parents[:-1]):
        found = files.look(tree / above, tree)
        if found is not None and not stat.S_ISDIR(found.st_mode):
            files.remove(tree / above, tree)


def _remove(target: Path, tree: Path) -> None:
    found = files.look(target, tree)
    if found is not None and stat.S_ISDIR(found.st_mode):
        shutil.rmtree(target)
    elif found is not None:
        files.remove(target, tree)


def _is_folder(tree: Path, path: str) -> bool:
    return files.is_folder(tree / path, tree)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotGuarded(f"protected files cannot be kept or put back: {error.filename}: {error.strerror}") from error
