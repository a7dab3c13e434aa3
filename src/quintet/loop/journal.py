"""The journal: what happened in a run, one typed event a line. The state decides, the journal is a witness."""

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError


class _Event(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    at: str = ""
    """when, in UTC; the journal fills it in"""


class RunStarted(_Event):
    event: Literal["run_started"] = "run_started"
    run_id: str
    wd: str
    start_agent: str
    start_commit: str = ""


class RunResumed(_Event):
    event: Literal["run_resumed"] = "run_resumed"
    run_id: str
    step: str


class TerminalCreated(_Event):
    event: Literal["terminal_created"] = "terminal_created"
    role: str
    terminal: str
    provider: str
    seconds: float
    continues: str = ""
    """the lost terminal whose conversation goes on in this one"""


class TerminalLost(_Event):
    event: Literal["terminal_lost"] = "terminal_lost"
    role: str
    terminal: str
    reason: str


class TurnFailed(_Event):
    """The prompt of the step is sent again after the pause."""

    event: Literal["turn_failed"] = "turn_failed"
    step: str
    role: str
    kind: str
    text: str
    number: int
    pause: float


class LimitReached(_Event):
    """The prompt of the step is sent again at the time."""

    event: Literal["limit_reached"] = "limit_reached"
    step: str
    role: str
    text: str
    until: str
    """in UTC"""


class PromptSent(_Event):
    event: Literal["prompt_sent"] = "prompt_sent"
    step: str
    role: str
    round: int
    cycle: int
    characters: int
    file: str = ""


class TurnTokens(BaseModel):
    """What a turn has cost, by the agent's own record; the cached ones are part of the input."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    input: int = 0
    cached: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output


class ReplyTaken(_Event):
    event: Literal["reply_taken"] = "reply_taken"
    step: str
    role: str
    characters: int
    source: Literal["file", "screen"]
    file: str = ""
    tokens: TurnTokens | None = None
    cost: float | None = None
    """by the user's prices"""


class ReviewJudged(_Event):
    event: Literal["review_judged"] = "review_judged"
    phase: str
    round: int
    cycle: int
    verdict: str
    approved: bool
    evidence: tuple[str, ...]
    reason: str


class ReviewsUsedUp(_Event):
    event: Literal["reviews_used_up"] = "reviews_used_up"
    phase: str
    round: int
    cycles: int


class TestJudged(_Event):
    __test__ = False
    event: Literal["test_judged"] = "test_judged"
    round: int
    verdict: str
    reason: str


class Verified(_Event):
    event: Literal["verified"] = "verified"
    round: int
    command: str
    exit_code: int


class RoundFailed(_Event):
    event: Literal["round_failed"] = "round_failed"
    round: int
    last: bool


class GuardReleased(_Event):
    event: Literal["guard_released"] = "guard_released"
    role: str
    seconds: float


class Reminded(_Event):
    event: Literal["reminded"] = "reminded"
    role: str
    number: int


class PermissionAsked(_Event):
    event: Literal["permission_asked"] = "permission_asked"
    role: str
    terminal: str
    accepted: bool


class ServerFault(_Event):
    event: Literal["server_fault"] = "server_fault"
    text: str


class Noted(_Event):
    event: Literal["noted"] = "noted"
    text: str


class Warned(_Event):
    event: Literal["warned"] = "warned"
    text: str


class RunStopped(_Event):
    event: Literal["run_stopped"] = "run_stopped"
    reason: str
    resumable: bool = True


class RunFinished(_Event):
    event: Literal["run_finished"] = "run_finished"
    status: str
    round: int


Event = Annotated[
    RunStarted
    | RunResumed
    | TerminalCreated
    | TerminalLost
    | TurnFailed
    | LimitReached
    | PromptSent
    | ReplyTaken
    | ReviewJudged
    | ReviewsUsedUp
    | TestJudged
    | Verified
    | RoundFailed
    | GuardReleased
    | Reminded
    | PermissionAsked
    | ServerFault
    | Noted
    | Warned
    | RunStopped
    | RunFinished,
    Field(discriminator="event"),
]
_ADAPTER: Final[TypeAdapter[Event]] = TypeAdapter(Event)


def schema() -> dict[str, Any]:
    """The JSON schema of a line."""
    return _ADAPTER.json_schema()


class Journal:
    """An append-only file of events."""

    def __init__(self, path: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.path = path
        self._clock = clock

    def write(self, event: Event) -> Event:
        """Append an event in one write, on a line of its own even after a torn one."""
        stamped = event.model_copy(update={"at": self._clock().isoformat(timespec="milliseconds")})
        line = json.dumps(stamped.model_dump(), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)
        return stamped

    def read(self) -> Iterator[Event]:
        """Every event that can be read; a torn or foreign line is passed over."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for line in file:
                try:
                    yield _ADAPTER.validate_json(line)
                except ValidationError:
                    continue
