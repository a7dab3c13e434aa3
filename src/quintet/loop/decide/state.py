"""The state of a run: one value, saved at every step, from which it goes on where it stopped."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from quintet.roles import ROLES, Phase


class Status(StrEnum):
    """How a run stands."""

    RUNNING = "RUNNING"
    PASS = "PASS"
    FAIL = "FAIL"


class Turn(StrEnum):
    """What comes next within a phase."""

    WORK = "work"
    REVIEW = "review"
    CHECK = "check"
    """the checks run before the tester is asked"""
    VERIFY = "verify"
    """the tester said PASS and the checks have to agree"""
    PASSED = "passed"
    """the task has passed, and what the settings ask for after a PASS comes next"""
    FAILED = "failed"
    """the last round has failed"""


class Again(StrEnum):
    """Why a role is asked once more in the same step."""

    NO = ""
    VERDICT = "verdict"
    """the reply had no verdict that can be read"""
    ACTIONS = "actions"
    """the role did nothing in its turn that a verdict could rest on"""
    CHANGES = "changes"
    """the role changed what it may not change, and that was undone"""
    UNKNOWN = "unknown"
    """nobody can tell what the role changed, and nothing of it is undone: it is not asked, its verdict is negative"""


class When(StrEnum):
    """When checks are run."""

    START = "start"
    """before the first prompt, where they have to fail"""
    BEFORE_TEST = "before_test"
    AFTER_TEST = "after_pass"
    """after the tester's PASS, on which they have the last word"""


class Gate(StrEnum):
    """Where a run can wait for a person."""

    SPEC = "spec"
    """after the analyst's phase"""
    RESULT = "result"
    """after PASS, before what follows it"""


GATES: Final = {Gate.SPEC.value: "specification", Gate.RESULT.value: "result"}
"""what a person approves at each gate, in words"""
TURNS: Final = {
    Phase.ANALYST: (Turn.WORK, Turn.REVIEW),
    Phase.PROGRAMMER: (Turn.WORK, Turn.REVIEW),
    Phase.TESTER: (Turn.WORK, Turn.CHECK, Turn.VERIFY, Turn.PASSED, Turn.FAILED),
}
"""what can come next in each phase"""


@dataclass(frozen=True)
class TerminalRef:
    """The id of an agent's terminal on the server, and the agent CLI that runs in it."""

    id: str = ""
    provider: str = ""


@dataclass(frozen=True)
class State:
    """Everything that a run knows of itself. Only `flow` makes a new state from an old one."""

    updated_at: str = ""
    api: str = ""
    provider: str = ""
    wd: str = ""
    prompt: str = ""
    current_round: int = 1
    current_phase: Phase = Phase.ANALYST
    final_status: Status = Status.RUNNING
    session_name: str = ""
    terminals: dict[str, TerminalRef] = field(default_factory=lambda: {role.name: TerminalRef() for role in ROLES})
    feedback: str = ""
    analyst_feedback: str = ""
    programmer_feedback: str = ""
    outputs: dict[str, str] = field(default_factory=lambda: {role.output: "" for role in ROLES})

    run_id: str = ""
    cycle: int = 1
    turn: Turn = Turn.WORK
    check_first: bool = False
    """whether the checks have to run before the first prompt"""
    checked: dict[str, int] = field(default_factory=dict)
    """the checks that have confirmed the PASS: exit codes by title"""
    again: Again = Again.NO
    """why the current step's role is asked once more"""
    worked: bool = False
    """where it is: whether it did anything, at first, that a verdict could rest on"""
    undone: dict[str, str] = field(default_factory=dict)
    """what was undone of each role's last turn, by the role's name: one change a line"""
    dispatched: str = ""
    """the key of the step whose prompt has been sent, or was about to be, and whose reply has not been taken"""
    dispatched_at: int = 0
    """when, in nanoseconds by the clock of the file system that the reply is written to"""
    arrived: str = ""
    """the key of the step whose prompt is known to have arrived: its server has said so, or its agent was at work"""
    attempt: int = 0
    """how often the current step's prompt was sent before, to a turn that failed"""
    full_summary_sent: dict[str, str] = field(default_factory=dict)
    """terminals that had the full explore summary, each with the step that brought it"""
    programmer_context_for_retry: str = ""
    open_notes: str = ""
    """the notes of a review that ended without approval; they travel with the next phase's prompts"""
    whole_sizes: dict[str, int] = field(default_factory=dict)
    """bytes of the texts that were shortened into the feedback, the notes and the context, by the role's output"""
    sequence: int = 0
    """the number of the last file in the archive"""
    tokens_used: int = 0
    """by the agents' own records"""
    cost_used: float = 0.0
    """money, by the user's prices"""
    seconds_used: float = 0.0
    """that agents were at work"""
    waiting: str = ""
    """the gate at which the run waits for a person"""
    waiting_since: float = 0.0
    """in seconds since the epoch"""
    approved: dict[str, str] = field(default_factory=dict)
    """the gates that are open, each with who has opened it"""
    sent_back: int = 0
    """how often a person has sent something back"""
    rejection: str = ""
    """what they said, until they approve: it goes to those who do it again, and to their reviewers"""
    notes_sent: dict[str, str] = field(default_factory=dict)
    """the notes of people that were sent, each with the step whose prompt had it"""
    start_commit: str = ""
    after_pass: dict[str, str] = field(default_factory=dict)
    """what was done after the PASS: results by the step's key"""
    mark: str = ""
    """of the step after the PASS that has begun: by it a restart can tell whether it was done"""
    last_error: str = ""


if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: PLC0414 - the type checker knows the fields that it takes
else:

    def replace(state: State, **changes: Any) -> State:
        """A copy of a state with other values; that of `dataclasses` sets each of the many fields anew."""
        new = object.__new__(State)
        vars(new).update(vars(state), **changes)
        if len(vars(new)) != len(vars(state)):
            raise TypeError(f"a state has no {', '.join(sorted(changes.keys() - vars(state).keys()))}")
        return new


def has_all_terminals(saved: State) -> bool:
    """Whether all five terminals of a run were started."""
    return all(terminal.id for terminal in saved.terminals.values())


def without_terminals(saved: State) -> State:
    """The same run for new terminals, which know nothing yet: the current step is asked for again."""
    return replace(saved, terminals=State().terminals, full_summary_sent={}, dispatched="", dispatched_at=0)
