"""The report as Markdown; agents' words are escaped so that they stay text."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from quintet.program import program
from quintet.watch.report.timeline_text import LEGEND, text_timeline
from quintet.watch.runs.action_words import did_words, why_words
from quintet.watch.runs.advice import Advice, Code
from quintet.watch.runs.formatting import one_line, printable, short_number, time_of_day
from quintet.watch.runs.handoffs import Handoff, labelled
from quintet.watch.runs.model import Run
from quintet.watch.runs.summary import VIOLATIONS, Summary, change_words, turn_time_words


def report_markdown(summary: Summary) -> str:
    """The whole file."""
    run = summary.run
    parts = [f"# {summary.headline}", "", f"Run {_code(run.id)} in {_code(run.wd)}", ""]
    if summary.title:
        parts[2:2] = [f"Task: {_cell(summary.title)}", ""]
    parts += _table(("", ""), summary.facts)
    if steps := summary.next_steps:
        parts += ["## What to do next", "", *(f"{number}. {_step(step)}" for number, step in enumerate(steps, 1)), ""]
    parts += ["## Timeline", "", *_fenced("\n".join(text_timeline(run))), "", LEGEND, ""]
    for number, turns in run.by_round.items():
        parts += [f"## Round {number}", "", *_table(_TURNS, (_turn(run, handoff) for handoff in turns))]
    if summary.evidence:
        parts += ["## Test evidence", ""]
    for evidence in summary.evidence:
        title = f"Round {evidence.round}: {labelled(evidence.word, evidence.kind)}, {evidence.title}"
        file = [_code(evidence.file), ""] if evidence.file else []
        parts += [f"### {_cell(title)}", "", *file, *_fenced(evidence.text), ""]
    parts += [*_violations(summary), *_changes(summary), *_tokens(summary)]
    if run.warnings:
        rows = [(time_of_day(warning.at), warning.kind, warning.text) for warning in run.warnings]
        parts += ["## Warnings", "", *_table(("When", "Kind", "What"), rows)]
    return "\n".join(parts).rstrip() + "\n"


_TURNS: Final = ("When", "Agent", "Cycle", "Time", "Did", "Verdict", "Evidence or reason", "Tokens", "Reply")


def _turn(run: Run, handoff: Handoff) -> tuple[str, ...]:
    verdict = handoff.verdict
    return (
        time_of_day(handoff.sent),
        handoff.role.label,
        str(handoff.cycle),
        turn_time_words(run, handoff),
        did_words(handoff),
        verdict.label if verdict else "",
        why_words(handoff),
        short_number(handoff.tokens.total) if handoff.tokens else "",
        Code(handoff.reply_file),
    )


def _violations(summary: Summary) -> list[str]:
    title, head = VIOLATIONS
    rows = [(*row, Code(file)) for *row, file in summary.violations]
    return [f"## {title}", "", *_table(head, rows)] if rows else []


def _changes(summary: Summary) -> list[str]:
    found = summary.changes
    parts = ["## Files changed", ""]
    if found.note or not found.files:
        return [*parts, _cell(found.note) or "None.", ""]
    rows = [
        (Code(file.path), change_words(file), "" if file.added is None else f"+{file.added} -{file.removed}")
        for file in found.files
    ]
    parts += [f"Since the start commit {_code(summary.run.start_commit[:12])}:", ""]
    parts += _table(("File", "", "Lines"), rows)
    if found.more:
        parts += [f"... and {found.more} more.", ""]
    parts += [f"{_code(f'{program()} diff {summary.run.id}')} shows the diff.", ""]
    if lost := found.lost_tests.lines:
        parts += ["What the tests have lost:", "", *(f"- {_cell(line)}" for line in lost), ""]
    if summary.undo.lines:
        parts += ["To undo them:", "", "```sh", *summary.undo.lines, "```", ""]
    return [*parts, *([_cell(summary.undo.note), ""] if summary.undo.note else [])]


def _tokens(summary: Summary) -> list[str]:
    head, rows = summary.token_table
    return ["## Tokens", "", *_table(head, rows)] if rows else []


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
    return [f"{fence}text", printable(text), fence]
