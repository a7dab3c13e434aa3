"""Measure what Quintet costs. `python tools/bench.py` runs every group, `python tools/bench.py core` one.

Times of pure code are processor time, so that a busy machine does not blur them.
A benchmark is a function with `@benchmark("group")` that yields rows; add a function to add a benchmark.
"""

import gc
import sys
import time
import tracemalloc
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from quintet.config import Settings
from quintet.loop.decide import condense, gate
from quintet.loop.decide.flow import apply, first_state, next_step
from quintet.loop.decide.prompts import Prompts
from quintet.loop.decide.state import State, TerminalRef
from quintet.loop.decide.steps import Ask, Dispatched, Finished, Replied
from quintet.loop.decide.task import Task
from quintet.roles import ROLES, TESTER, Phase

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.loop.texts import SHAPES, worst_texts


class Row(NamedTuple):
    """One line of the table."""

    what: str
    value: str


Benchmark = Callable[[], Iterator[Row]]
GROUPS: dict[str, list[Benchmark]] = defaultdict(list)

SETTINGS = Settings(wd=Path("/project"))
TASK = Task("what to explore\n" * 20, "what to run\n" * 20)
REVIEW = """REVIEW_RESULT: APPROVED
REVIEW_NOTES:
- Implementation: read every changed file
- Validation: pytest ran green
- Risk: none that the tests leave open
- Issues: none left
Required changes:
- none
"""
FAILED = "RESULT: FAIL\nEVIDENCE:\n- exit code 3\n"
SUMMARY = "## Files changed\n- a.py: a line\n## Behaviour implemented\n- it runs\n## Validation\n- pytest\n" * 5
REPORT = SUMMARY * 250
"""about 100 kB"""


def benchmark(group: str) -> Callable[[Benchmark], Benchmark]:
    """Register a benchmark in a group."""

    def register(function: Benchmark) -> Benchmark:
        GROUPS[group].append(function)
        return function

    return register


def main() -> None:
    chosen = sys.argv[1:] or list(GROUPS)
    if unknown := set(chosen) - GROUPS.keys():
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(GROUPS)}")
    for group in chosen:
        print(f"\n{group}\n{'-' * len(group)}")
        for function in GROUPS[group]:
            for row in function():
                print(f"{row.what:<64} {row.value:>14}", flush=True)


def timed(function: Callable[[], object]) -> float:
    begin = time.process_time()
    function()
    return time.process_time() - begin


def typical(function: Callable[[], object], times: int = 200) -> str:
    """The median of many runs, in a unit that reads well."""
    return readable(median(timed(function) for _ in range(times)))


def readable(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds / 1e-6:.1f} µs"


def a_new_state(config: Settings) -> State:
    terminals = {role.name: TerminalRef(f"t-{role}", "codex") for role in ROLES}
    return replace(first_state(config, "bench"), terminals=terminals)


def reply_to(step: Ask) -> str:
    return REVIEW if step.role.reviews else FAILED if step.role is TESTER else SUMMARY


def take_step(state: State, config: Settings) -> State | None:
    """One step with everything that the flow does for it: decide, build the prompt, fold in both events."""
    step = next_step(state, config)
    if isinstance(step, Finished):
        return None
    assert isinstance(step, Ask)
    Prompts(config, TASK, state).build(step)
    state, _ = apply(state, step, Dispatched(1), config)
    return apply(state, step, Replied(reply_to(step)), config)[0]


@benchmark("core")
def one_of_each() -> Iterator[Row]:
    state = a_new_state(SETTINGS)
    yield Row("one flow step (decide, prompt, dispatch, reply)", typical(lambda: take_step(state, SETTINGS)))
    yield Row(
        "one gate judgement of an ordinary review",
        typical(lambda: gate.judge_review(REVIEW, Phase.PROGRAMMER, 2, SETTINGS)),
    )
    yield Row(
        f"one gate judgement of {len(REPORT) // 1000} kB",
        typical(lambda: gate.judge_review(REVIEW + REPORT, Phase.PROGRAMMER, 2, SETTINGS), 20),
    )
    for name, function in CONDENSATIONS.items():
        text = REVIEW + FAILED + REPORT
        yield Row(f"{name} of {len(text) // 1000} kB", typical(partial(function, text, SETTINGS), 20))


CONDENSATIONS: dict[str, Callable[[str, Settings], str]] = {
    "review notes": condense.extract_review_notes,
    "test evidence": condense.extract_test_evidence,
    "handoff to the programmer": condense.condense_for_programmer,
    "handoff to the tester": condense.condense_for_tester,
}


def _condensed(function: Callable[[str, Settings], str], text: str) -> str:
    return function(text, SETTINGS)


@benchmark("core")
def five_megabytes() -> Iterator[Row]:
    """The worst of many shapes; what a shape costs says where a pattern backtracks."""
    readers: dict[str, Callable[[str], object]] = {
        "test verdict": gate.read_test_verdict,
        "review verdict": gate.read_review_verdict,
        "analyst review gate": lambda text: gate.judge_review(text, Phase.ANALYST, 2, SETTINGS),
        "programmer review gate": lambda text: gate.judge_review(text, Phase.PROGRAMMER, 2, SETTINGS),
    }
    readers |= {name: partial(_condensed, function) for name, function in CONDENSATIONS.items()}
    worst = dict.fromkeys(readers, (0.0, ""))
    for shape in SHAPES:
        for text in worst_texts(shape):
            for name, read in readers.items():
                worst[name] = max(worst[name], (timed(partial(read, text)), shape))
    for name, (seconds, shape) in worst.items():
        yield Row(f"5 MB, worst of {4 * len(SHAPES)} texts ({shape!r}): {name}", readable(seconds))


@benchmark("core")
def ten_thousand_rounds() -> Iterator[Row]:
    rounds = 10_000
    config = Settings(wd=Path("/project"), max_rounds=rounds, min_review_cycles_before_approval=1)
    state: State | None = a_new_state(config)
    spent = array("d", bytes(8 * 6 * rounds))  # made beforehand, so that it is not measured
    begun = dict.fromkeys(range(rounds // 1000 + 1), 0)
    held = dict.fromkeys(begun, 0)
    steps = 0
    tracemalloc.start()
    while state is not None:
        number = (state.current_round - 1) // 1000
        begin = time.process_time()
        state = take_step(state, config)
        spent[steps] = time.process_time() - begin
        steps += 1
        if steps % 500 == 0:
            gc.collect()  # what waits to be collected is not held
            held[number] = max(held[number], tracemalloc.get_traced_memory()[0])
        begun[number + 1] = steps
    tracemalloc.stop()
    yield Row(f"{rounds} rounds in memory: steps", str(steps))
    for name, number in (("first", 0), ("last", rounds // 1000 - 1)):
        part = spent[begun[number] : begun[number + 1]]
        yield Row(f"  {name} thousand: time per step (median, traced)", readable(median(part)))
        yield Row(f"  {name} thousand: memory held (highest)", f"{held[number] / 1000:.0f} kB")


if __name__ == "__main__":
    main()
