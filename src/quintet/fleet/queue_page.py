"""The queue as the dashboard shows it: tasks and machines from the database, and a run from wherever it is."""

import io
import json
import os
import shutil
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from quintet import files, git
from quintet.config import Settings
from quintet.errors import GitError, NoQueue, QueueError
from quintet.fleet.checkpoint import RECORDS
from quintet.fleet.listing import count, in_listing_order, living_workers, task_json, worker_json
from quintet.fleet.reading import open_to_read
from quintet.fleet.tasks import QueuedTask, TaskSpec, TaskStatus, attempt_name
from quintet.layout import STATE, TMP, fleet_folder
from quintet.program import program
from quintet.watch.runs.folders import is_run_id, project_run_folders, run_folders

SHOWN: Final = 20
"""tasks that have ended, of which the page shows the newest"""
_FRESH_SECONDS: Final = 10.0
"""how long what was fetched from a remote is shown before it is fetched again"""
_FETCH_SECONDS: Final = 60.0
_KEPT_SECONDS: Final = 86_400.0


@dataclass(frozen=True)
class RunPlace:
    """Where the run of a task can be read."""

    run: str
    folder: Path
    machine: str = ""
    """the worker that has it, where this is a copy of its last checkpoint"""
    is_running: bool = False


@dataclass
class QueuePage:
    """Reads the queue that the settings name; nothing is kept between two looks but copies of checkpoints."""

    settings: Settings
    _fetched: dict[str, tuple[float, str]] = field(default_factory=dict)
    """by the name of an attempt, when its checkpoint was fetched and which run was in it"""

    def state(self) -> dict[str, Any]:
        """The tasks and the machines as JSON; `note` says why there are none."""
        try:
            queue = open_to_read(self.settings.queue_url, make=False)
        except NoQueue as error:
            return {"note": f"{error}: {program()} queue add TASK.md makes one"}
        except QueueError as error:
            return {"note": str(error)}
        lease = self.settings.queue_lease
        with queue:
            now, ended, numbers = queue.situation(), queue.newest_ended(SHOWN), queue.numbers()
            workers = queue.workers()
        living = living_workers(workers, lease)
        return {
            "note": "",
            "name": queue.name,
            "program": program(),
            "now": now.now,
            "numbers": count(now.tasks, numbers),
            "tasks": [task_json(task, now, living) for task in in_listing_order([*now.tasks, *ended])],
            "workers": [worker_json(worker, now.tasks, lease) for worker in workers],
        }

    def place_of(self, task_id: str) -> RunPlace | None:
        """Where the run of a task can be read; None where it has none, or none that can be read here."""
        with open_to_read(self.settings.queue_url, make=False) as queue:
            task = queue.task(task_id)
            spec = queue.spec(task_id) if task else None
        if task is None or spec is None:
            return None
        run = task.outcome.run if task.outcome else task.progress.run
        here = _folder_here(task, spec, run)
        if here is not None or spec.is_local:
            return RunPlace(run, here) if here else None
        return self._copied(task, spec)

    def _copied(self, task: QueuedTask, spec: TaskSpec) -> RunPlace | None:
        """The run of a task on another machine, from its last checkpoint or its archive in the remote."""
        name = attempt_name(task.id, task.attempt)
        if not is_run_id(name):  # it names a folder, and whoever can write to the database may have chosen it
            return None
        tree = fleet_folder() / "watched" / name
        files.make_folder(tree.parent)
        with files.locked(tree.with_name("lock")):
            _remove_old(tree.parent)
            when, run = self._fetched.get(name, (float("-inf"), ""))
            if time.monotonic() - when > _FRESH_SECONDS and task.checkpoint:
                run = _fetch(spec.repository, task.checkpoint, tree) or run
                self._fetched[name] = (time.monotonic(), run)
        folder = tree / TMP / run
        machine = task.progress.machine or "another machine"
        return RunPlace(run, folder, machine, task.status is TaskStatus.RUNNING) if run else None


def _remove_old(watched: Path) -> None:
    """Remove the copies that nobody has looked at for a day."""
    for tree in watched.iterdir():
        if tree.is_dir() and time.time() - tree.stat().st_mtime > _KEPT_SECONDS:
            shutil.rmtree(tree, ignore_errors=True)


def _folder_here(task: QueuedTask, spec: TaskSpec, run: str) -> Path | None:
    """The folder of a run that was carried out on this machine."""
    tree = Path(spec.repository) if spec.is_local else fleet_folder() / "trees" / attempt_name(task.id, task.attempt)
    project = tree / spec.folder
    found = project_run_folders(project) if spec.is_local else run_folders(project)
    return next((folder for folder in found if folder.name == run), None) if run else None


def _fetch(repository: str, commit: str, tree: Path) -> str:
    """Bring the records in a commit that the queue has recorded to a folder of their own; the run, empty if none."""
    cache = tree / "repository.git"
    files.make_folder(tree)
    os.utime(tree)
    try:
        if not (cache / "HEAD").exists():
            git.run(tree, "init", "--quiet", "--bare", str(cache))
        git.run(cache, "fetch", "--quiet", "--depth=1", repository, commit, seconds=_FETCH_SECONDS)
        return _unpack(git.run(cache, "archive", "--format=tar", f"{commit}:{RECORDS}").out, tree)
    except GitError:
        return ""


def _unpack(held: bytes, tree: Path) -> str:
    """Write the files of an archive to the folder of the run that they tell of; links are left out. The run."""
    with tarfile.open(fileobj=io.BytesIO(held)) as archive:
        texts = {
            one.name: archive.extractfile(one) for one in archive if one.isreg() and ".." not in Path(one.name).parts
        }
        found = {name: file.read() for name, file in texts.items() if file}
    try:
        run = str(json.loads(found[STATE])["run_id"])
    except (KeyError, ValueError, TypeError):
        return ""
    if not is_run_id(run):
        return ""
    fresh = tree / TMP / f"{run}.new"
    for name, data in found.items():
        files.make_folder((fresh / name).parent)
        files.write(fresh / name, data)
    shutil.rmtree(tree / TMP / run, ignore_errors=True)
    fresh.rename(tree / TMP / run)
    return run
