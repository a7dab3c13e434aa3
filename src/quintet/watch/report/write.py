"""The report of a run: `report.md` and `report.html` in its folder."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from quintet import files
from quintet.layout import REPORT_HTML, REPORT_MARKDOWN
from quintet.watch.report.report_html import page
from quintet.watch.report.timeline_text import LEGEND, lanes
from quintet.watch.runs.advice import Advice, Code
from quintet.watch.runs.changes import changes_now, save_changes
from quintet.watch.runs.folders import read_run
from quintet.watch.runs.formatting import count, harmless, one_line, time_of_day
from quintet.watch.runs.model import Run
from quintet.watch.runs.parts import Handoff, Tokens, labelled
from quintet.watch.runs.summary import Summary, cost_cell, kind_words, summarise, taken_words


def write_report(folder: Path, *, at_end: bool = False) -> tuple[Path, Path]:
    """Write both forms; at the end of a run also what it has changed, because the tree goes on changing."""
    found = None
    if at_end:
        found = changes_now(folder.parents[1], read_run(folder))
        save_changes(folder, found)
    summary = summarise(folder, found)
    paths = (folder / REPORT_MARKDOWN, folder / REPORT_HTML)
    for path, text in zip(paths, (markdown(summary), page(summary)), strict=True):
        files.write(path, text, folder.parents[1])
    return paths


def markdown(summary: Summary) -> str:
    """The report as Markdown."""
    run = summary.run
    parts = [f"# {summary.headline}", "", f"Run {_code(run.id)} in {_code(run.wd)}", ""]
    if summary.title:
        parts[2:2] = [f"Task: {_cell(summary.title)}", ""]
    parts += _table(("", ""), summary.facts)
    if steps := summary.next_steps:
        parts += ["## What to do next", "", *(f"{number}. {_step(step)}" for number, step in enumerate(steps, 1)), ""]
    parts += ["## Timeline", "", *_fenced("\n".join(lanes(run))), "", LEGEND, ""]
    for number, turns in run.by_round.items():
        parts += [f"## Round {number}", "", *_table(_TURNS, (_turn(run, handoff) for handoff in turns))]
    if summary.evidence:
        parts += ["## Test evidence", ""]
    for evidence in summary.evidence:
        title = f"Round {evidence.handoff.round}: {labelled(evidence.word, evidence.outcome)}, {evidence.title}"
        file = [_code(evidence.file), ""] if evidence.file else []
        parts += [f"### {_cell(title)}", "", *file, *_fenced(evidence.text), ""]
    parts += [*_changes(summary), *_tokens(summary)]
    if run.remarks:
        rows = [(time_of_day(remark.at), remark.kind, remark.text) for remark in run.remarks]
        parts += ["## Warnings", "", *_table(("When", "Kind", "What"), rows)]
    return "\n".join(parts).rstrip() + "\n"


_TURNS: Final = ("When", "Agent", "Cycle", "Time", "Verdict", "Evidence or reason", "Tokens", "Reply")


def _turn(run: Run, handoff: Handoff) -> tuple[str, ...]:
    verdict = handoff.verdict
    return (
        time_of_day(handoff.sent),
        handoff.role.label,
        str(handoff.cycle),
        taken_words(run, handoff),
        verdict.label if verdict else "",
        verdict.why if verdict else "",
        count(handoff.tokens.total) if handoff.tokens else "",
        Code(handoff.reply_file),
    )


def _changes(summary: Summary) -> list[str]:
    found = summary.changes
    parts = ["## Files changed", ""]
    if found.note or not found.files:
        return [*parts, _cell(found.note) or "None.", ""]
    rows = [
        (Code(file.path), kind_words(file), "" if file.added is None else f"+{file.added} -{file.removed}")
        for file in found.files
    ]
    parts += [f"Since the start commit {_code(summary.run.start_commit[:12])}:", ""]
    parts += _table(("File", "", "Lines"), rows)
    if found.more:
        parts += [f"... and {found.more} more.", ""]
    if summary.undo.lines:
        parts += ["To take them back:", "", "```sh", *summary.undo.lines, "```", ""]
    return [*parts, *([_cell(summary.undo.note), ""] if summary.undo.note else [])]


def _tokens(summary: Summary) -> list[str]:
    if summary.tokens is None:
        return []
    priced = summary.tokens.cost is not None
    head = ("", "Input", "of it cached", "Output", "Total", *(("Cost",) if priced else ()))
    rows = [(role.label, tokens) for role, tokens in summary.by_role.items()]
    rows += [(f"round {number}", tokens) for number, tokens in summary.by_round.items()]
    rows.append(("run", summary.tokens))
    return ["## Tokens", "", *_table(head, (_token_row(name, tokens, priced) for name, tokens in rows))]


def _token_row(name: str, tokens: Tokens, priced: bool) -> tuple[str, ...]:
    numbers = (f"{number:,}" for number in (tokens.input, tokens.cached, tokens.output, tokens.total))
    cost = (cost_cell(tokens),) if priced else ()
    return (name, *numbers, *cost)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(map(_entry, row)) + " |" for row in rows), ""]


def _entry(text: str) -> str:
    """What stands in a cell; there even code must not have a bare bar."""
    return _code(text).replace("|", "\\|") if isinstance(text, Code) else _cell(text)


def _cell(text: str) -> str:
    """A text that cannot end its cell, begin markup or become HTML."""
    text = one_line(text).replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
    for sign in "|`*_[]":
        text = text.replace(sign, f"\\{sign}")
    return text


def _code(text: str) -> str:
    """A code span, in which nothing is escaped: it only has to be longer than any run of backticks in it."""
    text = one_line(text)
    longest = max(map(len, re.findall("`+", text)), default=0)
    ticks = "`" * (longest + 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{room}{text}{room}{ticks}" if text else ""


def _step(step: Advice) -> str:
    return "".join(_code(part) if isinstance(part, Code) else _prose(part) for part in step)


def _prose(text: str) -> str:
    """Words between two pieces of code: escaped as a cell is, with the blanks at their ends."""
    head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{head}{_cell(text)}{tail}"


def _fenced(text: str) -> list[str]:
    """A text in a fence that nothing in it can close."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    return [f"{fence}text", harmless(text), fence]
