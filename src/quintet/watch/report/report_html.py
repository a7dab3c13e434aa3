"""The report as one HTML file that needs nothing else: no script, and every agent's word escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Final

from quintet.watch.report.timeline_svg import timeline
from quintet.watch.runs.advice import Code
from quintet.watch.runs.folders import read_text
from quintet.watch.runs.formatting import count, harmless, time_of_day
from quintet.watch.runs.model import FAIL, PASS
from quintet.watch.runs.parts import OUTCOME_WORDS, SIGNS, Handoff, Outcome, Tokens, Verdict, labelled
from quintet.watch.runs.summary import Summary, cost_cell, kind_words, taken_words

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_FRAME: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def page(summary: Summary) -> str:
    """The whole file."""
    run = summary.run
    kind = {PASS: "good", FAIL: "bad"}.get(run.status, "again")
    parts = [
        f'<header><p class="run">Quintet · run {_text(run.id)}</p>',
        f'<h1 class="{kind}">{_text(summary.headline)}</h1>',
        f'<p class="task">{_text(summary.title)}</p>' if summary.title else "",
        f'<p class="place">{_text(run.wd)}</p></header>',
        _facts(summary.facts),
        _next(summary),
        "<section><h2>Timeline</h2>",
        f'<div class="chart">{timeline(run)}</div>{_LEGEND}</section>',
        *(_round(summary, number, turns) for number, turns in run.by_round.items()),
        _evidence(summary),
        _changes(summary),
        _tokens(summary),
        _warnings(summary),
    ]
    style = (files(__package__) / "report.css").read_text(encoding="utf-8")
    title = _text(f"{summary.headline} · {run.id}")
    return _FRAME.format(policy=_POLICY, title=title, style=style, body="\n".join(part for part in parts if part))


_LEGEND: Final = (
    '<p class="legend"><span class="key work"></span>work <span class="key review"></span>review '
    '<span class="key test"></span>test <span class="key wait"></span>waiting '
    + " ".join(f'<span class="sign {item}">{SIGNS[item]}</span>{OUTCOME_WORDS[item]}' for item in SIGNS)
    + "</p>"
)


def _text(text: str) -> str:
    return escape(harmless(text))


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    items = "".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in rows)
    return f'<dl class="facts">{items}</dl>'


def _next(summary: Summary) -> str:
    steps = "".join(f"<li>{''.join(map(_part, step))}</li>" for step in summary.next_steps)
    return f'<section class="next"><h2>What to do next</h2><ol>{steps}</ol></section>' if steps else ""


def _part(part: str) -> str:
    return f"<code>{_text(part)}</code>" if isinstance(part, Code) else _text(part)


def _round(summary: Summary, number: int, turns: list[Handoff]) -> str:
    rows = [_turn(summary, handoff) for handoff in turns]
    head = ("When", "Agent", "Cycle", "Time", "Verdict", "Evidence or reason", "Tokens")
    return f"<section><h2>Round {number}</h2>{_table(head, rows)}</section>"


def _turn(summary: Summary, handoff: Handoff) -> tuple[str, ...]:
    verdict = handoff.verdict
    reply = read_text(summary.folder, handoff.reply_file)
    name = _text(handoff.role.label)
    if reply:
        name = f"<details><summary>{name}</summary><pre>{_text(reply)}</pre></details>"
    return (
        time_of_day(handoff.sent),
        name,
        str(handoff.cycle),
        taken_words(summary.run, handoff),
        _badge(verdict.word, verdict.outcome) if verdict else "",
        _why(verdict) if verdict else "",
        count(handoff.tokens.total) if handoff.tokens else "",
    )


def _badge(word: str, outcome: Outcome) -> str:
    return f'<span class="badge {outcome}">{_text(labelled(word, outcome))}</span>'


def _why(verdict: Verdict) -> str:
    found = "".join(f'<span class="evidence">{_text(word)}</span>' for word in verdict.evidence)
    return found if verdict.good and found else f"{_text(verdict.reason)} {found}"


def _evidence(summary: Summary) -> str:
    parts = [
        f"<h3>Round {item.handoff.round} {_badge(item.word, item.outcome)} {_text(item.title)}</h3>"
        f"<p><code>{_text(item.file)}</code></p><pre>{_text(item.text)}</pre>"
        for item in summary.evidence
    ]
    return f"<section><h2>Test evidence</h2>{''.join(parts)}</section>" if parts else ""


def _changes(summary: Summary) -> str:
    found = summary.changes
    if found.note or not found.files:
        return f"<section><h2>Files changed</h2><p>{_text(found.note) or 'None.'}</p></section>"
    rows = [
        (
            f"<code>{_text(file.path)}</code>",
            _text(kind_words(file)),
            ""
            if file.added is None
            else f'<span class="plus">+{file.added}</span> <span class="minus">−{file.removed}</span>',
        )
        for file in found.files
    ]
    more = f"<p>… and {found.more} more.</p>" if found.more else ""
    lines = "\n".join(summary.undo.lines)
    undo = f"<p>To take them back:</p><pre>{_text(lines)}</pre>" if lines else ""
    undo += f"<p>{_text(summary.undo.note)}</p>" if summary.undo.note else ""
    start = f"<p>Since the start commit <code>{_text(summary.run.start_commit[:12])}</code>.</p>"
    return f"<section><h2>Files changed</h2>{start}{_table(('File', '', 'Lines'), rows)}{more}{undo}</section>"


def _tokens(summary: Summary) -> str:
    if summary.tokens is None:
        return ""
    priced = summary.tokens.cost is not None
    head = ("", "Input", "of it cached", "Output", "Total", *(("Cost",) if priced else ()))
    named = [(role.label, tokens) for role, tokens in summary.by_role.items()]
    named += [(f"round {number}", tokens) for number, tokens in summary.by_round.items()]
    rows = [_token_row(name, tokens, priced) for name, tokens in [*named, ("whole run", summary.tokens)]]
    return f'<section class="numbers"><h2>Tokens</h2>{_table(head, rows)}</section>'


def _token_row(name: str, tokens: Tokens, priced: bool) -> tuple[str, ...]:
    numbers = (f"{number:,}" for number in (tokens.input, tokens.cached, tokens.output, tokens.total))
    cost = (cost_cell(tokens),) if priced else ()
    return (name, *numbers, *cost)


def _warnings(summary: Summary) -> str:
    rows = [(time_of_day(remark.at), _text(remark.kind), _text(remark.text)) for remark in summary.run.remarks]
    return f"<section><h2>Warnings</h2>{_table(('When', 'Kind', 'What'), rows)}</section>" if rows else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    top = "".join(f"<th>{name}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
