"""Changes the queue: the only module that knows the engine, DBOS. Every failure is one line.

A task is a workflow of the engine with one step, its run. It waits in a queue that nobody listens to. A worker gives
it to one of its slots by moving it to that slot's own queue. The engine starts it there, and takes a result only from
the process that it has given the task to.
"""

import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

try:
    import sqlalchemy as sa
    from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer
    from dbos import error as dbos_error
    from sqlalchemy import exc as sa_error
    from sqlalchemy.dialects import postgresql, sqlite
except ModuleNotFoundError as missing:
    if not (missing.name or "").startswith(("dbos", "sqlalchemy")):
        raise
    from quintet.errors import QueueError as _QueueError
    from quintet.fleet.reading import INSTALL

    raise _QueueError(INSTALL) from None

from quintet import files
from quintet.errors import DatabaseAway, QueueError
from quintet.fleet.choosing import SLOT, Worker
from quintet.fleet.reading import (
    FORMAT,
    SCHEMA,
    WAITING,
    WORKFLOW,
    QueueQueries,
    Rows,
    default_url,
    first_line,
    libpq_url,
    refuse_encoding,
)
from quintet.fleet.tasks import QueuedTask, TaskOutcome, TaskSpec, TaskStatus, read_spec
from quintet.program import program

_APPLICATION: Final = "quintet"
_VERSION: Final = "quintet-queue-1"
"""constant: the engine would keep a task that has begun for programs of the same version only"""
_LOCK: Final = 0x71756E74
_LOCK_SECONDS: Final = 0.2
_POLL_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 10.0
"""after which PostgreSQL ends a transaction whose process is frozen: others may wait for the rows it has changed"""
_SUBSECONDS_SINCE: Final = (3, 42)
"""the first SQLite whose `unixepoch` knows `subsec`"""
_SEEN: Final = {
    TaskStatus.WAITING: "'ENQUEUED', 'DELAYED'",
    TaskStatus.PARKED: "'ENQUEUED', 'DELAYED'",
    TaskStatus.RUNNING: "'PENDING'",
    TaskStatus.CANCELLED: "'CANCELLED'",
}
"""the engine's words for how a task stands"""
_CHANGE: Final = """
UPDATE dbos.workflow_status SET attributes = {merged}, updated_at = {now}{moved}
WHERE workflow_uuid = :id AND status IN ({seen})
  AND COALESCE(queue_name, '') = :place AND COALESCE(owner_xid, '') = :token"""
_MOVED: Final = """, status = 'ENQUEUED', queue_name = :queue, owner_xid = NULL, recovery_attempts = 0,
  workflow_deadline_epoch_ms = NULL, deduplication_id = NULL, started_at_epoch_ms = NULL, completed_at = NULL"""
"""as the engine itself lets a workflow go on"""


_PASSING: Final = (
    *(sa_error.OperationalError, sa_error.InterfaceError, sa_error.InternalError, sa_error.TimeoutError),
    dbos_error.DBOSQueryTimeoutError,
)
"""what may be over when it is tried again; a transaction that was idle for too long is an internal error"""


def _tables(schema: str | None) -> tuple[sa.Table, sa.Table, sa.Table]:
    """The tables beside those of the engine: the format, the workers, and what was spent by day."""
    data = sa.MetaData(schema=schema)
    return (
        sa.Table("quintet_format", data, sa.Column("version", sa.Integer, primary_key=True)),
        sa.Table(
            "quintet_workers",
            data,
            sa.Column("name", sa.Text, primary_key=True),
            sa.Column("document", sa.Text, nullable=False),
            sa.Column("draining", sa.Boolean, nullable=False),
            sa.Column("beat", sa.Float, nullable=False),
        ),
        sa.Table(
            "quintet_spent",
            data,
            sa.Column("day", sa.Text, primary_key=True),
            sa.Column("task", sa.Text, primary_key=True),
            sa.Column("tokens", sa.BigInteger, nullable=False),
            sa.Column("cost", sa.Float, nullable=False),
        ),
    )


class Database(QueueQueries):
    """The queue in its database, for those who add tasks, change them and give them to slots."""

    def __init__(self, url: str = "") -> None:
        """Connect, and bring the tables to the form of this program."""
        super().__init__(url)
        _silence()
        if self.is_file and not self.file.exists():  # its folder may be anybody's, and keeps its rights
            os.close(files.open_to_keep(self.file))
        self._format, self._workers, self._spent = _tables(None if self.is_file else SCHEMA)
        with ExitStack() as undo, self._told():
            self._engine = _engine(self.url)
            undo.callback(self._engine.dispose)
            self._prepare()
            self._client = DBOSClient(
                system_database_url=libpq_url(self.url),
                application_name=_APPLICATION,
                serializer=DBOSPortableJSONSerializer(),
                retry_connection_errors=False,
                system_database_pool_size=2,
                sys_db_idle_transaction_timeout_sec=_IDLE_SECONDS,
            )
            undo.pop_all()

    def _ask(self, query: str, values: Mapping[str, Any]) -> Rows:
        with self._told(), self._engine.begin() as connection:
            return list(connection.execute(sa.text(query), dict(values)).all())

    def close(self) -> None:
        with suppress(Exception):
            self._client.destroy()
        self._engine.dispose()

    # -- tasks

    def add(self, tasks: Mapping[str, tuple[TaskSpec, Mapping[str, Any]]]) -> set[str]:
        """Put tasks in, all or none: by its id the spec of each and what is written beside it; those that are new."""
        with self._told(), self._engine.begin() as connection:
            # one who adds at a time: two who add the same at once would both be told that it is new
            lock = "BEGIN IMMEDIATE" if self.is_file else f"SELECT pg_advisory_xact_lock({_LOCK + 2})"
            connection.execute(sa.text(lock))
            known = {task.id for task in self.tasks(list(tasks))}
            for task_id, (spec, attributes) in tasks.items():
                options: Any = {
                    "queue_name": WAITING,
                    "workflow_name": WORKFLOW,
                    "workflow_id": task_id,
                    "attributes": dict(attributes),
                }
                if task_id not in known:
                    self._client.enqueue_in_transaction(connection, options, spec.model_dump(mode="json"))
        return tasks.keys() - known

    def change(self, task: QueuedTask, queue: str = "", **attributes: Any) -> bool:
        """Write something down about a task, and put it into a queue where one is named; whether that was done.

        It is not where somebody else has cancelled, moved or started the task since it was seen: the engine's own call
        asks nothing, and a process that was frozen would take the task from the one that has it by now. For the slot
        that has the task, this is also its heartbeat.
        """
        return self._change(task, queue, attributes)

    def move(self, task: QueuedTask, queue: str) -> bool:
        """Put a task into a queue whose row nobody has written since it was seen; whether that was done."""
        return self._change(task, queue, {}, "\n  AND updated_at = :mark", mark=round(task.mark * 1000))

    def _change(
        self, task: QueuedTask, queue: str, attributes: Mapping[str, Any], condition: str = "", **values: Any
    ) -> bool:
        query = _CHANGE.format(
            merged="json_patch(COALESCE(attributes, '{}'), :more)"
            if self.is_file
            else "COALESCE(attributes, '{}') || CAST(:more AS jsonb)",
            now=":now" if self.is_file else "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS bigint)",
            moved=_MOVED if queue else "",
            seen=_SEEN[task.status],
        )
        values |= {"id": task.id, "place": task.place, "token": task.token}
        values |= {"more": json.dumps(attributes)} | ({"queue": queue} if queue else {})
        values |= {"now": int(time.time() * 1000)} if self.is_file else {}
        with self._told(), self._engine.begin() as connection:
            return bool(connection.execute(sa.text(self._spelled(query + condition)), values).rowcount)

    def begin_anew(self, task_id: str, **attributes: Any) -> None:
        """Let a task that has ended wait again, and write something down about it first."""
        with self._told():
            self._client.update_workflow_attributes(task_id, attributes, merge=True)
            self._client.rewind_workflow(task_id, queue_name=WAITING)

    def cancel(self, task_id: str) -> None:
        """Cancel a task that has not ended; its slot sees that by itself."""
        with self._told():
            self._client.cancel_workflow(task_id)

    def delete(self, task_id: str) -> None:
        """Remove a task."""
        with self._told():
            self._client.delete_workflow(task_id)

    def open_slot(self, name: str) -> None:
        """Make the queue of a slot."""
        with self._told():
            self._client.register_queue(
                f"{SLOT}{name}", worker_concurrency=1, polling_interval_sec=_POLL_SECONDS, on_conflict="always_update"
            )

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether this process alone may move tasks between queues until the block ends; others try again later."""
        if self.is_file:
            handle = files.open_to_keep(self.file.with_name(f"{self.file.name}.lock"))
            try:
                yield files.try_lock(handle)
            finally:
                os.close(handle)
            return
        with self._told(), self._engine.begin() as connection:
            yield bool(connection.execute(sa.select(sa.func.pg_try_advisory_xact_lock(_LOCK))).scalar())

    # -- workers

    def beat(self, worker: Worker) -> bool:
        """Write down that a worker is there, and what it has; whether it is to be drained."""
        row = {"document": worker.model_dump_json(exclude={"draining", "silent"}), "beat": self._now}
        table = self._workers
        with self._told(), self._engine.begin() as connection:
            connection.execute(self._write(table, {"name": worker.name}, row, draining=False))
            return bool(connection.execute(sa.select(table.c.draining).where(table.c.name == worker.name)).scalar())

    def drain(self, name: str, *, draining: bool) -> None:
        """Say that a worker takes no more tasks, or takes some again."""
        table = self._workers
        with self._told(), self._engine.begin() as connection:
            connection.execute(sa.update(table).where(table.c.name == name).values(draining=draining))

    def forget_worker(self, name: str, *, unless_drained: bool = False) -> None:
        """Remove a worker that has ended."""
        table = self._workers
        gone = sa.delete(table).where(table.c.name == name)
        with self._told(), self._engine.begin() as connection:
            connection.execute(gone.where(~table.c.draining) if unless_drained else gone)

    # -- what was spent

    def spend(self, task_id: str, day: str, tokens: int, cost: float) -> None:
        """Write down what a task has used on a day."""
        table, row = self._spent, {"tokens": tokens, "cost": cost}
        with self._told(), self._engine.begin() as connection:
            connection.execute(self._write(table, {"day": day, "task": task_id}, row))

    def _write(self, table: sa.Table, key: dict[str, Any], row: dict[str, Any], **first: Any) -> sa.Insert:
        """Change a row, or make it, with `first` too; a slot that wakes up late may do the same at the same time."""
        insert = sqlite.insert if self.is_file else postgresql.insert
        made = insert(table).values(key | row | first)
        return made.on_conflict_do_update(index_elements=list(key), set_=row)

    # -- the database itself

    @property
    def _now(self) -> sa.ColumnElement[float]:
        """The time by the database's clock; a file has that of its machine."""
        if self.is_file:
            return sa.literal(time.time())
        return sa.cast(sa.func.extract("epoch", sa.func.clock_timestamp()), sa.Float)

    def try_to_write(self) -> None:
        """Write something that changes nothing; QueueError where that is not allowed."""
        with self._told(), self._engine.begin() as connection:
            connection.execute(sa.update(self._format).values(version=self._format.c.version))

    def _prepare(self) -> None:
        """Make or migrate the tables, one process at a time; refuse those of a newer program."""
        found = self._versions()
        if found != (FORMAT, _latest(self._engine)):
            with self._migrating():
                self._migrate()

    def _migrate(self) -> None:
        known, (own, engine) = _latest(self._engine), self._versions()
        if own > FORMAT or engine > known:
            raise QueueError(
                f"the queue at {self.name} was made by a newer Quintet (format {own}.{engine}, this one knows "
                f"{FORMAT}.{known}); upgrade Quintet here: pip install --upgrade 'quintet[fleet]'"
            )
        try:
            if engine < known:
                DBOS.migrate(libpq_url(self.url), schema=SCHEMA)
            self._format.metadata.create_all(self._engine)
            with self._engine.begin() as connection:
                connection.execute(sa.delete(self._format))
                connection.execute(sa.insert(self._format).values(version=FORMAT))
        except (sa_error.ProgrammingError, sa_error.InternalError) as error:
            found = f"is older than this Quintet (format {own}.{engine}), and this user may not change it"
            found = found if engine else "has no tables yet, and this user may not make them"
            owner = f"let the owner of the database run: {program()} queue"
            raise QueueError(f"the queue at {self.name} {found}: {first_line(error)}; {owner}") from None

    def _versions(self) -> tuple[int, int]:
        """The formats of our own tables and of the engine's; 0 for those that are not there."""
        schema, own, engine = self._format.schema, 0, 0
        with self._engine.begin() as connection:
            inspector = sa.inspect(connection)
            if inspector.has_table("quintet_format", schema=schema):
                own = connection.execute(sa.select(sa.func.max(self._format.c.version))).scalar() or 0
            if inspector.has_table("dbos_migrations", schema=schema):
                table = sa.table("dbos_migrations", sa.column("version"), schema=schema)
                engine = connection.execute(sa.select(sa.func.max(table.c.version))).scalar() or 0
        return own, engine

    @contextmanager
    def _migrating(self) -> Iterator[None]:
        """Let one process at a time change the tables."""
        if self.is_file:
            with files.locked(self.file.with_name(f"{self.file.name}.migration")):
                yield
            return
        # The engine makes indexes, for which PostgreSQL waits until all transactions and statements have ended that
        # were there before: so there is no transaction here, and whoever waits for the lock asks again and again.
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            while not connection.execute(sa.select(sa.func.pg_try_advisory_lock(_LOCK + 1))).scalar():
                time.sleep(_LOCK_SECONDS)
            try:
                yield
            finally:
                connection.execute(sa.select(sa.func.pg_advisory_unlock(_LOCK + 1)))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what the engine raises into one line without the address's password."""
        try:
            yield
        except _PASSING as error:
            raise DatabaseAway(f"the queue at {self.name} cannot be reached: {first_line(error)}") from None
        except (sa_error.SQLAlchemyError, dbos_error.DBOSException) as error:
            raise QueueError(f"the queue at {self.name}: {first_line(error)}") from None


def serve(url: str, slot: str, carry_out: Callable[[str, TaskSpec], TaskOutcome]) -> None:
    """Let the engine start the tasks of a slot in this process; it returns at once.

    A task that an earlier process of this slot has left is started again.
    """

    @DBOS.step(name="run")
    def run(task_id: str, spec: dict[str, Any]) -> dict[str, Any]:
        return carry_out(task_id, read_spec(task_id, spec)).model_dump(mode="json")

    @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=1_000_000)  # takeovers are counted where they happen
    def task(spec: dict[str, Any]) -> dict[str, Any]:
        return run(str(DBOS.workflow_id), spec)

    _silence()
    DBOS(
        config={
            "name": _APPLICATION,
            "system_database_url": libpq_url(url or default_url()),
            "executor_id": slot,
            "application_version": _VERSION,
            "sys_db_pool_size": 2,
            "sys_db_idle_transaction_timeout_sec": _IDLE_SECONDS,
            "serializer": DBOSPortableJSONSerializer(),
        }
    )
    DBOS.listen_queues([f"{SLOT}{slot}"])
    DBOS.launch()


def _engine(url: str) -> sa.Engine:
    if url.startswith("sqlite:"):
        engine = sa.create_engine(url, connect_args={"timeout": 30.0})
        sa.event.listen(engine, "connect", lambda connection, _: setattr(connection, "isolation_level", "IMMEDIATE"))
        return engine
    made = sa.make_url(libpq_url(url)).set(drivername="postgresql+psycopg")
    limits = {"connect_timeout": 10, "tcp_user_timeout": 30_000}
    pool = {"pool_size": 1, "max_overflow": 1, "pool_timeout": 10, "pool_pre_ping": True}
    engine = sa.create_engine(made, connect_args=limits, **pool)
    # first: SQLAlchemy itself stumbles over what it is there to refuse
    sa.event.listen(engine, "connect", lambda connection, _: refuse_encoding(connection), insert=True)
    sa.event.listen(engine, "connect", _end_idle_transactions)
    return engine


def _define_unixepoch(connection: Any, _record: object) -> None:
    """Give an older SQLite the function that the engine uses on Python 3.12 and later, whatever the version is."""
    if isinstance(connection, sqlite3.Connection) and sqlite3.sqlite_version_info < _SUBSECONDS_SINCE:
        connection.execute("PRAGMA trusted_schema = ON")  # the engine's tables use it in their defaults
        connection.create_function("unixepoch", 1, _unixepoch)


def _unixepoch(modifier: str) -> float | None:
    """Return the time for `subsec`, the one form that the engine uses; None, as SQLite does, for any other."""
    return round(time.time(), 3) if modifier == "subsec" else None


sa.event.listen(sa.Engine, "connect", _define_unixepoch)  # all engines: DBOS makes its own


def _end_idle_transactions(connection: Any, _record: object) -> None:
    connection.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s'")
    connection.commit()


def _latest(engine: sa.Engine) -> int:
    """The newest form of the engine's tables that is known here."""
    from dbos import _migration  # noqa: PLC0415 - not a part of its public interface

    if engine.dialect.name == "sqlite":
        return len(_migration.sqlite_migrations)
    return len(_migration.get_dbos_migrations(SCHEMA, use_listen_notify=True, is_cockroach=False))


def _silence() -> None:
    """Let the engine log nothing: it would write hundreds of lines while its database is away."""
    log = logging.getLogger("dbos")
    log.handlers = [logging.NullHandler()]
    log.propagate = False
