"""What condensation has left out of prompts: the sizes from the journal, the lines by comparing the texts."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from quintet.loop import journal
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER, Role
from quintet.watch.runs.folders import read_text
from quintet.watch.runs.handoffs import Handoff
from quintet.watch.runs.model import Run

_SUMMARY = re.compile(r"^Explore summary:\n", re.MULTILINE)
_ROUND = re.compile(r"\nRound \d")


@dataclass(frozen=True)
class CondensedText:
    """A text of which a prompt carries a part, and what was left out."""

    what: str
    left_out: tuple[str, ...]
    """lines"""
    size: int
    """bytes of the whole text"""
    left_out_bytes: int


def condensed_texts(folder: Path, run: Run, handoff: Handoff) -> list[CondensedText]:
    """The texts that the prompt of a handoff carries, with what was left out of each."""
    prompt = Counter(_lines(read_text(folder, handoff.prompt_file)))
    parts = []
    for part in handoff.carried:
        whole = _source(folder, run, handoff, part.what) if part.sent < part.whole else ""
        parts.append(CondensedText(part.what, _lines_not_in(whole, prompt), part.whole, max(part.whole - part.sent, 0)))
    return parts


def left_out_bytes(run: Run) -> int:
    """The bytes that condensation has left out of all prompts of a run, by its journal."""
    return sum(part.whole - part.sent for handoff in run.handoffs for part in handoff.carried)


def _source(folder: Path, run: Run, handoff: Handoff, what: str) -> str:
    """The whole text of which a prompt carries a part."""
    if what == journal.EXPLORE:
        first = next((item for item in run.handoffs if item.role is handoff.role), handoff)
        return _explore_summary(read_text(folder, first.prompt_file))
    peers = {ANALYST: PEER_ANALYST, PROGRAMMER: PEER_PROGRAMMER, TESTER: PEER_PROGRAMMER}
    reviewer = PEER_ANALYST if what == journal.OPEN_NOTES and handoff.role is PROGRAMMER else peers.get(handoff.role)
    role = {
        journal.ANALYST_HANDOFF: ANALYST,
        journal.PROGRAMMER_HANDOFF: PROGRAMMER,
        journal.PREVIOUS_CHANGES: PROGRAMMER,
        journal.TEST_EVIDENCE: TESTER,
    }.get(what, reviewer)
    earlier = what in (journal.PREVIOUS_CHANGES, journal.TEST_EVIDENCE)
    failed = (check for check in run.checks if check.failed_round and check.round == handoff.round - 1)
    if what == journal.TEST_EVIDENCE and (check := next(failed, None)):
        return read_text(folder, check.file)
    source = _last(run, handoff, role, earlier=earlier) if role else None
    return read_text(folder, source.reply_file) if source else ""


def _explore_summary(prompt: str) -> str:
    """The explore summary in a prompt; only the first heading is searched, so that many of them take no longer."""
    begin = _SUMMARY.search(prompt)
    end = _ROUND.search(prompt, begin.end() - 1) if begin else None
    return prompt[begin.end() : end.start()].removesuffix("\n") if begin and end else ""


def _last(run: Run, handoff: Handoff, role: Role, *, earlier: bool) -> Handoff | None:
    """The last handoff of a role with a reply before a prompt; `earlier`: in an earlier round."""
    before = run.handoffs[: run.handoffs.index(handoff)]
    found = (item for item in reversed(before) if item.role is role and item.reply_file and not item.again)
    return next((item for item in found if not earlier or item.round < handoff.round), None)


def _lines_not_in(text: str, prompt: Counter[str]) -> tuple[str, ...]:
    """The lines of a text that are not in the prompt."""
    left = Counter(prompt)
    removed = []
    for line in _lines(text):
        if left[line]:
            left[line] -= 1
        else:
            removed.append(line)
    return tuple(removed)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n") if line.strip()]
