"""The queue on one machine: a file for a database, a repository without a remote, real workers and terminals.

What a worker and a slot do with a task is tested without processes in `test_worker.py` and `test_carrying.py`.
"""

import json
import os
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path

from quintet.fleet.database import Database
from quintet.fleet.tasks import Needs, TaskSpec, TaskStatus, attributes_of
from quintet.roles import ANALYST, PEER_ANALYST
from quintet.server.terminal.strays import MARK
from tests.fleet.rig import Fleet, children_in
from tests.stub.replies import ANALYST_APPROVED
from tests.watch.scripted import DEADLINE, turns
from tests.workspace.worktree_runs import branches, building_story, checkout


def let_peer_analyst_think(queue: Fleet) -> None:
    """Give a test the time to do something while the second agent is at work."""
    queue.project.script(building_story() | {PEER_ANALYST.name: turns(ANALYST_APPROVED, think=1.5)})


def test_two_slots_carry_out_three_tasks_and_refuse_a_forged_one(queue: Fleet, tmp_path: Path) -> None:
    before = checkout(queue.project)
    *ids, advice = queue.queue("add", *map(queue.task_file, "abc")).splitlines()
    assert advice == "No worker is running. Start one: quintet worker --slots 2"
    rows = queue.listed()
    assert list(rows) == ids
    assert {(row["status"], row["reason"]) for row in rows.values()} == {
        ("waiting", "waits for a worker; none is running")
    }
    forged = TaskSpec.model_construct(repository="--upload-pack=x", is_local=False, base="c1", text="t", settings={})
    queue.database.add({"forged-1": (forged, attributes_of("Forged", "r", Needs()))})
    words = ("--slots", "2", "--name", "desk", "--until-empty")
    worker = queue.worker(*words, cwd=tmp_path, XDG_STATE_HOME=str(queue.project.root / "a b"))
    output, _ = worker.communicate(timeout=DEADLINE)
    assert worker.returncode == 0, output
    tasks = [queue.task(one) for one in ids]
    assert [task.status for task in tasks] == [TaskStatus.PASSED] * 3, queue.evidence()
    assert [task.outcome.branch for task in tasks if task.outcome] == [f"quintet/{one}" for one in ids]
    assert sorted(branches(queue.project)) == sorted(f"quintet/{one}" for one in ids)
    assert checkout(queue.project) == before
    for task in tasks:
        assert task.outcome
        assert queue.project.git("rev-parse", task.outcome.branch) == task.outcome.commit
        assert queue.project.git("show", f"{task.outcome.branch}:built.txt") == "done"
    assert output.count("starts in slot") == 4
    assert children_in(queue.project.root) == []
    assert json.loads(queue.call("workers", "--json").stdout) == []
    reason = "the task forged-1 was not added by Quintet: its repository begins with -, as an option does"
    assert (queue.task("forged-1").status, queue.listed()["forged-1"]["reason"]) == (TaskStatus.FAILED, reason)


def test_a_task_continues_after_its_slot_was_killed_and_after_it_was_cancelled(queue: Fleet) -> None:
    let_peer_analyst_think(queue)
    task = queue.add("a")
    queue.worker("--name", "desk")
    begun = queue.until(lambda: (found := queue.task(task).progress).agent == PEER_ANALYST.name and found)
    os.kill(children_in(queue.project.root, "slot")[0], signal.SIGKILL)
    queue.until(lambda: (found := queue.task(task)).takeovers == 1 and found.progress.run and found.progress.agent)
    assert "is cancelled; desk stops it within seconds" in queue.queue("cancel", task)
    queue.until(lambda: not children_in(queue.project.root, "run_task"), "the end of the run")
    assert queue.listed()[task]["status"] == "cancelled"
    assert "goes on where it was" in queue.queue("retry", task)
    ended = queue.until_status(task, TaskStatus.PASSED)
    assert ended.outcome
    assert ended.outcome.run == begun.run
    assert ended.outcome.tokens > begun.tokens
    assert queue.database.spent(f"{datetime.now(UTC):%Y-%m-%d}", task)[0] > 0
    assert queue.project.git("show", f"{ended.branch}:built.txt") == "done"


def test_a_worker_gives_its_task_back_and_a_second_signal_ends_it_at_once(queue: Fleet) -> None:
    let_peer_analyst_think(queue)
    task = queue.add("a")
    worker = queue.worker("--name", "desk")
    run = queue.until(lambda: (found := queue.task(task).progress).agent == PEER_ANALYST.name and found.run)
    assert "its tasks go on elsewhere or later" in queue.end_worker(worker)
    given_back = queue.task(task)
    assert (given_back.status, given_back.place, given_back.takeovers) == (TaskStatus.WAITING, "waiting", 0)
    assert children_in(queue.project.root) == []

    worker = queue.worker("--name", "desk")
    queue.until(lambda: queue.task(task).progress.agent, "an agent at work")
    for pid in children_in(queue.project.root, "run_task"):
        os.kill(pid, signal.SIGSTOP)  # a run that does not stop
    worker.send_signal(signal.SIGTERM)
    assert worker.stdout
    stdout = worker.stdout
    queue.until(lambda: "It ends" in stdout.readline(), "the word of its end")
    assert "is running on desk; cancel it first" in queue.refused("queue", "remove", task)
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=DEADLINE)
    assert children_in(queue.project.root, "slot") == []
    for pid in children_in(queue.project.root, "run_task"):
        os.kill(pid, signal.SIGCONT)
    queue.until(lambda: not children_in(queue.project.root), "the end of the run without its slot")
    queue.worker("--name", "desk")
    ended = queue.until_status(task, TaskStatus.PASSED)
    assert ended.outcome
    assert ended.outcome.run == run


def until_asked(queue: Fleet, task: str, gate: str) -> str:
    """Wait until a task waits for a person; return its run."""
    queue.until(lambda: (found := queue.task(task)).status is TaskStatus.PARKED and found.gate == gate, gate)
    return queue.task(task).progress.run


def test_a_task_waits_without_a_slot_for_a_limit_and_for_a_person(queue: Fleet) -> None:
    queue.project.script(building_story() | {ANALYST.name: [[{"fail": "usage_limit", "seconds": 3600}]]})
    task = queue.add("a", APPROVE="spec")
    queue.worker("--name", "desk")
    parked = queue.until_status(task, TaskStatus.PARKED)
    assert parked.parked.startswith("usage limit: ")
    assert children_in(queue.project.root, "run_task") == []
    queue.project.script(building_story())
    queue.note(task, parked_until=1)  # its time has come

    run = until_asked(queue, task, "approve-spec-0")
    assert children_in(queue.project.root, "run_task") == []
    waits = f"parked: waits for approval of the specification: quintet queue approve {task}"
    assert queue.listed()[task]["reason"] == waits
    assert "agent's terminal" in queue.refused("queue", "approve", task, **{MARK: "1"})
    said = queue.queue("reject", task, "Name the file.", QUINTET_PERSON="anna")
    assert said.strip() == f"The specification of {task} is sent back; it goes on when a slot is free"
    assert until_asked(queue, task, "approve-spec-1") == run
    assert "is approved; it goes on when a slot is free" in queue.queue("approve", task, QUINTET_PERSON="bert")
    ended = queue.until_status(task, TaskStatus.PASSED)
    assert ended.outcome
    assert ended.outcome.run == run
    journal = queue.queue("logs", task)
    assert (journal.count("anna"), journal.count("bert")) == (1, 1)


def test_four_who_add_the_same_task_at_once_add_one(queue: Fleet) -> None:
    spec = TaskSpec(repository="/x", is_local=True, base="c", text="t", settings={})
    together, new = threading.Barrier(4), list[set[str]]()

    def add() -> None:
        with Database(queue.url) as database:
            together.wait()
            new.append(database.add({"a-1": (spec, attributes_of("A", "/x", Needs()))}))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(new, key=len) == [set(), set(), set(), {"a-1"}]
    assert [task.id for task in queue.database.tasks()] == ["a-1"]
