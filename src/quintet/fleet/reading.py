"""Reads the queue, with plain SQL: loading the engine takes longer than all questions together.

The engine's tables are read here and nowhere else.
"""

import json
import re
import sqlite3
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Self

from quintet.errors import DatabaseAway, NoQueue, QueueError
from quintet.fleet.choosing import Situation, Worker
from quintet.fleet.tasks import (
    Needs,
    QueuedTask,
    TaskOutcome,
    TaskProgress,
    TaskSpec,
    TaskStatus,
    is_task_id,
    read_spec,
)
from quintet.layout import fleet_folder
from quintet.prose import plural, printable, without_password

Rows = list[Sequence[Any]]
FORMAT: Final = 1
"""of what tasks and tables hold; raised only where an older program cannot carry out what a newer one has added"""
ENGINE_FORMAT: Final = 123
"""of the engine's tables as they are read here"""
WAITING: Final = "waiting"
"""the queue of all tasks that have no slot; nobody listens to it"""
WORKFLOW: Final = "quintet.task"
"""the engine's name for what carries out a task"""
SCHEMA: Final = "dbos"
"""where the tables are in PostgreSQL"""
INSTALL: Final = "the queue needs more packages; install them with: pip install 'quintet[fleet]'"
_JSON: Final = "portable_json"
_LIVING: Final = ("ENQUEUED", "DELAYED", "PENDING")
_TABLES_FILE: Final = "SELECT 1 FROM sqlite_master WHERE name IN ('quintet_format', 'dbos_migrations')"
_TABLES_SERVER: Final = (
    "SELECT 1 FROM pg_tables WHERE schemaname = 'dbos' AND tablename IN ('quintet_format', 'dbos_migrations')"
)
_VERSIONS: Final = (
    "SELECT (SELECT MAX(version) FROM dbos.quintet_format), (SELECT MAX(version) FROM dbos.dbos_migrations)"
)
_TASKS: Final = """
SELECT task.workflow_uuid, task.status, task.queue_name, task.executor_id, task.owner_xid, task.created_at,
  task.updated_at, task.completed_at, task.serialization, CAST(task.attributes AS TEXT),
  COALESCE(ended.output, task.output), COALESCE(ended.error, task.error)
FROM dbos.workflow_status AS task
LEFT JOIN dbos.workflow_output AS ended ON ended.workflow_uuid = task.workflow_uuid
WHERE task.name = 'quintet.task'"""
_OLDEST_FIRST: Final = " ORDER BY task.created_at"
_NOT_ENDED: Final = " AND task.status IN ('ENQUEUED', 'DELAYED', 'PENDING')"
_NEWEST_ENDED: Final = """ AND task.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING')
ORDER BY COALESCE(task.completed_at, task.updated_at) DESC LIMIT :most"""
_NUMBERS: Final = """
SELECT task.status, COALESCE(ended.output, task.output) LIKE :passed, COUNT(*) FROM dbos.workflow_status AS task
LEFT JOIN dbos.workflow_output AS ended ON ended.workflow_uuid = task.workflow_uuid
WHERE task.name = 'quintet.task' AND task.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') GROUP BY 1, 2"""
_IDS: Final = "SELECT workflow_uuid FROM dbos.workflow_status WHERE name = 'quintet.task' ORDER BY created_at"
_WAITING: Final = "SELECT 1 FROM dbos.workflow_status WHERE status = 'ENQUEUED' AND queue_name = :queue LIMIT 1"
_SPEC: Final = """
SELECT task.serialization, COALESCE(given.inputs, task.inputs) FROM dbos.workflow_status AS task
LEFT JOIN dbos.workflow_input AS given ON given.workflow_uuid = task.workflow_uuid WHERE task.workflow_uuid = :id"""
_WORKERS_FILE: Final = "SELECT document, draining, :now - beat FROM quintet_workers ORDER BY name"
_WORKERS_SERVER: Final = """
SELECT document, draining, EXTRACT(EPOCH FROM clock_timestamp()) - beat FROM dbos.quintet_workers ORDER BY name"""
_SPENT: Final = "SELECT COALESCE(SUM(tokens), 0), COALESCE(SUM(cost), 0) FROM dbos.quintet_spent WHERE day = :day"


def default_url() -> str:
    """The database of a user who has set none up: a file."""
    return f"sqlite:///{fleet_folder() / 'queue.db'}"


class QueueQueries(ABC):
    """A queue, as far as it can be asked something; how a question gets to its database is left open."""

    def __init__(self, url: str) -> None:
        self.url = url or default_url()
        self.is_file = self.url.startswith("sqlite:")
        self.name = without_password(self.url)
        """as it may be shown"""

    @property
    def file(self) -> Path:
        """The file of a queue that is one."""
        return Path(self.url.removeprefix("sqlite:///").partition("?")[0])

    def _select(self, query: str, **values: Any) -> Rows:
        """The rows that answer a query; it names its values as `:name`."""
        return self._ask(self._spelled(query), values)

    def _spelled(self, query: str) -> str:
        """A query as this database takes it: a file has no schemas."""
        return query.replace(f"{SCHEMA}.", "") if self.is_file else query

    @abstractmethod
    def _ask(self, query: str, values: Mapping[str, Any]) -> Rows:
        """The rows that answer a query."""

    @abstractmethod
    def close(self) -> None:
        """Give the connections back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- tasks

    def tasks(self, ids: Sequence[str] | None = None) -> list[QueuedTask]:
        """All tasks, or those with certain names, the oldest first."""
        if ids is None:
            return self._tasks(_OLDEST_FIRST)
        values = {f"id{number}": name for number, name in enumerate(ids)}
        names = ", ".join(f":{key}" for key in values)
        return self._tasks(f" AND task.workflow_uuid IN ({names}){_OLDEST_FIRST}", **values) if ids else []

    def living(self) -> list[QueuedTask]:
        """The tasks that have not ended, the oldest first."""
        return self._tasks(_NOT_ENDED + _OLDEST_FIRST)

    def newest_ended(self, most: int) -> list[QueuedTask]:
        """The tasks that have ended last, the newest first."""
        return self._tasks(_NEWEST_ENDED, most=most)

    def _tasks(self, which: str, **values: Any) -> list[QueuedTask]:
        return [_task(row) for row in self._select(_TASKS + which, **values) if is_task_id(row[0])]

    def task(self, task_id: str) -> QueuedTask | None:
        """One task; None where there is none of this name."""
        return next(iter(self.tasks([task_id])), None)

    def find(self, given: str) -> QueuedTask:
        """The task that the user means: by its whole id, or a beginning or end of it that only one task has."""
        ids = self.ids()
        found = [given] if given in ids else [one for one in ids if one.startswith(given) or one.endswith(given)]
        found = found if given else []  # every name begins with nothing
        if len(found) > 1:
            raise QueueError(f"{given} means {plural(len(found), 'task')}: {', '.join(found[:5])}; write more of one")
        task = self.task(found[0]) if found else None
        if task is None:
            raise QueueError(f"there is no task {printable(given) or repr(given)} in the queue")
        return task

    def ids(self) -> list[str]:
        """The names of all tasks, the oldest first."""
        return [name for (name,) in self._select(_IDS) if is_task_id(name)]

    def numbers(self) -> dict[str, int]:
        """How many tasks have passed, have failed and were cancelled, without reading them."""
        found: Counter[str] = Counter()
        for status, passed, number in self._select(_NUMBERS, passed='%"verdict":"PASS"%'):
            outcome = TaskOutcome(verdict="PASS") if passed else None
            found[str(_status(status, outcome, is_parked=False))] += number
        return dict(found)

    def is_waiting(self) -> bool:
        """Whether some task has no slot; cheap enough to be asked every second."""
        return bool(self._select(_WAITING, queue=WAITING))

    def situation(self) -> Situation:
        """Everything in the queue that decides who is next."""
        tasks = self.living()
        known = {task.id: task.status for task in tasks}
        others = {name for task in tasks for name in task.needs.after} - known.keys()
        ended = self.tasks(sorted(others))
        return Situation(tasks, known | {task.id: task.status for task in ended}, time.time())

    def spec(self, task_id: str) -> TaskSpec:
        """What a task was added with."""
        for serialization, inputs in self._select(_SPEC, id=task_id):
            if serialization == _JSON and inputs:
                return read_spec(task_id, json.loads(inputs)["positionalArgs"][0])
        raise QueueError(f"there is no task {task_id}")

    # -- workers, and what was spent

    def workers(self) -> list[Worker]:
        """All workers that have not ended by themselves, those too that are silent."""
        rows = self._select(_WORKERS_FILE, now=time.time()) if self.is_file else self._select(_WORKERS_SERVER)
        return [
            Worker.model_validate(
                json.loads(document) | {"draining": bool(draining), "silent": max(0.0, float(silent))}
            )
            for document, draining, silent in rows
        ]

    def spent(self, day: str, task_id: str = "") -> tuple[int, float]:
        """The tokens and the money that all tasks, or one, have used on a day."""
        one = {"task": task_id} if task_id else {}
        tokens, cost = self._select(f"{_SPENT} AND task = :task" if one else _SPENT, day=day, **one)[0]
        return int(tokens), float(cost)


class QueueReader(QueueQueries):
    """A queue that is only read, without its engine."""

    def __init__(self, url: str) -> None:
        """Connect. NoQueue where there are no tables."""
        super().__init__(url)
        if find_spec("dbos") is None:
            raise QueueError(INSTALL)
        if self.is_file and not self.file.exists():
            raise NoQueue(f"there is no queue at {self.name}")
        self._connection, self._errors, self._away = self._connect()
        with ExitStack() as undo:
            undo.callback(self.close)
            if len(self._select(_TABLES_FILE if self.is_file else _TABLES_SERVER)) < 2:  # noqa: PLR2004 - both
                raise NoQueue(f"there is no queue at {self.name}")
            self.is_known = tuple(self._select(_VERSIONS)[0]) == (FORMAT, ENGINE_FORMAT)
            """whether the tables have the form that this program reads"""
            undo.pop_all()

    def _connect(self) -> tuple[Any, type[Exception], type[Exception]]:
        """A connection, its errors, and those of them that may pass."""
        if self.is_file:
            with self._told(sqlite3.Error, sqlite3.OperationalError):
                connection = sqlite3.connect(f"{self.file.absolute().as_uri()}?mode=rw", timeout=30.0, uri=True)
            return connection, sqlite3.Error, sqlite3.OperationalError
        import psycopg  # noqa: PLC0415 - a queue in a file does without it

        errors = (psycopg.Error, psycopg.OperationalError)
        with self._told(*errors):
            made = psycopg.connect(libpq_url(self.url), autocommit=True, connect_timeout=10)
        refuse_encoding(made)
        return made, *errors

    def _ask(self, query: str, values: Mapping[str, Any]) -> Rows:
        written = query if self.is_file else re.sub(r":(\w+)", r"%(\1)s", query)
        with self._told(self._errors, self._away):
            rows: Rows = self._connection.execute(written, values).fetchall()
        return rows

    @contextmanager
    def _told(self, errors: type[Exception], away: type[Exception]) -> Iterator[None]:
        """Turn what a driver raises into one line without the address's password."""
        try:
            yield
        except errors as error:
            line = first_line(error).replace(self.url, self.name)
            if isinstance(error, away):
                raise DatabaseAway(f"the queue at {self.name} cannot be reached: {line}") from None
            raise QueueError(f"the queue at {self.name}: {line}") from None

    def close(self) -> None:
        self._connection.close()


def open_to_read(url: str, *, make: bool = True) -> QueueReader:
    """The queue at an address. Its engine is loaded only where the tables are not there, or not of the known form.

    `make`: make tables where there are none; else there is NoQueue.
    """
    try:
        reader = QueueReader(url)
        if reader.is_known:
            return reader
        reader.close()
    except NoQueue:
        if not make:
            raise
    from quintet.fleet.database import Database  # noqa: PLC0415 - takes a second to load

    Database(url).close()  # brings the tables to the form of this program, or says why it cannot
    return QueueReader(url)


def libpq_url(url: str) -> str:
    """The address of a PostgreSQL in the one spelling that the engine and the driver know."""
    return url.replace("postgres://", "postgresql://", 1) if url.startswith("postgres://") else url


def refuse_encoding(connection: Any) -> None:
    """QueueError for a PostgreSQL that does not know the encoding of its texts: it returns bytes, not texts."""
    if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
        name = connection.info.dbname
        connection.close()
        make = f"createdb --encoding=UTF8 --template=template0 {name}_utf8"
        raise QueueError(
            f"the database {name} has the encoding SQL_ASCII; make one with UTF8 and name it in QUEUE: {make}"
        )


def first_line(error: object) -> str:
    """What an error says, in one line."""
    original = getattr(error, "orig", None) or error
    lines = [line.strip() for line in str(original).splitlines() if line.strip()]
    return lines[0] if lines else type(original).__name__


def _task(row: Sequence[Any]) -> QueuedTask:
    """A row of the engine as a task."""
    name, status, place, owner, token, created, updated, completed, serialization, attributes, output, error = row
    told: dict[str, Any] = json.loads(attributes) if attributes else {}
    outcome = _outcome(serialization, output, error)
    parked_until = float(told.get("parked_until") or 0.0)
    is_parked = bool(told.get("parked")) and (not parked_until or parked_until > time.time())
    return QueuedTask(
        id=name,
        title=str(told.get("title", "")),
        repository=str(told.get("repository", "")),
        status=_status(status, outcome, is_parked=is_parked),
        needs=Needs.model_validate(told.get("needs") or {}),
        progress=TaskProgress.model_validate(told.get("progress") or {}),
        outcome=outcome,
        parked=str(told.get("parked") or "") if is_parked else "",
        parked_until=parked_until if is_parked else 0.0,
        gate=str(told.get("gate") or "") if is_parked else "",
        approval=told.get("approval"),
        checkpoint=_commit_id(told.get("checkpoint")),
        result=told.get("result"),
        takeovers=int(told.get("takeovers") or 0),
        attempt=int(told.get("attempt") or 1),
        added=float(told.get("added") or (created or 0) / 1000),
        ended=(completed or updated or 0) / 1000 if status not in _LIVING else 0.0,
        place=place or "",
        owner=(owner or "") if status == "PENDING" else "",
        token=token or "",
        mark=(updated or 0) / 1000,
    )


def _commit_id(found: object) -> str:
    """A commit id; empty for anything else, which git could take for an option."""
    return found if isinstance(found, str) and re.fullmatch(r"[0-9a-f]{40}([0-9a-f]{24})?", found) else ""


def _outcome(serialization: str | None, output: str | None, error: str | None) -> TaskOutcome | None:
    """What came of a task. Only JSON is read: what others wrote in another form could run code here."""
    if output is None and error is None:
        return None
    if serialization != _JSON:
        return TaskOutcome(verdict="FAIL", reason="its result was written by another program")
    if error is not None:
        return TaskOutcome(verdict="FAIL", reason=first_line(json.loads(error).get("message", "")))
    found = json.loads(output or "null")
    return TaskOutcome.model_validate(found) if isinstance(found, dict) else None


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
