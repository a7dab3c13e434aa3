"""The timeline of a run as an SVG picture: who worked when, reviews, verdicts, waiting."""

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Final

from quintet.roles import ROLES
from quintet.watch.runs.formatting import duration
from quintet.watch.runs.model import Run
from quintet.watch.runs.parts import Handoff, Outcome, kind_of

WIDTH: Final = 980
LEFT: Final = 136
RIGHT: Final = 20
TOP: Final = 30
LANE: Final = 34
BAR: Final = 16
GAP: Final = 26
"""the width of a stop, however long it was"""
STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400)
MOST_TICKS: Final = 9


@dataclass(frozen=True)
class Scale:
    """From a time to a place on the picture; the time in which a run was stopped is folded into a narrow gap."""

    spells: tuple[tuple[float, float], ...]

    @cached_property
    def seconds(self) -> float:
        return max(sum(end - begin for begin, end in self.spells), 1.0)

    @cached_property
    def _per_second(self) -> float:
        room = WIDTH - LEFT - RIGHT - GAP * max(len(self.spells) - 1, 0)
        return max(room, 100) / self.seconds

    def x(self, at: float) -> float:
        place = float(LEFT)
        for number, (begin, end) in enumerate(self.spells):
            if at <= end or number == len(self.spells) - 1:
                return place + (min(max(at, begin), end) - begin) * self._per_second
            place += (end - begin) * self._per_second + GAP
        return place

    def at_work(self, seconds: float) -> float:
        """The place after so many seconds of work."""
        for begin, end in self.spells:
            if seconds <= end - begin:
                return self.x(begin + seconds)
            seconds -= end - begin
        return self.x(self.spells[-1][1])


def timeline(run: Run, now: float | None = None) -> str:
    """The picture; its colours are those of the style sheet around it."""
    spells = run.spells or ((0.0, 1.0),)
    if now and run.current:
        spells = (*spells[:-1], (spells[-1][0], max(now, spells[-1][1])))
    scale = Scale(spells)
    height = TOP + LANE * len(ROLES) + 30
    parts = [*_lanes(scale), *_stops(scale), *_rounds(run, scale), *_axis(scale)]
    for handoff in run.handoffs:
        parts += _bar(run, handoff, scale)
    title = f"Timeline of the run: {len(run.handoffs)} turns of five agents"
    return (
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _y(number: int) -> float:
    return TOP + LANE * number + LANE / 2


def _lanes(scale: Scale) -> list[str]:
    end = scale.x(scale.spells[-1][1])
    parts = []
    for number, role in enumerate(ROLES):
        y = _y(number)
        parts.append(f'<text class="lane-name" x="0" y="{y + 4:.1f}">{role.label}</text>')
        parts.append(f'<line class="lane" x1="{LEFT}" y1="{y:.1f}" x2="{end:.1f}" y2="{y:.1f}"/>')
    return parts


def _stops(scale: Scale) -> list[str]:
    parts = []
    for (_, end), (begin, _) in zip(scale.spells, scale.spells[1:], strict=False):
        x, height = scale.x(end), LANE * len(ROLES)
        title = f"<title>stopped for {duration(begin - end)}</title>"
        parts.append(f'<rect class="stop" x="{x:.1f}" y="{TOP}" width="{GAP}" height="{height}">{title}</rect>')
        parts.append(
            f'<text class="stop-name" x="{x + GAP / 2:.1f}" y="{TOP + height / 2}" '
            f'transform="rotate(-90 {x + GAP / 2:.1f} {TOP + height / 2})" dy="4">stopped</text>'
        )
    return parts


def _rounds(run: Run, scale: Scale) -> list[str]:
    parts = []
    for number, turns in run.by_round.items():
        x = scale.x(turns[0].sent)
        parts.append(
            f'<line class="round" x1="{x:.1f}" y1="{TOP - 18}" x2="{x:.1f}" y2="{TOP + LANE * len(ROLES)}"/>'
            f'<text class="round-name" x="{x + 6:.1f}" y="{TOP - 8}">Round {number}</text>'
        )
    return parts


def _axis(scale: Scale) -> list[str]:
    step = next((step for step in STEPS if scale.seconds / step <= MOST_TICKS), scale.seconds / MOST_TICKS)
    y = TOP + LANE * len(ROLES)
    parts = []
    for number in range(int(scale.seconds / step) + 1):
        x = scale.at_work(number * step)
        parts.append(f'<line class="tick" x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 5}"/>')
        parts.append(f'<text class="tick-name" x="{x:.1f}" y="{y + 20}">{_label(number * step)}</text>')
    return parts


def _label(seconds: float) -> str:
    minute, hour = 60, 3600
    if seconds < minute:
        return f"{seconds:.0f} s"
    if seconds < hour:
        return (
            f"{seconds / minute:g} min" if not seconds % minute else f"{seconds // minute:.0f}:{seconds % minute:02.0f}"
        )
    return f"{seconds / hour:g} h"


def _bar(run: Run, handoff: Handoff, scale: Scale) -> list[str]:
    end = handoff.taken or run.ended
    x, y = scale.x(handoff.sent), _y(ROLES.index(handoff.role))
    width = max(scale.x(end) - x, 2.0)
    open_end = " open" if handoff.taken is None else ""
    title = escape(_words(run, handoff))
    parts = [
        f'<rect class="bar {kind_of(handoff.role)}{open_end}" x="{x:.1f}" y="{y - BAR / 2:.1f}" '
        f'width="{width:.1f}" height="{BAR}" rx="3"><title>{title}</title></rect>'
    ]
    if handoff.verdict:
        parts.append(_mark(x + width, y, handoff.verdict.outcome, title))
    return parts


def _words(run: Run, handoff: Handoff) -> str:
    said = f", {handoff.verdict.label}" if handoff.verdict else ""
    return f"{handoff.role.label}, round {handoff.round}, cycle {handoff.cycle}: {duration(run.worked(handoff))}{said}"


_SHAPES: Final = {
    Outcome.GOOD: "M-3.4 .2 L-1 2.8 L3.6 -2.6",
    Outcome.VOID: "M-3.6 3.6 L3.6 -3.6",
    Outcome.AGAIN: "M2.8 -1.6 A3.2 3.2 0 1 0 3.1 1.1 M3.4 -3.6 L3 -1.2 L.6 -1.6",
    Outcome.BAD: "M-2.6 -2.6 L2.6 2.6 M2.6 -2.6 L-2.6 2.6",
}


def _mark(x: float, y: float, outcome: Outcome, title: str) -> str:
    """The sign of its outcome at the end of a judged turn."""
    return (
        f'<g class="mark {outcome}" transform="translate({x:.1f} {y:.1f})"><title>{title}</title>'
        f'<circle r="7.5"/><path d="{_SHAPES[outcome]}"/></g>'
    )
