"""The terminals of this user without an HTTP server: list, show and end them. For commands, which ask tmux alone."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from quintet.errors import ServerError
from quintet.program import program
from quintet.roles import ROLES
from quintet.server.names import session_name
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.terminal.pane import NO_ANSWER
from quintet.server.terminal.session_manager import SessionManager
from quintet.server.tmux.connection import check_version, find_tmux
from quintet.server.tmux.servers import is_dead, server_pid

T = TypeVar("T")


@dataclass(frozen=True)
class TerminalRow:
    """One terminal in the list of `quintet ps`, or a session that does not answer."""

    session: str
    socket: Path
    terminal_id: str = "-"
    pane: str = ""
    role: str = "-"
    provider: str = "-"
    status: str = "unknown"
    cwd: str = NO_ANSWER
    launched: float = 0.0

    @property
    def unresponsive(self) -> bool:
        """Whether it stands for a whole session whose tmux server does not answer."""
        return not self.pane


def list_terminals() -> list[TerminalRow]:
    """All terminals, the newest session first."""
    rows = _run(_collect_rows)
    newest = {row.session: max(other.launched for other in rows if other.session == row.session) for row in rows}
    return sorted(rows, key=lambda row: (-newest[row.session], row.session, row.launched))


async def _collect_rows(manager: SessionManager) -> list[TerminalRow]:
    rows = []
    for session in await manager.sessions():
        socket = manager.state_folder.socket(session.name)
        if session.unresponsive:
            rows.append(TerminalRow(session.name, socket))
            continue
        for terminal in session.terminals.values():
            await terminal.refresh()
            rows.append(_row(terminal, socket))
    return rows


def _row(terminal: AgentTerminal, socket: Path) -> TerminalRow:
    facts = terminal.facts
    return TerminalRow(
        facts.session,
        socket,
        facts.id,
        terminal.pane_id,
        next((role.name for role in ROLES if role.profile == facts.profile), facts.profile),
        facts.provider,
        terminal.report.status,
        facts.cwd,
        facts.launched,
    )


def choose_terminals(
    rows: list[TerminalRow], role: str | None, session: str | None, trees: Collection[Path] = ()
) -> list[TerminalRow]:
    """The terminals of one session, or the one of a role in it; without a session, the newest in some folders."""
    if session is not None:
        found = [row for row in rows if row.session == session_name(session)]
    else:
        of_here = [row for row in rows if Path(row.cwd) in trees] or rows
        found = [row for row in of_here if row.session == of_here[0].session]
    if not found:
        raise ServerError(
            f"no session {session}" if session else f"there are no terminals; {program()} run starts some"
        )
    if role is None:
        return found
    matching = [row for row in found if row.unresponsive or role in (row.role, row.terminal_id)]
    if not matching:
        raise ServerError(f'no terminal "{role}"; there are {", ".join(row.role for row in found)}')
    return matching


def sessions_in(rows: list[TerminalRow], wd: Path) -> list[str]:
    """The sessions whose terminals are all in one directory."""
    elsewhere = {row.session for row in rows if row.cwd != str(wd)}
    return list(dict.fromkeys(row.session for row in rows if row.session not in elsewhere))


def attach(row: TerminalRow, *, read_only: bool = False) -> None:
    """Become a tmux client that shows the terminal."""
    _check_responsive(row)
    if not (os.isatty(0) and os.isatty(1)) or os.environ.get("TERM", "dumb") == "dumb":
        raise ServerError(f"attach needs a terminal to show it in; {program()} logs {row.role} prints what it shows")
    environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
    os.execve(  # noqa: S606 - nothing of this process is needed any more
        find_tmux(),
        ["tmux", "-u", "-N", "-S", str(row.socket), "attach-session", *(["-r"] if read_only else []), "-t", row.pane],
        environment,
    )


def read_output(row: TerminalRow) -> str:
    """All text that a terminal holds."""
    _check_responsive(row)

    async def read(manager: SessionManager) -> str:
        _, terminal = await manager.terminal(row.terminal_id)
        return await terminal.output()

    return _run(read)


def _check_responsive(row: TerminalRow) -> None:
    if row.unresponsive:
        raise ServerError(f"{row.session}: {NO_ANSWER}; {program()} stop --session {row.session} ends it")


def end_session(session: str) -> None:
    """End a session and its terminals."""
    _run(lambda manager: manager.delete_session(session))


def tmux_version() -> str:
    """The release of tmux, for instance "3.4"; TmuxError where tmux is missing or too old."""
    return check_version()


def is_dead_socket(path: Path) -> bool:
    """Whether a tmux server was here and nobody listens any more."""
    return is_dead(path)


def _run(question: Callable[[SessionManager], Awaitable[T]]) -> T:
    """Ask the sessions of this user something, and disconnect from them."""

    async def ask() -> T:
        manager = SessionManager(StateFolder(), passive=True)
        try:
            return await question(manager)
        finally:
            await manager.close()

    return asyncio.run(ask())


def tmux_servers() -> set[int]:
    """The processes of this user's tmux servers with agents, asked of the kernel."""
    folder = StateFolder()
    return {pid for name in folder.session_names() if (pid := server_pid(folder.socket(name)))}
