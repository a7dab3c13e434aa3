"""tmux servers seen from outside: whether one listens at a socket, which process it is, and ending it."""

import socket
import struct
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from quintet.own_programs import find_program
from quintet.processes import children_of, end_groups
from quintet.server.tmux.errors import TmuxError

KILL_SECONDS: Final = 3.0
_CREDENTIALS: Final = struct.Struct("3i")


def is_listening(path: Path) -> bool:
    """Whether a tmux server listens at a socket, even one that does not answer."""
    try:
        _connect(path).close()
    except (BlockingIOError, TimeoutError):
        return True  # so many wait already that there is no room for one more
    except OSError as error:
        return isinstance(error, ConnectionRefusedError) and not is_dead(path)
    return True


def is_dead(path: Path) -> bool:
    """Whether nobody listens at a socket that exists. macOS also refuses where there is no room for one more."""
    try:
        _connect(path).close()
    except OSError as error:
        return isinstance(error, ConnectionRefusedError) and not _find_listener(path)
    return False


def remove_dead_socket(path: Path) -> None:
    """Remove a socket at which nobody listens any more."""
    if is_dead(path):
        path.unlink(missing_ok=True)


def server_pid(path: Path) -> int:
    """The process that listens at a socket, asked of the kernel: it need not answer. 0 where there is none."""
    try:
        with _connect(path) as client:
            peer = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            return int(_CREDENTIALS.unpack(peer)[0])
    except AttributeError:  # only Linux has it
        return _find_listener(path)
    except OSError:
        return 0


def end_server(path: Path, known: int, pids: list[int], *, answers: bool = True) -> None:
    """End a tmux server, by force where it does not answer, and whatever ran in it."""
    server = server_pid(path) or (known if is_listening(path) else 0)
    doomed = {*pids, *(children_of(server) if server and not answers else ())}
    if answers:
        with suppress(subprocess.TimeoutExpired):  # a wedged one is ended below
            command = [find_program("tmux") or "tmux", "-S", str(path), "kill-server"]
            subprocess.run(command, timeout=KILL_SECONDS, capture_output=True, check=False)
    end_groups([server] if server else [], 1.0 if answers else 0.0)
    end_groups(sorted(doomed))
    if is_listening(path):
        raise TmuxError(f"the tmux server at {path} does not end")
    path.unlink(missing_ok=True)


def _connect(path: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.settimeout(1.0)
        client.connect(str(path))
    except BaseException:
        client.close()
        raise
    return client


def _find_listener(path: Path) -> int:
    """The tmux process of this user that has a socket open under its path; 0 where none has."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            opened = process.net_connections("unix") if process.name().startswith("tmux") else ()
            if str(path) in (str(one.laddr) for one in opened):
                return process.pid
    return 0
