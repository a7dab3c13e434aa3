"""tmux servers from outside: whether one listens, and ending one for good."""

import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from quintet.server.errors import TmuxError
from quintet.server.tmux.processes import children_of, end_processes

KILL_SECONDS: Final = 3.0
_PEER: Final = struct.Struct("3i")
_MAC_PEER: Final = (0, 2)
"""SOL_LOCAL and LOCAL_PEERPID"""


def is_live(path: Path) -> bool:
    """Whether a tmux server listens at a socket, even one that does not answer; a dead socket is removed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.settimeout(1.0)
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return False
        except (BlockingIOError, TimeoutError):
            return True  # so many wait already that there is no room for one more
        except OSError:
            return False
        return True


def is_dead(path: Path) -> bool:
    """Whether nobody listens at a socket that is there; it is left where it is."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.settimeout(1.0)
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False


def server_pid(path: Path) -> int:
    """The process that listens at a socket, asked of the kernel: it need not answer. 0 where that cannot be told."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.settimeout(1.0)
            probe.connect(str(path))
            if sys.platform == "darwin":
                return probe.getsockopt(*_MAC_PEER)
            pid, _, _ = _PEER.unpack(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        except OSError:
            return 0
        return int(pid)


def end_server(path: Path, known: int, pids: list[int], *, answers: bool = True) -> None:
    """End a tmux server, by force where it does not answer, and whatever ran in it."""
    server = server_pid(path) or (known if is_live(path) else 0)
    doomed = {*pids, *(children_of(server) if server and not answers else ())}
    if answers:
        with suppress(subprocess.TimeoutExpired):  # a wedged one is ended below
            command = ["tmux", "-S", str(path), "kill-server"]
            subprocess.run(command, timeout=KILL_SECONDS, capture_output=True, check=False)
    end_processes([server] if server else [], 1.0 if answers else 0.0)
    end_processes(sorted(doomed))
    if is_live(path):
        raise TmuxError(f"the tmux server at {path} does not end")
    path.unlink(missing_ok=True)
