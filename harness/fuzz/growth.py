"""How the time grows: at twice the size of a bad input it may take twice as long, not four times."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from harness.fuzz.properties import Hangs, limited
from harness.fuzz.shapes import Case, cases

SIZE: Final = 1_000_000
"""bytes of the smaller input"""
NOTICED: Final = 0.1
"""seconds of processor time below which it does not matter how they grow"""
TRIES: Final = 3
FACTOR: Final = 3.0
"""between two, which is linear, and four, which is quadratic"""


@dataclass(frozen=True)
class Growth:
    """What a case took at both sizes."""

    case: Case
    once: float
    twice: float

    @property
    def factor(self) -> float:
        return self.twice / self.once

    @property
    def bad(self) -> bool:
        return self.twice > NOTICED and self.factor > FACTOR


def measure_growth() -> list[str]:
    """Print a row for each kind of input with its worst shape; the answer names what grows too fast."""
    worst: dict[str, Growth] = {}
    counts: dict[str, int] = {}
    failures = []
    for case in cases():
        try:
            found = _grown(case)
        except Hangs as hang:
            failures.append(f"{case.kind}, {case.shape!r}: {hang}")
            continue
        print(f"{found.once:7.3f} s {found.twice:7.3f} s  {case.kind}: {case.shape!r}", file=sys.stderr, flush=True)
        counts[case.kind] = counts.get(case.kind, 0) + 1
        if case.kind not in worst or found.twice > worst[case.kind].twice:
            worst[case.kind] = found
        if found.bad:
            failures.append(f"{case.kind}, {case.shape!r}: {found.once:.2f} s, then {found.twice:.2f} s")
    print("| reading | shapes | slowest: 1 MB | 2 MB | factor |\n|---|---|---|---|---|")
    for kind, growth in worst.items():
        factor = f"{growth.factor:.1f}" if growth.twice > NOTICED else ""
        print(f"| {kind} | {counts[kind]} | {growth.once:.2f} s | {growth.twice:.2f} s | {factor} |")
    return failures


def _grown(case: Case) -> Growth:
    """Where it looks bad, the quickest of some tries counts: a neighbour on the machine never makes one quicker."""
    once = twice = float("inf")
    for _ in range(TRIES):
        once = min(once, max(_seconds(case.prepare(SIZE)), 1e-4))
        twice = min(twice, max(_seconds(case.prepare(2 * SIZE)), 1e-4))
        if not Growth(case, once, twice).bad:
            break
    return Growth(case, once, twice)


def _seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    with limited():
        work()
    return time.process_time() - begun
