"""Many runs side by side: all have to end in PASS, and none may cost much more because of the others."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tools.loading.fleet import DEADLINE, Fleet, Missed, Run
from tools.loading.meter import MEGA, Peaks, cpu_seconds

LOOK_SECONDS: Final = 1.0
TERMINALS: Final = 5


@dataclass(frozen=True)
class Cost:
    """What one of the runs has cost on average."""

    runs: int
    wall: float
    """seconds until the last one had ended"""
    own_memory: float
    """bytes: the run's process with its terminal server, its tmux server, and its connection to that"""
    own_cpu: float
    """seconds: the same, and the commands that the run has waited for"""
    agents_memory: float
    agents_cpu: float

    @property
    def row(self) -> str:
        return (
            f"| {self.runs} | {self.wall:.0f} s | {self.own_memory / MEGA:.1f} MB | {self.own_cpu:.2f} s "
            f"| {self.agents_memory / MEGA:.1f} MB | {self.agents_cpu:.2f} s |"
        )


HEAD: Final = (
    "| runs at once | wall time | memory of a run | CPU of a run | memory of its agents | CPU of its agents |",
    "|---|---|---|---|---|---|",
)


def measure(count: int, think: float) -> Cost:
    """Start so many runs at once, wait for all, and divide what they took."""
    with Fleet(think=think) as fleet:
        begun = time.monotonic()
        runs = [fleet.start(fleet.project(f"{number:03d}")) for number in range(count)]
        own, agents = Peaks(), Peaks()
        for _ in _until_ended(runs):
            seen = fleet.terminals()
            own.look([*(run.pid for run in runs if run.process.returncode is None), *seen.clients, *seen.servers])
            agents.look(seen.agents)
        wall = time.monotonic() - begun
        for run in runs:
            run.check()
        there = fleet.terminals()  # they outlive the runs, so that what they used can be read to the end
        if (len(there.agents), len(there.servers)) != (TERMINALS * count, count):
            raise Missed(f"{count} runs have {len(there.agents)} agents and {len(there.servers)} tmux servers")
        tmux_cpu, agents_cpu = (sum(map(cpu_seconds, pids)) for pids in (there.servers, there.agents))
        fleet.stop_terminals()
        if left := fleet.left_behind():
            raise Missed(f"left behind: {left[:5]}")
    used = sum(run.used for run in runs) + tmux_cpu
    return Cost(count, wall, own.total / count, used / count, agents.total / count, agents_cpu / count)


def _until_ended(runs: list[Run]) -> Iterator[None]:
    """A look at a time, until the last run has ended."""
    deadline = time.monotonic() + DEADLINE
    looked = float("-inf")
    while not all(run.poll() for run in runs):
        if time.monotonic() > deadline:
            raise Missed(f"after {DEADLINE:.0f} s {sum(not run.poll() for run in runs)} runs have not ended")
        if time.monotonic() - looked >= LOOK_SECONDS:
            yield
            looked = time.monotonic()
        time.sleep(0.05)
