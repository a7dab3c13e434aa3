"""A clock that is moved by hand, terminal servers in memory, and a run's record to look into: hours in milliseconds."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

from quintet.api.backend import LaunchOptions, TerminalView
from quintet.api.models import Failure, RefusedHost
from quintet.api.status import TerminalStatus
from quintet.config import Settings
from quintet.layout import STATE_FILE
from quintet.loop.decide.state import State
from quintet.loop.journal import Event
from quintet.loop.record.signals import Signals
from quintet.loop.record.store import RunStore

IDLE, COMPLETED = TerminalStatus.IDLE, TerminalStatus.COMPLETED
PROCESSING, UNKNOWN = TerminalStatus.PROCESSING, TerminalStatus.UNKNOWN
WAITING, ERROR = TerminalStatus.WAITING_USER_ANSWER, TerminalStatus.ERROR


class FakeClock:
    """Time passes only while somebody sleeps; things can be planned for a moment."""

    def __init__(self) -> None:
        self.time = 0.0
        self._plan: list[tuple[float, Callable[[], object]]] = []

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        assert seconds > 0, "a loop that does not let time pass"
        self.time += seconds
        due = [item for item in self._plan if item[0] <= self.time]
        self._plan = [item for item in self._plan if item[0] > self.time]
        for _, action in due:
            action()

    def at(self, moment: float, action: Callable[[], object]) -> None:
        self._plan.append((moment, action))


@dataclass
class FakeBackend:
    """A terminal server that does nothing; `own`: with all that our own one can do."""

    clock: FakeClock
    own: bool = False

    knows_dispatch_ids = replaces_terminals = owns_sessions = property(lambda self: self.own)
    counts_tokens = sees_typing = takes_permissions = takes_sandboxes = takes_own_agents = property(
        lambda self: self.own
    )

    def session_name(self, run_id: str) -> str:
        return f"{run_id}-session" if self.own else ""

    def create_session(
        self, profile: str, provider: str, *, session_name: str = "", **options: Unpack[LaunchOptions]
    ) -> TerminalView:
        return self.create_terminal(session_name or "s", profile, provider, **options)

    def create_terminal(
        self,
        session_name: str,
        profile: str,  # noqa: ARG002
        provider: str,  # noqa: ARG002
        **options: Unpack[LaunchOptions],  # noqa: ARG002
    ) -> TerminalView:
        return TerminalView(id="aa00bb11", session_name=session_name)

    def get_terminal(self, terminal_id: str, seconds: float = 0.0) -> TerminalView:  # noqa: ARG002
        return TerminalView(id=terminal_id)

    def get_last_lines(self, terminal: TerminalView) -> str:  # noqa: ARG002
        return ""

    def get_last_output(self, terminal_id: str) -> str:  # noqa: ARG002
        return ""

    def fits(self, message: str) -> bool:  # noqa: ARG002
        return True

    def send_input(self, terminal_id: str, message: str, dispatch_id: str = "", seconds: float = 0.0) -> None: ...

    def accept_permission(self, terminal_id: str) -> None: ...

    def exit_terminal(self, terminal_id: str) -> None: ...

    def forget_terminal(self, terminal_id: str) -> None: ...

    def end_strays(self, session_name: str, but: str = "") -> dict[str, list[str]]:  # noqa: ARG002
        return {}

    def stop_processes(self, session_name: str) -> None: ...

    def continue_processes(self, session_name: str) -> None: ...

    def delete_session(self, session_name: str) -> None: ...

    def check_token(self) -> None: ...

    def close(self) -> None: ...


@dataclass
class FakeAgent(FakeBackend):
    """One terminal. Its status is a function of the time; a fault is raised instead where one is planned."""

    status: Callable[[float], TerminalStatus] = lambda _: PROCESSING
    fault: Callable[[float], Exception | None] = lambda _: None
    """what a status request at this time raises"""
    input_faults: list[Exception] = field(default_factory=list)
    failure: Callable[[float], Failure | None] = lambda _: None
    output: str = ""
    output_faults: list[Exception] = field(default_factory=list)
    doubt: Callable[[float], str] = lambda _: ""
    note: Callable[[float], str] = lambda _: ""
    """the reason while it is at work"""
    refused: Callable[[float], tuple[RefusedHost, ...]] = lambda _: ()
    asked_at: list[float] = field(default_factory=list)
    inputs: list[tuple[float, str]] = field(default_factory=list)
    accepted_at: list[float] = field(default_factory=list)
    outputs_read: int = 0

    def get_terminal(self, terminal_id: str, seconds: float = 0.0) -> TerminalView:  # noqa: ARG002
        now = self.clock.now()
        self.asked_at.append(now)
        if fault := self.fault(now):
            raise fault
        status, failure, doubt = self.status(now), self.failure(now), self.doubt(now)
        reason = self.note(now) if status is PROCESSING else "it was killed"
        refused = self.refused(now)
        return TerminalView(id=terminal_id, status=status, failure=failure, doubt=doubt, reason=reason, refused=refused)

    def send_input(self, terminal_id: str, message: str, dispatch_id: str = "", seconds: float = 0.0) -> None:  # noqa: ARG002
        self.inputs.append((self.clock.now(), message))
        if self.input_faults:
            raise self.input_faults.pop(0)

    def accept_permission(self, terminal_id: str) -> None:  # noqa: ARG002
        self.accepted_at.append(self.clock.now())
        if self.input_faults:
            raise self.input_faults.pop(0)

    def get_last_output(self, terminal_id: str) -> str:  # noqa: ARG002
        self.outputs_read += 1
        if self.output_faults:
            raise self.output_faults.pop(0)
        return self.output


class HeardStore(RunStore):
    """The record of a run that has begun, which keeps the events and the saved states to look at."""

    def __init__(self, settings: Settings, state: State) -> None:
        self.events: list[Event] = []
        self.saved: list[State] = []
        self.restored = 0
        super().__init__(settings, Signals(), [self.events.append], state)
        self._begun = True

    def _save(self) -> None:
        super()._save()
        self.saved.append(self.state)

    def restore_deleted_files(self) -> None:
        self.restored += 1
        super().restore_deleted_files()


def store_in(wd: Path, settings: Settings | None = None, state: State | None = None) -> HeardStore:
    """The record of a run in a directory."""
    settings = replace(settings or Settings(), wd=wd, state_file=wd / STATE_FILE)
    return HeardStore(settings, state or State(run_id="run"))


def changes(*pairs: tuple[float, TerminalStatus]) -> Callable[[float], TerminalStatus]:
    """A status that changes at the given times; the first is the one from the beginning."""

    def status(now: float) -> TerminalStatus:
        return [word for moment, word in pairs if moment <= now][-1]

    return status
