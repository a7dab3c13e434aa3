"""The queue's database: the only module that knows the engine, DBOS. Every failure is one line.

A task is a workflow of the engine with one step, its run. It waits in a queue that nobody listens to. A worker gives
it to one of its slots by moving it to that slot's own queue. The engine starts it there, and takes a result only from
the process that it has given the task to.
"""

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

try:
    import sqlalchemy as sa
    from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer, WorkflowStatus
    from dbos import error as dbos_error
    from sqlalchemy import exc as sa_error
except ModuleNotFoundError as missing:
    if not (missing.name or "").startswith(("dbos", "sqlalchemy")):
        raise
    from quintet.errors import QueueError as _QueueError

    raise _QueueError("the queue needs more packages; install them with: pip install 'quintet[fleet]'") from None

from quintet import files
from quintet.errors import DatabaseAway, QueueError
from quintet.fleet.choosing import SLOT, Situation, Worker
from quintet.fleet.tasks import Needs, QueuedTask, TaskOutcome, TaskProgress, TaskSpec, TaskStatus
from quintet.layout import fleet_folder
from quintet.prose import without_password

FORMAT: Final = 1
"""of what tasks and tables hold; raised only where an older program cannot carry out what a newer one has added"""
WAITING: Final = "waiting"
"""the queue of all tasks that have no slot; nobody listens to it"""
_APPLICATION: Final = "quintet"
_VERSION: Final = "quintet-queue-1"
"""constant: the engine would keep a task that has begun for programs of the same version only"""
_WORKFLOW: Final = "quintet.task"
_SCHEMA: Final = "dbos"
_LOCK: Final = 0x71756E74
_POLL_SECONDS: Final = 1.0
_LIVING: Final = ["ENQUEUED", "DELAYED", "PENDING"]


def default_url() -> str:
    """The database of a user who has set none up: a file."""
    return f"sqlite:///{fleet_folder() / 'queue.db'}"


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


class Database:
    """The queue in its database, for those who add tasks, look at them and give them to slots."""

    def __init__(self, url: str = "") -> None:
        """Connect, and bring the tables to the form of this program."""
        _silence()
        self.url = url or default_url()
        self.is_file = self.url.startswith("sqlite:")
        self.name = without_password(self.url)
        if self.is_file:
            files.make_folder(self._file.parent)
        self._format, self._workers, self._spent = _tables(None if self.is_file else _SCHEMA)
        with self._told():
            self._engine = _engine(self.url)
            self._prepare()
            self._client = DBOSClient(
                system_database_url=_engine_url(self.url),
                application_name=_APPLICATION,
                serializer=DBOSPortableJSONSerializer(),
                retry_connection_errors=False,
                system_database_pool_size=2,
            )

    @property
    def _file(self) -> Path:
        return Path(self.url.removeprefix("sqlite:///").partition("?")[0])

    def close(self) -> None:
        """Give the connections back."""
        with suppress(Exception):
            self._client.destroy()
        self._engine.dispose()

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- tasks

    def add(self, tasks: Mapping[str, tuple[TaskSpec, Mapping[str, Any]]]) -> set[str]:
        """Put tasks in, all or none: by its id the spec of each and what is written beside it; those that are new."""
        with self._told(), self._engine.begin() as connection:
            known = {row.workflow_id for row in self._rows(workflow_ids=list(tasks))}
            for task_id, (spec, attributes) in tasks.items():
                options: Any = {
                    "queue_name": WAITING,
                    "workflow_name": _WORKFLOW,
                    "workflow_id": task_id,
                    "attributes": dict(attributes),
                }
                if task_id not in known:
                    self._client.enqueue_in_transaction(connection, options, spec.model_dump(mode="json"))
            return tasks.keys() - known

    def tasks(self, ids: Sequence[str] | None = None) -> list[QueuedTask]:
        """All tasks, or those with certain names, the oldest first."""
        with self._told():
            return [_task(row) for row in self._rows(workflow_ids=None if ids is None else list(ids))]

    def living(self) -> list[QueuedTask]:
        """The tasks that have not ended, the oldest first."""
        with self._told():
            return [_task(row) for row in self._rows(status=_LIVING)]

    def waiting_number(self) -> int:
        """How many tasks have no slot; cheap enough to be asked every second."""
        with self._told():
            return len(self._rows(status="ENQUEUED", queue_name=WAITING, limit=1))

    def situation(self) -> Situation:
        """Everything in the queue that decides who is next."""
        tasks = self.living()
        known = {task.id: task.status for task in tasks}
        others = {name for task in tasks for name in task.needs.after} - known.keys()
        ended = self.tasks(sorted(others)) if others else []
        return Situation(tasks, known | {task.id: task.status for task in ended}, time.time())

    def task(self, task_id: str) -> QueuedTask | None:
        """One task; None where there is none of this name."""
        return next(iter(self.tasks([task_id])), None)

    def spec(self, task_id: str) -> TaskSpec:
        """What a task was added with."""
        with self._told():
            rows = self._client.list_workflows(workflow_ids=[task_id], load_output=False)
        if not rows or not rows[0].input:
            raise QueueError(f"there is no task {task_id}")
        return TaskSpec.model_validate(rows[0].input["args"][0])

    def _rows(self, **which: Any) -> list[WorkflowStatus]:
        return self._client.list_workflows(name=_WORKFLOW, load_input=False, **which)

    def note(self, task_id: str, **attributes: Any) -> None:
        """Write something down about a task; this is also the heartbeat of the slot that has it."""
        with self._told():
            self._client.update_workflow_attributes(task_id, attributes, merge=True)

    def move(self, task_id: str, queue: str = WAITING) -> None:
        """Put a task that has not ended, or was cancelled, into a queue. Whoever has it loses it."""
        with self._told():
            self._client.resume_workflow(task_id, queue_name=queue)

    def rewind(self, task_id: str) -> None:
        """Let a task that has ended wait again."""
        with self._told():
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
        """Whether this process alone may move tasks between queues until the block ends; others try again later.

        A process that is frozen in the block keeps the others waiting for seconds only: then PostgreSQL ends its
        transaction.
        """
        if self.is_file:
            handle = files.open_to_keep(self._file.with_name(f"{self._file.name}.lock"))
            try:
                yield files.try_lock(handle)
            finally:
                os.close(handle)
            return
        with self._told(), self._engine.begin() as connection:
            connection.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = '10s'"))
            yield bool(connection.execute(sa.select(sa.func.pg_try_advisory_xact_lock(_LOCK))).scalar())

    # -- workers

    def beat(self, worker: Worker) -> bool:
        """Write down that a worker is there, and what it has; whether it is to be drained."""
        row = {"document": worker.model_dump_json(exclude={"draining", "silent"}), "beat": self._now}
        table = self._workers
        with self._told(), self._engine.begin() as connection:
            mine = table.c.name == worker.name
            if not connection.execute(sa.update(table).where(mine).values(row)).rowcount:
                connection.execute(sa.insert(table).values(row | {"name": worker.name, "draining": False}))
            return bool(connection.execute(sa.select(table.c.draining).where(mine)).scalar())

    def workers(self) -> list[Worker]:
        """All workers that have not ended by themselves, those too that are silent."""
        table = self._workers
        columns = (table.c.document, table.c.draining, (self._now - table.c.beat).label("silent"))
        with self._told(), self._engine.begin() as connection:
            rows = connection.execute(sa.select(*columns).order_by(table.c.name)).all()
        return [
            Worker.model_validate(json.loads(document) | {"draining": draining, "silent": max(0.0, float(silent))})
            for document, draining, silent in rows
        ]

    def drain(self, name: str, *, draining: bool) -> bool:
        """Say that a worker takes no more tasks, or takes some again; whether there is such a worker."""
        table = self._workers
        with self._told(), self._engine.begin() as connection:
            changed = connection.execute(sa.update(table).where(table.c.name == name).values(draining=draining))
            return bool(changed.rowcount)

    def forget_worker(self, name: str) -> None:
        """Remove a worker that has ended."""
        with self._told(), self._engine.begin() as connection:
            connection.execute(sa.delete(self._workers).where(self._workers.c.name == name))

    # -- what was spent

    def spend(self, task_id: str, day: str, tokens: int, cost: float) -> None:
        """Write down what a task has used on a day."""
        table, row = self._spent, {"tokens": tokens, "cost": cost}
        with self._told(), self._engine.begin() as connection:
            mine = (table.c.day == day) & (table.c.task == task_id)
            if not connection.execute(sa.update(table).where(mine).values(row)).rowcount:
                connection.execute(sa.insert(table).values(row | {"day": day, "task": task_id}))

    def spent(self, day: str, task_id: str = "") -> tuple[int, float]:
        """The tokens and the money that all tasks, or one, have used on a day."""
        table = self._spent
        sums = sa.select(
            sa.func.coalesce(sa.func.sum(table.c.tokens), 0), sa.func.coalesce(sa.func.sum(table.c.cost), 0)
        )
        which = (table.c.day == day) & (table.c.task == task_id) if task_id else table.c.day == day
        with self._told(), self._engine.begin() as connection:
            tokens, cost = connection.execute(sums.where(which)).one()
        return int(tokens), float(cost)

    # -- the database itself

    @property
    def _now(self) -> sa.ColumnElement[float]:
        """The time by the database's clock; a file has that of its machine."""
        if self.is_file:
            return sa.literal(time.time())
        return sa.cast(sa.func.extract("epoch", sa.func.clock_timestamp()), sa.Float)

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
                DBOS.migrate(_engine_url(self.url), schema=_SCHEMA)
            self._format.metadata.create_all(self._engine)
            with self._engine.begin() as connection:
                connection.execute(sa.delete(self._format))
                connection.execute(sa.insert(self._format).values(version=FORMAT))
        except sa_error.ProgrammingError as error:
            old = f"the queue at {self.name} is older than this Quintet (format {own}.{engine})"
            raise QueueError(f"{old}, and cannot be changed by this user: {_first_line(error)}") from None

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
            with files.locked(self._file.with_name(f"{self._file.name}.migration")):
                yield
            return
        # in no transaction: the engine makes indexes, for which PostgreSQL waits until all transactions have ended
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sa.select(sa.func.pg_advisory_lock(_LOCK + 1)))
            try:
                yield
            finally:
                connection.execute(sa.select(sa.func.pg_advisory_unlock(_LOCK + 1)))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what the engine raises into one line without the address's password."""
        try:
            yield
        except (sa_error.OperationalError, sa_error.InterfaceError, sa_error.TimeoutError) as error:
            raise DatabaseAway(f"the queue at {self.name} cannot be reached: {_first_line(error)}") from None
        except sa_error.SQLAlchemyError as error:
            raise QueueError(f"the queue at {self.name}: {_first_line(error)}") from None
        except dbos_error.DBOSException as error:
            raise QueueError(f"the queue at {self.name}: {_first_line(error)}") from None


def serve(url: str, slot: str, carry_out: Callable[[str, TaskSpec], TaskOutcome]) -> None:
    """Let the engine start the tasks of a slot in this process; it returns at once.

    A task that an earlier process of this slot has left is started again.
    """

    @DBOS.step(name="run")
    def run(task_id: str, spec: dict[str, Any]) -> dict[str, Any]:
        return carry_out(task_id, TaskSpec.model_validate(spec)).model_dump(mode="json")

    @DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=1_000_000)  # takeovers are counted where they happen
    def task(spec: dict[str, Any]) -> dict[str, Any]:
        return run(str(DBOS.workflow_id), spec)

    _silence()
    DBOS(
        config={
            "name": _APPLICATION,
            "system_database_url": _engine_url(url or default_url()),
            "executor_id": slot,
            "application_version": _VERSION,
            "sys_db_pool_size": 2,
            "serializer": DBOSPortableJSONSerializer(),
        }
    )
    DBOS.listen_queues([f"{SLOT}{slot}"])
    DBOS.launch()


def _task(row: WorkflowStatus) -> QueuedTask:
    """A row of the engine as a task."""
    told: dict[str, Any] = row.attributes or {}
    outcome = TaskOutcome.model_validate(row.output) if isinstance(row.output, dict) else None
    if row.error is not None:
        outcome = TaskOutcome(verdict="FAIL", reason=_first_line(row.error))
    parked_until = float(told.get("parked_until") or 0.0)
    is_parked = bool(told.get("parked")) and (not parked_until or parked_until > time.time())
    ended = (row.completed_at or row.updated_at or 0) / 1000 if row.status not in _LIVING else 0.0
    return QueuedTask(
        id=row.workflow_id,
        title=str(told.get("title", "")),
        repository=str(told.get("repository", "")),
        status=_status(row.status, outcome, is_parked=is_parked),
        needs=Needs.model_validate(told.get("needs") or {}),
        progress=TaskProgress.model_validate(told.get("progress") or {}),
        outcome=outcome,
        parked=str(told.get("parked") or "") if is_parked else "",
        parked_until=parked_until if is_parked else 0.0,
        takeovers=int(told.get("takeovers") or 0),
        attempt=int(told.get("attempt") or 1),
        added=float(told.get("added") or (row.created_at or 0) / 1000),
        ended=ended,
        place=row.queue_name or "",
        owner=(row.executor_id or "") if row.status == "PENDING" else "",
        mark=(row.updated_at or 0) / 1000,
    )


def _status(engine: str, outcome: TaskOutcome | None, *, is_parked: bool) -> TaskStatus:
    match engine:
        case "ENQUEUED" | "DELAYED":
            return TaskStatus.PARKED if is_parked else TaskStatus.WAITING
        case "PENDING":
            return TaskStatus.RUNNING
        case "CANCELLED":
            return TaskStatus.CANCELLED
        case _:
            return TaskStatus.PASSED if outcome and outcome.verdict == "PASS" else TaskStatus.FAILED


def _engine(url: str) -> sa.Engine:
    if url.startswith("sqlite:"):
        engine = sa.create_engine(url, connect_args={"timeout": 30.0})
        sa.event.listen(engine, "connect", lambda connection, _: setattr(connection, "isolation_level", "IMMEDIATE"))
        return engine
    made = sa.make_url(_engine_url(url)).set(drivername="postgresql+psycopg")
    return sa.create_engine(
        made, pool_size=1, max_overflow=1, pool_timeout=10, pool_pre_ping=True, connect_args={"connect_timeout": 10}
    )


def _engine_url(url: str) -> str:
    """The address in the engine's spelling."""
    return url.replace("postgres://", "postgresql://", 1) if url.startswith("postgres://") else url


def _latest(engine: sa.Engine) -> int:
    """The newest form of the engine's tables that is known here."""
    from dbos import _migration  # noqa: PLC0415 - not a part of its public interface

    if engine.dialect.name == "sqlite":
        return len(_migration.sqlite_migrations)
    return len(_migration.get_dbos_migrations(_SCHEMA, use_listen_notify=True, is_cockroach=False))


def _silence() -> None:
    """Let the engine log nothing: it would write hundreds of lines while its database is away."""
    log = logging.getLogger("dbos")
    log.handlers = [logging.NullHandler()]
    log.propagate = False


def _first_line(error: BaseException) -> str:
    original = getattr(error, "orig", None) or error
    lines = [line.strip() for line in str(original).splitlines() if line.strip()]
    return lines[0] if lines else type(original).__name__
