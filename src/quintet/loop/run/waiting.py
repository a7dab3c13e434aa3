"""Waiting for an agent's response file, and knowing when it will not come."""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from quintet.api.backend import Backend, TerminalView
from quintet.api.status import AT_REST, FailureKind, TerminalStatus
from quintet.config import Settings
from quintet.errors import (
    AgentError,
    ApiError,
    NoResponse,
    OutcomeUnknown,
    PassingFault,
    Refused,
    ResponseTimeout,
    TurnFailure,
)
from quintet.loop.decide.steps import Arrived, Ask
from quintet.loop.journal import (
    GuardReleased,
    HandTyped,
    PermissionAsked,
    Reminded,
    ServerFault,
    StatusDoubted,
)
from quintet.loop.record.responses import LONGEST_REPLY, Look
from quintet.loop.record.store import RunStore
from quintet.loop.run.actions import ActionLedger
from quintet.loop.run.clock import Clock
from quintet.loop.run.refused_hosts import RefusedHosts
from quintet.loop.run.retry import Backoff, retry
from quintet.loop.run.tokens import TokenLedger
from quintet.roles import ROLES, Role

LOOK_SECONDS: Final = 0.05
"""time between two looks at the file system while there is no file"""
SETTLED_SECONDS: Final = 0.02
"""how long a file must stay as it is before it is read"""
UNSEEN_SETTLED_SECONDS: Final = 0.2
"""the same while the agent has not been seen at work, because its status may be an old one"""
PERMISSION_COOLDOWN: Final = 5.0
MOST_PERMISSIONS: Final = 20
LAST_OUTPUT_SECONDS: Final = 60.0
LATE_SECONDS: Final = 1.0
"""how long an agent has to be idle before its response is one that it has not written in its turn"""
OTHERS_SECONDS: Final = 2.0
"""for a look at a terminal that nothing is asked of"""


@dataclass(frozen=True)
class Reply:
    """What an agent has answered."""

    text: str
    source: Literal["file", "screen"]
    is_long: bool = False
    """the text is only an excerpt of the response file"""
    seen: Look | None = field(default=None, compare=False)
    """the file as it was read"""


@dataclass(frozen=True)
class Prompt:
    """A prompt as it is sent: its text, and the id by which the server knows a repetition."""

    message: str
    dispatch_id: str


@dataclass(frozen=True)
class Request:
    """What is waited for."""

    step: Ask
    terminal_id: str
    reminder: str
    """what to send an agent that is idle without a response"""
    since: int
    """the dispatch, by the clock of the response file"""
    unconfirmed: Prompt | None = None
    """the prompt, where nobody knows whether it has arrived"""

    @property
    def role(self) -> Role:
        return self.step.role


@dataclass
class ResponseWaiter:
    """Sends input to agents and waits for their responses, for one run."""

    backend: Backend
    store: RunStore
    settings: Settings
    clock: Clock
    tokens: TokenLedger
    actions: ActionLedger
    _typed: set[tuple[str, int]] = field(default_factory=set)
    """terminals into which somebody has typed, each with the turn before, that was told"""
    _refused: RefusedHosts = field(init=False)
    _others: Iterator[Role] = field(default_factory=lambda: itertools.cycle(ROLES))

    def __post_init__(self) -> None:
        self._refused = RefusedHosts(self.store, self.settings)

    def note_turn(self, terminal_id: str) -> None:
        """Remember what a turn has cost and done, in a step that goes on with another turn."""
        self.tokens.note(self.backend, terminal_id)
        self.actions.note(self.backend, terminal_id)

    def wait_for_response_file(self, request: Request) -> Reply:
        """Wait until the agent has written its response and is at rest."""
        return _Wait(self, request).run()

    def send(self, terminal_id: str, message: str, dispatch_id: str = "", seconds: float | None = None) -> bool:
        """Send input, trying for so many seconds; False where it may or may not have arrived.

        What may have arrived is not sent again here, unless the server can tell it from a new one.
        """
        safe_to_repeat = self.backend.knows_dispatch_ids and bool(dispatch_id)

        def send_once() -> bool:
            try:
                self.backend.send_input(terminal_id, message, dispatch_id)
            except OutcomeUnknown as fault:
                if safe_to_repeat:
                    raise
                text = f"{fault}; the input may have arrived, so it is not repeated at once"
                self.store.emit(ServerFault(text=text))
                return False
            return True

        limit = self.settings.response_timeout if seconds is None else seconds
        return retry(send_once, self.clock, limit, self._tell_fault)

    def last_output(self, terminal_id: str) -> str:
        """The agent's last answer on its screen."""
        return retry(
            lambda: self.backend.get_last_output(terminal_id), self.clock, LAST_OUTPUT_SECONDS, self._tell_fault
        )

    def report_typing(self, role: Role, terminal_id: str, view: TerminalView) -> None:
        """Tell once in a turn that somebody has typed into an agent's terminal."""
        turn = view.typed_after
        if turn is not None and (terminal_id, turn) not in self._typed:
            self._typed.add((terminal_id, turn))
            self.store.emit(HandTyped(role=role.name, terminal=terminal_id, turn=turn))

    def report_refused(self, role: Role, view: TerminalView, *, is_final: bool = False) -> None:
        """Report the hosts that the sandbox of an agent has refused."""
        if view.refused:
            self._refused.report(role.name, view.refused, is_final=is_final)

    def put_files_right(self, at_work: Role) -> None:
        """Restore what the agent at work has deleted, and put away what others have written."""
        self.store.restore_deleted_files()
        for role in ROLES:
            if role is not at_work and (kept := self.store.responses.put_aside(role, self.store.state.sequence)):
                told = f"the response file of {role} was written while its agent was not at work"
                self.store.warn(f"{told}; it is kept as {kept.name}")

    def look_at_another(self) -> None:
        """See whether somebody types into the terminal of the next role; each has its turn."""
        if self.backend.sees_typing:
            role = next(self._others)
            terminal_id = self.store.state.terminals[role.name].id
            with contextlib.suppress(ApiError):  # nothing is asked of it, so no fault matters
                self.report_typing(role, terminal_id, self.backend.get_terminal(terminal_id, OTHERS_SECONDS))

    def _tell_fault(self, fault: PassingFault) -> None:
        self.store.emit(ServerFault(text=f"{fault}; trying again"))


class _Wait:
    """One wait for one response. A doubtful sign never counts as an answer."""

    def __init__(self, waiter: ResponseWaiter, request: Request) -> None:
        self.waiter, self.request = waiter, request
        self.backend, self.store = waiter.backend, waiter.store
        self.settings, self.clock = waiter.settings, waiter.clock
        self.begun = self.armed_at = self.clock.now()
        self.poll_seconds = max(self.settings.poll_seconds, SETTLED_SECONDS)
        self.status = TerminalStatus.UNKNOWN
        self.started = False
        """the agent was seen at work since the dispatch, or the guard that waits for this has given up"""
        self.worked = False
        """the agent was seen at work since the dispatch"""
        self.sent_again = False
        self.idle_since: float | None = None
        self.reminders = self.permissions = 0
        self.permission_at = float("-inf")
        self.question_told = False
        """the user was told of a question that no yes answers"""
        self.backoff = Backoff()
        self.doubt_told = False
        self.reason_told = ""
        """what the user was told of an agent at work"""
        self.seen: Look | None = None
        self.seen_since = 0.0

    def run(self) -> Reply:
        next_poll = self.begun
        while True:
            now = self.clock.now()
            self._look(now)
            is_due = now >= next_poll
            if is_due:
                self.waiter.look_at_another()
            if is_due or (self.seen and not self.backoff.pause):
                view = self._read_status()
                next_poll = now + (self.backoff.pause or self.poll_seconds) if is_due or not view else next_poll
                if view and (reply := self._judge(view)):
                    self.waiter.report_refused(self.request.role, view, is_final=True)
                    return reply
            if now - self.begun >= self.settings.response_timeout:
                return self._timed_out()
            self.clock.sleep(self._pause(now, next_poll))

    def _look(self, now: float) -> None:
        look = self.store.responses.look(self.request.role, self.request.since)
        if look != self.seen:
            self.seen, self.seen_since = look, now

    def _pause(self, now: float, next_poll: float) -> float:
        """Short while a file waits for its agent to come to rest, longer the longer that takes."""
        if self.seen and not self.backoff.pause:
            return min(max(0.02 * (now - self.seen_since), SETTLED_SECONDS), self.poll_seconds)
        return min(LOOK_SECONDS, max(next_poll - now, SETTLED_SECONDS))

    def _read_status(self) -> TerminalView | None:
        self.waiter.put_files_right(self.request.role)
        try:
            view = self.backend.get_terminal(self.request.terminal_id, self._left())
        except PassingFault as fault:
            if not self.backoff.pause:
                self.store.emit(ServerFault(text=f"{fault}; asking again"))
            self.backoff.failed()
            self.idle_since = None  # nobody saw what the agent did meanwhile
            return None
        self.backoff.succeeded()
        self.status = view.status
        self.waiter.report_typing(self.request.role, self.request.terminal_id, view)
        self.waiter.report_refused(self.request.role, view)
        if view.doubt and not self.doubt_told:
            self.doubt_told = True
            self.store.emit(StatusDoubted(role=self.request.role.name, status=self.status, text=view.doubt))
        if view.status is TerminalStatus.PROCESSING and view.reason not in ("", self.reason_told):
            self.reason_told = view.reason
            self.store.note(f"{self.request.role}: {view.reason}")
        return view

    def _judge(self, view: TerminalView) -> Reply | None:
        now = self.clock.now()
        if view.status is TerminalStatus.ERROR:
            reason = f" ({view.reason})" if view.reason else ""
            raise AgentError(f"{self._who()}: the agent has failed or is gone{reason}; its terminal shows more")
        if view.status in AT_REST:
            return self._take(now) or self._at_rest(now, view)
        self.idle_since = None
        if view.status is not TerminalStatus.UNKNOWN:
            self.started = True
            if self.request.unconfirmed and not self.worked:
                self.store.fold(self.request.step, Arrived())
            self.worked = True
        if view.status is TerminalStatus.WAITING_USER_ANSWER:
            self._permission(now)
        return None

    def _take(self, now: float) -> Reply | None:
        """Take the file once it has not changed between two looks."""
        self._look(now)
        settled = SETTLED_SECONDS if self.started else UNSEEN_SETTLED_SECONDS
        if not self.seen or now - self.seen_since < settled:
            return None
        text = self.store.responses.read(self.request.role)
        if not text:
            return None
        if self.idle_since is not None and self.seen_since - self.idle_since > LATE_SECONDS:
            self.store.warn(f"the response file of {self.request.role} was written while its agent was not at work")
        return Reply(text, "file", self.seen.size > LONGEST_REPLY, self.seen)

    def _at_rest(self, now: float, view: TerminalView) -> Reply | None:
        """Idle without a response: first doubt the status, then the agent."""
        if not self.seen:
            self._check_turn(view)
        grace = self.settings.idle_grace_seconds
        if not self.started:
            if now - self.armed_at < grace:
                return None
            if self.request.unconfirmed and not (self.worked or self.sent_again or self.seen):
                self._send_again(self.request.unconfirmed)
                return None
            self.store.emit(GuardReleased(role=self.request.role.name, seconds=now - self.armed_at))
            self.started = True
        if self.idle_since is None:
            self.idle_since = now
        if now - self.idle_since < grace or self._still_settling(now):
            return None
        if self.reminders < self.settings.max_file_reminders:
            self._remind()
            return None
        return self._give_up()

    def _send_again(self, prompt: Prompt) -> None:
        """An agent that was not seen at work has most likely not got its prompt: send it once more, and doubt anew."""
        self.sent_again = True
        unseen = f"{self.request.role} was not seen at work, and its prompt may not have arrived"
        self.store.warn(f"{unseen}; it is sent once more")
        if self.waiter.send(self.request.terminal_id, prompt.message, prompt.dispatch_id, self._left()):
            self.store.fold(self.request.step, Arrived())
        self.armed_at = self.clock.now()

    def _check_turn(self, view: TerminalView) -> None:
        """A turn that has failed will bring no response, however long one waits. Whoever interrupted one goes on."""
        failure = view.failure
        if failure is not None and failure.kind is not FailureKind.INTERRUPTED:
            resets_at = failure.resets_at.timestamp() if failure.resets_at else None
            raise TurnFailure(f"{self._who()}: its turn has failed: {failure.text}", failure.kind, resets_at)

    def _still_settling(self, now: float) -> bool:
        return self.seen is not None and now - self.seen_since < UNSEEN_SETTLED_SECONDS

    def _remind(self) -> None:
        """Ask for the file; this re-arms the guard and the grace, never the timeout."""
        self.reminders += 1
        role, terminal_id = self.request.role, self.request.terminal_id
        if kept := self.store.responses.clear_irregular(role):
            what = "left a link or a directory in place of its response file"
            self.store.warn(f"{role} has {what}; it is kept as {kept.name}")
        self.waiter.note_turn(terminal_id)  # the reminder begins another one
        self.store.emit(Reminded(role=role.name, number=self.reminders))
        self.waiter.send(terminal_id, self.request.reminder, seconds=self._left())
        self.started, self.idle_since, self.armed_at = False, None, self.clock.now()

    def _permission(self, now: float) -> None:
        """Say yes as often as is allowed; the first question beyond that is told to the user, and no other."""
        most = MOST_PERMISSIONS if self.settings.auto_accept_permissions else 0
        if self.permissions > most or now - self.permission_at < PERMISSION_COOLDOWN:
            return
        self.permission_at = now
        if self.permissions == most:
            self.permissions += 1
            self._tell_permission()
            return
        try:
            self.backend.accept_permission(self.request.terminal_id)
        except Refused:
            self._question()
        except PassingFault as fault:
            self.permissions += 1
            self.store.emit(ServerFault(text=str(fault)))
        else:
            self.permissions += 1
            self._tell_permission(accepted=True)

    def _question(self) -> None:
        """Tell the user once in a turn of what no yes answers, unless somebody has answered it meanwhile."""
        try:
            status = self.backend.get_terminal(self.request.terminal_id).status
        except PassingFault:
            return
        if status is TerminalStatus.WAITING_USER_ANSWER and not self.question_told:
            self.question_told = True
            self._tell_permission(question=True)

    def _tell_permission(self, *, accepted: bool = False, question: bool = False) -> None:
        terminal, role = self.request.terminal_id, self.request.role.name
        self.store.emit(PermissionAsked(role=role, terminal=terminal, accepted=accepted, question=question))

    def _timed_out(self) -> Reply:
        if self.status in AT_REST:
            return self._give_up()
        raise ResponseTimeout(
            f"{self._who()}: no response within {self.settings.response_timeout:g} s, its status is {self.status}"
        )

    def _give_up(self) -> Reply:
        if self.settings.strict_file_handoff:
            path = self.store.responses.path_of(self.request.role)
            raise NoResponse(f"{self._who()}: idle, and no response file at {path}")
        text = self.waiter.last_output(self.request.terminal_id)
        if not text.strip():
            raise NoResponse(f"{self._who()}: idle, without a response file and without an answer on its screen")
        return Reply(text, "screen")

    def _left(self) -> float:
        """The time that is left, and a moment for the last question."""
        return max(self.settings.response_timeout - (self.clock.now() - self.begun), 1.0)

    def _who(self) -> str:
        return f"{self.request.role} (terminal {self.request.terminal_id})"
