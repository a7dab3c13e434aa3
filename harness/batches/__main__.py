"""Run batches of tasks on several workers while things break: `python -m harness.batches`. See `--help`."""

import argparse
import signal
import sys
from pathlib import Path
from typing import Final

from harness.batches.plan import POSTGRESQL, SQLITE, plan_for
from harness.batches.run import BatchOutcome, carry_out
from tests import hermetic

NUMBERS: Final = {POSTGRESQL: 30, SQLITE: 10}


def main() -> int:
    """Run what was asked for; the exit code says whether everything held."""
    hermetic.enter()
    parser = argparse.ArgumentParser(prog="python -m harness.batches", description=__doc__)
    parser.add_argument("--database", choices=(POSTGRESQL, SQLITE), help="only this one; both where it is left out")
    parser.add_argument("--batches", type=int, metavar="N", help="30 with PostgreSQL and 10 with SQLite by default")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="where the seeds begin")
    parser.add_argument("--seed", type=int, help="only this batch, and everything about it")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the files of a bad batch are copied to")
    wish = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended then
    bad = 0
    for database in (wish.database,) if wish.database else (POSTGRESQL, SQLITE):
        first, number = (wish.first, wish.batches or NUMBERS[database]) if wish.seed is None else (wish.seed, 1)
        outcomes = []
        for seed in range(first, first + number):
            outcomes.append(carry_out(plan_for(seed, database, wish.tasks), wish.keep))
            print(describe(outcomes[-1], everything=wish.seed is not None), flush=True)
        wrong = sum(bool(outcome.violations) for outcome in outcomes)
        print(f"\n{number} batches with {database}, {wrong} with a violation\n", flush=True)
        bad += wrong
    return bool(bad)


def describe(outcome: BatchOutcome, *, everything: bool) -> str:
    """Return one line about a batch, and all details if it went wrong."""
    result = "VIOLATION" if outcome.violations else "good"
    late = f", not tried: {'; '.join(map(str, outcome.not_tried))}" if outcome.not_tried else ""
    lines = [f"{outcome.plan}: {outcome.seconds:.0f} s, {outcome.steps} turns{late}: {result}"]
    if outcome.violations or everything:
        lines += [f"  {line}" for line in (*outcome.said, *outcome.violations)]
    if outcome.violations:
        lines.append(f"  again: python -m harness.batches --database {outcome.kind} --seed {outcome.seed}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
