"""What counts as a right reading of a recording, and how the readers are counted."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from quintet.api.status import AT_REST, TerminalStatus
from quintet.providers.screen import Screen
from tools.screens import Recording

Reader = Callable[[Screen], TerminalStatus]

RIGHT: dict[str, frozenset[TerminalStatus]] = {
    "idle": frozenset({TerminalStatus.IDLE}),
    "processing": frozenset({TerminalStatus.PROCESSING}),
    "completed": frozenset({TerminalStatus.COMPLETED}),
    "waiting_user_answer": frozenset({TerminalStatus.WAITING_USER_ANSWER}),
    "interrupted": AT_REST,
    "error_turn": AT_REST | {TerminalStatus.ERROR},
    "exited": frozenset({TerminalStatus.ERROR}),
}


@dataclass(frozen=True)
class Tally:
    rates: dict[str, float]
    """By release."""
    wrong: frozenset[str]
    """By name."""
    called_done: frozenset[str]
    """Running turns that were read as finished, the worst mistake."""


def tally(reader: Reader, frames: Iterable[tuple[Recording, Screen]]) -> Tally:
    seen: Counter[str] = Counter()
    right: Counter[str] = Counter()
    wrong: set[str] = set()
    called_done: set[str] = set()
    for recording, frame in frames:
        status = reader(frame)
        seen[recording.release] += 1
        if status in RIGHT[recording.state_label]:
            right[recording.release] += 1
            continue
        wrong.add(recording.name)
        if recording.state_label == "processing" and status in AT_REST:
            called_done.add(recording.name)
    rates = {release: right[release] / count for release, count in seen.items()}
    return Tally(rates, frozenset(wrong), frozenset(called_done))
