"""The handoff: send a prompt, wait for the response file, and know when an agent will not write one."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from quintet.api.client import ApiClient
from quintet.api.status import AT_REST, FailureKind, TerminalStatus
from quintet.config import Settings
from quintet.errors import (
    AgentError,
    ApiError,
    MaybeDone,
    NoResponse,
    PassingFault,
    Refused,
    ResponseTimeout,
    TurnFailed,
)
from quintet.loop.journal import (
    Event,
    GuardReleased,
    HandTyped,
    PermissionAsked,
    Reminded,
    ServerFault,
    StatusDoubted,
    Warned,
)
from quintet.loop.record.responses import LONGEST_REPLY, Look, Responses
from quintet.loop.run.clock import Clock
from quintet.roles import Role

LOOK_SECONDS: Final = 0.05
"""time between two looks at the file system while there is no file"""
SETTLED_SECONDS: Final = 0.02
"""how long a file must stay as it is before it is read"""
UNSEEN_SETTLED_SECONDS: Final = 0.2
"""the same while the agent has not been seen at work, because its status may be an old one"""
PERMISSION_COOLDOWN: Final = 5.0
MOST_PERMISSIONS: Final = 20
FIRST_RETRY: Final = 0.1
LONGEST_RETRY: Final = 5.0
LAST_OUTPUT_SECONDS: Final = 60.0
LOOK_PATIENCE: Final = 2.0
"""seconds for a look at a terminal that nothing is asked of"""


@dataclass(frozen=True)
class Reply:
    """What came back."""

    text: str
    source: Literal["file", "screen"]
    is_long: bool = False
    """the text is only an excerpt of the response file"""


@dataclass(frozen=True)
class Request:
    """What is waited for."""

    terminal_id: str
    role: Role
    reminder: str
    """what to send an agent that is idle without a response"""
    since: int
    """the dispatch, by the clock of the response file"""
    send_again: Callable[[float], None] | None = None
    """sends the prompt once more, within so many seconds; None where it is known to have arrived"""
    at_work: Callable[[], None] = lambda: None
    """called when the agent is seen at work on a prompt that may not have arrived"""


@dataclass
class Handoff:
    """Carries prompts to agents and replies back."""

    api: ApiClient
    responses: Responses
    settings: Settings
    clock: Clock
    emit: Callable[[Event], None]

    tick: Callable[[], None] = lambda: None
    """called with every look at a status: a chance to put back what an agent may have deleted"""
    typed: set[tuple[str, int]] = field(default_factory=set)
    """terminals into which somebody has typed, each with the turn before; that was told"""

    def wait_for_response_file(self, request: Request) -> Reply:
        """Wait until the agent has written its response and is at rest."""
        return _Wait(self, request).run()

    def send(self, terminal_id: str, message: str, dispatch_id: str = "", seconds: float | None = None) -> bool:
        """Send input, with so many seconds of patience; False where it may or may not have arrived.

        What may have arrived is not sent again here, unless the server can tell it from a new one.
        """
        safe_to_repeat = self.api.own and bool(dispatch_id)
        patience = Patience(self.clock, self.settings.response_timeout if seconds is None else seconds)
        while True:
            try:
                self.api.send_input(terminal_id, message, dispatch_id)
            except PassingFault as fault:
                if isinstance(fault, MaybeDone) and not safe_to_repeat:
                    self.emit(ServerFault(text=f"{fault}; the input may have arrived, so it is not repeated at once"))
                    return False
                self._tell(patience, fault)
                patience.wait(fault)
            else:
                return True

    def last_output(self, terminal_id: str) -> str:
        """The agent's last answer; a read, so it is repeated while the fault may pass."""
        patience = Patience(self.clock, LAST_OUTPUT_SECONDS)
        while True:
            try:
                return self.api.get_last_output(terminal_id)
            except PassingFault as fault:
                self._tell(patience, fault)
                patience.wait(fault)

    def tell_typed(self, role: Role, terminal_id: str, turn: int) -> None:
        """Tell once in a turn that somebody has typed into an agent's terminal."""
        if (terminal_id, turn) not in self.typed:
            self.typed.add((terminal_id, turn))
            self.emit(HandTyped(role=role.name, terminal=terminal_id, turn=turn))

    def look_at(self, role: Role, terminal_id: str) -> None:
        """See whether somebody has typed into a terminal that nothing is asked of; a look, so no fault matters."""
        with contextlib.suppress(ApiError):
            turn = self.api.get_standing(terminal_id, LOOK_PATIENCE).typed_after
            if turn is not None:
                self.tell_typed(role, terminal_id, turn)

    def _tell(self, patience: "Patience", fault: PassingFault) -> None:
        if patience.fresh:
            self.emit(ServerFault(text=f"{fault}; trying again"))


class Patience:
    """Repeats with growing pauses, until its time is up."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._deadline, self._pause = clock, clock.now() + seconds, 0.0

    @property
    def fresh(self) -> bool:
        return not self._pause

    def wait(self, fault: PassingFault) -> None:
        """Pause before the next try, or raise the fault where there is no time for one."""
        self._pause = min(max(2 * self._pause, FIRST_RETRY), LONGEST_RETRY)
        if self._clock.now() + self._pause > self._deadline:
            raise fault
        self._clock.sleep(self._pause)


@dataclass
class _Wait:
    """One wait for one response. The rules are those of a cautious reader: doubt never counts as an answer."""

    handoff: Handoff
    request: Request
    started: bool = False
    """the agent was seen at work since the dispatch, or the guard that waits for this has given up"""
    worked: bool = False
    """the agent was seen at work since the dispatch"""
    sent_again: bool = False
    idle_since: float | None = None
    reminders: int = 0
    permissions: int = 0
    permission_at: float = field(default=float("-inf"))
    questioned: bool = False
    """the user was told of a question that no yes answers"""
    retry: float = 0.0
    doubted: bool = False
    seen: Look | None = None
    seen_since: float = 0.0

    def __post_init__(self) -> None:
        self.clock = self.handoff.clock
        self.settings = self.handoff.settings
        self.begun = self.armed_at = self.clock.now()
        self.poll_seconds = max(self.settings.poll_seconds, SETTLED_SECONDS)
        self.status = TerminalStatus.UNKNOWN

    def run(self) -> Reply:
        next_poll = self.begun
        while True:
            now = self.clock.now()
            self._look(now)
            if now >= next_poll or (self.seen and not self.retry):
                status = self._read_status()
                next_poll = now + (self.retry or self.poll_seconds)
                if status and (reply := self._judge(status)):
                    return reply
            if now - self.begun >= self.settings.response_timeout:
                return self._timed_out()
            self.clock.sleep(self._pause(now, next_poll))

    def _look(self, now: float) -> None:
        look = self.handoff.responses.look(self.request.role, self.request.since)
        if look != self.seen:
            self.seen, self.seen_since = look, now

    def _pause(self, now: float, next_poll: float) -> float:
        """Short while a file waits for its agent to come to rest, longer the longer that takes."""
        if self.seen and not self.retry:
            return min(max(0.02 * (now - self.seen_since), SETTLED_SECONDS), self.poll_seconds)
        return min(LOOK_SECONDS, max(next_poll - now, SETTLED_SECONDS))

    def _read_status(self) -> TerminalStatus | None:
        self.handoff.tick()
        try:
            standing = self.handoff.api.get_standing(self.request.terminal_id, seconds=self._left())
        except PassingFault as fault:
            if not self.retry:
                self.handoff.emit(ServerFault(text=f"{fault}; asking again"))
            self.retry = min(max(2 * self.retry, FIRST_RETRY), LONGEST_RETRY)
            self.idle_since = None  # nobody saw what the agent did meanwhile
            return None
        self.retry = 0.0
        self.status, doubt = standing.status, standing.doubt
        if standing.typed_after is not None:
            self.handoff.tell_typed(self.request.role, self.request.terminal_id, standing.typed_after)
        if doubt and not self.doubted:
            self.doubted = True
            self.handoff.emit(StatusDoubted(role=self.request.role.name, status=self.status, text=doubt))
        return self.status

    def _judge(self, status: TerminalStatus) -> Reply | None:
        now = self.clock.now()
        if status is TerminalStatus.ERROR:
            reason = self.handoff.api.get_reason(self.request.terminal_id)
            raise AgentError(f"{self._who()}: the agent has failed or is gone{reason}; its terminal shows more")
        if status in AT_REST:
            return self._take(now) or self._at_rest(now)
        self.idle_since = None
        if status is not TerminalStatus.UNKNOWN:
            self.started = True
            if self.request.send_again and not self.worked:
                self.request.at_work()
            self.worked = True
        if status is TerminalStatus.WAITING_USER_ANSWER:
            self._permission(now)
        return None

    def _take(self, now: float) -> Reply | None:
        """Take the file once it has not changed between two looks."""
        self._look(now)
        settled = SETTLED_SECONDS if self.started else UNSEEN_SETTLED_SECONDS
        if not self.seen or now - self.seen_since < settled:
            return None
        text = self.handoff.responses.read(self.request.role)
        return Reply(text, "file", is_long=self.seen.size > LONGEST_REPLY) if text else None

    def _at_rest(self, now: float) -> Reply | None:
        """Idle without a response: first doubt the status, then the agent."""
        if not self.seen:
            self._check_turn()
        grace = self.settings.idle_grace_seconds
        if not self.started:
            if now - self.armed_at < grace:
                return None
            if self.request.send_again and not (self.worked or self.sent_again or self.seen):
                self._send_again(self.request.send_again)
                return None
            self.handoff.emit(GuardReleased(role=self.request.role.name, seconds=now - self.armed_at))
            self.started = True
        if self.idle_since is None:
            self.idle_since = now
        if now - self.idle_since < grace or self._still_settling(now):
            return None
        if self.reminders < self.settings.max_file_reminders:
            self._remind()
            return None
        return self._give_up()

    def _send_again(self, send: Callable[[float], None]) -> None:
        """An agent that was not seen at work has most likely not got its prompt: send it once more, and doubt anew."""
        self.sent_again = True
        unseen = f"{self.request.role.label} was not seen at work, and its prompt may not have arrived"
        self.handoff.emit(Warned(text=f"{unseen}; it is sent once more"))
        send(self._left())
        self.armed_at = self.clock.now()

    def _check_turn(self) -> None:
        """A turn that has failed will bring no response, however long one waits. Whoever interrupted one goes on."""
        failure = self.handoff.api.get_failure(self.request.terminal_id)
        if failure is not None and failure.kind is not FailureKind.INTERRUPTED:
            resets_at = failure.resets_at.timestamp() if failure.resets_at else None
            raise TurnFailed(f"{self._who()}: its turn has failed: {failure.text}", failure.kind, resets_at)

    def _still_settling(self, now: float) -> bool:
        return self.seen is not None and now - self.seen_since < UNSEEN_SETTLED_SECONDS

    def _remind(self) -> None:
        """Ask for the file; this re-arms the guard and the grace, never the timeout."""
        self.reminders += 1
        if kept := self.handoff.responses.clear_irregular(self.request.role):
            what = "left a link or a directory in place of its response file"
            self.handoff.emit(Warned(text=f"{self.request.role.label} has {what}; it is kept as {kept.name}"))
        self.handoff.emit(Reminded(role=self.request.role.name, number=self.reminders))
        self.handoff.send(self.request.terminal_id, self.request.reminder, seconds=self._left())
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
            self.handoff.api.accept_permission(self.request.terminal_id)
        except Refused:
            self._question()
        except PassingFault as fault:
            self.permissions += 1
            self.handoff.emit(ServerFault(text=str(fault)))
        else:
            self.permissions += 1
            self._tell_permission(accepted=True)

    def _question(self) -> None:
        """Tell the user once in a turn of what no yes answers, unless somebody has answered it meanwhile."""
        try:
            asks = self.handoff.api.get_status(self.request.terminal_id) is TerminalStatus.WAITING_USER_ANSWER
        except PassingFault:
            return
        if asks and not self.questioned:
            self.questioned = True
            self._tell_permission(question=True)

    def _tell_permission(self, *, accepted: bool = False, question: bool = False) -> None:
        terminal, role = self.request.terminal_id, self.request.role.name
        self.handoff.emit(PermissionAsked(role=role, terminal=terminal, accepted=accepted, question=question))

    def _timed_out(self) -> Reply:
        if self.status in AT_REST:
            return self._give_up()
        raise ResponseTimeout(
            f"{self._who()}: no response within {self.settings.response_timeout:g} s, its status is {self.status}"
        )

    def _give_up(self) -> Reply:
        if self.settings.strict_file_handoff:
            path = self.handoff.responses.response_path_for(self.request.role)
            raise NoResponse(f"{self._who()}: idle, and no response file at {path}")
        text = self.handoff.last_output(self.request.terminal_id)
        if not text.strip():
            raise NoResponse(f"{self._who()}: idle, without a response file and without an answer on its screen")
        return Reply(text, "screen")

    def _left(self) -> float:
        """The time that is left, and a moment for the last question."""
        return max(self.settings.response_timeout - (self.clock.now() - self.begun), 1.0)

    def _who(self) -> str:
        return f"{self.request.role.label} (terminal {self.request.terminal_id})"
