"""A clock that is moved by hand and an agent behind the client's seam: hours of waiting in milliseconds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from quintet.api.client import ApiClient, Standing
from quintet.api.models import Failure
from quintet.api.status import TerminalStatus

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
class FakeApi:
    """One terminal. Its status is a function of the time; a fault is raised instead where one is planned."""

    clock: FakeClock
    status: Callable[[float], TerminalStatus] = lambda _: PROCESSING
    fault: Callable[[float], Exception | None] = lambda _: None
    """what a status request at this time raises"""
    input_faults: list[Exception] = field(default_factory=list)
    failure: Callable[[float], Failure | None] = lambda _: None
    output: str = ""
    output_faults: list[Exception] = field(default_factory=list)
    own: bool = False
    doubt: Callable[[float], str] = lambda _: ""
    asked_at: list[float] = field(default_factory=list)
    inputs: list[tuple[float, str]] = field(default_factory=list)
    accepted_at: list[float] = field(default_factory=list)
    outputs_read: int = 0

    def get_status(self, terminal_id: str, seconds: float = 0.0) -> TerminalStatus:  # noqa: ARG002
        now = self.clock.now()
        self.asked_at.append(now)
        if fault := self.fault(now):
            raise fault
        return self.status(now)

    def get_standing(self, terminal_id: str, seconds: float = 0.0) -> Standing:
        return Standing(self.get_status(terminal_id, seconds), self.doubt(self.clock.now()))

    def get_reason(self, terminal_id: str) -> str:  # noqa: ARG002
        return " (it was killed)"

    def get_failure(self, terminal_id: str) -> Failure | None:  # noqa: ARG002
        return self.failure(self.clock.now())

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

    def as_client(self) -> ApiClient:
        return cast(ApiClient, self)


def changes(*pairs: tuple[float, TerminalStatus]) -> Callable[[float], TerminalStatus]:
    """A status that changes at the given times; the first is the one from the beginning."""

    def status(now: float) -> TerminalStatus:
        return [word for moment, word in pairs if moment <= now][-1]

    return status
