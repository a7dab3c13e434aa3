"""The timeline of a run: who worked when, reviews, verdicts, stops. One drawing, for the report and the dashboard."""

from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Final, NamedTuple, Union

from quintet.roles import ROLES
from quintet.watch.runs.formatting import duration, printable
from quintet.watch.runs.handoffs import Handoff, VerdictKind, kind_of
from quintet.watch.runs.model import Run

WIDTH: Final = 980
LEFT: Final = 136
RIGHT: Final = 20
TOP: Final = 30
LANE: Final = 34
BAR: Final = 16
STOP_WIDTH: Final = 26
"""the width of a stop, however long it was"""
BOTTOM: Final = TOP + LANE * len(ROLES)
TICK_SECONDS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400)
MOST_TICKS: Final = 9
_SIGN_PATHS: Final = {
    VerdictKind.GOOD: "M-3.4 .2 L-1 2.8 L3.6 -2.6",
    VerdictKind.VOID: "M-3.6 3.6 L3.6 -3.6",
    VerdictKind.AGAIN: "M2.8 -1.6 A3.2 3.2 0 1 0 3.1 1.1 M3.4 -3.6 L3 -1.2 L.6 -1.6",
    VerdictKind.BAD: "M-2.6 -2.6 L2.6 2.6 M2.6 -2.6 L-2.6 2.6",
}


class SvgElement(NamedTuple):
    """An element of an SVG picture: its name, its attributes, and what is in it."""

    tag: str
    attributes: dict[str, str | int | float]
    children: tuple[Union["SvgElement", str], ...] = ()


@dataclass(frozen=True)
class Scale:
    """Turns a time into an x coordinate. The time in which a run was stopped takes little room, however long it was."""

    intervals: tuple[tuple[float, float], ...]
    """when the run was at work"""

    @classmethod
    def of(cls, run: Run, now: float | None = None) -> "Scale":
        intervals = run.active_intervals or ((0.0, 1.0),)
        if now and run.is_running:
            begin, end = intervals[-1]
            intervals = (*intervals[:-1], (begin, max(now, end)))
        return cls(intervals)

    @property
    def end(self) -> float:
        return self.intervals[-1][1]

    @property
    def stops(self) -> list[tuple[float, float]]:
        """From when to when the run was stopped."""
        return [(end, begin) for (_, end), (begin, _) in zip(self.intervals, self.intervals[1:], strict=False)]

    @cached_property
    def seconds(self) -> float:
        return max(sum(end - begin for begin, end in self.intervals), 1.0)

    @cached_property
    def _per_second(self) -> float:
        room = WIDTH - LEFT - RIGHT - STOP_WIDTH * (len(self.intervals) - 1)
        return max(room, 100) / self.seconds

    def x(self, at: float) -> float:
        """The place of a time."""
        place = float(LEFT)
        for begin, end in self.intervals[:-1]:
            if at <= end:
                break
            place += (end - begin) * self._per_second + STOP_WIDTH
        else:
            begin, end = self.intervals[-1]
        return place + (min(max(at, begin), end) - begin) * self._per_second

    def x_after(self, seconds: float) -> float:
        """The place after so many seconds of work."""
        for begin, end in self.intervals:
            if seconds <= end - begin:
                return self.x(begin + seconds)
            seconds -= end - begin
        return self.x(self.end)


def draw_timeline(run: Run, now: float | None = None) -> SvgElement:
    """The picture; it needs `timeline_css`."""
    scale = Scale.of(run, now)
    parts = (
        *_lanes(scale),
        *_stops(scale),
        *_rounds(run, scale),
        *_axis(scale),
        *(_turn(run, number, scale, now) for number in range(len(run.handoffs))),
    )
    label = f"Timeline of the run: {len(run.handoffs)} turns of five agents"
    size = f"0 0 {WIDTH} {BOTTOM + 30}"
    return SvgElement("svg", {"class": "timeline", "viewBox": size, "role": "img", "aria-label": label}, parts)


def timeline_css() -> str:
    """The style sheet with the colours and the timeline."""
    return (files(__package__) / "timeline.css").read_text(encoding="utf-8")


def _text(name: str, x: float, y: float, text: str, **more: str | int) -> SvgElement:
    return SvgElement("text", {"class": name, "x": round(x, 1), "y": round(y, 1), **more}, (text,))


def _line(name: str, x: float, y: float, x2: float, y2: float) -> SvgElement:
    ends = {"x1": round(x, 1), "y1": round(y, 1), "x2": round(x2, 1), "y2": round(y2, 1)}
    return SvgElement("line", {"class": name, **ends})


def _lane_middle(number: int) -> float:
    return TOP + LANE * number + LANE / 2


def _lanes(scale: Scale) -> list[SvgElement]:
    parts = []
    for number, role in enumerate(ROLES):
        y = _lane_middle(number)
        parts += [_text("lane-name", 0, y + 4, role.label), _line("lane", LEFT, y, scale.x(scale.end), y)]
    return parts


def _stops(scale: Scale) -> list[SvgElement]:
    parts = []
    for begin, end in scale.stops:
        x, y = round(scale.x(begin), 1), (TOP + BOTTOM) / 2
        title = SvgElement("title", {}, (f"stopped for {duration(end - begin)}",))
        place = {"x": x, "y": TOP, "width": STOP_WIDTH, "height": BOTTOM - TOP}
        middle = round(x + STOP_WIDTH / 2, 1)
        parts.append(SvgElement("rect", {"class": "stop", **place}, (title,)))
        parts.append(_text("stop-name", middle, y, "stopped", dy=4, transform=f"rotate(-90 {middle} {y})"))
    return parts


def _rounds(run: Run, scale: Scale) -> list[SvgElement]:
    parts = []
    for number, turns in run.by_round.items():
        x = scale.x(turns[0].sent)
        parts += [_line("round", x, TOP - 18, x, BOTTOM), _text("round-name", x + 6, TOP - 8, f"Round {number}")]
    return parts


def _axis(scale: Scale) -> list[SvgElement]:
    step = next((step for step in TICK_SECONDS if scale.seconds / step <= MOST_TICKS), scale.seconds / MOST_TICKS)
    parts = []
    for number in range(int(scale.seconds / step) + 1):
        x = scale.x_after(number * step)
        parts += [_line("tick", x, BOTTOM, x, BOTTOM + 5), _text("tick-name", x, BOTTOM + 20, _label(number * step))]
    return parts


def _label(seconds: float) -> str:
    minute, hour = 60, 3600
    if seconds < minute:
        return f"{seconds:.0f} s"
    if seconds >= hour:
        return f"{seconds / hour:g} h"
    return f"{seconds / minute:g} min" if not seconds % minute else f"{seconds // minute:.0f}:{seconds % minute:02.0f}"


def _turn(run: Run, number: int, scale: Scale, now: float | None) -> SvgElement:
    """The bar of a turn, with the sign of its verdict at the end; its number is its place among the handoffs."""
    handoff = run.handoffs[number]
    end = handoff.taken or (scale.end if run.is_running else run.ended)
    x, y = scale.x(handoff.sent), _lane_middle(ROLES.index(handoff.role))
    width = max(scale.x(end) - x, 2.0)
    place = {"x": round(x, 1), "y": round(y - BAR / 2, 1), "width": round(width, 1), "height": BAR, "rx": 3}
    open_end = " open" if handoff.taken is None else ""
    words = _words(run, handoff, now)
    parts = [
        SvgElement("title", {}, (words,)),
        SvgElement("rect", {"class": f"bar {kind_of(handoff.role)}{open_end}", **place}),
    ]
    if handoff.verdict:
        parts.append(_sign(x + width, y, handoff.verdict.kind))
    return SvgElement("g", {"class": "turn", "data-number": number, "aria-label": words}, tuple(parts))


def _words(run: Run, handoff: Handoff, now: float | None) -> str:
    verdict = f", {handoff.verdict.label}" if handoff.verdict else ""
    time = duration(run.worked(handoff, now))
    return printable(f"{handoff.role.label}, round {handoff.round}, cycle {handoff.cycle}: {time}{verdict}")


def _sign(x: float, y: float, kind: VerdictKind) -> SvgElement:
    """The sign of a verdict."""
    shapes = (SvgElement("circle", {"r": 7.5}), SvgElement("path", {"d": _SIGN_PATHS[kind]}))
    return SvgElement("g", {"class": f"mark {kind}", "transform": f"translate({x:.1f} {y:.1f})"}, shapes)
