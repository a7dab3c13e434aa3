"""The only module that writes files.

A file is written whole or not at all, private to the user unless the caller says otherwise. Below the folder that a
caller names as `below` (the project, where agents can make links) no link is ever followed: each folder on the way is
opened by a handle that refuses links. Without it, links are the user's own and are followed.

Every function raises OSError, with the full path as its file name.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
_OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""what a file system says that knows no second name of a file"""
_PIECE: Final = 1 << 16
IS_A_LINK: Final = "it is a symbolic link, and links are not followed here; remove it"


def write(
    path: Path, content: str | bytes, below: Path | None = None, *, private: bool = True, durable: bool = False
) -> None:
    """Replace a file as a whole: a reader, or a crash at any moment, finds the old content or the new one.

    `durable` also makes sure that it outlives a power failure.
    """
    with replacing(path, below, private=private, durable=durable) as file:
        file.write(_encoded(content))


@contextmanager
def replacing(
    path: Path, below: Path | None = None, *, private: bool = True, durable: bool = False
) -> Iterator[IO[bytes]]:
    """The same for content that comes in pieces: the file takes its place when the block ends without an error."""
    with _parent(path, below, private=private) as (folder, name):
        draft = _draft_name(name)
        try:
            with os.fdopen(os.open(draft, _NEW, _file_mode(private), dir_fd=folder), "wb") as file:
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise
        if durable:
            with contextlib.suppress(OSError):  # not every file system can
                os.fsync(folder)


def write_new(path: Path, content: str | bytes, below: Path | None = None, *, private: bool = True) -> None:
    """Write a file that must not exist yet, whole or not at all; FileExistsError where anything has its name."""
    with _parent(path, below, private=private) as (folder, name):
        draft = _draft_name(name)
        try:
            _fill_new(draft, content, folder, private=private)
            os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _fill_new(name, content, folder, private=private)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=folder)


def _draft_name(name: str) -> str:
    return f".{name[:200]}.{os.urandom(4).hex()}.tmp"


def _fill_new(name: str, content: str | bytes, folder: int, *, private: bool) -> None:
    with os.fdopen(os.open(name, _NEW, _file_mode(private), dir_fd=folder), "wb") as file:
        file.write(_encoded(content))
        file.flush()
        os.fsync(file.fileno())


def append_line(path: Path, line: str | bytes, below: Path | None = None, *, private: bool = True) -> int:
    """Append a line in one write, on a line of its own even behind one that was torn; the size of the file then."""
    with _parent(path, below, private=private) as (folder, name):
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(_open_file(name, flags, folder, _file_mode(private)), "ab+") as file:
            if private:
                _tighten(file.fileno())
            data = _encoded(line)
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                ending = b"\r\n" if data.endswith(b"\r\n") else b"\n"
                data = data if file.read(1) == b"\n" else ending + data
            file.write(data)
            return file.tell()


def open_to_keep(path: Path) -> int:
    """A handle of a private file, to lock and to write; it is made where it is not there. A link is refused."""
    with _parent(path, path.parent) as (folder, name):
        return _open_file(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, folder)


def try_lock(handle: int, *, shared: bool = False) -> bool:
    """Lock an open file or folder without waiting, alone or with others; False where somebody else has it."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a private file, which is made where it is not there; wait for whoever has it."""
    handle = open_to_keep(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def reading(path: Path, below: Path | None = None) -> Iterator[IO[bytes]]:
    """A file to read from; below `below` never one behind a link."""
    with _parent(path, below, make=False) as (folder, name):
        # without O_NONBLOCK a pipe in place of the file would be waited for
        descriptor = _open_file(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "it is no regular file")
        with os.fdopen(descriptor, "rb") as file:
            yield file


def read(path: Path, most: int, below: Path | None = None) -> bytes:
    """All of a file that has at most so many bytes; no pipe, device or huge file keeps anybody waiting."""
    with reading(path, below) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, "it is too large", str(path))
    return data


def look(path: Path, below: Path | None = None) -> os.stat_result | None:
    """What is at a path, itself and not what it links to; None where nothing is."""
    try:
        with _parent(path, below, make=False) as (folder, name):
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def remove(path: Path, below: Path | None = None) -> None:
    """Remove a file or a link."""
    with _parent(path, below, make=False) as (folder, name):
        os.unlink(name, dir_fd=folder)


def copy(source: IO[bytes], target: Path, below: Path | None = None, *, private: bool = True) -> None:
    """Write what is left of an open file to another, piece by piece."""
    with replacing(target, below, private=private) as file:
        shutil.copyfileobj(source, file, _PIECE)


def duplicate(source: Path, target: Path, below: Path | None = None) -> None:
    """Copy a file with its mode bits, or a link as it is. What is at the target must not be there yet."""
    with _parent(target, below, private=False) as (folder, name):
        found = source.lstat()
        if stat.S_ISLNK(found.st_mode):
            os.symlink(source.readlink(), name, dir_fd=folder)
            return
        with reading(source) as file, os.fdopen(os.open(name, _NEW, PRIVATE_FILE, dir_fd=folder), "wb") as copied:
            shutil.copyfileobj(file, copied, _PIECE)
            os.fchmod(copied.fileno(), stat.S_IMODE(found.st_mode))


def make_link(path: Path, target: str, below: Path | None = None) -> None:
    """Make a symbolic link. Nothing must have its name yet."""
    with _parent(path, below, private=False) as (folder, name):
        os.symlink(target, name, dir_fd=folder)


def move(source: Path, target: Path, below: Path | None = None) -> None:
    """Move whatever is at a path, as it is, and make it private. What is at the target is replaced, unless it is a
    folder."""
    with _parent(source, below, make=False) as (old, old_name), _parent(target, below) as (new, new_name):
        found = os.stat(old_name, dir_fd=old, follow_symlinks=False)
        try:
            os.rename(old_name, new_name, src_dir_fd=old, dst_dir_fd=new)
        except OSError as error:
            if error.errno != errno.EXDEV or not stat.S_ISREG(found.st_mode):
                raise
            with reading(source, below) as file:
                copy(file, target, below)
            os.unlink(old_name, dir_fd=old)
        if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
            try:
                handle = os.open(new_name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=new)
            except PermissionError:
                return  # it has moved, and its owner may not read it either
            try:
                _tighten(handle)
            finally:
                os.close(handle)


def make_folder(path: Path, below: Path | None = None) -> None:
    """Make a folder and those above it. It is private afterwards, also where it was there with wider rights."""
    with _folder(path, below) as handle:
        _tighten(handle)


def is_folder(path: Path, below: Path | None = None) -> bool:
    """Whether there is a folder, reached over no link below `below`."""
    try:
        with _folder(path, below, make=False):
            return True
    except OSError:
        return False


@contextmanager
def _parent(path: Path, below: Path | None, *, private: bool = True, make: bool = True) -> Iterator[tuple[int, str]]:
    """A handle of the folder that a file is in, and the file's name there."""
    if _names_below(path, below) is None:
        path = Path(os.path.realpath(path))  # unlike resolve(), no RuntimeError where links go in a circle
    with _folder(path.parent, below, private=private, make=make) as handle, _naming(path):
        yield handle, path.name


@contextmanager
def _folder(path: Path, below: Path | None, *, private: bool = True, make: bool = True) -> Iterator[int]:
    """A handle of a folder."""
    mode = PRIVATE_FOLDER if private else 0o777
    names = _names_below(path, below)
    base, names = (path, ()) if below is None or names is None else (below, names)
    with _naming(base):
        if make and base == path:
            path.mkdir(mode, parents=True, exist_ok=True)
        handle = os.open(base, _OPEN_FOLDER)
    try:
        for depth, name in enumerate(names, 1):
            try:
                handle, above = _enter(handle, name, mode if make else None), handle
            except OSError as error:
                raise _named(error, base.joinpath(*names[:depth])) from error
            os.close(above)
        yield handle
    finally:
        os.close(handle)


def _enter(parent: int, name: str, mode: int | None) -> int:
    """A handle of a folder in another, which is made where a mode is given; a link in its place is refused."""
    flags = _OPEN_FOLDER | os.O_NOFOLLOW
    try:
        return _open_file(name, flags, parent)
    except FileNotFoundError:
        if mode is None:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=parent)
    return _open_file(name, flags, parent)


def _open_file(name: str, flags: int, folder: int, mode: int = PRIVATE_FILE) -> int:
    """A handle of what has a name in a folder; where that is a link, an error that says so."""
    try:
        return os.open(name, flags, mode, dir_fd=folder)
    except OSError as error:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise OSError(errno.ELOOP, IS_A_LINK) from error
        raise


def _names_below(path: Path, below: Path | None) -> tuple[str, ...] | None:
    """The names on the way from a folder to a path; None where the path is not below it, or leads out of it."""
    if below is None or path.parts[: len(below.parts)] != below.parts:
        return None
    names = path.parts[len(below.parts) :]
    return None if ".." in names else names


def _tighten(handle: int) -> None:
    """Take everybody else's rights away; what belongs to another user stays as it is."""
    found = os.fstat(handle)
    mode = PRIVATE_FOLDER if stat.S_ISDIR(found.st_mode) else PRIVATE_FILE
    if stat.S_IMODE(found.st_mode) != mode:
        with contextlib.suppress(PermissionError):
            os.fchmod(handle, mode)


def _file_mode(private: bool) -> int:
    return PRIVATE_FILE if private else 0o666


def _encoded(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8", "replace")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let an error name the whole path: a call relative to a handle knows only the last part of it."""
    try:
        yield
    except OSError as error:
        if error.filename is not None and str(error.filename).startswith("/"):
            raise
        raise _named(error, path) from error


def _named(error: OSError, path: Path) -> OSError:
    return OSError(error.errno, error.strerror, str(path))


def remove_tree(folder: Path) -> None:
    """Remove a folder of ours with all that a program has made in it, as far as that is possible."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:  # thousands of folders, each in another: Python before 3.13 takes a call for each
        subprocess.run(["rm", "-rf", "--", str(folder)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
