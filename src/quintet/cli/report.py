"""`quintet report` and `quintet runs`: the report of a run, and the list of runs."""

from pathlib import Path

import click

from quintet.errors import RunError
from quintet.watch.report.write_report import write_report
from quintet.watch.runs.folders import find_run, project_run_folders, read_run
from quintet.watch.runs.formatting import duration, short_number
from quintet.watch.runs.summary import headline, task_title


def report(run: str | None, wd: Path) -> None:
    """Write the report of a run."""
    folder = find_run(wd, run)
    try:
        for path in write_report(folder):
            click.echo(path)
    except OSError as error:
        raise RunError(f"{error.filename}: cannot be written ({error.strerror})") from None


def list_runs(wd: Path) -> None:
    """Print one line for each run."""
    rows = []
    for folder in project_run_folders(wd):
        run = read_run(folder)
        used = f"{short_number(run.tokens.total)} tokens" if run.tokens else "tokens unknown"
        rows.append((folder.name, headline(run), duration(run.seconds()), used, task_title(folder, run.id)))
    if not rows:
        click.echo("No runs yet.")
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    for row in rows:
        columns = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*columns, row[4]]).rstrip())
