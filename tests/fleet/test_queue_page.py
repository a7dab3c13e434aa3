"""The queue on the dashboard, without a browser: what it shows, and how a task leads to its run on any machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quintet.config import load_settings
from quintet.fleet import reading
from quintet.fleet.choosing import Worker
from quintet.fleet.queue_page import SHOWN, QueuePage
from quintet.fleet.tasks import Needs, TaskSpec, TaskStatus, attributes_of
from quintet.layout import fleet_folder
from quintet.loop.journal import Event
from quintet.roles import ANALYST
from quintet.watch.dashboard.routes import DashboardRoutes
from tests.fleet.rig import Fleet
from tests.watch.events import failed_run, sent, started, write
from tests.watch.test_pages import RUN, Client


def page_of(queue: Fleet, **settings: str) -> QueuePage:
    env = queue.project.env | queue.settings | settings
    return QueuePage(load_settings(None, env, {"wd": str(queue.project.wd)}, queue.project.wd).settings)


def client_of(queue: Fleet) -> Client:
    return Client(DashboardRoutes(list, open_queue=lambda: page_of(queue)))


def test_the_page_shows_what_waits_is_parked_has_ended_and_the_machines(queue: Fleet) -> None:
    waiting, parked, ended = queue.add("a"), queue.add("b"), queue.add("c")
    queue.note(parked, parked="usage limit")
    queue.database.cancel(ended)
    queue.database.beat(Worker(name="anna", slots=2, labels=("gpu",)))
    found = client_of(queue).get("/watch/queue").json()
    rows = {row["id"]: (row["status"], row["reason"]) for row in found["tasks"]}
    assert rows[waiting] == ("waiting", "waits for a worker with provider scripted")
    assert rows[parked] == ("parked", "parked: usage limit")
    assert rows[ended][0] == "cancelled"
    assert {status: number for status, number in found["numbers"].items() if number} == {
        "waiting": 1,
        "parked": 1,
        "cancelled": 1,
    }
    assert [(row["name"], row["alive"], row["slots"]) for row in found["workers"]] == [("anna", True, 2)]
    assert (found["note"], found["name"]) == ("", queue.url)


def test_of_those_that_have_ended_the_newest_are_shown_and_all_are_counted(queue: Fleet) -> None:
    spec = TaskSpec(repository="/x", is_local=True, base="c", text="t", settings={})
    names = [f"task-{number}" for number in range(SHOWN + 3)]
    queue.database.add({name: (spec, attributes_of("A task", "/x", Needs())) for name in names})
    for name in names:
        queue.database.cancel(name)
    found = page_of(queue).state()
    assert (len(found["tasks"]), found["numbers"]["cancelled"]) == (SHOWN, SHOWN + 3)


def test_without_a_queue_the_page_says_so_and_makes_none(queue: Fleet, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"
    note = page_of(queue, QUEUE=url).state()["note"]
    assert note == f"there is no queue at {url}: quintet queue add TASK.md makes one"
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_the_page_says_how_to_install_it(queue: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "find_spec", lambda _: None)
    assert client_of(queue).get("/watch/queue").json() == {"note": reading.INSTALL}


def test_a_server_without_the_queue_says_where_it_is() -> None:
    client = Client(DashboardRoutes(list))
    assert client.get("/watch/queue").json()["note"].endswith("the queue is on the page of quintet dashboard.")
    assert client.get("/watch/queue/x").status_code == 404


def test_a_dashboard_whose_queue_nobody_looks_at_loads_none_of_it() -> None:
    code = "import sys, quintet.cli.serve; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not {name for name in done.stdout.split() if name.startswith(("quintet.fleet", "dbos", "sqlalchemy"))}


def test_a_task_leads_to_its_run_on_this_machine(queue: Fleet) -> None:
    task, client = queue.add("a"), client_of(queue)
    assert client.get(f"/watch/queue/{task}").status_code == 404
    write(queue.project.wd / ".tmp" / RUN, failed_run())
    queue.note(task, progress={"run": RUN})
    assert client.get(f"/watch/runs/{RUN}").status_code == 404
    assert client.get(f"/watch/queue/{task}").json() == {"run": RUN}
    told = client.get(f"/watch/runs/{RUN}").json()
    assert (told["headline"], told["elsewhere"]) == ("FAIL after round 1", "")
    assert client.get("/watch/queue/none").status_code == 404


def push_checkpoint(queue: Fleet, name: str, end: str, events: list[Event]) -> str:
    """Put the records of a run into a remote, as a worker does; the remote."""
    git, root = queue.project.git, queue.project.root
    records = queue.project.wd / ".tmp" / "records"
    write(records, events)
    (records / "quintet-state.json").write_text(json.dumps({"run_id": RUN}))
    (records / "prompts").mkdir(exist_ok=True)
    (records / "prompts" / "1.md").write_text("the prompt")
    if not (records / "secret").is_symlink():
        (records / "secret").symlink_to("/etc/passwd")
    remote = root / "remote.git"
    if not remote.exists():
        git("init", "--quiet", "--bare", str(remote))
    git("add", "--force", str(records))
    git("commit", "--quiet", "--allow-empty", "-m", "checkpoint")
    git("push", "--quiet", str(remote), f"+HEAD:refs/quintet/{name}/{end}")
    return str(remote)


def record(queue: Fleet) -> None:
    """Write down which commit was pushed last, as a worker does."""
    queue.note("far-1", checkpoint=queue.project.git("rev-parse", "HEAD"))


def test_a_task_leads_to_its_run_on_another_machine(queue: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = push_checkpoint(queue, "far-1", "state", [*started(), sent(1, ANALYST)])
    spec = TaskSpec(repository=remote, is_local=False, base="c", text="t", settings={})
    queue.database.add({"far-1": (spec, attributes_of("Far", remote, Needs()))})
    record(queue)
    queue.note("far-1", progress={"run": RUN, "machine": "bert", "slot": 1, "since": 1.0})
    queue.database.open_slot("bert/1")
    page = page_of(queue)
    status = reading._status
    monkeypatch.setattr(reading, "_status", lambda *_, **__: TaskStatus.RUNNING)  # no worker has it here
    client = Client(DashboardRoutes(list, open_queue=lambda: page))
    assert client.get("/watch/queue/far-1").json() == {"run": RUN}
    told = client.get(f"/watch/runs/{RUN}").json()
    assert (told["status"], told["elsewhere"], told["current"], told["terminals"]) == ("RUNNING", "bert", 0, {})
    place = page.place_of("far-1")
    assert place
    assert sorted(path.name for path in place.folder.iterdir()) == ["journal.jsonl", "prompts", "quintet-state.json"]
    assert "bert" in client.get(f"/watch/runs/{RUN}/diff").json()["note"]

    monkeypatch.setattr("quintet.fleet.queue_page._FRESH_SECONDS", 0.0)
    push_checkpoint(queue, "far-1", "archive", failed_run())
    assert client.get("/watch/queue/far-1").json() == {"run": RUN}
    assert client.get(f"/watch/runs/{RUN}").json()["status"] == "RUNNING", "the queue has not recorded it"
    monkeypatch.setattr(reading, "_status", status)
    record(queue)
    assert client.get("/watch/queue/far-1").json() == {"run": RUN}
    assert client.get(f"/watch/runs/{RUN}").json()["headline"] == "FAIL after round 1"


def test_a_remote_that_is_away_keeps_what_was_fetched(queue: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.fleet.queue_page._FRESH_SECONDS", 0.0)
    remote = push_checkpoint(queue, "far-1", "state", started())
    spec = TaskSpec(repository=remote, is_local=False, base="c", text="t", settings={})
    queue.database.add({"far-1": (spec, attributes_of("Far", remote, Needs()))})
    record(queue)
    page = page_of(queue)
    first = page.place_of("far-1")
    Path(remote).rename(f"{remote}.gone")
    assert first
    assert page.place_of("far-1") == first


def test_copies_that_nobody_has_looked_at_for_a_day_are_removed(queue: Fleet) -> None:
    remote = push_checkpoint(queue, "far-1", "state", started())
    spec = TaskSpec(repository=remote, is_local=False, base="c", text="t", settings={})
    queue.database.add({name: (spec, attributes_of("Far", remote, Needs())) for name in ("far-1", "../far-2")})
    record(queue)
    old = fleet_folder() / "watched" / "old-1"
    old.mkdir(parents=True)
    os.utime(old, (1.0, 1.0))
    page = page_of(queue)
    assert page.place_of("../far-2") is None
    place = page.place_of("far-1")
    assert place
    assert place.folder.is_dir()
    assert not old.exists()
