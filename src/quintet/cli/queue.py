"""`quintet queue`: put tasks in, look at them, and change what becomes of them."""

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from quintet.config import TABLE, Settings, load_settings
from quintet.config.load import Loaded, read_task_file
from quintet.errors import ConfigError, QueueError
from quintet.fleet.changes import cancel_task, find_task_id, move_task, remove_task, retry_task
from quintet.fleet.choosing import Situation, Worker
from quintet.fleet.database import Database
from quintet.fleet.listing import headline, in_listing_order, living_workers, task_json, task_lines
from quintet.fleet.tasks import ENDED, QueuedTask, attempt_name
from quintet.layout import JOURNAL, record_folder
from quintet.loop.decide.lint import lint
from quintet.program import program
from quintet.prose import hanging, plural

_SHOWN: Final = 20
"""tasks that have ended, of which a listing shows the newest"""
_WATCH_SECONDS: Final = 2.0
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_CLEAR: Final = "\x1b[H\x1b[2J"


def open_queue(settings: Settings | None = None) -> Database:
    """The queue that the settings name."""
    return Database((settings or _settings()).queue_url)


def _settings() -> Settings:
    return load_settings(None, os.environ, {}, Path.cwd()).settings


def add(
    task_files: tuple[Path, ...],
    *,
    priority: int,
    after: tuple[str, ...],
    delay: str,
    labels: tuple[str, ...],
    account: str,
    base: str,
    given: tuple[str, ...],
    wd: Path,
    as_json: bool,
) -> None:
    """Put tasks in. All are checked before the first is added."""
    from quintet.fleet.add import Given, Wish, add_tasks, find_source  # noqa: PLC0415 - loads the loop

    flags = {"wd": str(wd)} | ({"workspace_base": base} if base else {}) | dict(map(_setting, given))
    texts = [(path, read_task_file(path)) for path in task_files]
    loaded = load_settings(None, os.environ, flags, Path.cwd())
    _lint(texts)
    not_before = time.time() + _seconds(delay) if delay else 0.0
    with open_queue(loaded.settings) as database:
        wish = Wish(priority, [find_task_id(database, one) for one in after], not_before, labels, account)
        source = find_source(loaded.settings, is_local=database.is_file)
        added = add_tasks(database, loaded, source, [Given(text, str(path)) for path, text in texts], wish)
        rows = [(path, *one) for path, one in zip(task_files, added, strict=True)]
        if as_json:
            click.echo(json.dumps([{"id": one, "file": str(path), "new": new} for path, one, new in rows], indent=2))
            return
        for path, identifier, is_new in rows:
            click.echo(f"{identifier}{'' if is_new else f' is in the queue already ({path}, the same commit)'}")
        if source.left_out:
            left_out = plural(source.left_out, "uncommitted change")
            click.echo(f"They begin at {source.base[:10]}, without {left_out} here.")
        _say_who_works(database, loaded)


def _say_who_works(database: Database, loaded: Loaded) -> None:
    if not living_workers(database.workers(), loaded.settings.queue_lease):
        click.echo(f"No worker is running. Start one: {program()} worker --slots 2")


def _lint(texts: Sequence[tuple[Path, str]]) -> None:
    for path, text in texts:
        for finding in lint(text):
            if finding.is_error:
                raise QueueError(f"{path}:{finding.line}: {finding.text}; nothing was added")
            click.echo(f"{path}:{finding.line}: {finding.level}: {finding.text}", err=True)


def _setting(given: str) -> tuple[str, str]:
    """A setting as the user gives it: KEY=VALUE."""
    key, found, value = given.partition("=")
    row = next((row for row in TABLE if key in (row.key, row.env, row.name)), None)
    if not found or row is None:
        raise ConfigError(f"-s {given}: allowed: KEY=VALUE with a key that {program()} config shows")
    return row.name, value


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d{1,9})([smhd]?)", text.strip())
    if not found:
        raise ConfigError(f"--delay: found {text!r}, allowed: 90, 30m, 2h or 1d")
    return float(found[1]) * _UNITS[found[2]]


def list_tasks(watch: bool = False, everything: bool = False, as_json: bool = False) -> int:
    """Print the tasks, once or again and again."""
    settings = _settings()
    with open_queue(settings) as database:
        while True:
            text = _listing(database, settings.queue_lease, everything=everything, as_json=as_json)
            click.echo(f"{_CLEAR}{text}" if watch and sys.stdout.isatty() else text)
            if not watch:
                return 0
            try:
                time.sleep(_WATCH_SECONDS)
            except KeyboardInterrupt:
                return 130


def _listing(database: Database, lease: float, *, everything: bool, as_json: bool) -> str:
    tasks = in_listing_order(database.tasks())
    living = [task for task in tasks if task.status not in ENDED]
    now = Situation(living, {task.id: task.status for task in tasks}, time.time())
    workers = living_workers(database.workers(), lease)
    if as_json:
        return json.dumps([task_json(task, now, workers) for task in tasks], ensure_ascii=False, indent=2)
    ended = [task for task in tasks if task.status in ENDED]
    hidden = set() if everything else {task.id for task in ended[_SHOWN:]}
    lines = [headline(tasks)]
    for task in tasks:
        if task.id not in hidden:
            lines += _two_lines(*task_lines(task, now, workers))
    if hidden:
        lines.append(f"and {len(hidden)} more that have ended: {program()} queue list --all")
    if not workers:
        lines.append(f"No worker is running. Start one: {program()} worker --slots 2")
    return "\n".join(lines)


def _two_lines(first: str, second: str) -> list[str]:
    return [first, *([hanging(" " * 10, second)] if second else [])]


def show(task: str, as_json: bool) -> None:
    """Print one task."""
    settings = _settings()
    with open_queue(settings) as database:
        found, now, workers = _found(database, task, settings.queue_lease)
        spec = database.spec(found.id)
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
            click.echo(hanging(f"  {'report':<12}", report))


def _found(database: Database, given: str, lease: float) -> tuple[QueuedTask, Situation, list[Worker]]:
    found = database.task(find_task_id(database, given))
    if found is None:
        raise QueueError(f"there is no task {given} in the queue")
    return found, database.situation(), living_workers(database.workers(), lease)


def _report_of(task: QueuedTask, repository: str, *, is_local: bool) -> str:
    """How to see the report of a task's run."""
    run = task.outcome.run if task.outcome else task.progress.run
    if not run:
        return ""
    return f"cd {repository} && {program()} report {run}" if is_local else f"{program()} queue logs {task.id}"


def logs(task: str) -> None:
    """Print the journal of a task's run."""
    from quintet.fleet.checkpoint import read_records  # noqa: PLC0415 - the other commands do without it
    from quintet.loop.journal import read_line  # noqa: PLC0415
    from quintet.watch.runs.event_lines import line_for  # noqa: PLC0415

    with open_queue() as database:
        found = database.task(find_task_id(database, task))
        if found is None:
            raise QueueError(f"there is no task {task} in the queue")
        spec = database.spec(found.id)
    run = found.outcome.run if found.outcome else found.progress.run
    path = record_folder(run) / JOURNAL if run else None
    data = path.read_bytes() if path and path.is_file() else b""
    if not data and not spec.is_local:
        _, data = read_records(spec.repository, attempt_name(found.id, found.attempt))
    if not data:
        click.echo(f"{found.id} has no journal yet.")
    for line in data.splitlines():
        if event := read_line(line):
            click.echo(f"{event.at[:19]} {line_for(event)}")


def cancel(task: str) -> None:
    """Cancel a task."""
    with open_queue() as database:
        click.echo(cancel_task(database, find_task_id(database, task)))


def retry(task: str) -> None:
    """Let a task go on, or begin it anew."""
    with open_queue() as database:
        click.echo(retry_task(database, find_task_id(database, task)))


def move(task: str, priority: int) -> None:
    """Give a task another priority."""
    with open_queue() as database:
        click.echo(move_task(database, find_task_id(database, task), priority))


def remove(task: str) -> None:
    """Remove a task."""
    with open_queue() as database:
        click.echo(remove_task(database, find_task_id(database, task)))


def doctor(config_file: Path | None, as_json: bool, **flags: Any) -> int:
    """Check the queue; the exit code is 1 where something keeps tasks from being carried out."""
    from quintet.cli.doctor import print_checks  # noqa: PLC0415 - the other commands do without it
    from quintet.fleet.doctor import examine_queue  # noqa: PLC0415

    settings = load_settings(config_file, os.environ, flags, Path.cwd()).settings
    checks = list(examine_queue(settings, os.environ))
    return print_checks(checks, as_json, "Tasks can be added and carried out.", "The queue cannot be used.")
