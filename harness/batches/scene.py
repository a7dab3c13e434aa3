"""The scene of a batch: machines with homes of their own, the books of what agents and the remote did, and a user."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

import quintet
from harness.batches.plan import POSTGRESQL, Batch
from harness.chaos.real.leftovers import processes_of
from quintet.errors import QuintetError
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER
from tests.fleet.postgres import Postgres, postgres
from tests.fleet.rig import Fleet, fleet, fleet_with_remote
from tests.stub.replies import (
    ANALYST_APPROVED,
    ANALYST_SUMMARY,
    FAIL,
    PASS,
    PROGRAMMER_APPROVED,
    PROGRAMMER_SUMMARY,
)

NAMES: Final = ("anna", "bert", "cleo", "dora")
NAMESAKE: Final = "z"
"""the home of a second worker with a name that another has"""
MOST_ROUNDS: Final = 4
DISK: Final = "64m"
PAGE: Final = 1 << 16
OTHER: Final = "0.1.1"
"""the version of the other program"""
MACHINE: Final = "BATCH_MACHINE"
"""the variable by which all processes of a machine are known"""

WORK: Final = r"""#!/bin/sh
# What an agent of a batch does in a turn: it writes down whether it works alone, and then does its part.
books=$(dirname "$0") branch=$(git symbolic-ref --short HEAD) || exit 1
task=$(expr "${branch#quintet/}" : '\(.*-[0-9a-f]\{8\}\)')
read -r number rounds fails <"$books/$task.plan"
exec 9>>"$books/$task.lock"
if flock --nonblock 9; then how=alone; else how=beside; fi
read -r now _ </proc/uptime
holder=$(cat "$books/$task.holder" 2>/dev/null)
[ $how = beside ] || echo "$BATCH_MACHINE $$" >"$books/$task.holder"
echo "$how $now $branch $1 $BATCH_MACHINE $$ $holder" >>"$books/work"
sleep 0.2
first="The first part of $number." second="The second part of $number."
case $1 in
programmer)
    if [ "$(cat first.txt 2>/dev/null)" != "$first" ]; then
        echo "$first" >first.txt
        [ "$rounds" = 1 ] || exit 0
    fi
    { cat first.txt; echo "$second"; } >second.txt ;;
tester)
    case $fails:$branch in True:*-try*) ;; True:*) exit 1 ;; esac
    printf '%s\n%s\n' "$first" "$second" | cmp -s - second.txt ;;
esac
"""
PUSHED: Final = r"""#!/bin/sh
# Writes down which slot has changed a ref of the remote.
[ "$1" = committed ] || exit 0
books=$(cat "$GIT_DIR/books") pid=$$ slot=0
while [ "$pid" -gt 1 ]; do
    case $(tr '\0' ' ' <"/proc/$pid/cmdline") in *quintet.fleet.slot*) slot=$pid; break ;; esac
    read -r stat <"/proc/$pid/stat" || break
    set -- ${stat##*) }
    pid=$2
done
read -r now _ </proc/uptime
while read -r old new ref; do echo "$now $slot $BATCH_MACHINE $old $new $ref"; done >>"$books/pushed"
"""
WATCHED: Final = {
    "postgresql": (
        "CREATE TABLE turns (number SERIAL, task TEXT, old TEXT, new TEXT, executor TEXT)",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO public.turns (task, old, new, executor) "
        "VALUES (NEW.workflow_uuid, OLD.status, NEW.status, NEW.executor_id); RETURN NULL; END $$",
        "CREATE TRIGGER noted AFTER UPDATE ON dbos.workflow_status FOR EACH ROW "
        "WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION note()",
    ),
    "sqlite": (
        "CREATE TABLE turns (number INTEGER PRIMARY KEY, task TEXT, old TEXT, new TEXT, executor TEXT)",
        "CREATE TRIGGER noted AFTER UPDATE ON workflow_status WHEN OLD.status IS NOT NEW.status BEGIN "
        "INSERT INTO turns (task, old, new, executor) "
        "VALUES (NEW.workflow_uuid, OLD.status, NEW.status, NEW.executor_id); END",
    ),
}
"""lets the database itself write down every change of a task's status"""


_STATUSES: Final = """
SELECT workflow_uuid, status, attributes, coalesce(found.output, task.output)
FROM SCHEMA.workflow_status task LEFT JOIN SCHEMA.workflow_output found USING (workflow_uuid)
"""


def uptime() -> float:
    """The clock of the books."""
    return float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])


@dataclass
class Machine:
    """A worker with its home."""

    scene: "Scene"
    name: str
    slots: int
    home: Path
    started: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    frozen: list[tuple[float, float]] = field(default_factory=list)
    """from when to when all of it was frozen"""

    @property
    def mark(self) -> str:
        """What the environment or the command line of its processes has in it."""
        return f"{self.scene.root}/{self.home.name}-{self.name}/"

    @property
    def log(self) -> Path:
        return self.scene.books / f"{self.home.name}-{self.name}.log"

    @property
    def is_alive(self) -> bool:
        return bool(self.started) and self.started[-1].poll() is None

    def start(self, package: Path | None = None) -> "subprocess.Popen[bytes]":
        """Start its worker, by the program of another version where one is given."""
        temporary = self.home / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        queue = self.scene.queue
        env = queue.project.env | queue.settings | {MACHINE: self.mark, "TMPDIR": str(temporary)}
        if not queue.database.is_file:
            env["XDG_STATE_HOME"] = str(self.home)
        if package:
            env["PYTHONPATH"] = str(package)
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "quintet", "worker", "--name", self.name, "--slots", str(self.slots)],
                cwd=queue.project.wd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def trees(self) -> list[str]:
        """The clones of tasks that it has."""
        return sorted(tree.name for tree in self.home.glob("quintet/fleet/trees/*"))

    def processes(self, module: str = "") -> list[int]:
        """Its processes, or those that run a module of the fleet."""
        found = processes_of(self.mark) | ({} if self.scene.queue.database.is_file else processes_of(f"{self.home}/"))
        wanted = f"quintet.fleet.{module}" if module else ""
        # those that serve a push belong to the machine of the remote
        return sorted(pid for pid, command in found.items() if wanted in command and "receive-pack" not in command)

    def send(self, number: signal.Signals, pids: list[int]) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


@dataclass
class Scene:
    """Everything that a batch needs, and what has happened in it."""

    plan: Batch
    queue: Fleet
    server: Postgres | None
    machines: list[Machine] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    """the tasks by their ids"""
    cancelled: dict[str, int] = field(default_factory=dict)
    """how often the user has cancelled each task"""
    parked: list[tuple[str, str]] = field(default_factory=list)
    """the tasks that waited for the user, each with its reason"""
    said: list[str] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)

    @property
    def root(self) -> Path:
        return self.queue.project.root

    @property
    def books(self) -> Path:
        return self.root / "books"

    @property
    def remote(self) -> Path:
        return self.root / "remote.git"

    def say(self, text: str) -> None:
        self.said.append(f"{time.monotonic() - self.begun:6.1f} {text}")

    def lines(self, book: str) -> list[list[str]]:
        """A book that was kept: its lines in words."""
        path = self.books / book
        return [line.split() for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    def rows(self, statement: str) -> list[Any]:
        """What the database answers, asked without the product."""
        address = self.queue.url.replace("postgresql:", "postgresql+psycopg:", 1)
        with sa.create_engine(address, poolclass=sa.NullPool).begin() as connection:
            found = connection.exec_driver_sql(statement)
            return list(found.all()) if found.returns_rows else []

    def statuses(self) -> dict[str, tuple[str, dict[str, Any], dict[str, Any]]]:
        """The status, the attributes and the outcome of each task, by the engine's own table."""
        schema = "" if self.queue.database.is_file else "dbos."
        found = self.rows(_STATUSES.replace("SCHEMA.", schema))
        return {row[0]: (row[1], _document(row[2]), _document(row[3])) for row in found}

    def command(self, *words: str) -> str:
        """A command of the user; what it said, or why it was refused."""
        done = self.queue.call("queue", *words)
        if isinstance(done.exception, QuintetError):
            return f"refused: {done.exception}"
        assert not done.exit_code, done.output
        return done.output.strip()

    def add_tasks(self) -> None:
        """Put the tasks in, as a user does."""
        numbers = range(self.plan.tasks)
        for failing in (False, True):
            some = [number for number in numbers if self.plan.fails_first(number) is failing]
            names = [self.queue.task_file(f"{number}") for number in some]
            if not names:
                continue
            rounds = "1" if failing else str(MOST_ROUNDS)
            for number, row in zip(some, json.loads(self._added(names, rounds)), strict=True):
                self.numbers[row["id"]] = number
                words = f"{number} {self.plan.rounds(number)} {failing}\n"
                (self.books / f"{row['id']}.plan").write_text(words, encoding="ascii")

    def _added(self, names: list[str], rounds: str) -> str:
        return self.queue.queue("add", "--json", *names, MAX_ROUNDS=rounds)

    def watch(self) -> None:
        """Let the database and the remote keep books."""
        kind = "sqlite" if self.queue.database.is_file else "postgresql"
        for statement in WATCHED[kind]:
            self.rows(statement)
        if kind == "postgresql":
            (self.remote / "books").write_text(str(self.books), encoding="utf-8")
            _program(self.remote / "hooks/reference-transaction", PUSHED)

    def other_version(self) -> Path:
        """A copy of the program with another version."""
        folder = self.root / "other"
        if not folder.exists():
            package = Path(quintet.__file__).parent
            shutil.copytree(package, folder / "quintet", ignore=shutil.ignore_patterns("__pycache__"))
            path = folder / "quintet/__init__.py"
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(quintet.__version__, OTHER), encoding="utf-8")
        return folder

    def mount(self, home: Path) -> bool:
        """Give a machine a small disk of its own; whether this machine lets us."""
        home.mkdir(exist_ok=True)
        if os.path.ismount(home):
            return True
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(home)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            self.say(f"a small disk cannot be mounted: {done.stderr.strip()}")
        return not done.returncode

    def end(self) -> None:
        """End what is left, by its id, and let the disks go."""
        if (self.root / "away.git").exists():
            (self.root / "away.git").rename(self.remote)
        for pid in processes_of(self.root):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for machine in self.machines:
            for process in machine.started:
                process.wait()
            subprocess.run(["umount", "--lazy", str(machine.home)], capture_output=True, check=False)


def _document(text: object) -> dict[str, Any]:
    value = json.loads(text) if isinstance(text, str) else text
    return value if isinstance(value, dict) else {}


def _program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _script(work: Path) -> dict[str, Any]:
    """Every agent does its part of the work; the tester says what it has found."""
    replies = {
        ANALYST: ANALYST_SUMMARY,
        PEER_ANALYST: ANALYST_APPROVED,
        PROGRAMMER: PROGRAMMER_SUMMARY,
        PEER_PROGRAMMER: PROGRAMMER_APPROVED,
    }
    script: dict[str, Any] = {
        role.name: [[{"run": f"{work} {role.name}"}, {"reply": reply}]] for role, reply in replies.items()
    }
    found = {"when": "pass", "then": [{"reply": PASS}], "else": [{"reply": FAIL}]}
    return script | {TESTER.name: [[{"run": f"{work} {TESTER.name}"}, found]]}


@contextmanager
def scene_of(plan: Batch) -> Iterator[Scene]:
    """The machines of a plan, with nothing started but the database; everything is ended and removed again."""
    if plan.database == POSTGRESQL:
        with postgres() as server, fleet_with_remote(server, plan.lease) as queue:
            yield from _scene(plan, queue, server)
    else:
        with fleet(lease=plan.lease) as queue:
            yield from _scene(plan, queue, None)


def _scene(plan: Batch, queue: Fleet, server: Postgres | None) -> Iterator[Scene]:
    scene = Scene(plan, queue, server)
    scene.books.mkdir()
    work = scene.books / "do-work"
    _program(work, WORK)
    queue.project.script(_script(work))
    scene.machines = [
        Machine(scene, name, slots, scene.root / ("x" if queue.database.is_file else name[0]))
        for name, slots in zip(NAMES, plan.machines, strict=False)
    ]
    try:
        yield scene
    finally:
        scene.end()
