"""Full loops in a row with the real agents, and how long they took: `python -m tests.e2e.soak [RUNS]`."""

import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.e2e.brains import Answer, RoleBrain, Script
from tests.e2e.model import ScriptedModel
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, rig, texts

RUNS: Final = 5
MODEL_SECONDS: Final = 1.5
CASTS: Final = {"Codex 0.166.0": Cast(codex="0.166.0"), "Claude Code 2.1.325": Cast(claude="2.1.325")}
MARKS: Final = ("reminded", "guard_released", "guard_violation")
"""events that a good run does not have"""


@dataclass(frozen=True)
class Loop:
    """One run, in seconds."""

    wall: float
    start_up: float
    """until the last of the five agents is ready"""
    handoffs: tuple[float, ...]
    """from the model's last byte of a turn to the next prompt's arrival at the model"""

    def row(self, name: str) -> str:
        median, longest = statistics.median(self.handoffs), max(self.handoffs)
        cells = (name, f"{self.wall:.1f}", f"{self.start_up:.1f}", f"{median:.2f}", f"{longest:.2f}")
        return "| " + " | ".join(cells) + " |"


HEADER: Final = """\
| agents | wall time (s) | start-up (s) | handoff, median (s) | handoff, longest (s) |
|---|---|---|---|---|"""


def slowed(script: Script, seconds: float) -> Script:
    """The same replies from a model that takes its time."""
    return {name: [Answer(one.text, one.before, seconds) for one in answers] for name, answers in script.items()}


def handoffs(model: ScriptedModel) -> Iterator[float]:
    """For each prompt but the first: how long after the last answer it came."""
    ends = [at for request, at in model.answered if not request.is_aside]
    for turn in model.turns[1:]:
        yield turn.at - max(end for end in ends if end <= turn.at)


def loop(cast: Cast, seconds: float = MODEL_SECONDS) -> Loop:
    """One full loop; raises where it is not a clean PASS."""
    with rig(cast, RoleBrain(slowed(FAIL_THEN_PASS, seconds))) as run:
        begun = time.monotonic()
        code, said = run.run(POST_OPENSPEC_ARCHIVE="1", POST_GIT_COMMIT="1", CLEANUP_ON_EXIT="1")
        wall = time.monotonic() - begun
        events = run.journal()
        bad = [event["event"] for event in events if event["event"] in MARKS]
        received = texts([request.prompt for request in run.model.turns])
        if code or bad or received != texts(run.sent_prompts()) or run.living():
            raise RuntimeError(f"exit code {code}, {bad}, {len(received)} prompts, left: {run.living()}\n{said}")
        start_up = max(event["seconds"] for event in events if event["event"] == "terminal_created")
        return Loop(wall, start_up, tuple(handoffs(run.model)))


def soak(runs: int = RUNS, seconds: float = MODEL_SECONDS) -> list[str]:
    """The rows of the table, printed as they come."""
    rows = []
    print(HEADER, flush=True)
    for name, cast in CASTS.items():
        loops = []
        for number in range(1, runs + 1):
            loops.append(loop(cast, seconds))
            print(loops[-1].row(f"{name}, run {number}"), flush=True)
        median = Loop(
            statistics.median(one.wall for one in loops),
            statistics.median(one.start_up for one in loops),
            tuple(handoff for one in loops for handoff in one.handoffs),
        )
        rows.append(median.row(f"{name}, {runs} runs, median"))
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    soak(*(int(word) for word in sys.argv[1:2]))
