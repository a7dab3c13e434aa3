"""The screen that is printed after a PASS."""

import os
import shlex
import sys
from pathlib import Path
from typing import Final

from quintet import git
from quintet.program import program
from quintet.prose import columns, commands, plural, wrapped
from quintet.watch.runs.advice import NEVER_APPROVED
from quintet.watch.runs.changes import FileChange
from quintet.watch.runs.checks import verified_words
from quintet.watch.runs.formatting import duration, one_line, short_number
from quintet.watch.runs.model import Run
from quintet.watch.runs.summary import Summary

MOST_FILES: Final = 4
_LONGEST_NAME: Final = 100
_MAIN: Final = ("main", "master")


def pass_screen(summary: Summary, report: Path, *, api: str = "", cwd: Path | None = None) -> str:
    """What changed, what the PASS rests on, what still runs, and what to do next, as wide as the terminal."""
    run = summary.run
    home = Path(run.project) if run.branch else summary.folder.parents[1]
    tokens = f", {short_number(run.tokens.total)} tokens" if run.tokens else ""
    parts = [
        f"{summary.headline}, {duration(run.seconds())} at work{tokens}",
        *([_cut(one_line(summary.title))] if summary.title else []),
        "",
        *_changed(summary),
        "",
        wrapped(f"The PASS rests on {_ground(run)}"),
        *([wrapped(_doubts(run))] if _doubts(run) else []),
        "",
        *_running(run, api),
        "Next:",
        commands(_next(summary, home, report, elsewhere=(cwd or Path.cwd()) != home)),
    ]
    return "\n".join(parts)


def _cut(text: str, length: int = 0) -> str:
    length = length or columns()
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def _changed(summary: Summary) -> list[str]:
    found, run = summary.changes, summary.run
    if found.note:
        return [wrapped(f"What changed is not known. {found.note}")]
    if not found.files:
        return ["No file was changed."]
    added, removed = (sum(getattr(file, name) or 0 for file in found.files) for name in ("added", "removed"))
    number = len(found.files) + found.more
    state = f"committed as {run.commit[:12]}" if run.commit else "not committed"
    lines = f"{plural(added, 'line')} added, {removed} removed"
    rows = [_file(file) for file in found.files[:MOST_FILES]]
    more = number - len(rows)
    return [
        wrapped(f"{plural(number, 'file')} changed, {lines}; {state}:"),
        *rows,
        *([f"  and {plural(more, 'more file')}"] if more else []),
    ]


def _file(file: FileChange) -> str:
    sizes = "" if file.added is None else f"  +{file.added} -{file.removed}"
    before = ", had uncommitted changes before the run" if file.before else ""
    return _cut(f"  {one_line(file.path)}  {file.kind}{sizes}{before}")


def _ground(run: Run) -> str:
    if run.confirmed_by:
        return f"what Quintet ran itself: {_cut(one_line(verified_words(run.confirmed_by)), 300)}"
    return "the tester's word alone. With a verify block in the task, or VERIFY_CMD, Quintet checks it itself."


def _doubts(run: Run) -> str:
    open_phases = sum(warning.kind == NEVER_APPROVED for warning in run.warnings)
    undone = sum(bool(handoff.violation and handoff.violation.undone) for handoff in run.handoffs)
    doubts = [f"{plural(open_phases, 'phase')} continued without an approved review"] if open_phases else []
    doubts += [f"in {plural(undone, 'turn')} a role changed what it may not change, which was undone"] if undone else []
    if outside := [
        handoff.violation.outside for handoff in run.handoffs if handoff.violation and handoff.violation.outside
    ]:
        first = _cut(one_line(str(outside[0][0])), _LONGEST_NAME) + (
            " and others" if sum(map(len, outside)) > 1 else ""
        )
        turns = plural(len(outside), "turn")
        doubts.append(f"in {turns} more changed than the run's own files ({first}), by a role or by somebody else")
    told = "; ".join(doubts)
    return f"{told[0].upper()}{told[1:]}: see the report." if doubts else ""


def _running(run: Run, api: str) -> list[str]:
    if run.cleaned_up or not run.terminals:
        return ["None of its agents is still running.", ""]
    agents = plural(len(run.terminals), "agent")
    if api:
        return [wrapped(f"Still running: {agents} on the server at {api}. CLEANUP_ON_EXIT ends them after a run."), ""]
    ends = f"{program()} stop {run.id}"
    return [wrapped(f"Still running: {agents}, idle in their terminals. This ends them:"), f"  {ends}", ""]


def _next(summary: Summary, wd: Path, report: Path, *, elsewhere: bool) -> list[tuple[str, str]]:
    run = summary.run
    rows = [(f"cd {shlex.quote(str(wd))}", "")] if elsewhere else []
    if summary.changes.files:
        rows.append((f"{program()} diff {run.id}", "look at the changes"))
    if run.branch:
        rows += _branch_commands(run)
    elif summary.changes.files:
        if not run.commit:
            rows.append(("git add --all && git commit", "keep them"))
        rows += _merge(wd)
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    page = str(report) if run.branch else os.path.relpath(report, wd)
    return [*rows, (f"{opener} {shlex.quote(page)}", "the report, in a browser")]


def _branch_commands(run: Run) -> list[tuple[str, str]]:
    """What to do with the branch of a run."""
    return [
        (f"{program()} merge {run.id}", f"merge them (git merge {run.branch})"),
        (f"{program()} discard {run.id}", "throw the branch away"),
    ]


def _merge(wd: Path) -> list[tuple[str, str]]:
    """How to merge, where the run was not on the main branch."""
    branches = (git.answer(wd, "branch", "--format=%(refname:short)") or "").split()
    here = git.answer(wd, "symbolic-ref", "--quiet", "--short", "HEAD")
    main = next((name for name in _MAIN if name in branches), "")
    if not main or not here or here == main:
        return []
    return [(f"git switch {main} && git merge {shlex.quote(here)}", f"merge them into {main}")]
