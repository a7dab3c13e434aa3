"""Full loops in a row with the real agents, and their times: `python -m tools.soak_real [RUNS [SETTING=VALUE ...]]`."""

import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.e2e.brains import Answer, RoleBrain, Script
from tests.e2e.model import ScriptedModel
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import CLAUDE, CODEX, Cast, rig, texts

RUNS: Final = 5
MODEL_SECONDS: Final = 1.5
CASTS: Final = {"Codex 0.166.0": CODEX, "Claude Code 2.1.325": CLAUDE}
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


def loop(cast: Cast, seconds: float, settings: Mapping[str, str]) -> Loop:
    """One full loop; raises where it is not a clean PASS."""
    with rig(cast, RoleBrain(slowed(FAIL_THEN_PASS, seconds))) as run:
        begun = time.monotonic()
        code, said = run.run(POST_OPENSPEC_ARCHIVE="1", POST_GIT_COMMIT="1", CLEANUP_ON_EXIT="1", **settings)
        wall = time.monotonic() - begun
        events = run.journal()
        bad = [event["event"] for event in events if event["event"] in MARKS]
        received = texts([request.prompt for request in run.model.turns])
        if code or bad or received != texts(run.sent_prompts()) or run.living():
            raise RuntimeError(f"exit code {code}, {bad}, {len(received)} prompts, left: {run.living()}\n{said}")
        start_up = max(event["seconds"] for event in events if event["event"] == "terminal_created")
        return Loop(wall, start_up, tuple(handoffs(run.model)))


def soak(runs: int = RUNS, given: Sequence[str] = (), seconds: float = MODEL_SECONDS) -> None:
    """Print the rows of the table as they come; with settings, runs with and without them take turns."""
    print(HEADER, flush=True)
    kinds = [dict[str, str](), *([dict(word.split("=", 1) for word in given)] if given else ())]
    for name, cast in CASTS.items():
        loops: list[list[Loop]] = [[] for _ in kinds]
        names = [", ".join((name, *(f"{key}={value}" for key, value in kind.items()))) for kind in kinds]
        for number in range(1, runs + 1):
            for title, kind, done in zip(names, kinds, loops, strict=True):
                done.append(loop(cast, seconds, kind))
                print(done[-1].row(f"{title}, run {number}"), flush=True)
        for title, done in zip(names, loops, strict=True):
            median = Loop(
                statistics.median(one.wall for one in done),
                statistics.median(one.start_up for one in done),
                tuple(handoff for one in done for handoff in one.handoffs),
            )
            print(median.row(f"{title}, {runs} runs, median"), flush=True)


if __name__ == "__main__":
    soak(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS, sys.argv[2:])
