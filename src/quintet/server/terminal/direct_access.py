"""The terminals of this user, for commands that need no server: all they ask is tmux."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from quintet.errors import ServerError
from quintet.program import program
from quintet.roles import ROLES
from quintet.server.names import session_name
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.agent_terminal import MUTE
from quintet.server.terminal.session_manager import SessionManager
from quintet.server.tmux.connection import check_version, find_tmux
from quintet.server.tmux.servers import is_dead

T = TypeVar("T")


@dataclass(frozen=True)
class TerminalRow:
    """One terminal in the list."""

    session: str
    terminal_id: str
    pane: str
    role: str
    provider: str
    status: str
    cwd: str
    launched: float
    socket: Path
    silent: bool = False
    """stands for a whole session whose tmux server does not answer"""


def list_terminals() -> list[TerminalRow]:
    """All terminals, the newest session first."""

    async def collect(hub: SessionManager) -> list[TerminalRow]:
        sessions = await hub.sessions()
        silent = [
            TerminalRow(
                session.name,
                "-",
                "",
                "-",
                "-",
                "unknown",
                MUTE,
                0.0,
                session.state_folder.socket(session.name),
                silent=True,
            )
            for session in sessions
            if session.silent
        ]
        return silent + [
            TerminalRow(
                session.name,
                terminal.facts.id,
                terminal.pane,
                next((role.name for role in ROLES if role.profile == terminal.facts.profile), terminal.facts.profile),
                terminal.facts.provider,
                (await terminal.report()).status,
                terminal.facts.cwd,
                terminal.facts.launched,
                session.state_folder.socket(session.name),
            )
            for session in sessions
            if not session.silent
            for terminal in session.terminals.values()
        ]

    seats = _ask(collect)
    newest = {seat.session: max(other.launched for other in seats if other.session == seat.session) for seat in seats}
    return sorted(seats, key=lambda seat: (-newest[seat.session], seat.session, seat.launched))


def choose_terminals(seats: list[TerminalRow], role: str | None, session: str | None) -> list[TerminalRow]:
    """The terminals of one session, or the one of a role in it."""
    if session is not None:
        found = [seat for seat in seats if seat.session == session_name(session)]
    else:
        here = str(Path.cwd().resolve())
        of_here = [seat for seat in seats if seat.cwd == here] or seats
        found = [seat for seat in of_here if seat.session == of_here[0].session]
    if not found:
        raise ServerError(
            f"no session {session}" if session else f"no terminals are there; {program()} run starts some"
        )
    if role is None:
        return found
    matching = [seat for seat in found if seat.silent or role in (seat.role, seat.terminal_id)]
    if not matching:
        raise ServerError(f'no terminal "{role}"; there are {", ".join(seat.role for seat in found)}')
    return matching


def sessions_in(seats: list[TerminalRow], wd: Path) -> list[str]:
    """The sessions that are of one directory alone."""
    elsewhere = {seat.session for seat in seats if seat.cwd != str(wd)}
    return list(dict.fromkeys(seat.session for seat in seats if seat.session not in elsewhere))


def attach(seat: TerminalRow, *, read_only: bool = False) -> None:
    """Become a tmux client that shows the terminal."""
    _check_answers(seat)
    if not (os.isatty(0) and os.isatty(1)) or os.environ.get("TERM", "dumb") == "dumb":
        raise ServerError(f"attach needs a terminal to show it in; {program()} logs {seat.role} prints what it shows")
    environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
    os.execve(  # noqa: S606 - nothing of this process is needed any more
        find_tmux(),
        ["tmux", "-u", "-N", "-S", str(seat.socket), "attach-session", *(["-r"] if read_only else []), "-t", seat.pane],
        environment,
    )


def read_output(seat: TerminalRow) -> str:
    """All that a terminal holds."""
    _check_answers(seat)

    async def read(hub: SessionManager) -> str:
        _, terminal = await hub.terminal(seat.terminal_id)
        return await terminal.output()

    return _ask(read)


def _check_answers(seat: TerminalRow) -> None:
    if seat.silent:
        raise ServerError(f"{seat.session}: {MUTE}; {program()} stop --session {seat.session} ends it")


def end_session(session: str) -> None:
    """End a session."""
    _ask(lambda hub: hub.delete_session(session))


def tmux_version() -> str:
    """The release of tmux, for instance "3.4"; TmuxError where tmux is missing or too old."""
    return check_version()


def is_dead_socket(path: Path) -> bool:
    """Whether a tmux server was here and nobody listens any more."""
    return is_dead(path)


def _ask(question: Callable[[SessionManager], Awaitable[T]]) -> T:
    async def ask() -> T:
        hub = SessionManager(StateFolder(), passive=True)
        try:
            return await question(hub)
        finally:
            await hub.close()

    return asyncio.run(ask())
