"""The tokens of `quintet serve`: a private file for each server, which it keeps locked while it runs.

A client uses only a locked file: one that a killed server has left names a port that may belong to anybody now.
"""

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from quintet import files
from quintet.errors import ServerError
from quintet.server.state_folder import default_root, make_private

FOLDER: Final = "servers"
LOCK_SECONDS: Final = 2.0
"""how long a server waits for its lock: a client that reads the file holds it for a moment"""
_LOCALHOST: Final = ("127.0.0.1", "::1")
_MOST_BYTES: Final = 4096


class ServeToken(NamedTuple):
    """A running server of this user."""

    url: str
    token: str


@contextmanager
def publish_token(root: Path, address: str, port: int, token: str) -> Iterator[Path]:
    """Store a server's token where its owner's commands find it, until the block ends."""
    make_private(root / FOLDER)
    _remove_stale(root / FOLDER)
    path = _path(root, address, port)
    descriptor = _lock(path)
    try:
        content = json.dumps({"url": _url(address, port), "token": token, "pid": os.getpid()}) + "\n"
        os.ftruncate(descriptor, 0)
        os.write(descriptor, content.encode())
        yield path
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(descriptor)


def find_server(url: str, root: Path | None = None) -> ServeToken | None:
    """The server of this user at an address of this machine; None where there is none, or where it has no token.

    The answer has the server's own address: `localhost` may lead to another one.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
    except ValueError:
        return None
    if parts.scheme != "http":
        return None
    for address in _LOCALHOST if host == "localhost" else (host,):
        token = _read(_path(root or default_root(), address, port), _url(address, port))
        if token:
            return ServeToken(f"{_url(address, port)}{parts.path}", token)
    return None


def find_token(url: str, root: Path | None = None) -> str:
    """The token of the server at an address, looked up for every request; empty where it must not be sent."""
    try:
        found = find_server(url, root)
    except ServerError:
        return ""
    return found.token if found and found.url == url else ""


def _url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def _path(root: Path, address: str, port: int) -> Path:
    # what came in an address is no path: only letters, digits and the marks of an IP address stay
    name = "".join(sign if sign.isalnum() or sign in ".:" else "_" for sign in address)
    return root / FOLDER / f"{name}-{port}.json"


def _lock(path: Path) -> int:
    """A handle of the file, which belongs to this user and is locked by this process."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            descriptor = files.open_to_keep(path)
        except OSError as error:
            raise ServerError(f"{path}: cannot be written ({error.strerror}); remove it") from None
        try:
            _check_owner(path, descriptor)
            os.fchmod(descriptor, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, descriptor):  # else a server that has just ended has removed it
                return descriptor
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise ServerError(f"{path}: another server is at work at this address") from None
            time.sleep(0.01)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False


def _check_owner(path: Path, descriptor: int) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        raise ServerError(f"{path}: is not a file of yours; remove it and start the server again")


def _read(path: Path, url: str) -> str:
    """The token in a file, where its server runs."""
    try:
        with _opened(path) as descriptor:
            if files.try_lock(descriptor, shared=True):
                return ""
            content = json.loads(os.read(descriptor, _MOST_BYTES))
        token = content["token"] if content["url"] == url else ""
    except (FileNotFoundError, ValueError, TypeError, KeyError, RecursionError):
        return ""  # there is none, or it is being written; the next request looks again
    except OSError as error:
        raise ServerError(f"{path}: cannot be read ({error.strerror}); set QUINTET_TOKEN, or remove it") from None
    return token if isinstance(token, str) and _is_sendable(token) else ""


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A handle of a file that belongs to this user, to read; a link is refused."""
    with files.reading(path, path.parent) as file:
        _check_owner(path, file.fileno())
        yield file.fileno()


def _is_sendable(token: str) -> bool:
    return token.isascii() and token.isprintable()


def _remove_stale(folder: Path) -> None:
    """Remove the files of servers that were killed."""
    for path in folder.glob("*.json"):
        with suppress(OSError, ServerError), _opened(path) as descriptor:
            if files.try_lock(descriptor, shared=True):
                path.unlink()
