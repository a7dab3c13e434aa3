"""How a terminal stands: a judgement over its witnesses. Whether the process lives was asked before."""

from dataclasses import dataclass

from quintet.api.status import AT_REST, TerminalStatus
from quintet.providers.base import TurnRecord


@dataclass(frozen=True)
class StatusEvidence:
    """What the witnesses say at one moment."""

    ready: bool
    """the agent has been at its prompt once"""
    needs_user: bool
    """before that, it asks something that nobody else may answer"""
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
    at_odds: bool = False
    """screen and record have disagreed on it for long"""


def judge(seen: StatusEvidence) -> TerminalStatus:
    """The status of a living terminal."""
    if not seen.ready:
        # other dialogs at the start are answered for the user, who need not hear of them
        return TerminalStatus.WAITING_USER_ANSWER if seen.needs_user else TerminalStatus.UNKNOWN
    if seen.typing:
        return TerminalStatus.PROCESSING
    if seen.turn == 0:
        return TerminalStatus.IDLE if seen.shown in AT_REST else seen.shown
    if seen.record is not None:
        return _by_record(seen.record, seen.shown, at_odds=seen.at_odds)
    if seen.shown in AT_REST:
        # a frame alone may be one of an answer that streams; a silent pane is not
        is_over = seen.quiet and (seen.begun or seen.settled)
        return TerminalStatus.COMPLETED if is_over else TerminalStatus.PROCESSING
    return seen.shown


def _by_record(record: TurnRecord, shown: TerminalStatus, *, at_odds: bool) -> TerminalStatus:
    """The record says whether the turn has ended; a dialog on the screen waits whatever it says.

    A screen that shows work is believed where the end may be taken back, and where it goes on showing work for long:
    a running turn must not be called done.
    """
    if shown is TerminalStatus.WAITING_USER_ANSWER:
        return shown
    if not record.ended or at_odds or (shown is TerminalStatus.PROCESSING and not record.final):
        return TerminalStatus.PROCESSING
    return TerminalStatus.COMPLETED
