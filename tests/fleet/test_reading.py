"""The queue is read without its engine: what the engine wrote is understood, what others wrote does no harm."""

import base64
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from dbos import _migration

from quintet.errors import NoQueue, QueueError
from quintet.fleet.reading import ENGINE_FORMAT, SCHEMA, QueueReader, open_to_read
from quintet.fleet.tasks import TaskStatus
from tests.fleet.rig import Fleet


def test_the_tables_of_the_installed_engine_are_known() -> None:
    server = _migration.get_dbos_migrations(SCHEMA, use_listen_notify=True, is_cockroach=False)
    assert (len(_migration.sqlite_migrations), len(server)) == (ENGINE_FORMAT, ENGINE_FORMAT)


def test_a_reader_sees_what_those_see_who_change_the_queue(queue: Fleet) -> None:
    first, second = queue.add("a"), queue.add("b")
    queue.note(first, parked="why", parked_until=0)
    queue.database.cancel(second)
    with QueueReader(queue.url) as reader:
        assert reader.is_known
        assert reader.tasks() == queue.database.tasks()
        assert [task.id for task in reader.living()] == [first]
        assert [task.id for task in reader.newest_ended(5)] == [second]
        assert reader.newest_ended(0) == []
        assert reader.spec(first) == queue.database.spec(first)
        assert reader.find(first[-8:]).status is TaskStatus.PARKED
        assert reader.tasks([]) == []


LOOK = """
import sys
from click.testing import CliRunner
from quintet.cli.main import cli
for words in ("queue", "queue list --json", "queue show add", "workers"):
    done = CliRunner().invoke(cli, words.split())
    assert done.exit_code == 0, (words, done)
print(*sys.modules)
"""


def test_looking_at_the_queue_does_not_load_its_engine(queue: Fleet) -> None:
    queue.add("a")
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        env=os.environ | queue.project.env | queue.settings,
        cwd=queue.project.wd,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "quintet.fleet.reading" in loaded
    assert loaded.isdisjoint({"dbos", "sqlalchemy", "psycopg", "quintet.execute"})


def test_a_form_of_the_engine_that_is_not_known_is_left_to_the_engine(queue: Fleet) -> None:
    task = queue.add("a")
    queue.sql("UPDATE dbos_migrations SET version = ?", ENGINE_FORMAT + 1)
    assert f"was made by a newer Quintet (format 1.{ENGINE_FORMAT + 1}, this one knows" in queue.refused("queue")
    queue.sql("UPDATE dbos_migrations SET version = ?", ENGINE_FORMAT)
    assert list(queue.listed()) == [task]


def test_where_there_is_no_queue_a_reader_makes_none_unless_it_is_asked_to(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"
    with pytest.raises(NoQueue, match="there is no queue at sqlite:"):
        open_to_read(url, make=False)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "queue.db").touch()
    with pytest.raises(NoQueue):
        open_to_read(url, make=False)
    with open_to_read(url) as reader:
        assert reader.tasks() == []


class _Harmful:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("harm",)


def test_what_somebody_else_has_written_is_never_unpickled(
    queue: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = queue.add("a")
    monkeypatch.chdir(tmp_path)
    harm = base64.b64encode(pickle.dumps(_Harmful())).decode()
    queue.sql(
        "UPDATE workflow_status SET status = 'SUCCESS', serialization = 'py_pickle', output = ?, inputs = ?",
        harm,
        harm,
    )
    queue.sql("DELETE FROM workflow_input")
    row = queue.listed()[task]
    assert (row["status"], row["reason"]) == ("failed", "its result was written by another program")
    assert queue.refused("queue", "show", task) == f"there is no task {task}"
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_engine_is_the_reason_in_one_line(queue: Fleet) -> None:
    task = queue.add("a")
    told = json.dumps({"name": "ValueError", "message": "no room\nin the tree"})
    queue.sql("UPDATE workflow_status SET status = 'ERROR', error = ?", told)
    assert (queue.listed()[task]["status"], queue.listed()[task]["reason"]) == ("failed", "no room")


def test_a_wrong_address_is_told_without_its_password() -> None:
    with pytest.raises(QueueError) as caught:
        open_to_read("postgresql://anna:hunter2@[::1]x/queue")
    assert "hunter2" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
