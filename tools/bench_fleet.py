"""Measure the queue: `python -m tools.bench_fleet`. Adding, listing, an idle worker, what it asks of a database.

With `postgresql` as its argument it starts a PostgreSQL of its own; without, the queue is a file.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import sqlalchemy as sa

from quintet.fleet.database import Database
from quintet.fleet.tasks import Needs, TaskSpec, attributes_of
from quintet.prose import plural
from tests.fleet.postgres import postgres

NUMBER = 1000
IDLE_SECONDS = 30.0


def add_and_list(database: Database, env: dict[str, str]) -> None:
    """Time a thousand tasks that are added, and listed when they have ended."""
    spec = TaskSpec(
        repository="/x", is_local=True, base="c", text="word " * 500, settings={"limits": {"max_rounds": 3}}
    )
    beside = attributes_of("A task", "/x", Needs(labels=("none",)))
    tasks = {f"task-{number}": (spec, beside) for number in range(NUMBER)}
    begun = time.perf_counter()
    database.add(tasks)
    print(f"adding {NUMBER} tasks: {time.perf_counter() - begun:.2f} s")
    for name in tasks:
        database.cancel(name)
    begun, used = time.perf_counter(), os.times().children_user
    subprocess.run([sys.executable, "-m", "quintet", "queue", "list"], env=env, check=True, stdout=subprocess.DEVNULL)
    whole, processor = time.perf_counter() - begun, os.times().children_user - used
    print(f"`quintet queue list` with {NUMBER} ended tasks: {whole:.2f} s, {processor:.2f} s of the processor")


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
        time.sleep(10.0)  # until it has loaded everything
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
            with postgres() as server:
                measure(server.url, folder)
        else:
            measure(f"sqlite:///{Path(folder) / 'queue.db'}", folder)


if __name__ == "__main__":
    main()
