"""A queue with real workers as processes of their own, scripted agents and a private home; what it starts, it ends."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from quintet.cli.main import cli
from quintet.config import load_settings
from quintet.errors import QuintetError
from quintet.fleet.add import Given, Wish, add_tasks, find_source
from quintet.fleet.database import Database
from quintet.fleet.messages import SlotOrder
from quintet.fleet.tasks import QueuedTask, TaskOutcome, TaskStatus
from tests.eventually import eventually
from tests.fleet.postgres import Postgres
from tests.stub.preloaded import run
from tests.stub.replies import TASK
from tests.watch.scripted import DEADLINE, Scripted
from tests.workspace.worktree_runs import repository

LONG_TASK = TASK.replace("Add a greeting.", "Add a greeting to the project, in a file of its own, that says hello.")


@dataclass
class Fleet:
    """A project, its queue and the workers that were started."""

    project: Scripted
    url: str
    lease: float = 120.0
    workers: list["subprocess.Popen[str]"] = field(default_factory=list)
    _database: Database | None = None

    @property
    def database(self) -> Database:
        self._database = self._database or Database(self.url)
        return self._database

    @property
    def settings(self) -> dict[str, str]:
        return {"QUEUE": self.url, "QUEUE_LEASE": f"{self.lease:g}"}

    def task_file(self, name: str, text: str = LONG_TASK) -> str:
        path = self.project.root / "tasks" / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{text}\nNumber {name}.\n", encoding="utf-8")
        return str(path)

    def call(self, *words: str, **settings: str) -> Result:
        """Run a command in this process, where loading its modules costs nothing."""
        with chdir(self.project.wd):
            return CliRunner().invoke(cli, words, env=self.project.env | self.settings | settings)

    def queue(self, *words: str, **settings: str) -> str:
        """The output of a command of the queue that has to succeed."""
        done = self.call("queue", *words, **settings)
        assert done.exit_code == 0, done
        return done.stdout

    def refused(self, *words: str, **settings: str) -> str:
        """The one line of a command that has to fail."""
        error = self.call(*words, **settings).exception
        assert isinstance(error, QuintetError), error
        assert len(str(error).splitlines()) == 1
        return str(error)

    def add(self, name: str, wish: Wish | None = None, **settings: str) -> str:
        """Put a task in, as the command does but without a process; its id."""
        flags = {"wd": str(self.project.wd)}
        loaded = load_settings(None, self.project.env | self.settings | settings, flags, self.project.wd)
        source = find_source(loaded.settings, is_local=self.database.is_file)
        path = Path(self.task_file(name))
        return add_tasks(self.database, loaded, source, [Given(path.read_text(), path.name)], wish or Wish())[0][0]

    def worker(self, *words: str, cwd: Path | None = None, **env: str) -> "subprocess.Popen[str]":
        """Start a worker, in a home of its own where `env` says so."""
        process = subprocess.Popen(
            [sys.executable, "-m", "quintet", "worker", *words],
            cwd=cwd or self.project.wd,
            env=self.project.env | self.settings | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.workers.append(process)
        return process

    def machine(self, name: str, *words: str, **env: str) -> "subprocess.Popen[str]":
        """Start a worker with a state directory of its own, as if it were another machine."""
        return self.worker("--name", name, *words, cwd=None, XDG_STATE_HOME=str(self.project.root / name[0]), **env)

    def remote(self, *words: str) -> str:
        """What git says of the bare remote."""
        return self.project.git("--git-dir", str(self.project.root / "remote.git"), *words)

    def end_worker(self, process: "subprocess.Popen[str]") -> str:
        """Ask a worker to end; what it has printed."""
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0, output
        return output

    def task(self, task_id: str) -> QueuedTask:
        found = self.database.task(task_id)
        assert found is not None
        return found

    def note(self, task_id: str, **attributes: Any) -> None:
        """Write something down about a task, as a slot does."""
        assert self.database.change(self.task(task_id), **attributes)

    def sql(self, statement: str, *values: object) -> None:
        """Change the file of the queue behind the engine's back."""
        with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as connection, connection:
            connection.execute(statement, values)

    def give_to_slot(self, order: SlotOrder) -> None:
        """Let all tasks be as if the engine had started them in a slot."""
        self.sql("UPDATE workflow_status SET status = 'PENDING', executor_id = ?", order.name)

    def fail(self, task_id: str, **outcome: Any) -> None:
        """Let a task be as if its run had ended with a FAIL."""
        output = TaskOutcome(verdict="FAIL", **outcome).model_dump_json()
        where = "SET status = 'SUCCESS', output = ? WHERE workflow_uuid = ?"
        self.sql(f"UPDATE workflow_status {where}", output, task_id)

    def until(self, is_so: Callable[[], Any], what: str = "the condition", seconds: float = DEADLINE) -> Any:
        """Wait until something is so."""
        return eventually(is_so, what, deadline=seconds, on_failure=self.evidence)

    def evidence(self) -> str:
        """Return what to look at if a test waits in vain: the tasks, the logs of their runs, and the rest."""
        tasks = self.database.tasks()
        rows = [f"{one.id} {one.status} {one.place} {one.parked} {one.progress}" for one in tasks]
        return "\n".join(["--- tasks", *rows, "--- logs", *self.logs(), self.project.evidence()])

    def until_status(self, task_id: str, status: TaskStatus, seconds: float = DEADLINE) -> QueuedTask:
        self.until(lambda: self.task(task_id).status is status, f"{task_id} {status}", seconds)
        return self.task(task_id)

    def logs(self) -> list[str]:
        return [path.read_text() for path in self.project.root.rglob("run.log")]

    def listed(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in json.loads(self.queue("list", "--json"))}

    def end(self) -> None:
        for process in self.workers:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                try:
                    process.communicate(timeout=DEADLINE)
                except subprocess.TimeoutExpired:
                    process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        for pid in children_in(self.project.root):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for state in self.project.root.glob("*/quintet"):
            run(["stop", "--all"], self.project.env | {"XDG_STATE_HOME": str(state.parent)}, self.project.wd)
        if self._database:
            self._database.close()


def children_in(root: Path, module: str = "") -> list[int]:
    """The processes of slots and runs that belong to a folder; a process is known by the module that it runs.

    What a run has just forked still looks like it until it executes a program of its own.
    """
    found = dict[int, int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes()
                if (
                    f"quintet.fleet.{module}".encode() in words
                    and str(root).encode() in (entry / "environ").read_bytes()
                ):
                    found[int(entry.name)] = int((entry / "stat").read_text().rpartition(") ")[2].split()[1])
            except OSError:
                continue
    return [pid for pid, parent in found.items() if not module or parent not in found]


@cache
def empty_queue() -> bytes:
    """The file of a queue without tasks: making its tables takes a second, which each test saves."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "queue.db"
        Database(f"sqlite:///{path}").close()
        return path.read_bytes()


@contextmanager
def fleet(url: str = "", lease: float = 120.0) -> Iterator[Fleet]:
    """A repository without a remote, and a queue in a file."""
    with repository() as project:
        (project.root / "queue.db").write_bytes(empty_queue())
        made = Fleet(project, url or f"sqlite:///{project.root}/queue.db", lease)
        try:
            yield made
        finally:
            made.end()


@contextmanager
def fleet_with_remote(server: Postgres, lease: float = 6.0) -> Iterator[Fleet]:
    """A repository with a bare remote, and a queue in PostgreSQL; each worker gets a home of its own."""
    with fleet(server.url, lease) as made:
        yield with_remote(made)


def with_remote(made: Fleet) -> Fleet:
    """Give a project a bare remote that has its branch, behind a link.

    Without the link it is away, and what just serves a push there can end: git leaves its locks in a folder that moves.
    """
    remote = made.project.root / "remote.git"
    made.project.git("init", "--quiet", "--bare", str(made.project.root / "served.git"))
    remote.symlink_to("served.git")
    made.project.git("remote", "add", "origin", str(remote))
    made.project.git("push", "--quiet", "origin", "main")
    return made
