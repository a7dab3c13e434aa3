"""A tmux pane: what it shows, whether its program lives, and the facts about it that are stored in tmux."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from quintet.processes import has_ended
from quintet.providers.screen import Screen
from quintet.server.terminal.facts import OPTION, Facts
from quintet.server.terminal.quiet_timer import QuietTimer
from quintet.server.tmux.connection import TmuxConnection, quote
from quintet.server.tmux.errors import CommandFailed, TmuxError

STALE_SECONDS: Final = 1.0
"""how long a view of a silent pane is used again"""
COALESCE_SECONDS: Final = 0.003
"""a program draws in several writes; one look is enough for them"""
GOING_SECONDS: Final = 0.02
NO_ANSWER: Final = "tmux does not answer"
KILLED: Final = "its pane was killed"
_FORMAT: Final = "\t".join(
    f"#{{{name}}}"
    for name in ("pane_id", "pid", "pane_dead", "pane_dead_status", "pane_dead_signal", "alternate_on",
                 "cursor_x", "cursor_y", "pane_current_command", OPTION, "pane_title")
)  # fmt: skip


@dataclass(frozen=True)
class PaneView:
    """What a pane showed at one moment."""

    screen: Screen
    end: str | None = None
    """how its program has ended; None while it runs"""


class Pane:
    """One pane of a session. All that must outlive this process is in `facts`, which are stored in tmux."""

    def __init__(
        self, tmux: TmuxConnection, pane_id: str, pid: int, facts: Facts, reconnect: Callable[[], Awaitable[None]]
    ) -> None:
        self.tmux = tmux
        self.pane_id = pane_id
        self.pid = pid
        self.facts = facts
        self.reconnect = reconnect
        """restores a lost connection, or finds that the session is gone"""
        self.view = PaneView(Screen(""))
        """what was seen last"""
        self.is_outdated = True
        """the view may be wrong by now"""
        self.unresponsive = False
        """its tmux server does not answer"""
        self.quiet = QuietTimer()
        self._viewed_at = float("-inf")
        self._output = asyncio.Event()
        self._has_new_output = True
        self._fact_writes = 0
        self._dead_since: float | None = None

    @property
    def folder(self) -> Path:
        return Path(self.facts.folder)

    @property
    def ended(self) -> bool:
        """Whether it is known that the program has ended."""
        return self.view.end is not None

    def is_running(self) -> bool:
        """Whether the program lives; asked of the kernel, because tmux does not report every end."""
        return not has_ended(self.pid)

    def note_output(self) -> None:
        """The pane has put something out."""
        self.is_outdated = self._has_new_output = True
        self.quiet.restart()
        output, self._output = self._output, asyncio.Event()
        output.set()

    def take_output_flag(self) -> bool:
        """Whether the pane has put something out since the last call."""
        flag, self._has_new_output = self._has_new_output, False
        return flag

    async def wait_for_output(self, seconds: float) -> None:
        """Wait for output, at most this long."""
        try:
            async with asyncio.timeout(seconds):
                await self._output.wait()
                await asyncio.sleep(COALESCE_SECONDS)
        except TimeoutError:
            return

    def mark_ended(self, reason: str) -> None:
        """The pane is gone, and its program with it."""
        if not self.ended:
            self.view = replace(self.view, end=reason)
            self.note_output()

    async def look(self) -> PaneView:
        """The pane as it is now. A pane that has put nothing out since the last look is not captured again."""
        is_fresh = not self.is_outdated and time.monotonic() - self._viewed_at < STALE_SECONDS
        if self.ended or self.unresponsive or (is_fresh and self.is_running()):
            return self.view
        self.is_outdated = False
        fact_writes = self._fact_writes
        try:
            described, shown = await self.tmux.run_all(
                [f"display-message -p -t {self.pane_id} {quote(_FORMAT)}", f"capture-pane -p -t {self.pane_id}"]
            )
        except CommandFailed:
            self.mark_ended(KILLED)
            return self.view
        except TmuxError:
            self.is_outdated = True
            await self.reconnect()
            return self.view if self.ended or self.unresponsive else await self._look_later()
        pane, server, dead, code, number, alternate, x, y, command, facts, title = described[0].split("\t", 10)
        if pane != self.pane_id:
            self.mark_ended(KILLED)
            return self.view
        stored = Facts.from_json(facts)
        if stored is not None and fact_writes == self._fact_writes:
            self.facts = stored
        self._viewed_at = time.monotonic()
        if dead == "1" and not code and not number and self._is_exit_code_due():
            os.kill(int(server), signal.SIGCHLD)
            self.is_outdated = True
            await asyncio.sleep(0.02)
            return await self.look()
        if dead != "1" and not self.is_running() and not self._is_exit_code_due():
            dead = "1"  # tmux has not noticed
        screen = Screen("\n".join(shown), title, command, alternate == "1", (int(x), int(y)))
        self.view = PaneView(screen, describe_end(code, number) if dead == "1" else None)
        return self.view

    async def _look_later(self) -> PaneView:
        """Look again in a moment: its session may just be ended."""
        await asyncio.sleep(GOING_SECONDS)
        return await self.look()

    def _is_exit_code_due(self) -> bool:
        """tmux 3.3a sometimes sees a pane close and misses the end of its program, until it is told to look again."""
        self._dead_since = self._dead_since or time.monotonic()
        return time.monotonic() - self._dead_since < STALE_SECONDS

    async def save_facts(self, facts: Facts) -> None:
        """Store the facts in tmux."""
        self.facts_saved(facts)
        await self.tmux.run(f"set-option -p -t {self.pane_id} {OPTION} {quote(facts.to_json())}")

    def facts_saved(self, facts: Facts) -> None:
        """Take over facts that a command has stored in tmux already."""
        self.facts = facts
        self._fact_writes += 1

    async def output(self) -> str:
        """All text that the pane holds, with its scrollback."""
        view = await self.look()
        try:
            lines = await self.tmux.run(f"capture-pane -p -J -S - -t {self.pane_id}")
        except TmuxError:
            return view.screen.text.rstrip()
        return "\n".join(line.rstrip() for line in lines).rstrip()

    async def working_directory(self) -> str:
        """Where the pane's program is now."""
        try:
            lines = await self.tmux.run(f"display-message -p -t {self.pane_id} '#{{pane_current_path}}'")
        except TmuxError:
            return self.facts.cwd
        return (lines[0] if lines else "") or self.facts.cwd


def describe_end(code: str, number: str) -> str:
    """How a program has ended, from its exit code and the signal that has ended it."""
    if number:
        return f"its program was ended by signal {number}"
    return f"its program has exited with code {code}" if code else "its program has ended"
