"""The steps of a run and their outcomes: what `flow` decides on, and what carrying it out can come to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

from quintet.actions import TurnActions
from quintet.config import Settings
from quintet.loop import journal
from quintet.loop.decide import gate
from quintet.loop.decide.checks import Check, CheckOutcome
from quintet.loop.decide.state import Again, Gate, Status, TerminalRef, When
from quintet.roles import Role


@dataclass(frozen=True)
class Ask:
    """Send an agent its prompt and wait for the reply."""

    role: Role
    round: int
    cycle: int = 1
    again: Again = Again.NO
    """why the role is asked once more; at most once in a step, whatever the reason"""
    sent_back: int = 0
    """how often a person has sent something back before"""

    @property
    def key(self) -> str:
        """The step's name within its run."""
        name = f"{self.round}-{self.cycle}-{self.role.output}"
        return f"{name}{f'-sent-back-{self.sent_back}' if self.sent_back else ''}{'-again' if self.again else ''}"


@dataclass(frozen=True)
class Verify:
    """Run the checks; the first that fails is the last that runs."""

    round: int
    checks: tuple[Check, ...]
    when: When = When.AFTER_TEST

    @property
    def key(self) -> str:
        names = {When.START: "start-check", When.BEFORE_TEST: f"{self.round}-check"}
        return names.get(self.when, f"{self.round}-verify")


@dataclass(frozen=True)
class WaitForPerson:
    """Wait until a person says whether the run goes on."""

    gate: Gate
    sent_back: int = 0

    @property
    def key(self) -> str:
        return f"approve-{self.gate}-{self.sent_back}"


@dataclass(frozen=True)
class FollowUp:
    """Something that the settings ask for after a PASS."""

    mark: str = ""
    """saved before it is done, so that a restart can tell whether it was done; empty: it has not begun"""
    key: ClassVar[str] = ""
    noun: ClassVar[str] = ""
    """what it makes, in words"""


class ArchiveChange(FollowUp):
    """Archive the task's OpenSpec change. The mark is its name."""

    key = "archive_change"
    noun = "archived change"


class Commit(FollowUp):
    """Commit the work tree. The mark is the commit before it."""

    key = "commit"
    noun = "commit"


class Push(FollowUp):
    """Push the commit. The mark is its hash."""

    key = "push"
    noun = "push"


class OpenPullRequest(FollowUp):
    """Open a pull request. The mark is its branch."""

    key = "pull_request"
    noun = "pull request"


AFTER_PASS: Final[tuple[tuple[type[FollowUp], Callable[[Settings], bool]], ...]] = (
    (ArchiveChange, lambda settings: settings.post_openspec_archive),
    (Commit, lambda settings: settings.commits),
    (Push, lambda settings: bool(settings.push_to)),
    (OpenPullRequest, lambda settings: settings.post_pr != "off"),
)
"""what follows a PASS, in order, and whether the settings ask for it"""


@dataclass(frozen=True)
class Finished:
    """The run is over, but for closing it."""

    status: Status
    key: ClassVar[str] = ""


Step = Ask | Verify | WaitForPerson | FollowUp | Finished


@dataclass(frozen=True)
class Dispatched:
    """The prompt of a step is about to be sent."""

    at: int
    notes: tuple[str, ...] = ()
    """the notes of people that are in it"""


@dataclass(frozen=True)
class Arrived:
    """The prompt has reached its agent for certain."""


@dataclass(frozen=True)
class NotSent:
    """The prompt cannot have reached its agent."""


@dataclass(frozen=True)
class Replied:
    """The agent's reply is in the archive."""

    text: str
    whole: gate.Whole | None = None
    """where the text is only an excerpt"""
    sequence: int = 0
    """the number of its file in the archive"""
    tokens: int = 0
    """what the turn has used"""
    actions: TurnActions | None = None
    """what the agent did in its turn, where a record tells"""
    violation: journal.GuardViolation | None = None
    """what it changed in its turn and may not change"""
    cost: float = 0.0
    """what its tokens cost, where the user gave prices"""
    seconds: float = 0.0
    """how long its turn took"""


@dataclass(frozen=True)
class NoReply:
    """A role that was asked once more gave no answer."""

    tokens: int = 0
    violation: journal.GuardViolation | None = None
    cost: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Retrying:
    """The turn has ended without an answer, and the prompt is to be sent once more."""


@dataclass(frozen=True)
class ChecksEnded:
    """The checks have run, up to the first that failed."""

    results: tuple[CheckOutcome, ...]
    sequence: int = 0
    """the number of the last file in the archive"""

    @property
    def last(self) -> CheckOutcome:
        return self.results[-1]


@dataclass(frozen=True)
class Marked:
    """Something after the PASS is about to be done."""

    mark: str


class FollowUpResult(StrEnum):
    """What came of something after the PASS."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True)
class FollowUpEnded:
    """Something after the PASS is over."""

    result: FollowUpResult
    events: tuple[journal.Event, ...] = ()
    """what to tell of it"""


@dataclass(frozen=True)
class AskedPerson:
    """The run begins to wait for a person."""

    at: float
    """in seconds since the epoch"""


@dataclass(frozen=True)
class PersonAnswered:
    """A person has said whether the run goes on."""

    approved: bool
    by: str
    notes: str = ""


@dataclass(frozen=True)
class TerminalsChanged:
    """The terminals that the run knows of, and its session: written down before and after each is started."""

    terminals: Mapping[str, TerminalRef]
    session_name: str


@dataclass(frozen=True)
class TerminalsEnded:
    """All terminals were ended; the run goes on with new ones."""


@dataclass(frozen=True)
class FileArchived:
    """An old response file was moved to the archive."""

    sequence: int


@dataclass(frozen=True)
class Resumed:
    """The saved run goes on."""


@dataclass(frozen=True)
class Stopped:
    """The run stops before its end."""

    reason: str


@dataclass(frozen=True)
class Closed:
    """Everything is done."""

    sequence: int
    """the number of the last file in the archive"""


RunOutcome = TerminalsChanged | TerminalsEnded | FileArchived | Resumed | Stopped
"""what can happen in any step"""
TurnOutcome = Dispatched | Arrived | NotSent | Replied | NoReply | Retrying
PersonOutcome = AskedPerson | PersonAnswered
Outcome = RunOutcome | TurnOutcome | PersonOutcome | ChecksEnded | Marked | FollowUpEnded | Closed
