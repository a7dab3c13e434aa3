"""`quintet status`: the state of a run, once."""

import json
import sys
from pathlib import Path

import click
from rich.console import Console

from quintet.watch.console.live_view import LiveFrame
from quintet.watch.dashboard.run_json import actions_json, run_json
from quintet.watch.runs.folders import find_run, follow, with_process_status
from quintet.watch.runs.model import RUNNING
from quintet.watch.runs.summary import task_title
from quintet.watch.runs.terminal_status import terminal_statuses

_WIDTH, _LINES = 100, 30


def status(run: str | None, wd: Path, as_json: bool) -> None:
    """Print the state of a run, as a picture or as JSON."""
    folder = find_run(wd, run)
    tail = follow(folder)
    events = tail.read_new()
    seen = with_process_status(folder, tail.run)
    title = task_title(folder, seen.id)
    told = terminal_statuses(folder.parents[1], seen)
    if as_json:
        whole = run_json(seen, title, events)
        for turn, handoff in zip(whole["handoffs"], seen.handoffs, strict=True):
            turn["actions"] = actions_json(handoff.actions)
        click.echo(json.dumps({**whole, "statuses": told, "at_work": seen.status == RUNNING}))
        return
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    console.print(LiveFrame(seen, title, told, events).draw(console.width, _LINES))
