"""One session: a tmux server of its own, the connection to it, and its terminals."""

import asyncio
import os
import secrets
import shutil
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from quintet import files
from quintet.processes import end_groups, has_ended, is_stopped
from quintet.providers.base import Launch, Provider
from quintet.providers.registry import find_provider
from quintet.server.events import Events
from quintet.server.refusals import BadRequest, Conflict, NotFound
from quintet.server.state_folder import PROJECT, StateFolder
from quintet.server.terminal import input as delivery
from quintet.server.terminal import startup as arrival
from quintet.server.terminal.agent_terminal import MUTE, AgentTerminal, count_viewers
from quintet.server.terminal.facts import OPTION, Facts
from quintet.server.terminal.launch_script import pane_environment, prepare
from quintet.server.tmux.connection import TmuxConnection, quote
from quintet.server.tmux.errors import TmuxError, TmuxUnresponsive
from quintet.server.tmux.servers import end_server, remove_dead_socket, server_pid

OWNER: Final = "@quintet-owner"
"""the process number of the server that acts on the session's terminals; others may look, type and add their own"""
SILENT_SECONDS: Final = 10.0
"""how long a tmux server that does not answer is left alone"""


@dataclass(frozen=True)
class TerminalSpec:
    """What a client wants to have started."""

    provider: Provider
    profile: str
    instructions: str
    cwd: Path
    model: str = ""
    args: tuple[str, ...] = ()
    asks: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    initial: str = ""
    """what to type when the agent is ready"""
    continues: str = ""
    """a lost terminal, whose conversation is to go on where the program can do that"""


class TmuxSession:
    """The terminals of one run."""

    def __init__(self, name: str, state_folder: StateFolder, events: Events, *, passive: bool = False) -> None:
        self.name = name
        self.state_folder = state_folder
        self.events = events
        self.terminals: dict[str, AgentTerminal] = {}
        self.gone = False
        self._passive = passive
        """only looks on"""
        self.silent = False
        """its tmux server is there but does not answer"""
        self._asked = float("-inf")
        """when it did not answer last"""
        self._owner = 0
        """the server that acts on the session's terminals, as far as is known"""
        self._completed: set[tuple[str, int]] = set()
        """turns that another server has begun to type, and this one has brought to their end"""
        self._server = 0
        self._panes: dict[str, AgentTerminal] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connecting = asyncio.Lock()
        self._tmux = self._connection()

    async def create(self, wish: TerminalSpec) -> AgentTerminal:
        """Start the tmux server with the first terminal."""
        terminal_id, command, wish = await self._prepare(wish)
        window = f"{wish.profile}-{terminal_id[:4]}"
        try:
            await self._tmux.create(self.name, window, command)
        except BaseException as error:
            self.state_folder.remove_folder(self.name, terminal_id)
            if isinstance(error, TmuxError) and "duplicate" in str(error):
                raise BadRequest(f"Session '{self.name}' already exists") from None
            raise
        try:
            await self._own()
            (listed,) = await self._tmux.run(f"list-panes -s -F '#{{pane_id}} #{{pane_pid}} #{{pid}}' -t ={self.name}")
            pane, pid, server = listed.split()
            self._server = int(server)
            return await self._enter(wish, terminal_id, window, pane, int(pid))
        except BaseException:
            await self.close()
            raise

    async def add(self, wish: TerminalSpec) -> AgentTerminal:
        """Start another terminal."""
        if self.gone:
            raise NotFound(f"Session '{self.name}' not found")
        if self.silent:
            raise Conflict(f"Session '{self.name}' cannot take another terminal: {MUTE}")
        terminal_id, command, wish = await self._prepare(wish)
        window = f"{wish.profile}-{terminal_id[:4]}"
        try:
            listed = await self._tmux.open_window(self.name, window, command, "#{pane_id} #{pane_pid}")
            pane, pid = listed.split()
            return await self._enter(wish, terminal_id, window, pane, int(pid))
        except BaseException:
            if terminal_id in self.terminals:
                await self.delete(self.terminals[terminal_id])
            self.state_folder.remove_folder(self.name, terminal_id)
            raise

    async def _prepare(self, wish: TerminalSpec) -> tuple[str, list[str], TerminalSpec]:
        """The id and the command of a terminal, and the wish as far as it can be met."""
        terminal_id = secrets.token_hex(4)
        environment = pane_environment(wish.env)
        try:
            folder = self.state_folder.make_folder(self.name, terminal_id)
            wanted = Launch(
                terminal_id,
                wish.profile,
                wish.instructions,
                folder,
                wish.cwd,
                environment,
                model=wish.model,
                args=wish.args,
                previous=self.state_folder.find_folder(wish.continues) if wish.continues else None,
                asks=wish.asks,
            )
            # in a thread, because programs are asked what they know, and Codex may have to be started once
            plan = await asyncio.to_thread(wish.provider.launch, wanted)
            _require(plan.argv[0], plan.env.get("PATH") or environment.get("PATH", ""))
            files.write(folder / PROJECT, str(wish.cwd).encode("utf-8", "surrogateescape"))
            if wish.initial:
                files.write(folder / arrival.INITIAL, wish.initial)
            command = prepare(folder, wish.cwd, plan, environment)
            return terminal_id, command, wish if plan.continues else replace(wish, continues="")
        except BaseException:
            self.state_folder.remove_folder(self.name, terminal_id)
            raise

    async def _enter(self, wish: TerminalSpec, terminal_id: str, window: str, pane: str, pid: int) -> AgentTerminal:
        facts = Facts(
            id=terminal_id,
            session=self.name,
            name=window,
            provider=wish.provider.name,
            profile=wish.profile,
            cwd=str(wish.cwd),
            folder=str(self.state_folder.folder(self.name, terminal_id)),
            launched=time.time(),
            model=wish.model,
            server=os.getpid(),
            continues=wish.continues,
            description=wish.description,
            initial=arrival.PENDING if wish.initial else "",
        )
        terminal = self._take_in(pane, pid, facts, wish.provider)
        await terminal.keep(facts)
        terminal.start = self._spawn(arrival.bring_up(terminal))
        self.events.add("terminal", terminal=terminal_id, session=self.name, state="created")
        return terminal

    def _take_in(self, pane: str, pid: int, facts: Facts, provider: Provider) -> AgentTerminal:
        terminal = AgentTerminal(
            self._tmux, pane, pid, facts=facts, provider=provider, events=self.events, reconnect=self._reconnect
        )
        self.terminals[facts.id] = self._panes[pane] = terminal
        return terminal

    async def _own(self) -> None:
        """Only one server completes what others have left: the one whose number is written here."""
        await self._tmux.run(f"set-option -g {OWNER} {os.getpid()}")
        self._owner = os.getpid()

    async def _claim(self) -> None:
        """Become the owner, unless there is one that lives; of several that try, one succeeds."""
        read = f"show-options -gqv {OWNER}"
        owner = "".join(await self._tmux.run(read))
        if not owner.isdecimal():
            await self._own()
            return
        if int(owner) != os.getpid() and has_ended(int(owner)):
            same = f"#{{==:#{{{OWNER}}},{owner}}}"
            await self._tmux.script(f"if-shell -F {quote(same)} 'set-option -g {OWNER} {os.getpid()}'")
            owner = "".join(await self._tmux.run(read))
        self._owner = int(owner)

    async def tend(self) -> None:
        """One round of the watch: ask a silent tmux server again, and take over what a dead server has left."""
        if self.silent and time.monotonic() - self._asked > SILENT_SECONDS:
            await self._reconnect()
        if self._passive or not self.attached:
            return
        if self._owner != os.getpid() and has_ended(self._owner):
            await self._claim()
        for terminal in list(self.terminals.values()):
            if terminal.facts.server != os.getpid() or not terminal.facts.ready:
                self._take_up(terminal)

    def _take_up(self, terminal: AgentTerminal) -> None:
        """Bring to its end what the server that had begun it cannot any more."""
        facts = terminal.facts
        alive = facts.server not in (0, os.getpid()) and not has_ended(facts.server)
        if self._owner != os.getpid() or alive or terminal.ended:
            return
        if not facts.ready or facts.initial == arrival.PENDING:
            if terminal.start is None or terminal.start.done():
                terminal.start = self._spawn(arrival.bring_up(terminal))
        elif facts.pasted and (facts.id, facts.turn) not in self._completed:
            self._completed.add((facts.id, facts.turn))
            self._spawn(arrival.complete(terminal))

    async def adopt(self) -> None:
        """Connect to a tmux server that is there, and find its terminals again."""
        if not self._tmux.alive:
            await self._check_running()
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
                self._panes[pane].mark_dirty()
                continue
            facts = Facts.from_json(text)
            provider = find_provider(facts.provider) if facts is not None else None
            if facts is None or provider is None:
                continue
            self._take_up(self._take_in(pane, int(pid), facts, provider))
        self._hush(silent=False)

    async def _check_running(self) -> None:
        """A stopped tmux 3.3a crashes when it goes on, if meanwhile clients have come and gone: leave it in peace."""
        path = self.state_folder.socket(self.name)
        self._server = server_pid(path) or self._server
        if self._server and await asyncio.to_thread(is_stopped, self._server):
            raise TmuxUnresponsive(f"the tmux server at {path} does not answer: it is stopped")

    async def delete(self, terminal: AgentTerminal) -> None:
        """End one terminal and forget it."""
        if not terminal.ended or not self.gone:
            with suppress(TmuxError):  # it may have been killed already
                await self._tmux.run(f"kill-pane -t {terminal.pane}")
            await asyncio.to_thread(end_groups, [terminal.pid])
        terminal.lose("it was deleted")
        self.terminals.pop(terminal.facts.id, None)
        self._panes.pop(terminal.pane, None)
        await asyncio.to_thread(shutil.rmtree, terminal.folder, ignore_errors=True)
        if not self.terminals:
            await self.close()

    async def end(self, terminal: AgentTerminal) -> None:
        """End an agent as its user would. When it was the last that lived, nothing of the session stays behind."""
        await delivery.end(terminal)
        if not self.gone and all(other.ended for other in self.terminals.values()):
            await self.close()

    async def close(self) -> None:
        """End the tmux server and all that runs in it."""
        folder, path = self.state_folder.terminals / self.name, self.state_folder.socket(self.name)
        remove_dead_socket(path)
        if self.gone and not path.exists():
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            return
        answers = not self.silent and not self.gone
        pids = [terminal.pid for terminal in self.terminals.values() if terminal.is_running()]
        self.gone = True
        await self.leave()
        # only now that tmux has noticed that our connection has ended: killed before, it may wedge
        await asyncio.to_thread(end_server, path, self._server, pids, answers=answers)
        self.silent = False
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
        return await count_viewers(self._tmux)

    def _connection(self) -> TmuxConnection:
        return TmuxConnection(self.state_folder.socket(self.name), self._output, self._lost)

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
                path = self.state_folder.socket(self.name)
                remove_dead_socket(path)
                if path.exists():
                    await self.adopt()
                    return
            except TmuxUnresponsive:
                self._hush(silent=True)
            except TmuxError:
                self.gone = True
            else:
                self.gone = True
        if self.gone:
            self._hush(silent=False)
            for terminal in self.terminals.values():
                terminal.lose("its tmux session was killed")
        for terminal in list(self.terminals.values()):
            await terminal.report()

    def _hush(self, *, silent: bool) -> None:
        self.silent = silent
        self._asked = time.monotonic()
        for terminal in self.terminals.values():
            terminal.mute = silent

    async def find(self) -> None:
        """Adopt a session that is there. One that does not answer is kept in view: its terminals may well live."""
        try:
            await self.adopt()
        except TmuxUnresponsive:
            self._hush(silent=True)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _require(program: str, path: str) -> None:
    """Say plainly that a program is missing, before a pane says so in a shell's words."""
    if shutil.which(program, path=path) is None:
        raise BadRequest(f"{program} is not installed: it is not on the PATH")
