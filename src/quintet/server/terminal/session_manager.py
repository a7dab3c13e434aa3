"""All sessions that a server looks after, and the watch over them. There is no store but tmux itself."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from quintet.api.status import TerminalStatus
from quintet.sandbox.network.outlets import Outlets
from quintet.server.events import EventLog
from quintet.server.names import session_name
from quintet.server.refusals import BadRequest, NotFound
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.terminal.pane import NO_ANSWER
from quintet.server.terminal.terminal_spec import TerminalSpec
from quintet.server.terminal.tmux_session import RETRY_SECONDS, TmuxSession
from quintet.server.tmux.errors import TmuxError, TmuxUnresponsive
from quintet.server.tmux.servers import is_listening, remove_dead_socket

_log = logging.getLogger(__name__)
TICK_SECONDS: Final = 0.25
MOST_GONE: Final = 20
"""sessions that have ended and can still be asked about"""


class SessionManager:
    """The sessions of this user: all of them, or those that belong to one run."""

    def __init__(
        self,
        state_folder: StateFolder,
        only: Iterable[str] | None = None,
        *,
        passive: bool = False,
        on_session: Callable[[str], None] = lambda _: None,
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        self.state_folder = state_folder
        self.events = EventLog()
        self.outlets = Outlets()
        self._only = {session_name(name) for name in only} if only is not None else None
        self._passive = passive
        """never acts on a terminal by itself"""
        self._on_session = on_session
        self._on_tick = on_tick
        self._sessions: dict[str, TmuxSession] = {}
        self._failed_at: dict[str, float] = {}
        """when no session could be found behind a socket"""
        self._discovering = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Find the sessions that are there, and begin to watch."""
        await self._discover()
        self._watch = asyncio.get_running_loop().create_task(self._watch_all())

    async def close(self) -> None:
        """Disconnect from all sessions; their terminals go on."""
        self.events.close()
        if self._watch is not None:
            self._watch.cancel()
        await asyncio.gather(*(session.disconnect() for session in self._sessions.values()))
        await asyncio.to_thread(self.outlets.stop)

    async def create_session(self, name: str, spec: TerminalSpec) -> AgentTerminal:
        """Start a session with its first terminal."""
        known = self._sessions.get(name)
        if (known is not None and not known.gone) or is_listening(self.state_folder.socket(name)):
            raise BadRequest(f"Session '{name}' already exists")
        session = self._sessions[name] = self._new_session(name)
        try:
            terminal = await session.create(spec)
        except BaseException:
            self._sessions.pop(name, None)
            raise
        if self._only is not None:
            self._only.add(name)
        self._on_session(name)
        return terminal

    async def session(self, name: str) -> TmuxSession:
        """A session whose tmux server lives."""
        if name not in self._sessions:
            await self._discover()
        session = self._sessions.get(name)
        if session is None or session.gone:
            raise NotFound(f"Session '{name}' not found")
        return session

    async def sessions(self) -> list[TmuxSession]:
        """All sessions whose tmux servers live."""
        await self._discover()
        return [session for session in self._sessions.values() if not session.gone]

    async def delete_session(self, name: str) -> None:
        """End a session and forget it."""
        known = self._sessions.get(name)
        if known is None or known.gone:
            await self._discover()
        session = self._sessions.pop(name, None)
        if session is None:
            raise NotFound(f"Session '{name}' not found")
        was_gone = session.gone
        await session.close()
        self.events.add("session", session=name, state="deleted")
        if was_gone:
            raise NotFound(f"Session '{name}' not found")

    async def terminal(self, terminal_id: str) -> tuple[TmuxSession, AgentTerminal]:
        """A terminal, dead or alive, and its session."""
        found = self._find(terminal_id)
        if found is None or found[0].gone:
            await self._discover(terminals=found is None)
            found = self._find(terminal_id)
        if found is None:
            self._check_responsive(terminal_id)
            raise NotFound(f"Terminal '{terminal_id}' not found")
        return found

    async def delete_terminal(self, terminal_id: str) -> None:
        """End a terminal and remove all that is left of it, also where its session has ended by itself."""
        try:
            session, terminal = await self.terminal(terminal_id)
        except NotFound:
            self.state_folder.remove_stray(terminal_id)
            raise
        await session.delete(terminal)

    def _check_responsive(self, terminal_id: str) -> None:
        """A terminal of a session that does not answer is not gone: its client may ask again."""
        for session in self._sessions.values():
            if session.unresponsive and self.state_folder.folder(session.name, terminal_id).is_dir():
                raise TmuxUnresponsive(f"Terminal '{terminal_id}': {NO_ANSWER}")

    def directories(self) -> list[Path]:
        """The working directories of all terminals."""
        found = {terminal.facts.cwd for session in self._sessions.values() for terminal in session.terminals.values()}
        return [Path(name) for name in sorted(found)]

    def _new_session(self, name: str) -> TmuxSession:
        return TmuxSession(name, self.state_folder, self.events, passive=self._passive, outlets=self.outlets)

    def _find(self, terminal_id: str) -> tuple[TmuxSession, AgentTerminal] | None:
        for session in self._sessions.values():
            if terminal_id in session.terminals:
                return session, session.terminals[terminal_id]
        return None

    async def _discover(self, *, terminals: bool = False) -> None:
        """Look for sessions that somebody else has started; with `terminals` also for new terminals in known ones."""
        async with self._discovering:
            names = [name for name in self.state_folder.session_names() if self._only is None or name in self._only]
            await asyncio.gather(*(self._adopt(self._new_session(name)) for name in names if self._is_new(name)))
            if terminals:
                known = [session for session in self._sessions.values() if session.connected]
                await asyncio.gather(*(self._adopt(session) for session in known))

    def _is_new(self, name: str) -> bool:
        session = self._sessions.get(name)
        failed_at = self._failed_at.get(name, float("-inf"))
        return (session is None or session.gone) and time.monotonic() - failed_at > RETRY_SECONDS

    async def _adopt(self, session: TmuxSession) -> None:
        """Connect to a session and keep it; a socket without a tmux server is removed."""
        path = self.state_folder.socket(session.name)
        remove_dead_socket(path)
        if not path.exists():
            return
        try:
            await session.connect()
        except TmuxError:
            self._failed_at[session.name] = time.monotonic()
            return
        self._sessions.setdefault(session.name, session)
        if self._sessions[session.name].gone:
            self._sessions[session.name] = session

    async def snapshot(self) -> dict[str, Any]:
        """The status of all terminals, for a new watcher."""
        for session in list(self._sessions.values()):
            for terminal in list(session.terminals.values()):
                await terminal.refresh()
        return {
            "terminals": [
                {"terminal": terminal.facts.id, "session": session.name, "profile": terminal.facts.profile,
                 "turn": terminal.facts.turn, "status": terminal.report.status}
                for session in self._sessions.values() for terminal in session.terminals.values()
            ]
        }  # fmt: skip

    async def _watch_all(self) -> None:
        """Notice ends, and where somebody watches also changes. A silent terminal costs one question to the kernel."""
        rounds: dict[str, asyncio.Task[None]] = {}
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._on_tick()
            self._forget_old()
            rounds = {name: task for name, task in rounds.items() if name in self._sessions}
            for session in list(self._sessions.values()):
                if session.name not in rounds or rounds[session.name].done():
                    rounds[session.name] = asyncio.get_running_loop().create_task(self._watch_session(session))

    def _forget_old(self) -> None:
        """A server that runs for weeks must not remember every session that was ever there."""
        gone = [name for name, session in self._sessions.items() if session.gone]
        for name in gone[:-MOST_GONE]:
            del self._sessions[name]

    async def _watch_session(self, session: TmuxSession) -> None:
        """One round; a tmux server that does not answer delays only its own."""
        try:
            await session.tick()
        except TmuxError:
            _log.debug("session %s did not answer", session.name)  # the rounds below find out why
        for terminal in list(session.terminals.values()):
            try:
                await self._watch_terminal(terminal)
            except Exception:  # noqa: BLE001 - the edge of a task: one terminal's fault must not blind the watch
                _log.exception("watching terminal %s failed", terminal.facts.id)

    async def _watch_terminal(self, terminal: AgentTerminal) -> None:
        if terminal.ended:
            return
        if not terminal.is_running():
            terminal.is_outdated = True
            await terminal.refresh()
        elif self.events.watched:
            has_output = terminal.take_output_flag()
            if has_output:
                terminal.tell("output")
            if has_output or terminal.report.status is TerminalStatus.PROCESSING:
                await terminal.refresh()
