"""The command `quintet` as a process of its own that need not load its modules: most of the time of a short run.

A process that has loaded them is kept beside the tests and forked for each command. The fork gets the arguments, the
environment, the directory and the pipes of the command, and then is what `python -m quintet` is after its imports.
"""

import atexit
import gc
import importlib
import json
import os
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import quintet.__main__ as program
from quintet.cli.entry import main

ROOT: Final = Path(__file__).parents[2]
COMMAND: Final = (sys.executable, "-m", "quintet")
MODULES: Final = (
    "anyio._backends._asyncio",
    "encodings.idna",
    "httpcore",
    "quintet.cli.main",
    "quintet.cli.run",
    "quintet.cli.status",
    "quintet.cli.terminals",
    "quintet.providers.codex.provider",
    "quintet.providers.scripted.provider",
    "quintet.server.http.dashboard_server",
    "quintet.server.http.embedded",
    "quintet.server.http.serve",
    "quintet.watch.console.live_view",
    "quintet.watch.dashboard.routes",
    "uvicorn.lifespan.on",
    "uvicorn.loops.asyncio",
    "uvicorn.protocols.http.h11_impl",
)
"""what commands load that tests start often"""
MOST_SECONDS: Final = 90.0
"""what a command may take that is waited for"""
SECONDS_TO_END: Final = 10.0
"""what a command may take to end when the tests have ended"""
_NUMBER: Final = struct.Struct("i")
"""a process id or an exit code"""


def start(
    words: Sequence[str], env: Mapping[str, str], cwd: Path, *, prefix: Sequence[str] = (), with_errors: bool = False
) -> "subprocess.Popen[str]":
    """Start a command; `with_errors`: its error messages go to the same pipe.

    A prefix, and modules that take part in the start, need a new program.
    """
    if not prefix and env.get("PYTHONPATH") in (None, os.environ.get("PYTHONPATH")):
        return Command(words, env, cwd, with_errors=with_errors)
    return subprocess.Popen(
        [*prefix, *COMMAND, *words],
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if with_errors else subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def run(words: Sequence[str], env: Mapping[str, str], cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    with start(words, env, cwd) as command:
        out, err = command.communicate(timeout=MOST_SECONDS)
    return subprocess.CompletedProcess(command.args, command.returncode, out, err)


class Command(subprocess.Popen[str]):
    """A command that was started by a fork; used like any process."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str], cwd: Path, *, with_errors: bool) -> None:
        self.args = [*COMMAND, *words]
        self.returncode: int | None = None
        self.stdin = None
        out, out_end = os.pipe()
        err, err_end = (None, out_end) if with_errors else os.pipe()
        self.stdout = os.fdopen(out, encoding="utf-8")
        self.stderr = None if err is None else os.fdopen(err, encoding="utf-8")
        self._told, theirs = socket.socketpair()
        request = {"argv": [program.__file__, *words], "env": dict(env), "cwd": str(cwd)}
        nothing = os.open(os.devnull, os.O_RDONLY)
        socket.send_fds(_preloaded(), [b"!"], [theirs.fileno()])
        socket.send_fds(self._told, [b"!"], [nothing, out_end, err_end])
        self._told.sendall(json.dumps(request).encode())
        self._told.shutdown(socket.SHUT_WR)
        theirs.close()
        for end in {nothing, out_end, err_end}:
            os.close(end)
        self.pid = _NUMBER.unpack(self._told.recv(_NUMBER.size))[0]

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        if self._look(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002, ARG002
        """All output that was not read yet, and the end of the process."""
        deadline = time.monotonic() + (timeout or 3600)
        read: dict[Any, bytes] = {self.stdout: b"", self.stderr: b""}
        with selectors.DefaultSelector() as waiting:
            for stream in filter(lambda stream: stream and not stream.closed, read):
                waiting.register(stream, selectors.EVENT_READ)
            while waiting.get_map():
                if not (ready := waiting.select(max(0, deadline - time.monotonic()))):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                for key, _ in ready:
                    piece = os.read(key.fd, 1 << 16)
                    read[key.fileobj] += piece
                    if not piece:
                        waiting.unregister(key.fileobj)
                        key.fileobj.close()  # type: ignore[union-attr]
        self.wait(max(0, deadline - time.monotonic()))
        return read[self.stdout].decode(), read[self.stderr].decode()

    def _look(self, timeout: float | None) -> int | None:
        """The exit code, where it is told in time."""
        if self.returncode is None:
            self._told.settimeout(timeout)
            try:
                self.returncode = _NUMBER.unpack(self._told.recv(_NUMBER.size))[0]
                self._told.close()
            except (BlockingIOError, TimeoutError):
                return None
        return self.returncode


@cache
def _preloaded() -> socket.socket:
    """The connection to the process that has loaded the modules. It ends with the tests."""
    ours, theirs = socket.socketpair()
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.stub.preloaded", str(theirs.fileno())],
        cwd=ROOT,
        env=kept | {"LANG": "C.UTF-8"},
        pass_fds=[theirs.fileno()],
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _wait_for_command(requests: socket.socket) -> None:
    """Return in a new process for each command that comes, and end when no more can come."""
    while True:
        said, fds, _, _ = socket.recv_fds(requests, 1, 1)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not said:
            sys.exit()
        if os.fork() == 0:
            return _become_command(requests, socket.socket(fileno=fds[0]))
        os.close(fds[0])


def _become_command(requests: socket.socket, client: socket.socket) -> None:
    """Take over what the command is given, and leave a process behind that tells the client how it ends."""
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    request = json.loads(b"".join(iter(lambda: client.recv(1 << 16), b"")))
    if pid := os.fork():
        for stream in streams:
            os.close(stream)
        threading.Thread(target=_end_with_the_tests, args=(requests, pid), daemon=True).start()
        with suppress(BrokenPipeError):
            client.sendall(_NUMBER.pack(pid))
            client.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
        os._exit(0)
    requests.close()
    client.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, buffering=1)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.argv, sys.modules["__main__"] = request["argv"], program


def _end_with_the_tests(requests: socket.socket, pid: int) -> None:
    """End a command when the tests have ended, also by a kill: the other end of the connection is closed then."""
    closed = select.poll()
    closed.register(requests, 0)  # a hang-up is told whatever is asked for, and nothing else is
    closed.poll()
    os.kill(pid, signal.SIGTERM)
    time.sleep(SECONDS_TO_END)
    os.kill(pid, signal.SIGKILL)


class _Exit:
    """Ends a command after everything else that is done at its exit, without freeing one object after the other.

    To free what a fork shares with its parent takes longer than a short command.
    """

    code = 1

    def __init__(self) -> None:
        atexit.register(self._end)  # the first that is registered is the last that is called

    def run(self) -> None:
        try:
            main()
            self.code = 0
        except SystemExit as ended:
            self.code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            raise

    def _end(self) -> None:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(self.code)


def _serve(number: int) -> None:
    """Load the modules, and be one command after the other."""
    command = _Exit()
    for name in MODULES:
        importlib.import_module(name)
    gc.freeze()
    _wait_for_command(socket.socket(fileno=number))
    command.run()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
