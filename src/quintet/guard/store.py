"""The folder that keeps snapshots: the bytes of every file that was ever seen, each content once.

All contents are in one file to which is only ever appended, so that the first snapshot of a large project writes one
file and not one per file. A content is found by its place there, and checked by its digest when it is read.
"""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Final, NamedTuple

from quintet import files
from quintet.errors import NotGuarded, TooLarge

_CHUNK: Final = 1 << 20
_BUFFERED: Final = 8 << 20
_ATTEMPTS: Final = 3
_LARGEST: Final = 1 << 30
"""bytes of a file that is kept; a larger one, which may be nothing but holes, is compared by its size and time"""
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GONE: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO}
"""what opening or reading a link gives where something else has taken the place of what was there"""


class Entry(NamedTuple):
    """One file, link or folder: what it is, and the stat fields that tell an unchanged one without reading it."""

    mode: int
    size: int = 0
    mtime: int = 0
    ctime: int = 0
    inode: int = 0
    digest: str = ""
    """of its bytes, or of a link's target; empty for a folder, a pipe or a device, and for what cannot be read"""
    offset: int = -1

    def same(self, other: "Entry | None") -> bool:
        """Whether both are the same to a user: type, mode bits and bytes."""
        if other is None or (self.mode, self.digest) != (other.mode, other.digest):
            return False
        if self.digest or not stat.S_ISREG(self.mode):
            return True
        return (self.size, self.mtime) == (other.size, other.mtime)  # unreadable: the best that can be said


class Content(NamedTuple):
    """Where the bytes of a file are stored."""

    size: int
    digest: str
    offset: int


class Deadline:
    """The moment at which a snapshot has taken too long, and the bytes that may be read until then."""

    def __init__(self, seconds: float, room: int | None = None) -> None:
        self.room = room
        """None: as many as there are"""
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left; TooLarge where there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TooLarge(f"a snapshot of the project takes more than {self._seconds:g} s")
        return left


class Store:
    """A private folder outside the project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git = folder / "git"
        """a repository of its own, which lists files and keeps objects where the project's own may be gone"""
        self.make_folders()
        try:
            self._contents = os.open(folder / "contents", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise NotGuarded(f"snapshots cannot be kept in {folder}: {error.strerror}") from error
        self._written = os.fstat(self._contents).st_size
        self._buffer = bytearray()
        self._places: dict[str, int] = {}

    def make_folders(self) -> None:
        """Make the folders, also again where somebody has removed them."""
        try:
            for part in (self.folder, self.git, self.git / "objects", self.git / "refs"):
                files.make_folder(part)
        except OSError as error:
            raise NotGuarded(f"snapshots cannot be kept in {self.folder}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file of contents."""
        os.close(self._contents)

    def know(self, entries: Iterable[Entry]) -> None:
        """Note where contents are that an earlier process has stored."""
        self._places.update((entry.digest, entry.offset) for entry in entries if entry.digest)

    def observe(self, path: str, deadline: Deadline) -> Entry | None:
        """What is at a path, with its bytes stored; None where nothing is. Links are not followed.

        What changes while it is read is read again a few times, then taken as it is and never trusted to be the same.
        """
        entry = None
        for _ in range(_ATTEMPTS):
            try:
                entry, stable = self._read(path, deadline)
            except OSError as error:
                if error.errno not in _GONE:
                    raise
                entry, stable = None, not os.path.lexists(path)
            if stable:
                return entry
        return entry and entry._replace(mtime=-1, ctime=-1)

    def _read(self, path: str, deadline: Deadline) -> tuple[Entry | None, bool]:
        try:
            found = os.lstat(path)
        except PermissionError:  # in a folder that nobody may enter
            return None, True
        if stat.S_ISLNK(found.st_mode):
            target = os.fsencode(os.readlink(path))  # noqa: PTH115 - of bytes as they are
            return _entry(found)._replace(**self.add([target])._asdict()), True
        if not stat.S_ISREG(found.st_mode):
            return Entry(found.st_mode), True
        if found.st_size > (_LARGEST if deadline.room is None else min(_LARGEST, deadline.room)):
            return _entry(found), True
        try:
            handle = os.open(path, _OPEN)
        except PermissionError:
            return _entry(found), True
        try:
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                return None, False
            content = self.add(_chunks(handle, deadline))
            if deadline.room is not None:
                deadline.room -= content.size
            after = os.fstat(handle)
        finally:
            os.close(handle)
        return _entry(after)._replace(**content._asdict()), _entry(after) == _entry(before)._replace(size=content.size)

    def add(self, chunks: Iterable[bytes]) -> "Content":
        """Store a content that comes in pieces."""
        hashed = hashlib.blake2b(digest_size=20)
        start = self._written + len(self._buffer)
        for chunk in chunks:
            hashed.update(chunk)
            self._buffer += chunk
            if len(self._buffer) > _BUFFERED:
                self._flush()
        digest, end = hashed.hexdigest(), self._written + len(self._buffer)
        place = self._places.setdefault(digest, start)
        if place != start and start >= self._written:
            del self._buffer[start - self._written :]
        return Content(end - start, digest, place)

    def sync(self) -> None:
        """Make sure that all contents outlive a power failure."""
        if self._buffer:
            self._flush()
            os.fsync(self._contents)

    def read(self, entry: Entry | Content) -> bytes:
        """A content as a whole."""
        self._flush()
        data = os.pread(self._contents, entry.size, entry.offset) if entry.size else b""
        if hashlib.blake2b(data, digest_size=20).hexdigest() != entry.digest:
            raise NotGuarded(f"a stored content in {self.folder} is damaged")
        return data

    def write_to(self, entry: Entry, target: IO[bytes]) -> None:
        """Write a content to a file, piece by piece."""
        self._flush()
        hashed = hashlib.blake2b(digest_size=20)
        for position in range(0, entry.size, _CHUNK):
            chunk = os.pread(self._contents, min(_CHUNK, entry.size - position), entry.offset + position)
            hashed.update(chunk)
            target.write(chunk)
        if hashed.hexdigest() != entry.digest:
            raise NotGuarded(f"a stored content in {self.folder} is damaged")

    def _flush(self) -> None:
        view = memoryview(bytes(self._buffer))
        self._buffer.clear()
        while view:
            written = os.write(self._contents, view)
            self._written += written
            view = view[written:]


def _entry(found: os.stat_result) -> Entry:
    return Entry(found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def _chunks(handle: int, deadline: Deadline) -> Iterable[bytes]:
    while chunk := os.read(handle, _CHUNK):
        yield chunk
        _ = deadline.left
