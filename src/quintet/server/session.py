"""One session: a tmux server of its own, the connection to it, and its terminals."""

import asyncio
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from quintet.api.status import AT_REST
from quintet.providers.base import Launch, Provider
from quintet.providers.registry import find_provider
from quintet.server import delivery
from quintet.server.events import Events
from quintet.server.facts import OPTION, Facts
from quintet.server.launch import pane_environment, prepare
from quintet.server.places import Places
from quintet.server.processes import end_processes, has_ended
from quintet.server.refusals import BadRequest, Conflict, NotFound, NotTaken, TmuxError
from quintet.server.terminal import Terminal
from quintet.server.tmux import Tmux, quote

DIALOG_SECONDS: Final = 1.0
"""the time between two answers to start-up dialogs"""
KILL_SECONDS: Final = 3.0
OWNER: Final = "@quintet-owner"
"""the process number of the server that acts on the session's terminals; others may look and type"""


@dataclass(frozen=True)
class Wish:
    """What a client wants to have started."""

    provider: Provider
    profile: str
    instructions: str
    cwd: Path
    model: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


class Session:
    """The terminals of one run."""

    def __init__(self, name: str, places: Places, events: Events, *, passive: bool = False) -> None:
        self.name = name
        self.places = places
        self.events = events
        self.terminals: dict[str, Terminal] = {}
        self.gone = False
        self._passive = passive
        """only looks on"""
        self._owned = False
        self._server = 0
        self._panes: dict[str, Terminal] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connecting = asyncio.Lock()
        self._tmux = self._connection()

    async def create(self, wish: Wish) -> Terminal:
        """Start the tmux server with the first terminal."""
        terminal_id, command = self._prepare(wish)
        window = f"{wish.profile}-{terminal_id[:4]}"
        try:
            await self._tmux.create(self.name, window, wish.cwd, command)
        except TmuxError as error:
            shutil.rmtree(self.places.folder(self.name, terminal_id), ignore_errors=True)
            if "duplicate" in str(error):
                raise BadRequest(f"Session '{self.name}' already exists") from None
            raise
        await self._own()
        (listed,) = await self._tmux.run(f"list-panes -s -F '#{{pane_id}} #{{pane_pid}} #{{pid}}' -t ={self.name}")
        pane, pid, server = listed.split()
        self._server = int(server)
        return await self._enter(wish, terminal_id, window, pane, int(pid))

    async def add(self, wish: Wish) -> Terminal:
        """Start another terminal."""
        terminal_id, command = self._prepare(wish)
        window = f"{wish.profile}-{terminal_id[:4]}"
        words = " ".join(quote(word) for word in command)
        place = f"-n {quote(window)} -c {quote(str(wish.cwd))} -t {quote(f'={self.name}:')}"
        if self.gone:
            raise NotFound(f"Session '{self.name}' not found")
        (listed,) = await self._tmux.run(f"new-window -d -P -F '#{{pane_id}} #{{pane_pid}}' {place} {words}")
        pane, pid = listed.split()
        return await self._enter(wish, terminal_id, window, pane, int(pid))

    def _prepare(self, wish: Wish) -> tuple[str, list[str]]:
        terminal_id = secrets.token_hex(4)
        folder = self.places.make_folder(self.name, terminal_id)
        environment = pane_environment(wish.env)
        plan = wish.provider.launch(
            Launch(terminal_id, wish.profile, wish.instructions, folder, wish.cwd, environment, wish.model, wish.args)
        )
        return terminal_id, prepare(folder, plan, environment)

    async def _enter(self, wish: Wish, terminal_id: str, window: str, pane: str, pid: int) -> Terminal:
        facts = Facts(
            id=terminal_id,
            session=self.name,
            name=window,
            provider=wish.provider.name,
            profile=wish.profile,
            cwd=str(wish.cwd),
            folder=str(self.places.folder(self.name, terminal_id)),
            launched=time.time(),
            model=wish.model,
        )
        terminal = self._take_in(pane, pid, facts, wish.provider)
        await terminal.keep(facts)
        self.events.add("terminal", terminal=terminal_id, session=self.name, state="created")
        return terminal

    def _take_in(self, pane: str, pid: int, facts: Facts, provider: Provider) -> Terminal:
        terminal = Terminal(
            self._tmux, pane, pid, facts=facts, provider=provider, events=self.events, reconnect=self._reconnect
        )
        self.terminals[facts.id] = self._panes[pane] = terminal
        if not facts.ready and self._owned:
            terminal.start = self._spawn(_start(terminal))
        return terminal

    async def _own(self) -> None:
        """Only one server answers dialogs and completes what another has left: the one whose number is written here."""
        await self._tmux.run(f"set-option -g {OWNER} {os.getpid()}")
        self._owned = True

    async def _claim(self) -> None:
        owner = "".join(await self._tmux.run(f"show-options -gqv {OWNER}"))
        if not owner.isdecimal() or int(owner) == os.getpid() or has_ended(int(owner)):
            await self._own()

    async def adopt(self) -> None:
        """Connect to a tmux server that is there, and find its terminals again."""
        if not self._tmux.alive:
            self._tmux = self._connection()
            await self._tmux.attach(self.name)
            if not self._passive:
                await self._claim()
        form = "\t".join(f"#{{{name}}}" for name in ("pane_id", "pane_pid", "pid", OPTION))
        for line in await self._tmux.run(f"list-panes -s -F {quote(form)} -t {quote(f'={self.name}')}"):
            pane, pid, server, text = line.split("\t", 3)
            self._server = int(server)
            if pane in self._panes:
                self._panes[pane].tmux = self._tmux
                continue
            facts = Facts.from_json(text)
            provider = find_provider(facts.provider) if facts is not None else None
            if facts is None or provider is None:
                continue
            terminal = self._take_in(pane, int(pid), facts, provider)
            if facts.pasted and self._owned:
                self._spawn(_finish(terminal))

    async def delete(self, terminal: Terminal) -> None:
        """End one terminal and forget it."""
        if not terminal.ended or not self.gone:
            with suppress(TmuxError):  # it may have been killed already
                await self._tmux.run(f"kill-pane -t {terminal.pane}")
            await asyncio.to_thread(end_processes, [terminal.pid])
        terminal.lose("it was deleted")
        self.terminals.pop(terminal.facts.id, None)
        self._panes.pop(terminal.pane, None)
        await asyncio.to_thread(shutil.rmtree, terminal.folder, ignore_errors=True)
        if not self.terminals:
            await self.close()

    async def end(self, terminal: Terminal) -> None:
        """End an agent as its user would. When the last one was ended so, nothing of the session stays behind."""
        await delivery.end(terminal)
        if not self.gone and all(other.ended and other.facts.exiting for other in self.terminals.values()):
            await self.close()

    async def close(self) -> None:
        """End the tmux server and all that runs in it."""
        folder = self.places.terminals / self.name
        if self.gone:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            return
        self.gone = True
        pids = [terminal.pid for terminal in self.terminals.values() if terminal.is_running()]
        await self.leave()
        # only now that tmux has noticed that our connection has ended: killed before, it may wedge
        await asyncio.to_thread(_end_server, self.places.socket(self.name), self._server, pids)
        for terminal in self.terminals.values():
            terminal.lose("its session was ended")
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def leave(self) -> None:
        """Let go of the session; its terminals live on."""
        for task in self._tasks:
            task.cancel()
        await self._tmux.close()

    @property
    def attached(self) -> bool:
        """Whether the connection stands."""
        return self._tmux.alive

    async def viewers(self) -> int:
        """How many people are attached."""
        try:
            clients = await self._tmux.run("list-clients -F '#{client_control_mode}'")
        except TmuxError:
            return 0
        return clients.count("0")

    def _connection(self) -> Tmux:
        return Tmux(self.places.socket(self.name), self._output, self._lost)

    def _output(self, pane: str) -> None:
        terminal = self._panes.get(pane)
        if terminal is not None:
            terminal.mark_dirty()

    def _lost(self) -> None:
        self._spawn(self._reconnect())

    async def _reconnect(self) -> None:
        """The connection has ended: either somebody has only detached it, or the session is gone."""
        async with self._connecting:
            if self._tmux.alive or self.gone:
                return
            try:
                if is_live(self.places.socket(self.name)):
                    await self.adopt()
                    return
            except TmuxError:
                pass
            self.gone = True
        for terminal in self.terminals.values():
            terminal.lose("its tmux session was killed")
            await terminal.report()

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _start(terminal: Terminal) -> None:
    with suppress(Conflict, TmuxError):  # its status tells
        await _usher(terminal)


async def _usher(terminal: Terminal) -> None:
    """Wait until the agent is at its prompt, and answer what it asks on the way."""
    answered = float("-inf")
    while True:
        look = await terminal.look()
        if look.end is not None:
            return
        dialog = terminal.provider.dialog(look.screen)
        terminal.needs = dialog.message if dialog is not None and not dialog.keys else None
        if dialog is not None and dialog.keys and time.monotonic() - answered > DIALOG_SECONDS:
            answered = time.monotonic()
            await delivery.press(terminal, *dialog.keys)
        if dialog is None and terminal.provider.read_screen(look.screen) in AT_REST:
            await terminal.keep(replace(terminal.facts, ready=True))
            await terminal.report()
            return
        await terminal.change(0.25)


async def _finish(terminal: Terminal) -> None:
    with suppress(Conflict, NotTaken, TmuxError):  # its status tells
        await delivery.finish(terminal)


def is_live(path: Path) -> bool:
    """Whether a tmux server listens at a socket; a dead one is removed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.settimeout(1.0)
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return False
        except OSError:
            return False
        return True


def _end_server(path: Path, server: int, pids: list[int]) -> None:
    with suppress(subprocess.TimeoutExpired):  # a wedged one is ended below
        subprocess.run(["tmux", "-S", str(path), "kill-server"], timeout=KILL_SECONDS, capture_output=True, check=False)
    end_processes([*pids, *([server] if server else [])])
    path.unlink(missing_ok=True)
