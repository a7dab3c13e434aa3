"""`quintet report` and `quintet runs`: what became of the runs of a project."""

from pathlib import Path

import click

from quintet.cli.completion import complete_run
from quintet.cli.status import wd_option


@click.command("report")
@click.argument("run", required=False, shell_complete=complete_run)
@wd_option
def report_command(run: str | None, wd: Path) -> None:
    """Write the report of a run, by default of the newest: report.md and report.html in its folder."""
    from quintet.errors import RunError  # noqa: PLC0415 - each command loads only what it needs
    from quintet.watch.report.write import write_report  # noqa: PLC0415
    from quintet.watch.runs.folders import find_run  # noqa: PLC0415

    folder = find_run(wd, run)
    try:
        for path in write_report(folder):
            click.echo(path)
    except OSError as error:
        raise RunError(f"{error.filename}: cannot be written ({error.strerror})") from None


@click.command("runs")
@wd_option
def runs_command(wd: Path) -> None:
    """List the runs of a project, the newest first."""
    from quintet.watch.runs.folders import read_run, run_folders  # noqa: PLC0415
    from quintet.watch.runs.formatting import count, duration  # noqa: PLC0415
    from quintet.watch.runs.model import tokens_of  # noqa: PLC0415
    from quintet.watch.runs.summary import headline, task_title  # noqa: PLC0415

    rows = []
    for folder in run_folders(wd):
        run = read_run(folder)
        tokens = tokens_of(run.handoffs)
        told = f"{count(tokens.total)} tokens" if tokens else "tokens not told"
        rows.append((folder.name, headline(run), duration(run.seconds()), told, task_title(folder, run.id)))
    if not rows:
        click.echo("No runs yet.")
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    for row in rows:
        columns = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*columns, row[4]]).rstrip())
