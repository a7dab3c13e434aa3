"""A disk on which the orchestrator can be killed in the middle of a write, and that can be full or closed to it.

The files are real; only the calls that change something are looked at on their way. An agent's calls pass as they
are, but for a full disk, which has no room for anybody.
"""

import builtins
import errno
import fcntl
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from harness.chaos.sim.moments import Killed, Moments

_CHANGING: Final = ("mkdir", "rename", "replace", "unlink", "rmdir", "fsync")
_NEEDS_ROOM: Final = frozenset({"mkdir"})
_WRITES: Final = os.O_WRONLY | os.O_RDWR
_real_open = io.open
_real_os_open = os.open


class Disk:
    """The seam between a process and its files."""

    def __init__(self, moments: Moments, root: Path) -> None:
        self.moments = moments
        self.root = str(root)
        self.room: int | None = None
        """bytes that can still be written; None: as many as one likes"""
        self.closed: str = ""
        """a folder in which nothing can be changed"""
        self._descriptors: set[int] = set()
        """those that were opened for writing and not yet given to a file object"""

    def mend(self) -> None:
        """Somebody has made room and put the permissions right."""
        self.room, self.closed = None, ""

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within this every change of a file passes here."""
        before = {name: getattr(os, name) for name in (*_CHANGING, "open")}
        for name in _CHANGING:
            setattr(os, name, partial(self._change, name, before[name]))
        os.open = self._os_open
        io.open = builtins.open = self._open
        try:
            yield
        finally:
            for name, function in before.items():
                setattr(os, name, function)
            io.open = builtins.open = _real_open

    def _is_ours(self, path: Any) -> bool:
        """Whether a call is the orchestrator's and about the project."""
        if not self.moments.watching:
            return False
        return path in self._descriptors if isinstance(path, int) else os.fspath(path).startswith(self.root)

    def _change(self, name: str, function: Callable[..., Any], first: Any, *rest: Any, **more: Any) -> Any:
        path = _whole(first, more.get("dir_fd", more.get("src_dir_fd")))
        if name == "fsync" or self._is_ours(path):
            shown = path if isinstance(path, int) else self._short(path)
            self.moments.pass_by(f"{name} {shown}")
            if not isinstance(path, int):
                self._check(path, needs_room=name in _NEEDS_ROOM)
        return function(first, *rest, **more)

    def _os_open(self, path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if not flags & _WRITES or not self._is_ours(whole := _whole(path, more.get("dir_fd"))):
            return _real_os_open(path, flags, *rest, **more)
        self.moments.pass_by(f"open {self._short(whole)}")
        self._check(whole, needs_room=bool(flags & os.O_CREAT) and not Path(whole).exists())
        descriptor = _real_os_open(path, flags, *rest, **more)
        self._descriptors.add(descriptor)
        return descriptor

    def _open(self, file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if not set(mode) & set("wax+") or "opener" in more or not self._is_ours(file):
            return _real_open(file, mode, *rest, **more)  # what has an opener is a file without a name
        if isinstance(file, int):
            self._descriptors.remove(file)
        else:
            self.moments.pass_by(f"open {self._short(file)}")
            self._check(file, needs_room=not Path(file).exists())
        raw = _Raw(self, file, mode.replace("b", "").replace("t", ""))
        buffer = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return buffer
        more.pop("buffering", None)
        names = ("buffering", "encoding", "errors", "newline")
        more |= dict(zip(names, rest, strict=False))
        more.pop("buffering", None)
        return io.TextIOWrapper(buffer, **more)

    def _check(self, path: Any, *, needs_room: bool) -> None:
        name = os.fspath(path)
        if self.closed and os.path.dirname(name).startswith(self.closed):  # noqa: PTH120 - called very often
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        if needs_room and self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)

    def _short(self, path: Any) -> str:
        return str(os.fspath(path)).removeprefix(self.root)

    def written_by_agent(self, path: Path, data: bytes) -> None:
        """An agent writes a whole file, as `cat > file` does."""
        if self.room is not None and self.room < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _whole(path: Any, folder: int | None) -> Any:
    """The whole path of a name that is given relative to a folder's handle."""
    if folder is None:
        return path
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(folder, fcntl.F_GETPATH, b"\0" * 1024).rstrip(b"\0")) + f"/{path}"
    return f"{os.readlink(f'/proc/self/fd/{folder}')}/{path}"  # noqa: PTH115 - called very often


class _Raw(io.FileIO):
    """A file that takes only what the disk has room for, and half of what a dying process writes."""

    def __init__(self, disk: Disk, file: Any, mode: str) -> None:
        self.disk = disk
        super().__init__(file, mode)

    def write(self, data: Any, /) -> int:
        size = len(data)
        moments = self.disk.moments
        if moments.dead:
            return size  # what is flushed after death goes nowhere
        if moments.watching:
            try:
                moments.pass_by(f"write {size}")
            except Killed:
                super().write(bytes(data)[: size // 2])
                raise
        room = self.disk.room
        if room is None:
            return super().write(data) or 0
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = super().write(bytes(data)[:room]) or 0
        self.disk.room = room - written
        return written
