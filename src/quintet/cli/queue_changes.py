"""`quintet queue add` and what else changes the queue: cancel, retry, move, remove; and its doctor."""

import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from quintet.config import TABLE, Settings, load_settings
from quintet.config.load import Loaded, read_task_file
from quintet.errors import ConfigError, QueueError
from quintet.fleet.add import Given, Wish, add_tasks, find_source
from quintet.fleet.changes import answer_task, cancel_task, move_task, remove_task, retry_task, waiting_step
from quintet.fleet.database import Database
from quintet.fleet.listing import living_workers
from quintet.fleet.tasks import Approval, QueuedTask, TaskStatus
from quintet.loop.decide.lint import lint
from quintet.loop.record.people import now, who
from quintet.program import program
from quintet.prose import plural
from quintet.setup.callers import refuse_agents
from quintet.setup.people import checked_text

_STUCK: Final = (TaskStatus.PARKED, TaskStatus.FAILED, TaskStatus.CANCELLED)
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def open_queue(settings: Settings | None = None) -> Database:
    """The queue that the settings name, to change it."""
    return Database((settings or load_settings(None, os.environ, {}, Path.cwd()).settings).queue_url)


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
    flags = {"wd": str(wd)} | ({"workspace_base": base} if base else {}) | dict(map(_setting, given))
    texts = [(path, read_task_file(path)) for path in task_files]
    loaded = load_settings(None, os.environ, flags, Path.cwd())
    _lint(texts)
    not_before = time.time() + _seconds(delay) if delay else 0.0
    with open_queue(loaded.settings) as database:
        wish = Wish(priority, [database.find(one).id for one in after], not_before, labels, account)
        source = find_source(loaded.settings, is_local=database.is_file)
        added = add_tasks(database, loaded, source, [Given(text, str(path)) for path, text in texts], wish)
        rows = [(path, *one) for path, one in zip(task_files, added, strict=True)]
        if as_json:
            click.echo(json.dumps([{"id": one, "file": str(path), "new": new} for path, one, new in rows], indent=2))
            return
        for path, identifier, is_new in rows:
            click.echo(identifier if is_new else _there_already(database.find(identifier), path))
        if source.left_out:
            left_out = plural(source.left_out, "uncommitted change")
            click.echo(f"They begin at {source.base[:10]}, without {left_out} here.")
        if loaded.settings.post_push and not source.is_local:
            click.echo("POST_PUSH is left out: a worker pushes the branch of each task itself.")
        _say_who_works(database, loaded)


def _there_already(task: QueuedTask, path: Path) -> str:
    retry = f"; {program()} queue retry {task.id} lets it go on or begins it anew" if task.status in _STUCK else ""
    return f"{task.id} is in the queue already ({path}, the same commit): {task.status}{retry}"


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


def cancel(task: str) -> None:
    """Cancel a task."""
    with open_queue() as database:
        click.echo(cancel_task(database, database.find(task)))


def retry(task: str) -> None:
    """Let a task go on, or begin it anew."""
    with open_queue() as database:
        click.echo(retry_task(database, database.find(task)))


def approve(task: str) -> None:
    """Let a task go on that waits for a person."""
    _answer(task, approved=True)


def reject(task: str, notes: str) -> None:
    """Send back what a task waits with."""
    _answer(task, approved=False, notes=checked_text(notes))


def _answer(given: str, *, approved: bool, notes: str = "") -> None:
    refuse_agents()
    with open_queue() as database:
        task = database.find(given)
        said = Approval(step=waiting_step(task), approved=approved, by=who(), at=now(), notes=notes)
        click.echo(answer_task(database, task, said))


def move(task: str, priority: int) -> None:
    """Give a task another priority."""
    with open_queue() as database:
        click.echo(move_task(database, database.find(task), priority))


def remove(task: str) -> None:
    """Remove a task."""
    with open_queue() as database:
        click.echo(remove_task(database, database.find(task)))


def doctor(config_file: Path | None, as_json: bool, **flags: Any) -> int:
    """Check the queue; the exit code is 1 where something keeps tasks from being carried out."""
    from quintet.cli.doctor import print_checks  # noqa: PLC0415 - the other commands do without it
    from quintet.fleet.doctor import examine_queue  # noqa: PLC0415

    settings = load_settings(config_file, os.environ, flags, Path.cwd()).settings
    checks = list(examine_queue(settings, os.environ))
    return print_checks(checks, as_json, "Tasks can be added and carried out.", "The queue cannot be used.")
