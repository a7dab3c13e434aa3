"""What the guard adds to a handoff between real agents: `python -m tools.bench_handoffs [LOOPS]`.

Full loops with `GUARD=off` and `GUARD=restore` in turn, so that other work on the machine slows both alike.
"""

import statistics
import sys
from typing import Final

from tests.e2e.brains import RoleBrain
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, rig
from tools import soak_real as soak

LOOPS: Final = 4
MODES: Final = ("off", "restore")
MODEL_SECONDS: Final = 0.3


def handoffs(cast: Cast, mode: str) -> list[float]:
    """Those of one loop; raises where it is not a clean PASS."""
    with rig(cast, RoleBrain(soak.slowed(FAIL_THEN_PASS, MODEL_SECONDS))) as run:
        code, said = run.run(GUARD=mode)
        bad = [event["event"] for event in run.journal() if event["event"] in soak.MARKS]
        if code or bad:
            raise RuntimeError(f"exit code {code}, {bad}\n{said}")
        return list(soak.handoffs(run.model))


def compare(cast: Cast, loops: int) -> str:
    """The medians of both modes, and what the guard adds."""
    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    for number in range(loops):
        for mode in MODES if number % 2 else MODES[::-1]:
            seconds[mode] += handoffs(cast, mode)
    off, guarded = (statistics.median(seconds[mode]) for mode in MODES)
    more = f"{1000 * (guarded - off):+.0f} ms, {100 * (guarded / off - 1):+.1f} %"
    return f"{len(seconds['off']):>8} {off:>9.3f} s {guarded:>14.3f} s   {more}"


def main() -> None:
    loops = int(sys.argv[1]) if sys.argv[1:] else LOOPS
    print(f"{'agents':<20} handoffs   GUARD=off   GUARD=restore   the guard adds")
    for name, cast in soak.CASTS.items():
        print(f"{name:<20} {compare(cast, loops)}", flush=True)


if __name__ == "__main__":
    main()
