"""Many runs at once and one after the other, with scripted agents on real tmux; prints the tables as Markdown."""

import argparse
import sys
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.loading.crowd import HEAD, Cost, measure
from tools.loading.fleet import Missed
from tools.loading.soak import soak

WANTED: Final = 1.3
"""how much more a run may cost in the largest crowd than in the one before it"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="*", default=[1, 10, 40], help="how many at once, in turn")
    parser.add_argument("--think", type=float, default=3.0, help="seconds that an agent takes for a turn")
    parser.add_argument("--minutes", type=float, default=10.0, help="of the soak; 0 leaves it out")
    asked = parser.parse_args()
    try:
        problems = _crowds(asked.runs, asked.think)
        if asked.minutes:
            problems += _soak(asked.minutes)
    except Missed as missed:
        sys.exit(f"load: {missed}")
    if problems:
        sys.exit("load: " + "; ".join(problems))


def _crowds(counts: list[int], think: float) -> list[str]:
    if not counts:
        return []
    print("\n".join(HEAD), flush=True)
    costs = []
    for count in counts:
        costs.append(measure(count, think))
        print(costs[-1].row, flush=True)
    return _compared(costs[-2], costs[-1]) if len(costs) > 1 else []


def _compared(few: Cost, many: Cost) -> list[str]:
    factors = {"memory": many.own_memory / few.own_memory, "CPU": many.own_cpu / few.own_cpu}
    told = ", ".join(f"{what} {factor:.2f}" for what, factor in factors.items())
    print(f"\nA run among {many.runs} beside one among {few.runs}: {told} (wanted: at most {WANTED}).\n", flush=True)
    return [f"{what} is {factor:.2f} times as much" for what, factor in factors.items() if factor > WANTED]


def _soak(minutes: float) -> list[str]:
    found = soak(minutes, think=0.2)
    print(f"{found.ended} runs in {minutes:g} minutes, all in PASS.\n\n{found.table()}", flush=True)
    return [f"{name} has grown" for name in found.grown()]


if __name__ == "__main__":
    main()
