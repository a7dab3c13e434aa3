"""Runs one after the other for minutes, beside a terminal server that outlives them: nothing may grow."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from tools.loading.fleet import DEADLINE, QUINTET, Fleet, Missed, Run
from tools.loading.meter import MEGA, files_below, memory, open_files

LANES: Final = 4
"""runs at a time; half of them bring their own server, half use the one that stays"""
WARM_UP: Final = 0.4
"""the part of the time that is not compared: a server remembers its last 2,000 events and 20 sessions, which have to
come first"""
LOOK_SECONDS: Final = 1.0
SLACK: Final = 1.05
"""by how much a median may differ from another without growing"""

FIGURES: Final = {
    "memory of the server that stays, MB": 1.0,
    "its file descriptors": 2.0,
    "most memory of a run, MB": 1.0,
    "tmux servers": 1.0,
    "files in the state directory": 5.0,
    "temporary files": 0.0,
}
"""what is watched, and how much more is still none"""


@dataclass
class Soak:
    """What was seen, with its time."""

    seen: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: {name: [] for name in FIGURES})
    ended: int = 0
    seconds: float = 0.0

    def note(self, at: float, **figures: float) -> None:
        for name, figure in figures.items():
            self.seen[name].append((at, figure))

    def thirds(self, name: str) -> tuple[float, float]:
        """The medians of the first and of the last third."""
        begin, end = self.seconds * WARM_UP, self.seconds
        third = (end - begin) / 3
        first = [figure for at, figure in self.seen[name] if begin <= at < begin + third]
        last = [figure for at, figure in self.seen[name] if at >= end - third]
        if not first or not last:
            raise Missed(f"too short to compare: {name}")
        return median(first), median(last)

    def grown(self) -> list[str]:
        """What is more in the last third than in the first."""
        found = {name: self.thirds(name) for name in FIGURES}
        return [name for name, (first, last) in found.items() if last > first * SLACK + FIGURES[name]]

    def table(self) -> str:
        rows = [f"| {name} | {first:.1f} | {last:.1f} |" for name in FIGURES for first, last in [self.thirds(name)]]
        return "\n".join(["| what | first third | last third |", "|---|---|---|", *rows])


def soak(minutes: float, think: float) -> Soak:
    """Keep the lanes busy for so long; every run has to end in PASS, and at the end nothing may be left."""
    found = Soak()
    with Fleet(think=think) as fleet, _serving(fleet) as (url, server):
        begun = time.monotonic()
        lanes: list[Run | None] = [_start(fleet, number, url) for number in range(LANES)]
        looked = float("-inf")
        while any(run is not None for run in lanes):
            now = time.monotonic() - begun
            if now - looked >= LOOK_SECONDS and now < minutes * 60:
                _look(found, fleet, server, now)
                looked = now
            for number, run in enumerate(lanes):
                if run is not None and run.poll():
                    _take(found, fleet, run, now)
                    lanes[number] = _start(fleet, number, url) if now < minutes * 60 else None
            if now > minutes * 60 + DEADLINE:
                raise Missed("a run does not end")
            time.sleep(0.05)
        found.seconds = minutes * 60
        if left := [line for line in fleet.left_behind() if "quintet serve" not in line]:
            raise Missed(f"left behind: {left[:5]}")
    return found


def _start(fleet: Fleet, lane: int, url: str) -> Run:
    settings = {"CLEANUP_ON_EXIT": "1", **({"API": url} if lane % 2 else {})}
    return fleet.start(fleet.project(f"lane{lane}"), **settings)


def _take(found: Soak, fleet: Fleet, run: Run, now: float) -> None:
    run.check()
    fleet.running.remove(run)
    found.ended += 1
    found.note(now, **{"most memory of a run, MB": run.highest / MEGA})


def _look(found: Soak, fleet: Fleet, server: int, now: float) -> None:
    found.note(
        now,
        **{
            "memory of the server that stays, MB": memory(server) / MEGA,
            "its file descriptors": open_files(server),
            "tmux servers": len(fleet.terminals().servers),
            "files in the state directory": files_below(fleet.state),
            "temporary files": files_below(fleet.temporary),
        },
    )


@contextmanager
def _serving(fleet: Fleet) -> Iterator[tuple[str, int]]:
    """`quintet serve` in the fleet's home: its address and its process."""
    command = [*QUINTET, "serve", "--port", "0"]
    server = subprocess.Popen(command, env=fleet.env, cwd=fleet.root, stdout=subprocess.PIPE, text=True)
    fleet.servers.append(server.pid)
    try:
        assert server.stdout
        yield server.stdout.readline().split()[-1], server.pid
    finally:
        server.terminate()
        server.communicate(timeout=DEADLINE)
