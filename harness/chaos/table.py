"""The table of a batch of runs, by kind of fault."""

import statistics
from collections import defaultdict
from collections.abc import Iterable

from harness.chaos.outcome import Outcome


def table(outcomes: Iterable[Outcome]) -> str:
    """A Markdown table: what was tried how often, and what came of it."""
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_kind[outcome.kind].append(outcome)
    lines = [
        "| fault | runs | PASS in the end | with a clear error in between | violations | prompts, median |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(kind, group) for kind, group in sorted(by_kind.items())]
    everything = [outcome for group in by_kind.values() for outcome in group]
    return "\n".join([*lines, _row("**all**", everything)])


def _row(kind: str, group: list[Outcome]) -> str:
    tried = [outcome for outcome in group if not outcome.skipped]
    steps = f"{statistics.median(outcome.steps for outcome in tried):g}" if tried else "skipped"
    figures = (
        len(tried),
        sum(outcome.passed for outcome in tried),
        sum(outcome.stopped for outcome in tried),
        sum(bool(outcome.violations) for outcome in tried),
    )
    return f"| {kind} | {' | '.join(map(str, figures))} | {steps} |"
