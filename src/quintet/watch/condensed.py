"""What condensation has left out: replies held against the prompts that carried them on."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER
from quintet.watch.model import Handoff, Run
from quintet.watch.runs import read_text

_SUMMARY = re.compile(r"^Explore summary:\n(.*?)\n\n?Round \d", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Shortened:
    """A reply that went into a prompt, and the lines of it that did not."""

    what: str
    source: Handoff
    removed: tuple[str, ...]
    size: int
    """bytes of the reply"""
    saved: int
    """bytes that stayed behind"""


def sources(run: Run, handoff: Handoff) -> list[tuple[str, Handoff]]:
    """The replies that a handoff's prompt carries on, as the flow passes them."""
    before = run.handoffs[: run.handoffs.index(handoff)]

    def last(role: object, number: int | None = None) -> Handoff | None:
        found = (item for item in reversed(before) if item.role is role and item.reply_file and not item.again)
        return next((item for item in found if number is None or item.round == number), None)

    wanted: list[tuple[str, Handoff | None]] = []
    if handoff.again:
        return []
    if handoff.role is ANALYST and handoff.cycle > 1:
        wanted = [("the review's notes", last(PEER_ANALYST))]
    elif handoff.role is PROGRAMMER:
        # the analyst's handoff belongs to the first round's prompts, the test's evidence to the later ones
        wanted = [("the analyst's handoff", last(ANALYST))] if handoff.round == 1 else []
        if handoff.round > 1:
            wanted.append(("the test's evidence", last(TESTER, handoff.round - 1)))
            wanted.append(("the previous changes", last(PROGRAMMER, handoff.round - 1)))
        if handoff.cycle > 1:
            wanted.append(("the review's notes", last(PEER_PROGRAMMER, handoff.round)))
    elif handoff.role is TESTER:
        wanted = [("the programmer's handoff", last(PROGRAMMER, handoff.round))]
    return [(what, source) for what, source in wanted if source]


def shortened(folder: Path, run: Run, handoff: Handoff) -> list[Shortened]:
    """What each source of a prompt has lost on its way into it."""
    text = read_text(folder, handoff.prompt_file)
    prompt = Counter(_lines(text))
    carried = [
        _compare(what, source, read_text(folder, source.reply_file), prompt) for what, source in sources(run, handoff)
    ]
    return [*_summary(folder, run, handoff, text), *carried]


def saved_bytes(folder: Path, run: Run) -> int:
    """Bytes that condensation kept out of all prompts of a run."""
    return sum(item.saved for handoff in run.handoffs for item in shortened(folder, run, handoff))


def _summary(folder: Path, run: Run, handoff: Handoff, prompt: str) -> list[Shortened]:
    """The explore summary, where a prompt only refers to the terminal's first one."""
    first = next((item for item in run.handoffs if item.role is handoff.role), handoff)
    before, now = _SUMMARY.search(read_text(folder, first.prompt_file)), _SUMMARY.search(prompt)
    if first is handoff or before is None or now is None or before[1] == now[1]:
        return []
    size = len(before[1].encode())
    saved = max(size - len(now[1].encode()), 0)
    return [Shortened("the explore summary, sent before", first, tuple(_lines(before[1])), size, saved)]


def _compare(what: str, source: Handoff, text: str, prompt: Counter[str]) -> Shortened:
    left = Counter(prompt)
    removed = []
    for line in _lines(text):
        if left[line]:
            left[line] -= 1
        else:
            removed.append(line)
    saved = sum(len(line.encode()) + 1 for line in removed)
    return Shortened(what, source, tuple(removed), len(text.encode()), saved)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n") if line.strip()]
