"""`quintet watch` and `quintet dashboard`: a run that was started elsewhere, live."""

import sys
import time
from pathlib import Path

import click

from quintet.cli.completion import complete_run
from quintet.cli.status import wd_option
from quintet.layout import JOURNAL

LOOK_SECONDS = 0.25


@click.command("watch")
@click.argument("run", required=False, shell_complete=complete_run)
@wd_option
@click.option("--plain", is_flag=True, help="One line for each event instead of a live view.")
@click.option("--json", "as_json", is_flag=True, help="Print the journal as it grows.")
def watch_command(run: str | None, wd: Path, plain: bool, as_json: bool) -> None:
    """Watch a run until it ends; by default the newest."""
    from quintet.config import Settings  # noqa: PLC0415
    from quintet.watch.console.console import showing  # noqa: PLC0415
    from quintet.watch.runs.folders import Tail, as_seen, find_run  # noqa: PLC0415
    from quintet.watch.runs.model import GONE, RUNNING  # noqa: PLC0415
    from quintet.watch.runs.summary import task_title  # noqa: PLC0415

    folder = find_run(wd, run)
    tail = Tail(folder / JOURNAL)
    try:
        with showing(wd, plain=plain, as_json=as_json, progress_seconds=Settings().progress_seconds) as show:
            show.title(task_title(folder, folder.name))
            while True:
                # asked before the look, so that what it wrote last is not missed
                seen = as_seen(folder, tail.run)
                for event in tail.news():
                    show(event)
                if tail.run.status != RUNNING:
                    break
                if seen.status == GONE and seen.events == tail.run.events:
                    show.gone()
                    break
                time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        sys.exit(130)


@click.command("dashboard")
@wd_option
@click.option("--port", default=9890, show_default=True, type=click.IntRange(0, 65535), help="0: any that is free.")
def dashboard_command(wd: Path, port: int) -> None:
    """Serve a page that shows the runs of a project, live and past. It changes nothing."""
    from quintet.server.http.dashboard_server import serve_pages  # noqa: PLC0415
    from quintet.watch.dashboard.routes import Pages  # noqa: PLC0415

    serve_pages(Pages(lambda: [wd]), port, _tell)


def _tell(url: str) -> None:
    click.echo(f"The dashboard is at {url}\nThe address has its secret in it: keep it to yourself. Ctrl-C ends it.")
