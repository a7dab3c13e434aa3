"""`make fuzz`: hostile input of every kind, and how the time grows with its size; prints the tables as Markdown."""

import argparse
import random
import sys
import time
import traceback
from collections import defaultdict

from harness.fuzz import agents, files, journals, records, requests, screens, words
from harness.fuzz.growth import measure_growth
from harness.fuzz.properties import ALL, Hangs, Property
from tests import hermetic

SOURCES = (agents, files, journals, records, requests, screens, words)


def main() -> None:
    hermetic.enter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=2000, help="of each property")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9), help="repeats a run")
    parser.add_argument("--only", default="", help="part of a property's name; `growth` for the times alone")
    asked = parser.parse_args()
    print(f"seed {asked.seed}, {asked.examples} examples of each property\n", flush=True)
    chosen = [one for one in ALL if asked.only in str(one)]
    failures = [str(one) for one in chosen if not _holds(one, asked.examples, asked.seed)]
    print(_table(chosen, failures), flush=True)
    if asked.only in ("", "growth"):
        failures += measure_growth()
    if failures:
        sys.exit(f"fuzz: {len(failures)} failed (--seed {asked.seed}): {'; '.join(failures)}")


def _holds(one: Property, examples: int, number: int) -> bool:
    begun = time.process_time()
    try:
        one.hold(examples, number)
    except (Exception, Hangs):  # noqa: BLE001 - whatever it is, it is told, and the next property is tried
        print(f"FAILED {one}", file=sys.stderr)
        traceback.print_exc()
        return False
    finally:
        print(f"{time.process_time() - begun:7.1f} s  {one}", file=sys.stderr, flush=True)
    return True


def _table(properties: list[Property], failures: list[str]) -> str:
    kinds: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for one in properties:
        found = kinds[one.kind]
        found[:] = [found[0] + 1, found[1] + one.tried, found[2] + (str(one) in failures)]
    rows = [f"| {kind} | {count} | {tried:,} | {failed} |" for kind, (count, tried, failed) in sorted(kinds.items())]
    return "\n".join(["| input | properties | examples | failed |", "|---|---|---|---|", *rows, ""])


if __name__ == "__main__":
    main()
