"""The report as one HTML file that needs nothing else: no script, and every agent's word escaped."""

from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Final

from quintet.program import program
from quintet.watch.report.diff_html import diff_css, diff_html
from quintet.watch.report.markup import Markup, element, escape, join, svg
from quintet.watch.runs.action_words import action_lines, did_words, doubt_words
from quintet.watch.runs.advice import Code
from quintet.watch.runs.diff import Diff
from quintet.watch.runs.folders import read_text
from quintet.watch.runs.formatting import short_number, time_of_day
from quintet.watch.runs.handoffs import KIND_WORDS, SIGNS, Handoff, Judgement, VerdictKind, labelled
from quintet.watch.runs.model import FAIL, PASS
from quintet.watch.runs.patches import parse_patch
from quintet.watch.runs.summary import VIOLATIONS, Summary, change_words, turn_time_words
from quintet.watch.runs.timeline import draw_timeline, timeline_css

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_NO_DIFF: Final = Diff()
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


def report_html(summary: Summary, diff: Diff = _NO_DIFF) -> Markup:
    """The whole file."""
    run = summary.run
    colour = {PASS: "good", FAIL: "bad"}.get(run.status, "again")
    header = element(
        "header",
        element("p", f"Quintet · run {run.id}", css="run"),
        element("h1", summary.headline, css=colour),
        element("p", summary.title, css="task") if summary.title else "",
        element("p", run.wd, css="place"),
    )
    parts = [
        header,
        _facts(summary.facts),
        _next_steps(summary),
        _section("Timeline", element("div", svg(draw_timeline(run)), css="chart"), _LEGEND),
        *(_section(f"Round {number}", _turns(summary, turns)) for number, turns in run.by_round.items()),
        _evidence(summary),
        _violations(summary),
        _section("Files changed", *_changes(summary)),
        _diff(summary, diff),
        _tokens(summary),
        _warnings(summary),
    ]
    style = timeline_css() + diff_css() + (files(__package__) / "report.css").read_text(encoding="utf-8")
    title = escape(f"{summary.headline} · {run.id}")
    return Markup(_FRAME.format(policy=_POLICY, title=title, style=style, body="\n".join(filter(None, parts))))


_LEGEND: Final = element(
    "p",
    *(part for name in ("work", "review", "test") for part in (element("span", css=f"key {name}"), f"{name} ")),
    element("span", css="key wait"),
    "waiting ",
    *(part for kind in SIGNS for part in (element("span", SIGNS[kind], css=f"sign {kind}"), f"{KIND_WORDS[kind]} ")),
    css="legend",
)


def _section(title: str, *parts: str, css: str = "") -> Markup:
    return element("section", element("h2", title), *parts, css=css)


def _facts(rows: Iterable[tuple[str, str]]) -> Markup:
    items = (element("div", element("dt", name), element("dd", value)) for name, value in rows)
    return element("dl", *items, css="facts")


def _next_steps(summary: Summary) -> Markup:
    steps = [element("li", *map(_step_part, step)) for step in summary.next_steps]
    return _section("What to do next", element("ol", *steps), css="next") if steps else Markup()


def _step_part(part: str) -> Markup:
    return element("code", part) if isinstance(part, Code) else escape(part)


def _turns(summary: Summary, turns: list[Handoff]) -> Markup:
    head = ("When", "Agent", "Cycle", "Time", "Did", "Verdict", "Evidence or reason", "Tokens")
    return _table(head, (_turn(summary, handoff) for handoff in turns))


def _turn(summary: Summary, handoff: Handoff) -> tuple[str, ...]:
    verdict = handoff.verdict
    reply = read_text(summary.folder, handoff.reply_file)
    name = handoff.role.label
    return (
        time_of_day(handoff.sent),
        element("details", element("summary", name), element("pre", reply)) if reply else name,
        str(handoff.cycle),
        turn_time_words(summary.run, handoff),
        _did(handoff),
        _badge(verdict.word, verdict.kind) if verdict else "",
        join((_why(verdict), f" {doubt_words(handoff)}")) if verdict else "",
        short_number(handoff.tokens.total) if handoff.tokens else "",
    )


def _did(handoff: Handoff) -> str:
    lines = action_lines(handoff.actions)
    if not lines:
        return did_words(handoff)
    return element("details", element("summary", did_words(handoff)), element("pre", "\n".join(lines)))


def _badge(word: str, kind: VerdictKind) -> Markup:
    return element("span", labelled(word, kind), css=f"badge {kind}")


def _why(verdict: Judgement) -> Markup:
    found = join(element("span", word, css="evidence") for word in verdict.evidence)
    return found if verdict.good and found else join((f"{verdict.reason} ", found))


def _evidence(summary: Summary) -> Markup:
    parts = [
        part
        for item in summary.evidence
        for part in (
            element("h3", f"Round {item.round} ", _badge(item.word, item.kind), f" {item.title}"),
            element("p", element("code", item.file)) if item.file else Markup(),
            element("pre", item.text),
        )
    ]
    return _section("Test evidence", *parts) if parts else Markup()


def _violations(summary: Summary) -> Markup:
    title, head = VIOLATIONS
    rows = [(*row, element("code", file) if file else "") for *row, file in summary.violations]
    return _section(title, _table(head, rows)) if rows else Markup()


def _changes(summary: Summary) -> list[Markup]:
    found, undo = summary.changes, summary.undo
    if found.note or not found.files:
        return [element("p", found.note or "None.")]
    rows = [
        (
            element("code", file.path),
            change_words(file),
            ""
            if file.added is None
            else join(
                (element("span", f"+{file.added}", css="plus"), " ", element("span", f"−{file.removed}", css="minus"))
            ),
        )
        for file in found.files
    ]
    parts = [
        element("p", "Since the start commit ", element("code", summary.run.start_commit[:12]), "."),
        _table(("File", "", "Lines"), rows),
    ]
    parts += [element("p", f"… and {found.more} more.")] if found.more else []
    lost = [element("li", line) for line in found.lost_tests.lines]
    parts += [element("p", "What the tests have lost:"), element("ul", *lost)] if lost else []
    parts += [element("p", "To undo them:"), element("pre", "\n".join(undo.lines))] if undo.lines else []
    return [*parts, *([element("p", undo.note)] if undo.note else [])]


def _diff(summary: Summary, diff: Diff) -> Markup:
    if not diff.patch:
        return Markup()
    command = f"{program()} diff {summary.run.id}"
    note = [element("p", diff.note)] if diff.note else []
    return _section("Diff", *note, *diff_html(parse_patch(diff.patch), command))


def _tokens(summary: Summary) -> Markup:
    head, rows = summary.token_table
    return _section("Tokens", _table(head, rows), css="numbers") if rows else Markup()


def _warnings(summary: Summary) -> Markup:
    rows = [(time_of_day(warning.at), warning.kind, warning.text) for warning in summary.run.warnings]
    return _section("Warnings", _table(("When", "Kind", "What"), rows)) if rows else Markup()


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    top = element("thead", element("tr", *(element("th", name) for name in head)))
    body = element("tbody", *(element("tr", *(element("td", cell) for cell in row)) for row in rows))
    return element("div", element("table", top, body), css="wide")
