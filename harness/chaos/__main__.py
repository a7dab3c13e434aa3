"""Try to break it: `python -m harness.chaos`. With `--seed N` one run, with all that was planned, done and said."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed

from harness.chaos.outcome import Outcome
from harness.chaos.real import plan as real_plan
from harness.chaos.real.run import carry_out
from harness.chaos.sim import plan as sim_plan
from harness.chaos.sim.found import FOUND
from harness.chaos.sim.run import simulate
from harness.chaos.table import table
from tests import hermetic

SIMULATED = 5000
REAL = real_plan.ENOUGH
SIDE_BY_SIDE = 6
"""runs on real tmux that share the machine: most of their time they wait"""
AT_ONCE = 50


def simulated(seed: int) -> Outcome:
    return simulate(sim_plan.plan_for(seed))


def many_simulated(seeds: Iterable[int]) -> list[Outcome]:
    """Several in one go: a process costs more to talk to than a run takes. Only the bad ones tell their story."""
    outcomes = [simulated(seed) for seed in seeds]
    for outcome in outcomes:
        if not outcome.violations:
            outcome.said.clear()
    return outcomes


def real(seed: int) -> Outcome:
    return carry_out(real_plan.plan_for(seed))


def main() -> int:
    """Run what was asked for; the exit code says whether everything held."""
    hermetic.enter()
    parser = argparse.ArgumentParser(prog="python -m harness.chaos", description=__doc__)
    parser.add_argument("--simulated", type=int, nargs="?", const=SIMULATED, metavar="RUNS")
    parser.add_argument("--real", type=int, nargs="?", const=REAL, metavar="RUNS")
    parser.add_argument("--seed", type=int, help="only this one, and everything about it")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="where the seeds begin")
    wish = parser.parse_args()
    if wish.seed is not None:
        outcome = real(wish.seed) if wish.real else simulated(wish.seed)
        print(outcome.tell())
        return bool(outcome.violations)
    if wish.simulated is None and wish.real is None:
        wish.simulated, wish.real = SIMULATED, REAL
    bad = 0
    if wish.simulated:
        bad += report("found", map(simulate, FOUND))
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            seeds = range(wish.first, wish.first + wish.simulated)
            batches = [seeds[begin : begin + AT_ONCE] for begin in range(0, len(seeds), AT_ONCE)]
            bad += report("simulated", spread(pool, many_simulated, batches))
    if wish.real:
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            seeds = range(wish.first, wish.first + wish.real)
            bad += report(
                "real", spread(pool, lambda batch: [real(seed) for seed in batch], [[seed] for seed in seeds])
            )
    return bool(bad)


def spread(
    pool: Executor, work: Callable[[Iterable[int]], list[Outcome]], batches: Iterable[Iterable[int]]
) -> Iterator[Outcome]:
    """The outcomes as they come."""
    for done in as_completed([pool.submit(work, batch) for batch in batches]):
        yield from done.result()


def report(name: str, outcomes: Iterable[Outcome]) -> int:
    """Tell of every violation at once and of all runs at the end; how many were bad."""
    begun, seen = time.monotonic(), list[Outcome]()
    for outcome in outcomes:
        seen.append(outcome)
        if outcome.violations:
            print(f"{outcome.plan}\n  {outcome.violations[0].strip().splitlines()[-1]}", flush=True)
            if name != "found":
                print(f"  again: python -m harness.chaos --{name} 1 --seed {outcome.seed}", flush=True)
    for reason in sorted({outcome.skipped for outcome in seen if outcome.skipped}):
        print(f"skipped: {reason}")
    print(f"\n{len(seen)} {name} runs in {time.monotonic() - begun:.0f} s\n\n{table(seen)}\n", flush=True)
    return sum(bool(outcome.violations) for outcome in seen)


if __name__ == "__main__":
    sys.exit(main())
