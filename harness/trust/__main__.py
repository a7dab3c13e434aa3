"""Try every cheat and every honest behaviour: `python -m harness.trust`."""

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from harness.trust.cheats import CHEATS, Cheat
from harness.trust.honest import HONEST, Honest
from harness.trust.page import write_page
from harness.trust.trial import faults_of
from tests import hermetic

SIDE_BY_SIDE = 4
"""runs at once: most of their time they wait"""


def main() -> int:
    """Try what was asked for; the exit code says whether all went as the table says."""
    hermetic.enter()
    parser = argparse.ArgumentParser(prog="python -m harness.trust", description=__doc__)
    parser.add_argument("words", nargs="*", help="only rows whose name contains one of these")
    parser.add_argument("--write", action="store_true", help="only write the table into docs/trust.md")
    wish = parser.parse_args()
    if wish.write:
        write_page()
        return 0
    corpus: Sequence[Cheat | Honest] = [*CHEATS, *HONEST]
    rows = [row for row in corpus if not wish.words or any(word in row.name for word in wish.words)]
    begun, bad = time.monotonic(), 0
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for row, faults in zip(rows, pool.map(faults_of, rows), strict=True):
            bad += bool(faults)
            ended = ", ".join((*row.did, "no PASS")) if isinstance(row, Cheat) else "PASS, no warning"
            print(f"{'BAD ' if faults else 'ok  '} {row.name}: {ended}")
            print("".join(f"     {fault}\n" for fault in faults), end="", flush=True)
    cheats = sum(isinstance(row, Cheat) for row in rows)
    print(f"{cheats} cheats, {len(rows) - cheats} honest behaviours, {bad} not as they should be, ", end="")
    print(f"{time.monotonic() - begun:.0f} s")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
