"""The timeline of a run in plain characters, for where there are no pictures."""

from typing import Final

from quintet.roles import ROLES
from quintet.watch.runs.formatting import duration
from quintet.watch.runs.handoffs import KIND_WORDS, SIGNS, kind_of
from quintet.watch.runs.model import Run
from quintet.watch.runs.timeline import LEFT, RIGHT, WIDTH, Scale

COLUMNS: Final = 72
LEGEND: Final = "  ".join(
    (
        "█ work",
        "▓ review",
        "▒ test",
        "· waiting",
        "┊ stopped",
        *(f"{SIGNS[item]} {KIND_WORDS[item]}" for item in SIGNS),
    )
)
_NAME: Final = 17
_SIGNS: Final = {"work": "█", "review": "▓", "test": "▒"}


def text_timeline(run: Run) -> list[str]:
    """A lane for each agent, from the left to the right in time; every turn has at least one column."""
    scale = Scale.of(run)
    rows = {role: ["·"] * COLUMNS for role in ROLES}
    for row in rows.values():
        for begin, end in scale.stops:
            for place in range(_column(scale, begin), _column(scale, end)):
                row[place] = "┊"
    for handoff in run.handoffs:
        row = rows[handoff.role]
        first = _column(scale, handoff.sent)
        after = max(_column(scale, handoff.taken or run.ended), first + 1)
        row[first:after] = [sign if sign == "┊" else _SIGNS[kind_of(handoff.role)] for sign in row[first:after]]
        if handoff.verdict:
            row[after - 1] = SIGNS[handoff.verdict.kind]
    named = [f"{role.label:<{_NAME}}{''.join(row)}" for role, row in rows.items()]
    return [_rounds(run, scale), *named, _axis(scale)]


def _column(scale: Scale, at: float) -> int:
    share = (scale.x(at) - LEFT) / (WIDTH - LEFT - RIGHT)
    return min(int(share * COLUMNS), COLUMNS - 1)


def _rounds(run: Run, scale: Scale) -> str:
    """Where each round begins; where they are close together, not every one is named."""
    line = ""
    for number, turns in run.by_round.items():
        place = _NAME + _column(scale, turns[0].sent)
        if place >= len(line) + (2 if line else 0):
            line = f"{line:<{place}}round {number}"
    return line


def _axis(scale: Scale) -> str:
    end = f"{duration(scale.seconds)} at work"
    return " " * _NAME + "0 s" + end.rjust(COLUMNS - len("0 s"))
