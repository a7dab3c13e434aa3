"""`quintet status`: how the run of a directory stands, once."""

import json
import sys
from pathlib import Path

import click

from quintet.cli.completion import complete_run
from quintet.layout import JOURNAL

wd_option = click.option(
    "--wd",
    envvar="WD",
    default=".",
    type=click.Path(exists=True, file_okay=False, path_type=Path, resolve_path=True),
    help="The project; by default the current directory.  [WD]",
)

_WIDTH, _LINES = 100, 30


@click.command("status")
@click.argument("run", required=False, shell_complete=complete_run)
@wd_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status_command(run: str | None, wd: Path, as_json: bool) -> None:
    """Show how a run stands; by default the newest."""
    from rich.console import Console  # noqa: PLC0415 - each command loads only what it needs

    from quintet.watch.console.live import Picture  # noqa: PLC0415
    from quintet.watch.dashboard.run_json import tell_run  # noqa: PLC0415
    from quintet.watch.runs.folders import Tail, as_seen, find_run  # noqa: PLC0415
    from quintet.watch.runs.model import RUNNING  # noqa: PLC0415
    from quintet.watch.runs.summary import task_title  # noqa: PLC0415
    from quintet.watch.runs.terminal_status import statuses  # noqa: PLC0415

    folder = find_run(wd, run)
    tail = Tail(folder / JOURNAL)
    events = tail.news()
    seen = as_seen(folder, tail.run)
    title = task_title(folder, seen.id)
    told = statuses(wd, seen)
    if as_json:
        click.echo(json.dumps({**tell_run(seen, title, events), "statuses": told, "at_work": seen.status == RUNNING}))
        return
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    console.print(Picture(seen, title, told, events).draw(console.width, _LINES))
