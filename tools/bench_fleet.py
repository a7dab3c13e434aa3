"""Measure the queue: `python -m tools.bench_fleet`. Adding, listing, an idle worker, the start of a task.

With `postgresql` as its argument it starts a PostgreSQL of its own; without, the queue is a file.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import sqlalchemy as sa

from quintet.fleet.database import Database
from quintet.fleet.tasks import Needs, TaskSpec, TaskStatus, attributes_of
from quintet.prose import plural
from tests.fleet.postgres import postgres
from tests.fleet.rig import Fleet, children_in, fleet, fleet_with_remote
from tests.workspace.worktree_runs import building_story

NUMBER = 1000
SETTLED_SECONDS = 65.0
"""the engine asks more of the database in its first minute"""
IDLE_SECONDS = 30.0
TRIES = 5


def add_and_list(database: Database, env: dict[str, str]) -> None:
    """Time a thousand tasks that are added, and listed when they have ended."""
    spec = TaskSpec(
        repository="/x", is_local=True, base="c", text="word " * 500, settings={"limits": {"max_rounds": 3}}
    )
    beside = attributes_of("A task", "/x", Needs(labels=("none",)))
    tasks = {f"task-{number}": (spec, beside) for number in range(NUMBER)}
    begun, used = time.perf_counter(), time.process_time()
    database.add(tasks)
    whole, processor = time.perf_counter() - begun, time.process_time() - used
    print(f"adding {NUMBER} tasks: {whole:.2f} s, {processor:.2f} s of the processor")
    for name in tasks:
        database.cancel(name)
    times = [timed([sys.executable, "-m", "quintet", "queue", "list"], env) for _ in range(TRIES)]
    print(f"`quintet queue list` with {NUMBER} ended tasks: {best(times)}")


def timed(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """The seconds that a command takes, and those of the processor."""
    begun, before = time.perf_counter(), os.times()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begun, used


def best(times: list[tuple[float, float]]) -> str:
    whole, used = zip(*times, strict=True)
    return f"{min(whole):.2f} to {max(whole):.2f} s, {min(used):.2f} to {max(used):.2f} s of the processor"


def has_begun(queue: Fleet, task: str) -> bool:
    return bool(queue.task(task).progress.run)


def measure_start(queue: Fleet) -> None:
    """Print how long after it was added a task is with an idle slot, and its run has begun."""
    queue.project.script(building_story())
    queue.worker("--name", "idle")
    deadline = time.monotonic() + 60
    while not children_in(queue.project.root, "slot"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(10.0)  # until it has loaded everything
    taken, begun = [], []
    for number in range(TRIES):
        task = queue.add(f"start-{number}")
        added = time.time()
        queue.until(partial(has_begun, queue, task), "the run has begun")
        begun.append(time.time() - added)
        taken.append(queue.task(task).progress.since - added)
        queue.until_status(task, TaskStatus.PASSED)
    print(f"a task is with an idle slot after {min(taken):.2f} to {max(taken):.2f} s")
    print(f"its run has begun after {min(begun):.2f} to {max(begun):.2f} s")


@contextmanager
def idle_worker(env: dict[str, str], slots: int) -> Iterator[list[psutil.Process]]:
    """A worker that has nothing to do: its process and that of its first slot."""
    command = [sys.executable, "-m", "quintet", "worker", "--name", "idle", "--slots", str(slots)]
    worker = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    try:
        whole = psutil.Process(worker.pid)
        deadline = time.monotonic() + 60
        while len(found := whole.children()) < slots:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(SETTLED_SECONDS)
        yield [whole, found[0]]
    finally:
        worker.terminate()
        worker.wait()


def measure_idle(env: dict[str, str], url: str, slots: int) -> None:
    """Print what an idle worker and a slot of it use, and what all of it asks of PostgreSQL."""
    print(f"a worker with {plural(slots, 'slot')}:")
    with idle_worker(env, slots) as processes:
        before = [sum(one.cpu_times()[:2]) for one in processes]
        asked = transactions(url)
        time.sleep(IDLE_SECONDS)
        for name, one, used in zip(("worker", "slot"), processes, before, strict=True):
            share = (sum(one.cpu_times()[:2]) - used) / IDLE_SECONDS
            print(f"idle {name}: {share:.1%} of a core, {one.memory_info().rss / 1e6:.0f} MB")
        if asked and (now := transactions(url)):
            print(f"{(now[0] - asked[0]) / IDLE_SECONDS:.1f} transactions a second")
            print(f"connections: {now[1]}")


def transactions(url: str) -> tuple[int, int] | None:
    """How many transactions PostgreSQL has carried out, and the connections there are beside this one."""
    if url.startswith("sqlite"):
        return None
    engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"), poolclass=sa.NullPool)
    with engine.connect() as connection:
        done = connection.execute(sa.text("SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database")).scalar()
        words = (
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return int(done or 0), int(connection.execute(sa.text(words)).scalar() or 0)


def measure(url: str, folder: str) -> None:
    env = os.environ | {"QUEUE": url, "XDG_STATE_HOME": folder}
    with Database(url) as database:
        add_and_list(database, env)
    for slots in (1, 4):
        measure_idle(env, url, slots)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="qb", dir="/tmp") as folder:
        if sys.argv[1:] == ["postgresql"]:
            with postgres() as server, fleet_with_remote(server, lease=120.0) as queue:
                measure(server.url, folder)
                measure_start(queue)
        else:
            measure(f"sqlite:///{Path(folder) / 'queue.db'}", folder)
            with fleet() as queue:
                measure_start(queue)


if __name__ == "__main__":
    main()
