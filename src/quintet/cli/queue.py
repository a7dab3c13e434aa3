"""`quintet queue list`, `show` and `logs`: the queue as its database tells it, without loading the engine."""

import json
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import click

from quintet.config import Settings, load_settings
from quintet.errors import QueueError
from quintet.fleet.listing import headline, in_listing_order, living_workers, task_json, task_lines
from quintet.fleet.reading import QueueReader, open_to_read
from quintet.fleet.tasks import ENDED, QueuedTask, TaskSpec, attempt_name
from quintet.layout import JOURNAL, record_folder
from quintet.program import program
from quintet.prose import hanging

_SHOWN: Final = 20
"""tasks that have ended, of which a listing shows the newest"""
_WATCH_SECONDS: Final = 2.0
_CLEAR: Final = "\x1b[H\x1b[2J"


def read_queue() -> tuple[QueueReader, Settings]:
    """The queue that the settings name, and the settings."""
    settings = load_settings(None, os.environ, {}, Path.cwd()).settings
    return open_to_read(settings.queue_url), settings


def list_tasks(watch: bool = False, everything: bool = False, as_json: bool = False) -> int:
    """Print the tasks, once or again and again."""
    seen = False
    while True:
        try:
            queue, settings = read_queue()  # anew each time: its database may have been away
            with queue:
                text, seen = _listing(queue, settings.queue_lease, everything=everything, as_json=as_json), watch
        except QueueError as error:
            if not seen:
                raise
            text = f"{error}; it is tried again"
        click.echo(f"{_CLEAR}{text}" if watch and sys.stdout.isatty() else text)
        if not watch:
            return 0
        try:
            time.sleep(_WATCH_SECONDS)
        except KeyboardInterrupt:
            return 130


def _listing(queue: QueueReader, lease: float, *, everything: bool, as_json: bool) -> str:
    now, workers = queue.situation(), living_workers(queue.workers(), lease)
    others = queue.tasks() if everything or as_json else queue.newest_ended(_SHOWN)
    shown = {task.id: task for task in (*now.tasks, *others)}  # one may have ended between the two looks
    tasks = in_listing_order(list(shown.values()))
    if as_json:
        return json.dumps([task_json(task, now, workers) for task in tasks], ensure_ascii=False, indent=2)
    numbers = queue.numbers()
    lines = [headline(now.tasks, numbers)]
    for task in tasks:
        lines += _two_lines(*task_lines(task, now, workers))
    hidden = sum(numbers.values()) - sum(task.status in ENDED for task in tasks)
    if hidden > 0:
        lines.append(f"and {hidden} more that have ended: {program()} queue list --all")
    if not workers:
        lines.append(f"No worker is running. Start one: {program()} worker --slots 2")
    return "\n".join(lines)


def _two_lines(first: str, second: str) -> list[str]:
    return [first, *([hanging(" " * 10, second)] if second else [])]


def show(task: str, as_json: bool) -> None:
    """Print one task."""
    queue, settings = read_queue()
    with queue:
        found = queue.find(task)
        now, workers = queue.situation(), living_workers(queue.workers(), settings.queue_lease)
        spec = queue.spec(found.id)
        document = task_json(found, now, workers) | {"base": spec.base, "text": spec.text, "settings": spec.settings}
        if as_json:
            click.echo(json.dumps(document, ensure_ascii=False, indent=2))
            return
        click.echo("\n".join(_two_lines(*task_lines(found, now, workers))))
        for name in ("title", "repository", "base", "branch", "commit", "run", "tokens", "cost", "after", "labels"):
            if value := document[name]:
                shown = ", ".join(value) if isinstance(value, list) else str(value)
                click.echo(hanging(f"  {name:<12}", shown))
        if report := _report_of(found, spec.repository, is_local=spec.is_local):
            click.echo(hanging(f"  {'report' if spec.is_local else 'journal':<12}", report))
    if found.outcome and not spec.is_local and (text := _remote_report(found, spec)):
        click.echo(f"\n{text}", nl=False)


def _remote_report(task: QueuedTask, spec: TaskSpec) -> str:
    """The report of a run that has ended on any machine, from what the remote keeps of it."""
    from quintet.fleet.records import bring_records  # noqa: PLC0415 - the other commands do without it
    from quintet.watch.report.report_markdown import report_markdown  # noqa: PLC0415
    from quintet.watch.runs.changes import Changes  # noqa: PLC0415
    from quintet.watch.runs.summary import summarise  # noqa: PLC0415

    name, commit = attempt_name(task.id, task.attempt), task.outcome.commit if task.outcome else ""
    fetch = f"git fetch origin refs/quintet/{name}/archive"
    changes = Changes(note=f"{fetch} brings them, git diff {spec.base[:12]} {commit[:12]} shows them.")
    with tempfile.TemporaryDirectory() as folder:
        run = bring_records(spec.repository, task.checkpoint, Path(folder))
        return report_markdown(summarise(run, changes)) if run else ""


def _report_of(task: QueuedTask, repository: str, *, is_local: bool) -> str:
    """How to see the report of a task's run here, or the journal of one elsewhere."""
    run = task.outcome.run if task.outcome else task.progress.run
    if not run:
        return ""
    return (
        f"cd {shlex.quote(repository)} && {program()} report {run}" if is_local else f"{program()} queue logs {task.id}"
    )


def logs(task: str) -> None:
    """Print the journal of a task's run."""
    from quintet.fleet.records import read_records  # noqa: PLC0415 - the other commands do without it
    from quintet.loop.record.journal_lines import read_line  # noqa: PLC0415
    from quintet.watch.runs.event_lines import line_for  # noqa: PLC0415

    queue, _ = read_queue()
    with queue:
        found = queue.find(task)
        spec = queue.spec(found.id)
    run = found.outcome.run if found.outcome else found.progress.run
    path = record_folder(run) / JOURNAL if run else None
    data = path.read_bytes() if path and path.is_file() else b""
    if not data and not spec.is_local:
        _, data = read_records(spec.repository, found.checkpoint)
    if not data:
        click.echo(f"{found.id} has no journal yet.")
    for line in data.splitlines():
        if event := read_line(line):
            click.echo(f"{event.at[:19]} {line_for(event)}")
