"""The status of a terminal whose program runs, decided from what its screen and its agent's record say."""

from dataclasses import dataclass

from quintet.api.status import AT_REST, TerminalStatus
from quintet.providers.base import TurnRecord


@dataclass(frozen=True)
class StatusEvidence:
    """All that the status depends on, at one moment."""

    ready: bool
    """the agent has been at its prompt once"""
    needs_user: bool
    """before that: it asks something that only the user may answer"""
    turn: int
    """prompts that were typed so far"""
    typing: bool
    """a prompt is being typed right now"""
    shown: TerminalStatus
    """what title and screen show"""
    record: TurnRecord | None
    """what the agent's own record says of the last prompt's turn"""
    begun: bool
    """that turn was seen at work"""
    settled: bool
    """it was typed so long ago that an agent which shows no work has none"""
    quiet: bool = True
    """the pane has put nothing out for a while"""
    disagree: bool = False
    """screen and record have disagreed on it for long"""


def decide_status(evidence: StatusEvidence) -> TerminalStatus:
    """The status that the evidence stands for."""
    if not evidence.ready:
        # other dialogs at the start are answered for the user, who need not know of them
        return TerminalStatus.WAITING_USER_ANSWER if evidence.needs_user else TerminalStatus.UNKNOWN
    if evidence.typing:
        return TerminalStatus.PROCESSING
    if evidence.turn == 0:
        return TerminalStatus.IDLE if evidence.shown in AT_REST else evidence.shown
    if evidence.record is not None:
        return _by_record(evidence.record, evidence.shown, disagree=evidence.disagree)
    if evidence.shown in AT_REST:
        # one frame may be part of an answer that is still being drawn; a quiet pane is not
        is_over = evidence.quiet and (evidence.begun or evidence.settled)
        return TerminalStatus.COMPLETED if is_over else TerminalStatus.PROCESSING
    return evidence.shown


def _by_record(record: TurnRecord, shown: TerminalStatus, *, disagree: bool) -> TerminalStatus:
    """The record says whether the turn has ended; a dialog on the screen waits whatever it says.

    A screen that shows work wins where the end may be taken back, and where it shows work for long: a running turn
    must not be called done.
    """
    if shown is TerminalStatus.WAITING_USER_ANSWER:
        return shown
    if not record.ended or disagree or (shown is TerminalStatus.PROCESSING and not record.final):
        return TerminalStatus.PROCESSING
    return TerminalStatus.COMPLETED
