"""The events of a run: what happened in it. The state decides, the journal that they are written to is a witness."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from quintet.actions import TurnActions
from quintet.api.models import TokenCount

Whole = Annotated[int, Field(ge=-(10**18), le=10**18)]
Number = Annotated[float, Field(ge=-1e30, le=1e30, allow_inf_nan=False)]
"""what can be counted, added up and shown: a journal lies where agents write too"""


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
    dirty: tuple[str, ...] | None = None
    """what was not committed when it began, relative to the project; None where nobody looked"""
    session: str = ""
    """the server's name for the terminals, where it is known beforehand"""
    task_file: str = ""
    """empty where the task is a setting"""
    project: str = ""
    """the user's checkout, where the run works in a worktree of its own"""
    branch: str = ""
    """the branch of that worktree"""


class RunResumed(_Event):
    event: Literal["run_resumed"] = "run_resumed"
    run_id: str
    step: str


class TerminalCreated(_Event):
    event: Literal["terminal_created"] = "terminal_created"
    role: str
    terminal: str
    provider: str
    seconds: Number
    session: str = ""
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
    number: Whole
    pause: Number


class LimitReached(_Event):
    """The prompt of the step is sent again at the time."""

    event: Literal["limit_reached"] = "limit_reached"
    step: str
    role: str
    text: str
    until: str
    """in UTC"""


EXPLORE: Final = "the explore summary"
ANALYST_HANDOFF: Final = "the analyst's handoff"
PROGRAMMER_HANDOFF: Final = "the programmer's handoff"
TEST_EVIDENCE: Final = "the test's evidence"
PREVIOUS_CHANGES: Final = "the previous changes"
OPEN_NOTES: Final = "the review that never approved"
REVIEW_NOTES: Final = "the review"
"""what a prompt carries on"""


class Carried(BaseModel):
    """A text that a prompt carries on in a shorter form: its bytes in whole, and those that were sent."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    what: str
    whole: Whole
    sent: Whole


class PromptSent(_Event):
    event: Literal["prompt_sent"] = "prompt_sent"
    step: str
    role: str
    round: Whole
    cycle: Whole
    characters: Whole
    file: str = ""
    carried: tuple[Carried, ...] = ()
    """what could be shortened in it"""


class ReplyTaken(_Event):
    event: Literal["reply_taken"] = "reply_taken"
    step: str
    role: str
    characters: Whole
    source: Literal["file", "screen"]
    file: str = ""
    tokens: TokenCount | None = None
    cost: Number | None = None
    """by the user's prices"""
    actions: TurnActions | None = None
    """what the agent did in its turn; None where no record tells"""


class ReplyMissed(_Event):
    """A role that was asked once more gave no answer; the run goes on without one."""

    event: Literal["reply_missed"] = "reply_missed"
    step: str
    role: str
    tokens: TokenCount | None = None
    cost: Number | None = None
    actions: TurnActions | None = None


class TestsLost(_Event):
    """What the work tree has lost of its tests since the start commit, as the reviewer of the code is told."""

    __test__ = False
    event: Literal["tests_lost"] = "tests_lost"
    round: Whole
    text: str
    files: tuple[str, ...] = ()
    """one line for each file"""


class ReviewJudged(_Event):
    event: Literal["review_judged"] = "review_judged"
    phase: str
    round: Whole
    cycle: Whole
    verdict: str
    approved: bool
    evidence: tuple[str, ...]
    reason: str


class ReviewsUsedUp(_Event):
    event: Literal["reviews_used_up"] = "reviews_used_up"
    phase: str
    round: Whole
    cycles: Whole


class TestJudged(_Event):
    __test__ = False
    event: Literal["test_judged"] = "test_judged"
    round: Whole
    verdict: str
    reason: str
    counts: bool = True
    """False where the verdict was not taken and the tester is asked once more"""


class Verified(_Event):
    event: Literal["verified"] = "verified"
    round: Whole
    command: str
    exit_code: Whole
    file: str = ""
    """its output"""


class Checked(_Event):
    """How a check has ended that was run before the first prompt, or before the tester was asked."""

    event: Literal["checked"] = "checked"
    round: Whole
    when: str
    """one of `When` in `loop/decide/state.py`"""
    command: str
    exit_code: Whole
    file: str = ""
    """its output"""


class RoundFailed(_Event):
    event: Literal["round_failed"] = "round_failed"
    round: Whole
    last: bool


class GuardReleased(_Event):
    event: Literal["guard_released"] = "guard_released"
    role: str
    seconds: Number


class GuardedChange(BaseModel):
    """One thing that a role changed and may not change."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    path: str
    """relative to the project, or the name of a ref"""
    change: str
    """created, deleted, changed, mode, type"""

    def __str__(self) -> str:
        return f"{self.change} {self.path}"


class GuardViolation(_Event):
    """A role changed what it may not change."""

    event: Literal["guard_violation"] = "guard_violation"
    step: str
    role: str
    paths: tuple[GuardedChange, ...] = ()
    left_out: Whole = 0
    """how many more there are"""
    undone: bool = False
    serious: bool = False
    """whether more than new files, refs and index entries: then a positive verdict of the turn does not count"""
    file: str = ""
    """the patch in the archive that has what was undone"""
    failed: tuple[str, ...] = ()
    """what could not be undone, each with the reason"""
    outside: tuple[GuardedChange, ...] = ()
    """what is told and stays: nested repositories, the rest of a larger repository"""
    unknown: bool = False
    """the comparison or the undo failed as a whole: then too a positive verdict of the turn does not count"""

    @property
    def change_lines(self) -> list[str]:
        """The changes of this event in words, one a line."""
        more = [f"and {self.left_out} more"] if self.left_out else []
        return [f"- {change}" for change in (*self.paths, *more)]


class Reminded(_Event):
    event: Literal["reminded"] = "reminded"
    role: str
    number: Whole


class PermissionAsked(_Event):
    event: Literal["permission_asked"] = "permission_asked"
    role: str
    terminal: str
    accepted: bool
    reason: str = ""
    """what it cannot start without, where that is so"""
    question: bool = False
    """something that a yes does not answer"""


class ApprovalAsked(_Event):
    """The run waits for a person."""

    event: Literal["approval_asked"] = "approval_asked"
    gate: str
    step: str = ""
    """the name of the step"""
    until: str = ""
    """when it stops waiting, in UTC; empty: never"""


class PersonDecided(_Event):
    """A person has approved something or sent it back."""

    event: Literal["person_decided"] = "person_decided"
    gate: str
    approved: bool
    by: str
    notes: str = ""


class PersonNoted(_Event):
    """A note of a person's went with a prompt."""

    event: Literal["person_noted"] = "person_noted"
    role: str
    by: str
    text: str


class StatusDoubted(_Event):
    """The server's readers of an agent have disagreed for long; the safe reading stands."""

    event: Literal["status_doubted"] = "status_doubted"
    role: str
    status: str
    text: str


class HostRefused(_Event):
    """The sandbox has refused a host to an agent or a check. Of one host the last event has the whole count."""

    event: Literal["host_refused"] = "host_refused"
    role: str = ""
    """empty: a check, or the command that sets a worktree up"""
    host: str
    port: Whole
    times: Whole
    allow: str
    """the setting that would allow it"""


class HandTyped(_Event):
    """Somebody has given an agent a prompt in its terminal, which the run knows nothing of."""

    event: Literal["hand_typed"] = "hand_typed"
    role: str
    terminal: str
    turn: Whole
    """the agent's last turn that the run has asked for"""


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
    max_tokens: Whole = 0
    """the limit, where it is what stopped the run"""
    cleaned_up: bool = False
    """whether the terminals were ended with it"""
    head: str = ""
    """the commit that the project was left at"""


class RunFinished(_Event):
    event: Literal["run_finished"] = "run_finished"
    status: str
    round: Whole
    checks: dict[str, Whole] | None = None
    """what has confirmed the PASS: exit codes by the title of a check; None in an older journal"""
    cleaned_up: bool = False
    """whether the terminals are ended with it"""
    head: str = ""
    """the commit that the project was left at"""


Event = Annotated[
    RunStarted
    | RunResumed
    | TerminalCreated
    | TerminalLost
    | TurnFailed
    | LimitReached
    | PromptSent
    | ReplyTaken
    | ReplyMissed
    | TestsLost
    | ReviewJudged
    | ReviewsUsedUp
    | TestJudged
    | Verified
    | Checked
    | RoundFailed
    | GuardReleased
    | GuardViolation
    | Reminded
    | PermissionAsked
    | ApprovalAsked
    | PersonDecided
    | PersonNoted
    | StatusDoubted
    | HostRefused
    | HandTyped
    | ServerFault
    | Noted
    | Warned
    | RunStopped
    | RunFinished,
    Field(discriminator="event"),
]
