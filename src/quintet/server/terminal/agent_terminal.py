"""One terminal: its pane, what it shows, and how it stands."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from quintet.api.status import AT_REST, TerminalStatus
from quintet.processes import has_ended
from quintet.providers.base import Provider, TurnRecord
from quintet.providers.editor import INPUT
from quintet.providers.screen import Screen
from quintet.server.events import Events
from quintet.server.terminal.disagreement import DisagreementTimer
from quintet.server.terminal.facts import OPTION, Facts
from quintet.server.terminal.quiet_timer import QuietTimer
from quintet.server.terminal.status import StatusEvidence, judge
from quintet.server.tmux.connection import TmuxConnection, quote
from quintet.server.tmux.errors import CommandFailed, TmuxError

UNKNOWN_SECONDS: Final = 15.0
"""how long an agent must be at rest until a prompt that its own record does not know counts as done with"""
STALE_SECONDS: Final = 1.0
"""how long a look at a silent pane holds"""
COALESCE_SECONDS: Final = 0.003
"""a program draws in several writes; one look is enough for them"""
LONGEST_REPLY: Final = 2_000_000
"""characters of a reply that are told"""
_FORMAT: Final = "\t".join(
    f"#{{{name}}}"
    for name in ("pane_id", "pid", "pane_dead", "pane_dead_status", "pane_dead_signal", "alternate_on",
                 "cursor_x", "cursor_y", "pane_current_command", OPTION, "pane_title")
)  # fmt: skip
MUTE: Final = "tmux does not answer"
AT_WORK: Final = frozenset({TerminalStatus.PROCESSING, TerminalStatus.WAITING_USER_ANSWER})


@dataclass(frozen=True)
class PaneView:
    """What was seen of a pane at one moment."""

    screen: Screen
    end: str | None = None
    """how its program has ended; None while it lives"""


@dataclass(frozen=True)
class Report:
    """How a terminal stands."""

    status: TerminalStatus
    reason: str | None
    record: TurnRecord | None
    doubt: str | None = None
    """how screen and record have disagreed on the turn for long"""


class AgentTerminal:
    """A pane with an agent in it. All that must outlive this process is in `facts`, and these are kept in tmux."""

    def __init__(
        self,
        tmux: TmuxConnection,
        pane: str,
        pid: int,
        *,
        facts: Facts,
        provider: Provider,
        events: Events,
        reconnect: Callable[[], Awaitable[None]],
    ) -> None:
        self.tmux = tmux
        self.pane = pane
        self.pid = pid
        self.facts = facts
        self.provider = provider
        self.events = events
        self.reconnect = reconnect
        """brings a lost connection back, or finds that the session is gone"""
        self.typing = asyncio.Lock()
        """held while something is typed into the pane"""
        self.start: asyncio.Task[None] | None = None
        """waits until the agent is ready"""
        self.needs: str | None = None
        """what only the user can do before the agent is ready"""
        self.stuck = False
        """something is in the composer that the agent does not take"""
        self.mute = False
        """its tmux server does not answer"""
        self.dirty = True
        self._last = PaneView(Screen(""))
        self._looked = float("-inf")
        self._changed = asyncio.Event()
        self._news = True
        self._writes = 0
        self._begun_turn = 0
        self._dead_since: float | None = None
        self._told: TerminalStatus | None = None
        self._told_turn = facts.turn
        self._odds = DisagreementTimer()
        self._silence = QuietTimer()
        self._doubted_turn = 0

    @property
    def folder(self) -> Path:
        return Path(self.facts.folder)

    @property
    def ended(self) -> bool:
        """Whether it is known that the program has ended."""
        return self._last.end is not None

    @property
    def seen(self) -> PaneView:
        """The last look."""
        return self._last

    def take_news(self) -> bool:
        """Whether its pane has put something out since this was asked last."""
        news, self._news = self._news, False
        return news

    @property
    def told(self) -> TerminalStatus | None:
        """The status that was passed on last."""
        return self._told

    def mark_dirty(self) -> None:
        """The pane has put something out."""
        self.dirty = self._news = True
        self._silence.end()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def change(self, seconds: float) -> None:
        """Wait for output, or for the time."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
                await asyncio.sleep(COALESCE_SECONDS)
        except TimeoutError:
            return

    def is_running(self) -> bool:
        """Whether the pane's process lives; asked of the kernel, because tmux does not tell of an end."""
        return not has_ended(self.pid)

    def lose(self, reason: str) -> None:
        """The pane is gone, and with it whatever was in it."""
        if not self.ended:
            self._last = replace(self._last, end=reason)
            self.mark_dirty()

    async def look(self) -> PaneView:
        """The pane as it is now. A pane that has put nothing out since the last look is not captured again."""
        silent = not self.dirty and time.monotonic() - self._looked < STALE_SECONDS
        if self.ended or self.mute or (silent and self.is_running()):
            return self._last
        self.dirty = False
        writes = self._writes
        try:
            described, shown = await self.tmux.run_all(
                [f"display-message -p -t {self.pane} {quote(_FORMAT)}", f"capture-pane -p -t {self.pane}"]
            )
        except CommandFailed:
            self.lose("its pane was killed")
            return self._last
        except TmuxError:
            self.dirty = True
            await self.reconnect()
            return self._last if self.ended or self.mute else await self.look()
        pane, server, dead, code, number, alternate, x, y, command, facts, title = described[0].split("\t", 10)
        if pane != self.pane:
            self.lose("its pane was killed")
            return self._last
        known = Facts.from_json(facts)
        if known is not None and writes == self._writes:
            self.facts = known
        self._looked = time.monotonic()
        if dead == "1" and not code and not number and self._is_code_due():
            os.kill(int(server), signal.SIGCHLD)
            self.dirty = True
            await asyncio.sleep(0.02)
            return await self.look()
        screen = Screen("\n".join(shown), title, command, alternate == "1", (int(x), int(y)))
        if dead != "1" and not self.is_running() and not self._is_code_due():
            dead = "1"  # tmux has not noticed
        self._last = PaneView(screen, _ending(code, number) if dead == "1" else None)
        return self._last

    def _is_code_due(self) -> bool:
        """tmux 3.3a sometimes sees a pane close and misses the end of its program, until it is told to look again."""
        self._dead_since = self._dead_since or time.monotonic()
        return time.monotonic() - self._dead_since < STALE_SECONDS

    async def report(self) -> Report:
        """How the terminal stands now; a change is passed on to those who watch."""
        look = await self.look()
        turn = self.facts.turn
        record = self.provider.read_record(self.folder, self.facts.since) if turn else None
        if look.end is not None:
            return self._tell(Report(TerminalStatus.ERROR, look.end, record))
        if self.mute:
            lives = self.is_running()
            status, reason = (TerminalStatus.UNKNOWN, MUTE) if lives else (TerminalStatus.ERROR, _ending("", ""))
            return self._tell(Report(status, reason, record))
        if self.stuck and record is not None and not self.typing.locked():
            await self.settle()  # it was busy, and has taken its input after all
        shown = self.provider.read_screen(look.screen)
        if shown is TerminalStatus.WAITING_USER_ANSWER and self.facts.ready and self.provider.aside(look.screen):
            shown = TerminalStatus.IDLE  # it stands in nobody's way
        if shown is TerminalStatus.PROCESSING and record is not None and record.ended and record.final:
            shown = shown if self.provider.screen_overrides_record(look.screen) else TerminalStatus.COMPLETED
        # typed while the agent was busy with something of its own: the prompt waits, and what is shown is not its turn
        unknown = bool(turn) and record is None and self.provider.keeps_record(self.folder)
        if turn and (record is not None or shown in AT_WORK) and not self.facts.pasted:
            self._begun_turn = turn
        doubt = self._odds.see(turn, shown, record)
        status = judge(
            StatusEvidence(
                ready=self.facts.ready,
                needs_user=bool(self.needs),
                turn=turn,
                typing=self.facts.pasted,
                shown=shown,
                record=record,
                begun=self._begun_turn == turn and not unknown,
                settled=self._settled(shown, unknown=unknown),
                quiet=self._is_quiet(turn),
                at_odds=doubt is not None,
            )
        )
        if self.facts.pasted and self.stuck:
            status = TerminalStatus.UNKNOWN
        return self._tell(Report(status, self._reason(status, record), record, doubt))

    def typed_after(self, report: Report) -> int | None:
        """The last turn that a client has asked for, where somebody has typed a prompt in the pane since."""
        facts = self.facts
        if facts.turn:
            return facts.turn if report.record is not None and report.record.typed else None
        is_blank = facts.ready and not facts.continues and not facts.initial
        return 0 if is_blank and self.provider.read_record(self.folder, 0) is not None else None

    def _is_quiet(self, turn: int) -> bool:
        """Whether the pane is silent, or has been since its turn was over: an idle agent may draw something, too."""
        was_over = self._told is TerminalStatus.COMPLETED and self._told_turn == turn
        return was_over or self._silence.lasts(self.provider.quiet_seconds)

    _busy = 0.0

    def _settled(self, shown: TerminalStatus, *, unknown: bool) -> bool:
        """Whether the last input is so long ago that an agent which shows no work has none."""
        now = time.time()
        if shown not in AT_REST:
            self._busy = now
        if unknown:
            return now - max(self.facts.typed, self._busy) > UNKNOWN_SECONDS
        return now - self.facts.typed > self.provider.settle_seconds

    def _reason(self, status: TerminalStatus, record: TurnRecord | None) -> str | None:
        if status is TerminalStatus.ERROR:
            # the screen tells of an end that tmux has not noticed yet; the next look knows how it came
            return "its program has ended"
        if not self.facts.ready:
            return self.needs
        if self.facts.pasted and self.stuck:
            return "the last input was pasted, but the agent does not take it"
        return str(record.failure) if record is not None and record.failure and status in AT_REST else None

    def _tell(self, report: Report) -> Report:
        facts = self.facts
        if report.status is not self._told:
            self._told = report.status
            self.events.add(
                "status", terminal=facts.id, session=facts.session, status=report.status, reason=report.reason
            )
        if report.doubt and facts.turn > self._doubted_turn:
            self._doubted_turn = facts.turn
            self.events.add("doubt", terminal=facts.id, session=facts.session, turn=facts.turn, text=report.doubt)
        has_end = report.record is not None and report.record.ended
        over = report.status is TerminalStatus.COMPLETED or (has_end and report.status is not TerminalStatus.PROCESSING)
        if over and facts.turn > self._told_turn:
            self._told_turn = facts.turn
            self.events.add("turn", terminal=facts.id, session=facts.session, turn=facts.turn, state="ended")
        return report

    async def settle(self) -> None:
        """The agent has taken what was pasted."""
        self.stuck = False
        await self.keep(replace(self.facts, pasted=False, typed=time.time()))
        (self.folder / INPUT).unlink(missing_ok=True)

    async def keep(self, facts: Facts) -> None:
        """Write down what is known now."""
        self.facts = facts
        self._writes += 1
        await self.tmux.run(f"set-option -p -t {self.pane} {OPTION} {quote(facts.to_json())}")

    def kept(self, facts: Facts) -> None:
        """Facts that a command has written already."""
        self.facts = facts
        self._writes += 1

    async def output(self) -> str:
        """All that the pane holds, with its scrollback."""
        look = await self.look()
        try:
            lines = await self.tmux.run(f"capture-pane -p -J -S - -t {self.pane}")
        except TmuxError:
            return look.screen.text.rstrip()
        return "\n".join(line.rstrip() for line in lines).rstrip()

    async def last_reply(self) -> str:
        """The answer of the last turn; empty while that turn is running, whatever was answered before."""
        report = await self.report()
        if self.facts.turn == 0 or report.status is TerminalStatus.PROCESSING:
            return ""
        if report.record is not None:
            return shortened(report.record.last_message or "") if report.record.ended else ""
        if report.status is not TerminalStatus.COMPLETED:
            return ""
        return shortened(self.provider.read_reply(await self.output()))

    async def working_directory(self) -> str:
        """Where the pane's program is now."""
        try:
            lines = await self.tmux.run(f"display-message -p -t {self.pane} '#{{pane_current_path}}'")
        except TmuxError:
            return self.facts.cwd
        return (lines[0] if lines else "") or self.facts.cwd


def shortened(reply: str) -> str:
    """A reply; of a very long one its beginning and its end, with a note between them."""
    left_out = len(reply) - LONGEST_REPLY
    if left_out <= 0:
        return reply
    half = LONGEST_REPLY // 2
    return f"{reply[:half]}\n[... {left_out} characters are left out here ...]\n{reply[-half:]}"


async def count_viewers(tmux: TmuxConnection) -> int:
    """How many people are attached to a session."""
    try:
        clients = await tmux.run("list-clients -F '#{client_control_mode}'")
    except TmuxError:
        return 0
    return clients.count("0")


def _ending(code: str, number: str) -> str:
    if number:
        return f"its program was ended by signal {number}"
    return f"its program has exited with code {code}" if code else "its program has ended"
