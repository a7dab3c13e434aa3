"""Try the allow-list of hosts on this machine: a sandboxed program reaches one server, and another one not."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from quintet.errors import SandboxError
from quintet.sandbox.bubblewrap import find_bubblewrap
from quintet.sandbox.mounts import bwrap_arguments
from quintet.sandbox.network.outlets import ALLOW, network_mounts, open_outlet

_SECONDS: Final = 20.0
_WORD: Final = b"reached"
_PROGRAM: Final = """
import socket, sys
for port in sys.argv[1:]:
    try:
        print(socket.create_connection(("127.0.0.1", int(port)), 10).recv(100).decode() or "refused")
    except OSError:
        print("refused")
"""
_CHECK: Final = "leave SANDBOX_NETWORK at keep, and report this as a bug"


def try_allow_list() -> None:
    """Raise SandboxError if the proxy, or the way to it, does not work here."""
    bubblewrap = find_bubblewrap()
    with (
        tempfile.TemporaryDirectory(prefix="quintet-") as folder,
        _serving() as allowed,
        _serving() as other,
        open_outlet(ALLOW, [f"127.0.0.1:{allowed}"], Path(folder) / "outlet") as outlet,
    ):
        mounts = [*network_mounts(ALLOW), *(outlet.mounts if outlet else ())]
        arguments = bwrap_arguments(mounts, Path("/"), network=False, is_root=os.getuid() == 0)
        program = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(allowed), str(other)]
        command = [
            bubblewrap.program,
            *bubblewrap.flags,
            *arguments,
            "--",
            *(outlet.command if outlet else ()),
            *program,
        ]
        try:
            tried = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SandboxError(f"SANDBOX_NETWORK=allow: {error}", _CHECK) from None
    if tried.stdout.split() != [_WORD.decode(), "refused"]:
        said = (tried.stderr.strip().splitlines() or [tried.stdout.strip() or f"exit code {tried.returncode}"])[-1]
        raise SandboxError(f"SANDBOX_NETWORK=allow: the proxy did not work in a sandbox: {said}", _CHECK)


@contextmanager
def _serving() -> Iterator[int]:
    """Answer connections at a free port with one word."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(_WORD)

    threading.Thread(target=answer, daemon=True).start()
    with listener:
        yield listener.getsockname()[1]
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
