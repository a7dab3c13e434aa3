"""A terminal: a pane with an agent in it, and the agent's status."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from quintet.api.status import AT_REST, TerminalStatus
from quintet.providers import editor
from quintet.providers.base import Provider, TurnRecord
from quintet.providers.screen import Screen
from quintet.sandbox.network.proxy import HostRefusal
from quintet.server.events import EventLog
from quintet.server.terminal.disagreement import DisagreementTimer
from quintet.server.terminal.facts import Facts
from quintet.server.terminal.logins import Logins
from quintet.server.terminal.pane import NO_ANSWER, Pane, describe_end
from quintet.server.terminal.status import StatusEvidence, decide_status
from quintet.server.tmux.connection import TmuxConnection

UNRECORDED_SECONDS: Final = 15.0
"""how long an agent must be at rest until a prompt that its own record does not know counts as done with"""
LONGEST_REPLY: Final = 2_000_000
"""characters of a reply that a client gets"""
AT_WORK: Final = frozenset({TerminalStatus.PROCESSING, TerminalStatus.WAITING_USER_ANSWER})


@dataclass(frozen=True)
class StatusReport:
    """The status of a terminal, and what it is based on."""

    status: TerminalStatus
    reason: str | None = None
    record: TurnRecord | None = None
    doubt: str | None = None
    """how screen and record have disagreed on the turn for long"""


class AgentTerminal(Pane):
    """A pane with an agent in it: `refresh` brings its `report` up to date."""

    def __init__(
        self,
        tmux: TmuxConnection,
        pane_id: str,
        pid: int,
        *,
        facts: Facts,
        provider: Provider,
        events: EventLog,
        reconnect: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(tmux, pane_id, pid, facts, reconnect)
        self.provider = provider
        self.events = events
        self.report = StatusReport(TerminalStatus.UNKNOWN)
        """the status as of the last refresh"""
        self.typing = asyncio.Lock()
        """held while something is typed into the pane"""
        self.startup: asyncio.Task[None] | None = None
        """waits until the agent is ready"""
        self.user_task: str | None = None
        """what only the user can do before the agent is ready"""
        self.input_stuck = False
        """something is in the composer that the agent does not take"""
        self.find_refused: Callable[[], list[HostRefusal]] = list
        """lists the hosts that its sandbox has refused"""
        self.logins = Logins(self.folder) if facts.sandbox else None
        self._begun_turn = 0
        self._busy_at = 0.0
        self._disagreement = DisagreementTimer()
        self._last_status: TerminalStatus | None = None
        """what watchers were told last: the status, and which turns have ended or are in doubt"""
        self._ended_turn = facts.turn
        self._doubted_turn = 0

    async def refresh(self) -> None:
        """Look at the pane and at the agent's record, update the report, and tell watchers what has changed."""
        view = await self.look()
        record = self.provider.read_record(self.folder, self.facts.since) if self.facts.turn else None
        if view.end is not None:
            self.report = StatusReport(TerminalStatus.ERROR, view.end, record)
        elif self.unresponsive:
            lives = self.is_running()
            status = TerminalStatus.UNKNOWN if lives else TerminalStatus.ERROR
            self.report = StatusReport(status, NO_ANSWER if lives else describe_end("", ""), record)
        else:
            if self.input_stuck and self.has_begun(record) and not self.typing.locked():
                await self.input_taken()  # the agent was busy, and has taken its input after all
            self.report = self._decide(view.screen, record)
        self._tell_changes()

    def _decide(self, screen: Screen, record: TurnRecord | None) -> StatusReport:
        """The report on a program that runs."""
        facts = self.facts
        shown = self._shown_status(screen, record)
        # typed while the agent was busy with something of its own: the prompt waits, and what is shown is not its turn
        unrecorded = bool(facts.turn) and record is None and self.provider.has_record(self.folder)
        if facts.turn and (record is not None or shown in AT_WORK) and not facts.pasted:
            self._begun_turn = facts.turn
        if shown not in AT_REST:
            self._busy_at = time.time()
        doubt = self._disagreement.disagreement(facts.turn, shown, record)
        status = decide_status(
            StatusEvidence(
                ready=facts.ready,
                needs_user=bool(self.user_task),
                turn=facts.turn,
                typing=facts.pasted,
                shown=shown,
                record=record,
                begun=self._begun_turn == facts.turn and not unrecorded,
                settled=self._is_settled(unrecorded=unrecorded),
                quiet=self._is_quiet(),
                disagree=doubt is not None,
            )
        )
        if facts.pasted and self.input_stuck:
            status = TerminalStatus.UNKNOWN
        return StatusReport(status, self._reason(status, record), record, doubt)

    def _shown_status(self, screen: Screen, record: TurnRecord | None) -> TerminalStatus:
        """What the screen shows, corrected where something speaks against it."""
        shown = self.provider.read_screen(screen)
        if shown is TerminalStatus.WAITING_USER_ANSWER and self.facts.ready and self.provider.dismiss_keys(screen):
            return TerminalStatus.IDLE  # the dialog needs no answer
        is_over = record is not None and record.ended and record.final
        if shown is TerminalStatus.PROCESSING and is_over and not self.provider.screen_overrides_record(screen):
            return TerminalStatus.COMPLETED
        return shown

    def _is_quiet(self) -> bool:
        """Whether the pane is quiet, or was when its turn ended: an idle agent may draw something, too."""
        was_over = self._last_status is TerminalStatus.COMPLETED and self._ended_turn == self.facts.turn
        return was_over or self.quiet.has_lasted(self.provider.quiet_seconds)

    def _is_settled(self, *, unrecorded: bool) -> bool:
        """Whether the last input is so long ago that an agent which shows no work has none."""
        if unrecorded:
            return time.time() - max(self.facts.typed, self._busy_at) > UNRECORDED_SECONDS
        return time.time() - self.facts.typed > self.provider.settle_seconds

    def _reason(self, status: TerminalStatus, record: TurnRecord | None) -> str | None:
        if status is TerminalStatus.ERROR:
            # the screen shows an end that tmux has not noticed yet; the next look knows more
            return describe_end("", "")
        if not self.facts.ready:
            return self.user_task
        if self.facts.pasted and self.input_stuck:
            return "the last input was pasted, but the agent does not take it"
        if record is None:
            return None
        if status is TerminalStatus.PROCESSING:
            return record.note or None
        return str(record.failure) if record.failure and status in AT_REST else None

    def _tell_changes(self) -> None:
        """Add events for what is new in the report."""
        facts, report = self.facts, self.report
        if report.status is not self._last_status:
            self._last_status = report.status
            self.tell("status", status=report.status, reason=report.reason)
        if report.doubt and facts.turn > self._doubted_turn:
            self._doubted_turn = facts.turn
            self.tell("doubt", turn=facts.turn, text=report.doubt)
        has_end = report.record is not None and report.record.ended
        over = report.status is TerminalStatus.COMPLETED or (has_end and report.status is not TerminalStatus.PROCESSING)
        if over and facts.turn > self._ended_turn:
            self._ended_turn = facts.turn
            self.tell("turn", turn=facts.turn, state="ended")

    def tell(self, kind: str, **data: object) -> None:
        """Add an event about this terminal."""
        self.events.add(kind, terminal=self.facts.id, session=self.facts.session, **data)

    def typed_after(self) -> int | None:
        """The last turn that a client has asked for, where somebody has typed a prompt in the pane since."""
        facts, record = self.facts, self.report.record
        if facts.turn:
            return facts.turn if record is not None and record.typed else None
        is_blank = facts.ready and not facts.continues and not facts.initial
        return 0 if is_blank and self.provider.read_record(self.folder, 0) is not None else None

    def has_begun(self, record: TurnRecord | None) -> bool:
        """Whether a record shows that the last input was taken. A prompt that is still offered was not: the turn
        is one that a person has begun at the same moment."""
        return record is not None and not (self.provider.doorbell and editor.is_waiting(self.folder))

    async def input_taken(self) -> None:
        """Note that the agent has taken what was pasted."""
        self.input_stuck = False
        await self.save_facts(replace(self.facts, pasted=False, typed=time.time()))
        editor.clear(self.folder)

    async def last_reply(self) -> str:
        """The answer of the last turn; empty while that turn is running, whatever was answered before."""
        await self.refresh()
        status, record = self.report.status, self.report.record
        if self.facts.turn == 0 or status is TerminalStatus.PROCESSING:
            return ""
        if record is not None:
            return shortened(record.last_message or "") if record.ended else ""
        if status is not TerminalStatus.COMPLETED:
            return ""
        return shortened(self.provider.read_reply(await self.output()))


def shortened(reply: str) -> str:
    """A reply; of a very long one its beginning and its end, with a note between them."""
    left_out = len(reply) - LONGEST_REPLY
    if left_out <= 0:
        return reply
    half = LONGEST_REPLY // 2
    return f"{reply[:half]}\n[... {left_out} characters are left out here ...]\n{reply[-half:]}"
