"""What a run remembers: one value, written at every step, from which it goes on where it stopped."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

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
    VERDICT = "verdict"
    """the tester gave no verdict and is asked for it"""
    VERIFY = "verify"
    """the tester said PASS and the user's command has to agree"""


TURNS: Final = {
    Phase.ANALYST: (Turn.WORK, Turn.REVIEW),
    Phase.PROGRAMMER: (Turn.WORK, Turn.REVIEW),
    Phase.TESTER: (Turn.WORK, Turn.VERDICT, Turn.VERIFY),
}


@dataclass(frozen=True)
class Terminal:
    """An agent's terminal on the server."""

    id: str = ""
    provider: str = ""


@dataclass(frozen=True)
class State:
    """Everything that a run knows of itself. A value: nobody changes it, a step makes another."""

    updated_at: str = ""
    api: str = ""
    provider: str = ""
    wd: str = ""
    prompt: str = ""
    current_round: int = 1
    current_phase: Phase = Phase.ANALYST
    final_status: Status = Status.RUNNING
    session_name: str = ""
    terminals: dict[str, Terminal] = field(default_factory=lambda: {role.name: Terminal() for role in ROLES})
    feedback: str = ""
    analyst_feedback: str = ""
    programmer_feedback: str = ""
    outputs: dict[str, str] = field(default_factory=lambda: {role.output: "" for role in ROLES})

    run_id: str = ""
    cycle: int = 1
    turn: Turn = Turn.WORK
    dispatched: str = ""
    """the key of the step whose prompt has been sent and whose reply has not been taken"""
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
    start_commit: str = ""
    last_error: str = ""


def has_all_terminals(saved: State) -> bool:
    """Whether the run had got beyond the creation of its terminals."""
    return all(terminal.id for terminal in saved.terminals.values())
