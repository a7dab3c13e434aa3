"""What `quintet queue doctor` checks: the database, the remote of the project, the workers and the agents here."""

import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from quintet import git
from quintet.config import Settings
from quintet.errors import GitError, QueueError, QuintetError
from quintet.fleet.add import find_source
from quintet.fleet.database import Database
from quintet.fleet.listing import living_workers
from quintet.fleet.reading import FORMAT, QueueQueries
from quintet.program import program
from quintet.prose import plural
from quintet.setup.checks import DoctorFinding, failure, ok, warning
from quintet.setup.machine_checks import check_agents


def examine_queue(settings: Settings, env: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Each check with what was found."""
    try:
        database = Database(settings.queue_url)
    except QueueError as error:
        yield failure("database", str(error), "correct QUEUE (queue.url), or start the database")
        return
    with database:
        yield _database(database)
        yield _repository(settings, database)
        yield _workers(settings, database)
    yield from _worker_file(env)
    yield from check_agents(env, settings)


def _worker_file(env: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Whether only this user can read the file from which the service of a worker has the address of the queue."""
    config = Path(env.get("XDG_CONFIG_HOME") or Path(env.get("HOME", "/")) / ".config")
    path = config / "quintet" / "worker.env"
    with suppress(OSError):
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            yield failure("worker.env", f"{path} is open to other users, and may hold a password", f"chmod 600 {path}")


def _database(database: Database) -> DoctorFinding:
    """Whether this user may write to the database, too."""
    try:
        database.try_to_write()
    except QueueError as error:
        return failure("database", str(error), "give this user the right to write to it")
    return ok("database", f"{database.name}, format {FORMAT}")


def _repository(settings: Settings, database: QueueQueries) -> DoctorFinding:
    """Whether workers get the project, and can push its results."""
    try:
        source = find_source(settings, is_local=database.is_file)
    except QuintetError as error:
        return failure("project", str(error), "then try again")
    if source.is_local:
        return ok("project", f"{source.address}, on this machine")
    words = ("push", "--dry-run", "--porcelain", source.address, f"{source.base}:refs/quintet/doctor/state")
    try:
        git.run(settings.wd, *words, seconds=60)
    except GitError as error:
        return failure("project", f"{source.address} cannot be pushed to: {error}", "give this user the right to push")
    return ok("project", f"{source.address} can be read and pushed to")


def _workers(settings: Settings, database: QueueQueries) -> DoctorFinding:
    workers = living_workers(database.workers(), settings.queue_lease)
    if not workers:
        return warning("workers", "none is running", f"{program()} worker --slots 2")
    slots = sum(worker.slots for worker in workers)
    return ok("workers", f"{', '.join(worker.name for worker in workers)}, with {plural(slots, 'slot')}")
