"""Changes of the queue count only for the process that has the task; the queue works with an older SQLite."""

import sqlite3
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.fleet.rig import fleet


def test_a_process_that_has_lost_its_task_cannot_change_it() -> None:
    with fleet() as queue:
        task = queue.task(queue.add("a"))
        assert not queue.database.change(task.model_copy(update={"token": "of another start"}), takeovers=1)
        assert queue.database.change(task, takeovers=1)


def test_an_older_sqlite_knows_the_time_as_the_engine_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
    engine = sa.create_engine(f"sqlite:///{tmp_path}/queue.db")
    with engine.begin() as connection:
        table = "CREATE TABLE task (id TEXT, created_at INTEGER NOT NULL DEFAULT (unixepoch('subsec') * 1000))"
        connection.execute(sa.text(table))
        connection.execute(sa.text("INSERT INTO task (id) VALUES ('a')"))
        (written,) = connection.execute(sa.text("SELECT created_at FROM task")).scalars()
        assert connection.execute(sa.text("SELECT unixepoch('no time')")).scalar() is None
    engine.dispose()
    assert written == pytest.approx(time.time() * 1000, abs=60_000)
