"""One session: a tmux server of its own, the connection to it, and its terminals."""

import asyncio
import os
import time
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from quintet import files
from quintet.processes import end_groups, has_ended, is_stopped
from quintet.providers.base import Provider
from quintet.providers.registry import provider_of_terminal
from quintet.sandbox.network.outlets import Outlets
from quintet.server.events import EventLog
from quintet.server.refusals import BadRequest, Conflict, NotFound
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.terminal.facts import OPTION, Facts
from quintet.server.terminal.input import end_agent
from quintet.server.terminal.logins import exchange_all
from quintet.server.terminal.pane import NO_ANSWER
from quintet.server.terminal.prepare import PreparedTerminal, prepare_terminal
from quintet.server.terminal.startup import PENDING, finish_delivery, start_agent
from quintet.server.terminal.strays import Owner, continue_all, end_left_behind, end_strays, stop_all
from quintet.server.terminal.terminal_spec import TerminalSpec
from quintet.server.tmux.connection import TmuxConnection, quote
from quintet.server.tmux.errors import TmuxError, TmuxUnresponsive
from quintet.server.tmux.servers import end_server, remove_dead_socket, server_pid

OWNER: Final = "@quintet-owner"
"""the process number of the server that acts on the session's terminals; others may look, type and add their own"""
RETRY_SECONDS: Final = 10.0
"""how long a tmux server that does not answer is left alone"""


class TmuxSession:
    """The terminals of one run, or of one client."""

    def __init__(
        self,
        name: str,
        state_folder: StateFolder,
        events: EventLog,
        *,
        passive: bool = False,
        outlets: Outlets | None = None,
    ) -> None:
        self.name = name
        self.state_folder = state_folder
        self.outlets = outlets or Outlets()
        self.events = events
        self.terminals: dict[str, AgentTerminal] = {}
        self.gone = False
        """its tmux server has ended"""
        self.unresponsive = False
        """its tmux server is there but does not answer"""
        self._passive = passive
        """never acts on the terminals by itself"""
        self._asked_at = float("-inf")
        """when the tmux server was asked last whether it answers"""
        self._owner = 0
        """the server that acts on the session's terminals, as far as is known"""
        self._finished: set[tuple[str, int]] = set()
        """turns that another server has begun to type and this one has finished"""
        self._swept: set[str] = set()
        """terminals whose programs have ended, with all that they have left"""
        self._server = 0
        """the process number of the tmux server"""
        self._panes: dict[str, AgentTerminal] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connecting = asyncio.Lock()
        self._tmux = self._new_connection()

    async def create(self, spec: TerminalSpec) -> AgentTerminal:
        """Start the tmux server with the first terminal."""
        prepared = await prepare_terminal(self.state_folder, self.name, spec, self.outlets)
        try:
            await self._tmux.create(self.name, prepared.window, prepared.command)
        except BaseException as error:
            self._remove(prepared.id)
            if isinstance(error, TmuxError) and "duplicate" in str(error):
                raise BadRequest(f"Session '{self.name}' already exists") from None
            raise
        try:
            await self._become_owner()
            (listed,) = await self._tmux.run(f"list-panes -s -F '#{{pane_id}} #{{pane_pid}} #{{pid}}' -t ={self.name}")
            pane, pid, server = listed.split()
            self._server = int(server)
            return await self._start(prepared, pane, int(pid))
        except BaseException:
            await self.close()
            raise

    async def add(self, spec: TerminalSpec) -> AgentTerminal:
        """Start another terminal."""
        if self.gone:
            raise NotFound(f"Session '{self.name}' not found")
        if self.unresponsive:
            raise Conflict(f"Session '{self.name}' cannot take another terminal: {NO_ANSWER}")
        prepared = await prepare_terminal(self.state_folder, self.name, spec, self.outlets)
        try:
            form = "#{pane_id} #{pane_pid}"
            listed = await self._tmux.open_window(self.name, prepared.window, prepared.command, form)
            pane, pid = listed.split()
            return await self._start(prepared, pane, int(pid))
        except BaseException:
            if prepared.id in self.terminals:
                await self.delete(self.terminals[prepared.id])
            self._remove(prepared.id)
            raise

    def _remove(self, terminal_id: str) -> None:
        """Remove what was made for a terminal that did not start."""
        self.outlets.close(self.state_folder.outlet(self.name, terminal_id))
        self.state_folder.remove_folder(self.name, terminal_id)

    async def _start(self, prepared: PreparedTerminal, pane: str, pid: int) -> AgentTerminal:
        """Store the facts of a new terminal, and begin to wait until its agent is ready."""
        spec = prepared.spec
        facts = Facts(
            id=prepared.id,
            session=self.name,
            name=prepared.window,
            provider=spec.provider.name,
            profile=spec.profile,
            cwd=str(spec.cwd),
            folder=str(self.state_folder.folder(self.name, prepared.id)),
            launched=time.time(),
            model=spec.model,
            server=os.getpid(),
            continues=spec.continues,
            sandbox=spec.sandbox.tmp if spec.sandbox else "",
            network=spec.sandbox.network_words if spec.sandbox else "",
            description=spec.description,
            initial=PENDING if spec.initial else "",
        )
        terminal = self._add_terminal(pane, pid, facts, spec.provider)
        await terminal.save_facts(facts)
        terminal.startup = self._spawn(start_agent(terminal))
        terminal.tell("terminal", state="created")
        return terminal

    def _add_terminal(self, pane: str, pid: int, facts: Facts, provider: Provider) -> AgentTerminal:
        terminal = AgentTerminal(
            self._tmux, pane, pid, facts=facts, provider=provider, events=self.events, reconnect=self._reconnect
        )
        terminal.find_refused = partial(self.outlets.refused, self.state_folder.outlet(self.name, facts.id))
        self.terminals[facts.id] = self._panes[pane] = terminal
        return terminal

    async def _become_owner(self) -> None:
        """Only one server finishes what others have left: the one whose number is stored here."""
        await self._tmux.run(f"set-option -g {OWNER} {os.getpid()}")
        self._owner = os.getpid()

    async def _find_owner(self) -> None:
        """Become the owner, unless there is one that lives; of several that try, one succeeds."""
        read = f"show-options -gqv {OWNER}"
        owner = "".join(await self._tmux.run(read))
        if not owner.isdecimal():
            await self._become_owner()
            return
        if int(owner) != os.getpid() and has_ended(int(owner)):
            same = f"#{{==:#{{{OWNER}}},{owner}}}"
            await self._tmux.script(f"if-shell -F {quote(same)} 'set-option -g {OWNER} {os.getpid()}'")
            owner = "".join(await self._tmux.run(read))
        self._owner = int(owner)

    async def tick(self) -> None:
        """Ask an unresponsive tmux server again, and take over what a server that has ended left unfinished."""
        if self.unresponsive and time.monotonic() - self._asked_at > RETRY_SECONDS:
            await self._reconnect()
        if self._passive or not self.connected:
            return
        if self._owner != os.getpid() and has_ended(self._owner):
            await self._find_owner()
        for terminal in list(self.terminals.values()):
            if terminal.facts.server != os.getpid() or not terminal.facts.ready:
                self._finish_orphan(terminal)
        self._reopen_outlets()
        await self._exchange_logins(*self.terminals.values())
        await self._end_left_behind(*self.terminals.values())

    def _reopen_outlets(self) -> None:
        """Let agents reach their hosts again that have lost the server which led there."""
        for terminal in self.terminals.values() if self._owner == os.getpid() else ():
            if terminal.facts.sandbox and not terminal.ended:
                self.outlets.reopen(self.state_folder.outlet(self.name, terminal.facts.id))

    async def _exchange_logins(self, *terminals: AgentTerminal) -> None:
        """Copy logins that were renewed."""
        if found := [terminal.logins for terminal in terminals if terminal.logins is not None]:
            await asyncio.to_thread(exchange_all, found)

    def _finish_orphan(self, terminal: AgentTerminal) -> None:
        """Finish the start or the input that was begun by a server which has ended."""
        facts = terminal.facts
        is_served = facts.server not in (0, os.getpid()) and not has_ended(facts.server)
        if self._owner != os.getpid() or is_served or terminal.ended:
            return
        if not facts.ready or facts.initial == PENDING:
            if terminal.startup is None or terminal.startup.done():
                terminal.startup = self._spawn(start_agent(terminal))
        elif facts.pasted and (facts.id, facts.turn) not in self._finished:
            self._finished.add((facts.id, facts.turn))
            self._spawn(finish_delivery(terminal))

    async def connect(self) -> None:
        """Connect to the tmux server and find its terminals. One that does not answer stays: its terminals may live."""
        try:
            await self._connect()
        except TmuxUnresponsive:
            self._set_unresponsive(True)

    async def _connect(self) -> None:
        if not self._tmux.alive:
            await self._check_not_stopped()
            self._tmux = self._new_connection()
            await self._tmux.attach(self.name)
            if not self._passive:
                await self._find_owner()
        form = "\t".join(f"#{{{name}}}" for name in ("pane_id", "pane_pid", "pid", OPTION))
        for line in await self._tmux.run(f"list-panes -s -F {quote(form)} -t {quote(f'={self.name}')}"):
            pane, pid, server, text = line.split("\t", 3)
            self._server = int(server)
            if pane in self._panes:
                self._panes[pane].tmux = self._tmux
                self._panes[pane].note_output()
                continue
            facts = Facts.from_json(text)
            provider = provider_of_terminal(facts.provider, Path(facts.folder)) if facts is not None else None
            if facts is not None and provider is not None:
                self._finish_orphan(self._add_terminal(pane, int(pid), facts, provider))
        self._reopen_outlets()
        self._set_unresponsive(False)

    async def _check_not_stopped(self) -> None:
        """A stopped tmux 3.3a crashes when it goes on, if clients have come and gone meanwhile: do not connect."""
        path = self.state_folder.socket(self.name)
        self._server = server_pid(path) or self._server
        if self._server and await asyncio.to_thread(is_stopped, self._server):
            raise TmuxUnresponsive(f"the tmux server at {path} does not answer: it is stopped")

    async def delete(self, terminal: AgentTerminal) -> None:
        """End one terminal and forget it; the session ends with the last one."""
        if not terminal.ended or not self.gone:
            with suppress(TmuxError):  # it may have been killed already
                await self._tmux.run(f"kill-pane -t {terminal.pane_id}")
            await asyncio.to_thread(end_groups, [terminal.pid])
        terminal.mark_ended("it was deleted")
        await self._end_left_behind(terminal)
        await self._exchange_logins(terminal)
        self.terminals.pop(terminal.facts.id, None)
        self._panes.pop(terminal.pane_id, None)
        self.outlets.close(self.state_folder.outlet(self.name, terminal.facts.id))
        await asyncio.to_thread(files.remove_tree, terminal.folder)
        if not self.terminals:
            await self.close()

    async def end_strays(self, but: str) -> dict[str, list[str]]:
        """End what the turns of all terminals but one have left running; by terminal, the commands that were ended."""
        owners = {
            name: Owner(terminal.pid, terminal.facts.begun, adopts=bool(terminal.provider.doorbell))
            for name, terminal in self.terminals.items()
            if name != but
        }
        return await asyncio.to_thread(end_strays, owners)

    async def stop_processes(self) -> None:
        """Stop everything that runs in the terminals, until `continue_processes`."""
        await asyncio.to_thread(stop_all, self._pids)

    async def continue_processes(self) -> None:
        """Let everything in the terminals go on."""
        await asyncio.to_thread(continue_all, self._pids)

    @property
    def _pids(self) -> dict[str, int]:
        """The first processes of the panes, by terminal."""
        return {name: terminal.pid for name, terminal in self.terminals.items() if not terminal.ended}

    async def _end_left_behind(self, *terminals: AgentTerminal) -> None:
        """End what a host that was killed has left of its agent, which has a process group of its own."""
        ended = {one.facts.id for one in terminals if one.provider.doorbell and one.ended} - self._swept
        self._swept |= ended
        if ended:
            await asyncio.to_thread(end_left_behind, ended)

    async def end_terminal(self, terminal: AgentTerminal) -> None:
        """End an agent as its user would. The session ends with the last one that lives."""
        await end_agent(terminal)
        if not self.gone and all(other.ended for other in self.terminals.values()):
            await self.close()

    async def close(self) -> None:
        """End the tmux server and all that runs in it."""
        folder, path = self.state_folder.terminals / self.name, self.state_folder.socket(self.name)
        remove_dead_socket(path)
        if self.gone and not path.exists():
            await asyncio.to_thread(files.remove_tree, folder)
            return
        answers = not self.unresponsive and not self.gone
        pids = [terminal.pid for terminal in self.terminals.values() if terminal.is_running()]
        self.gone = True
        await self.disconnect()
        # only now that tmux has noticed that our connection has ended: killed before, it may wedge
        await asyncio.to_thread(end_server, path, self._server, pids, answers=answers)
        self.unresponsive = False
        for terminal in self.terminals.values():
            terminal.mark_ended("its session was ended")
            self.outlets.close(self.state_folder.outlet(self.name, terminal.facts.id))
        await self._end_left_behind(*self.terminals.values())
        await self._exchange_logins(*self.terminals.values())
        await asyncio.to_thread(files.remove_tree, folder)

    async def disconnect(self) -> None:
        """Close the connection; the tmux server and its terminals go on."""
        for task in self._tasks:
            task.cancel()
        await self._tmux.close()

    @property
    def connected(self) -> bool:
        """Whether there is a connection to the tmux server."""
        return self._tmux.alive

    async def count_viewers(self) -> int:
        """How many people are attached."""
        return await self._tmux.count_viewers()

    def _new_connection(self) -> TmuxConnection:
        return TmuxConnection(self.state_folder.socket(self.name), self._note_output, self._connection_lost)

    def _note_output(self, pane: str) -> None:
        if pane in self._panes:
            self._panes[pane].note_output()

    def _connection_lost(self) -> None:
        self._spawn(self._reconnect())

    async def _reconnect(self) -> None:
        """Connect again, or find that the session is gone: somebody may only have detached our connection."""
        async with self._connecting:
            if self._tmux.alive or self.gone:
                return
            path = self.state_folder.socket(self.name)
            try:
                remove_dead_socket(path)
                if path.exists():
                    await self._connect()
                    return
            except TmuxUnresponsive:
                self._set_unresponsive(True)
            except TmuxError:
                self.gone = True
            else:
                self.gone = True
        if self.gone:
            self._set_unresponsive(False)
            for terminal in self.terminals.values():
                terminal.mark_ended("its tmux session was killed")
            if not self._passive:
                await self._end_left_behind(*self.terminals.values())
        for terminal in list(self.terminals.values()):
            await terminal.refresh()

    def _set_unresponsive(self, unresponsive: bool) -> None:
        self.unresponsive = unresponsive
        self._asked_at = time.monotonic()
        for terminal in self.terminals.values():
            terminal.unresponsive = unresponsive

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
