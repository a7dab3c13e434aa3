"""The control-mode connection to a tmux server.

Replies come between `%begin` and `%end` lines, in the order of the commands; everything else is a notification. A
pane's output is only noted: what the pane shows is captured when somebody asks.
"""

import asyncio
import os
import re
import socket
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final

from quintet.own_programs import find_program, trusted_environment
from quintet.server.tmux.errors import CommandFailed, TmuxError, TmuxUnresponsive

REPLY_SECONDS = 10.0
REAP_SECONDS: Final = 0.5
"""how long a client may take to end once its connection is closed"""
OLDEST: Final = (3, 2)
WIDTH, HEIGHT = 160, 50
_OPTIONS: Final = (
    ("-gw", "remain-on-exit", "on"),
    ("-gwq", "remain-on-exit-format", ""),
    ("-gw", "allow-rename", "off"),
    ("-gw", "automatic-rename", "off"),
    ("-gw", "window-size", "latest"),
    ("-g", "default-terminal", "screen-256color"),
    ("-g", "history-limit", "20000"),
    ("-g", "destroy-unattached", "off"),
    ("-s", "exit-empty", "on"),
    ("-s", "escape-time", "10"),
    ("-g", "status-left-length", "40"),
)
_GUARD = re.compile(rb"%(begin|end|error) (\d+) (\d+) (\d)$")


def quote(text: str) -> str:
    """One word of a tmux command."""
    if "\n" in text or "\r" in text or "\0" in text:
        raise ValueError("a tmux command is one line")
    return "'" + text.replace("'", "'\\''") + "'"


def find_tmux() -> str:
    """Where tmux is."""
    program = find_program("tmux")
    if program is None:
        raise TmuxError("tmux is not installed (Debian: apt-get install tmux; macOS: brew install tmux)")
    return program


def check_version() -> str:
    """The release of tmux; one that is too old is refused here, instead of failing strangely later."""
    return _check_release(find_tmux())


@cache
def _check_release(program: str) -> str:
    said = subprocess.run([program, "-V"], capture_output=True, text=True, check=False).stdout.strip()
    number = re.search(r"(\d+)\.(\d+)", said)
    if number is not None and (int(number[1]), int(number[2])) < OLDEST:
        raise TmuxError(f"tmux {OLDEST[0]}.{OLDEST[1]} or later is needed; this is {said}")
    return said.removeprefix("tmux ")


@dataclass
class _Call:
    done: asyncio.Future[list[list[str]]]
    last_word: str | None = None
    """what the last reply says, where a line makes several replies"""
    replies: list[list[str]] = field(default_factory=list)
    error: str | None = None


class TmuxConnection(asyncio.Protocol):
    """A connection to the tmux server of one session. Made by `create` or `attach`; lives on one event loop."""

    def __init__(self, path: Path, on_output: Callable[[str], None], on_end: Callable[[], None]) -> None:
        self.path = path
        self.alive = False
        self._on_output = on_output
        self._on_end = on_end
        self._calls: deque[_Call] = deque()
        self._words = count(1)
        self._rest = b""
        self._block: tuple[bytes, bytes] | None = None
        self._lines: list[bytes] = []
        self._messages: list[str] = []
        self._transport: asyncio.Transport | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._greeted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()
        self._reaping: asyncio.Task[None] | None = None

    async def create(self, session: str, window: str, argv: Sequence[str]) -> None:
        """Start a tmux server of our own whose session has one window, and connect to it."""
        check_version()
        options = [word for flags, name, value in _OPTIONS for word in ("set-option", flags, name, value, ";")]
        size = ["-x", str(WIDTH), "-y", str(HEIGHT)]
        await self._connect([*options, "new-session", "-s", session, "-n", window, *size, *argv])

    async def open_window(self, session: str, window: str, argv: Sequence[str], form: str) -> str:
        """Start a program in a new window; the answer is the format, filled in for its pane."""
        words = " ".join(quote(word) for word in argv)
        command = f"new-window -d -P -F {quote(form)} -t {quote(f'={session}:')} -n {quote(window)} {words}"
        (reply,) = await self.run(command)
        return reply

    async def attach(self, session: str) -> None:
        """Connect to a tmux server that is there; without -N tmux would start another in place of a dead one."""
        await self._connect(["attach-session", "-t", f"={session}"], "-N")

    async def _connect(self, command: list[str], *flags: str) -> None:
        program = find_tmux()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [program, "-u", *flags, "-S", str(self.path), "-f", "/dev/null", "-C", *command],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=theirs.fileno(),
                env=_bare_environment(),
                cwd="/",
                start_new_session=True,
            )
        ours.setblocking(False)
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                up = await self._greeted
        except TimeoutError:
            await self.close()
            raise TmuxUnresponsive(f"the tmux server at {self.path} does not answer") from None
        if not up:
            await self.close()
            said = " ".join(line for line in self._messages if line and not line.startswith("%"))
            raise TmuxError(f"tmux: {said or 'ended at once'}")

    async def run(self, command: str) -> list[str]:
        """Run a command that makes one reply."""
        return (await self._call([command]))[0]

    async def run_all(self, commands: Iterable[str]) -> list[list[str]]:
        """Run commands in one go; each makes one reply."""
        calls = [self._send(command) for command in commands]
        self._flush(calls)
        return [(await self._wait(call))[0] for call, _ in calls]

    async def script(self, command: str) -> list[str]:
        """Run a command that runs others (`if-shell`); the lines of all replies."""
        word = f"quintet-{next(self._words)}"
        call, line = self._send(command, word)
        self._flush([(call, line), (call, f"display-message -p {word}")])
        return [line for reply in await self._wait(call) for line in reply]

    async def load_buffer(self, name: str, text: str) -> None:
        """Fill a paste buffer, by standard input: a file could be another one when tmux reads it."""
        command = [find_tmux(), "-N", "-S", str(self.path), "load-buffer", "-b", name, "-"]
        given = text.encode("utf-8", "replace")
        try:
            done = await asyncio.to_thread(_feed, command, given)
        except subprocess.TimeoutExpired:
            raise TmuxUnresponsive(f"the tmux server at {self.path} does not answer") from None
        if done.returncode:
            raise CommandFailed(f"tmux: {done.stderr.decode(errors='replace').strip()}")

    async def count_viewers(self) -> int:
        """How many people are attached; the connections of servers do not count."""
        try:
            return (await self.run("list-clients -F '#{client_control_mode}'")).count("0")
        except TmuxError:
            return 0

    async def close(self) -> None:
        """Close the connection and wait until tmux has noticed; the tmux server goes on."""
        self._on_end = lambda: None
        if self._transport is not None:
            self._transport.abort()
            await self._ended.wait()

    async def _call(self, commands: list[str]) -> list[list[str]]:
        calls = [self._send(command) for command in commands]
        self._flush(calls)
        return [reply for call, _ in calls for reply in await self._wait(call)]

    def _send(self, command: str, last_word: str | None = None) -> tuple[_Call, str]:
        if not self.alive:
            raise TmuxError("the tmux session is gone")
        if "\n" in command:
            raise ValueError("a tmux command is one line")
        call = _Call(asyncio.get_running_loop().create_future(), last_word)
        self._calls.append(call)
        return call, command

    def _flush(self, calls: Iterable[tuple[_Call, str]]) -> None:
        if self._transport is not None:
            self._transport.write("".join(f"{line}\n" for _, line in calls).encode())

    async def _wait(self, call: _Call) -> list[list[str]]:
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                return await asyncio.shield(call.done)
        except TimeoutError:
            if self._transport is not None:
                self._transport.abort()
            raise TmuxUnresponsive(f"the tmux server at {self.path} does not answer") from None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a socket has a read-write transport")
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if self._block is not None:
                self._in_block(line)
            elif line.startswith((b"%output ", b"%extended-output ")):
                self._on_output(line.split(b" ", 2)[1].decode())
            else:
                self._notification(line)

    def _notification(self, line: bytes) -> None:
        guard = _GUARD.match(line)
        if guard is not None and guard[1] == b"begin":
            self._block = (guard[2], guard[3])
            self._lines = []
        elif line.startswith(b"%session-changed ") and not self._greeted.done():
            self.alive = True
            self._greeted.set_result(True)
        elif not self.alive:
            self._messages.append(line.decode(errors="replace"))

    def _in_block(self, line: bytes) -> None:
        guard = _GUARD.match(line)
        if guard is None or guard[1] == b"begin" or (guard[2], guard[3]) != self._block:
            self._lines.append(line)
            return
        self._block = None
        lines = [line.decode(errors="replace") for line in self._lines]
        if guard[4] == b"0" or not self._calls:
            self._messages += lines
            return
        self._answer(self._calls[0], lines, failed=guard[1] == b"error")

    def _answer(self, call: _Call, lines: list[str], *, failed: bool) -> None:
        if failed:
            call.error = " ".join(lines)
        last = call.last_word is None or lines == [call.last_word]
        if not last or call.last_word is None:
            call.replies.append(lines)
        if not last:
            return
        self._calls.popleft()
        if call.done.done():
            return
        if call.error is not None:
            call.done.set_exception(CommandFailed(f"tmux: {call.error}"))
            call.done.exception()  # whoever gave up waiting will not ask for it
        else:
            call.done.set_result(call.replies)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        was_alive, self.alive = self.alive, False
        if not self._greeted.done():
            self._greeted.set_result(False)
        for call in self._calls:
            if not call.done.done():
                call.done.set_exception(TmuxError("the tmux session is gone"))
                call.done.exception()
        self._calls.clear()
        # a task, because asyncio closes the socket only after this method
        self._reaping = asyncio.get_running_loop().create_task(self._reap())
        if was_alive:
            self._on_end()

    async def _reap(self) -> None:
        """Wait a moment for the client process, which ends with its connection, and kill it where it does not."""
        process = self._process
        if process is not None:
            deadline = asyncio.get_running_loop().time() + REAP_SECONDS
            try:
                while process.poll() is None and asyncio.get_running_loop().time() < deadline:
                    await asyncio.sleep(0.002)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        self._ended.set()


def _feed(command: list[str], given: bytes) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        command, input=given, capture_output=True, env=_bare_environment(), cwd="/", timeout=REPLY_SECONDS, check=False
    )


def _bare_environment() -> dict[str, str]:
    """A pane gets its environment from its own launch file, never from whoever started tmux."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "LC_ALL", "LC_CTYPE") if name in os.environ}
    return {**kept, **trusted_environment(), "SHELL": "/bin/sh", "TERM": "screen-256color"}
