"""The diff of a run as HTML: files that can be folded, each with its lines."""

from collections.abc import Sequence
from importlib.resources import files

from quintet.prose import plural
from quintet.watch.report.markup import Markup, element, escape
from quintet.watch.runs.patches import DiffLine, FileDiff, ShownFile, show


def diff_css() -> str:
    """The style sheet of a diff; it needs the colours of the timeline's."""
    return (files("quintet.watch.runs") / "diff.css").read_text(encoding="utf-8")


def diff_html(found: Sequence[FileDiff], command: str) -> list[Markup]:
    """The files of a diff, long ones folded; `command` shows what is left out here."""
    shown, more = show(found)
    parts = [_file(one, command) for one in shown]
    rest = element("p", f"… and {plural(more, 'more file')}. All of it: ", element("code", command))
    return [*parts, rest] if more else parts


def _file(shown: ShownFile, command: str) -> Markup:
    file = shown.file
    counts = (element("span", f"+{file.added}", css="plus"), " ", element("span", f"−{file.removed}", css="minus"))
    head = (
        element("span", file.title, css="name"),
        element("span", file.words, css="what") if file.words else "",
        element("span", *counts, css="counts") if file.lines else "",
    )
    if not file.lines:
        return element("p", *head, css="file")
    table = element("table", element("tbody", *map(_row, shown.lines)), css="diff") if shown.lines else ""
    left_out = f"{plural(shown.left_out, 'more line')}. All of it: "
    more = element("p", left_out, element("code", command), css="more") if shown.left_out else ""
    is_open = {"open": ""} if shown.is_open else {}
    return element("details", element("summary", *head), table, more, attributes=is_open, css="file")


def _row(line: DiffLine) -> Markup:
    old, new = ("" if number is None else number for number in (line.old, line.new))
    return Markup(f'<tr class="{line.kind}"><td>{old}</td><td>{new}</td><td>{escape(line.shown)}</td></tr>')
