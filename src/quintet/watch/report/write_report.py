"""Writes the report of a run into its folder, as Markdown and as HTML."""

from pathlib import Path

from quintet import files
from quintet.layout import REPORT_HTML, REPORT_MARKDOWN
from quintet.watch.report.report_html import report_html
from quintet.watch.report.report_markdown import report_markdown
from quintet.watch.runs.changes import changes_now, save_changes
from quintet.watch.runs.diff import diff_now, diff_of, save_diff
from quintet.watch.runs.folders import read_run
from quintet.watch.runs.summary import summarise


def write_report(folder: Path, *, at_end: bool = False) -> tuple[Path, Path]:
    """Write both files; at the end of a run also what it has changed, because the work tree goes on changing."""
    project, run, changes = folder.parents[1], read_run(folder), None
    if at_end:
        changes, diff = changes_now(project, run), diff_now(project, run)
        save_changes(folder, changes)
        save_diff(folder, diff)
    else:
        diff = diff_of(folder, run)
    summary = summarise(folder, changes)
    paths = (folder / REPORT_MARKDOWN, folder / REPORT_HTML)
    for path, text in zip(paths, (report_markdown(summary), report_html(summary, diff)), strict=True):
        files.write(path, text, project)
    return paths
