"""`quintet worker` and `quintet workers`: carry out the tasks of the queue, and see who does."""

import json
import os
import shlex
import socket
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quintet.cli.queue import read_queue
from quintet.config import Settings, load_settings
from quintet.errors import QueueError
from quintet.fleet.choosing import Worker
from quintet.fleet.listing import worker_json, worker_lines
from quintet.program import program
from quintet.prose import hanging
from quintet.providers.scripted import SCRIPTED
from quintet.setup.providers import list_providers

if TYPE_CHECKING:
    from quintet.fleet.database import Database


def work(slots: int, name: str, *, labels: tuple[str, ...], accounts: str, until_empty: bool, systemd: bool) -> int:
    """Take tasks until a signal comes, or until none is left."""
    if systemd:
        labelled = [word for label in labels for word in ("--label", label)]
        named = [*(("--name", name) if name else ()), *(("--accounts", accounts) if accounts else ())]
        click.echo(unit(["worker", "--slots", str(slots), *named, *labelled]))
        return 0
    from quintet.fleet.worker import WorkerProcess  # noqa: PLC0415 - loads the engine

    loaded = load_settings(None, os.environ, {}, Path.cwd())
    worker = Worker(
        name=_name(name),
        slots=slots,
        labels=tuple(dict.fromkeys(labels)),
        accounts=tuple(part.strip() for part in accounts.split(",") if part.strip()),
        providers=_providers(loaded.settings),
    )
    return WorkerProcess(loaded, worker, click.echo, until_empty=until_empty).run()


def unit(words: Sequence[str]) -> str:
    """The unit for systemd that starts this program with some words."""
    text = resources.files("quintet.fleet").joinpath("quintet-worker.service").read_text(encoding="utf-8")
    command = shlex.join([sys.executable, "-m", "quintet", *words]).replace("%", "%%")
    path = os.environ.get("PATH", "").replace("%", "%%").replace("\\", r"\\").replace('"', r"\"")
    return text.format(path=path, command=command).rstrip()


def _name(given: str) -> str:
    name = given or socket.gethostname().partition(".")[0] or "worker"
    if "/" in name or not name.isprintable() or not name.strip():
        raise QueueError(f"--name: found {given!r}, allowed: a name without / in it")
    return name


def _providers(settings: Settings) -> dict[str, str]:
    """The agent CLIs that are installed here, with their versions and logins."""
    found = (one for one in list_providers(os.environ, settings) if one.program or one.name == SCRIPTED.name)
    return {one.name: " ".join(filter(None, (one.version, one.login))) for one in found}


def list_workers(as_json: bool = False) -> None:
    """Print the workers."""
    queue, settings = read_queue()
    with queue:
        workers, tasks = queue.workers(), queue.living()
    if as_json:
        rows = [worker_json(worker, tasks, settings.queue_lease) for worker in workers]
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for worker in workers:
        first, second = worker_lines(worker, tasks, settings.queue_lease)
        click.echo(f"{first}\n{hanging(' ' * 10, second)}")
    if not workers:
        click.echo(f"No worker is running. Start one: {program()} worker --slots 2")


def drain(name: str, undo: bool) -> None:
    """Let a worker take no more tasks, or some again."""
    from quintet.cli.queue_changes import open_queue  # noqa: PLC0415 - loads the engine

    with open_queue() as database:
        _find(database, name)
        database.drain(name, draining=not undo)
    click.echo(f"{name} takes tasks again" if undo else f"{name} takes no more tasks; {program()} workers shows it")


def remove(name: str) -> None:
    """Remove a worker that is silent."""
    from quintet.cli.queue_changes import open_queue  # noqa: PLC0415 - loads the engine

    settings = load_settings(None, os.environ, {}, Path.cwd()).settings
    with open_queue(settings) as database:
        if _find(database, name).silent <= settings.queue_lease:
            raise QueueError(f"{name} is running; end it first with Ctrl-C or SIGTERM")
        database.forget_worker(name)
    click.echo(f"{name} is removed; tasks that it had are taken over")


def _find(database: "Database", name: str) -> Worker:
    workers = {worker.name: worker for worker in database.workers()}
    if name not in workers:
        raise QueueError(f"there is no worker {name}; there are: {', '.join(workers) or 'none'}")
    return workers[name]
