"""The queue on one machine: a file for a database, a repository without a remote, real terminals."""

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from quintet.fleet.tasks import TaskStatus
from quintet.roles import PEER_ANALYST
from tests.fleet.rig import Fleet, children_in, fleet
from tests.workspace.worktree_runs import branches, building_story, checkout


@pytest.fixture
def queue() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def test_three_tasks_are_carried_out_by_two_slots(queue: Fleet) -> None:
    before = checkout(queue.project)
    said = queue.queue("add", *map(queue.task_file, "abc"))
    *ids, advice = said.splitlines()
    assert advice == "No worker is running. Start one: quintet worker --slots 2"
    rows = queue.listed()
    assert list(rows) == ids
    assert {(row["status"], row["reason"]) for row in rows.values()} == {
        ("waiting", "waits for a worker; none is running")
    }
    worker = queue.worker("--slots", "2", "--name", "desk")
    tasks = [queue.until_status(one, TaskStatus.PASSED) for one in ids]
    assert [task.outcome.branch for task in tasks if task.outcome] == [f"quintet/{one}" for one in ids]
    assert sorted(branches(queue.project)) == sorted(f"quintet/{one}" for one in ids)
    assert checkout(queue.project) == before
    for task in tasks:
        assert task.outcome
        assert queue.project.git("rev-parse", task.outcome.branch) == task.outcome.commit
        assert queue.project.git("show", f"{task.outcome.branch}:built.txt") == "done"
    output = queue.end_worker(worker)
    assert output.count("starts in slot") == 3
    assert children_in(queue.project.root) == []
    assert json.loads(queue.call("workers", "--json").stdout) == []


def test_a_killed_slot_goes_on_with_its_task(queue: Fleet) -> None:
    queue.project.script(building_story(think=1.0))
    task = queue.add("a")
    queue.worker("--name", "desk")
    begun = queue.until(lambda: (found := queue.task(task).progress).agent == PEER_ANALYST.name and found)
    killed = queue.until(lambda: children_in(queue.project.root, "slot"))
    os.kill(killed[0], signal.SIGKILL)
    ended = queue.until_status(task, TaskStatus.PASSED)
    assert ended.outcome
    assert (ended.outcome.run, ended.takeovers) == (begun.run, 1)
    assert ended.outcome.tokens > begun.tokens
    assert queue.database.spent(f"{datetime.now(UTC):%Y-%m-%d}", task)[0] > 0
    assert queue.project.git("show", f"{ended.branch}:built.txt") == "done"


def test_a_worker_that_ends_gives_its_task_back_and_the_next_goes_on(queue: Fleet) -> None:
    queue.project.script(building_story(think=1.0))
    task = queue.add("a")
    first = queue.worker("--name", "desk")
    run = queue.until(lambda: (found := queue.task(task).progress).agent == PEER_ANALYST.name and found.run)
    assert "its tasks go on elsewhere or later" in queue.end_worker(first)
    given_back = queue.task(task)
    assert (given_back.status, given_back.place, given_back.takeovers) == (TaskStatus.WAITING, "waiting", 0)
    assert children_in(queue.project.root) == []
    queue.worker("--name", "attic")
    queue.until(lambda: queue.task(task).status is TaskStatus.RUNNING and queue.task(task).progress.agent)
    assert "is cancelled; attic stops it within seconds" in queue.queue("cancel", task)
    queue.until(lambda: not children_in(queue.project.root, "run_task"))
    assert queue.listed()[task]["status"] == "cancelled"
    assert "goes on where it was" in queue.queue("retry", task)
    ended = queue.until_status(task, TaskStatus.PASSED)
    assert ended.outcome
    assert ended.outcome.run == run


def test_a_worker_takes_no_more_tasks_when_the_tokens_of_the_day_are_used_up() -> None:
    with fleet(lease=8.0) as queue:
        queue.database.spend("another", f"{datetime.now(UTC):%Y-%m-%d}", 1234, 0.0)
        task = queue.add("a")
        worker = queue.worker("--name", "desk", QUEUE_MAX_TOKENS="1000")
        reason = "waits for desk: the tokens of the day are used up (1,234 of 1,000)"
        queue.until(lambda: queue.listed()[task]["reason"] == reason, reason)
        assert "It takes no task at present: the tokens of the day are used up" in queue.end_worker(worker)
        assert queue.task(task).status is TaskStatus.WAITING


def test_a_worker_on_which_two_tasks_could_not_go_on_leaves_the_others_in_the_queue(queue: Fleet) -> None:
    tasks = [queue.add(name, WORKSPACE_SETUP="false") for name in "abc"]
    queue.worker("--name", "desk")
    reason = "waits for desk: the last 2 tasks could not go on here; it takes the next one at "
    queue.until(lambda: queue.listed()[tasks[2]]["reason"].startswith(reason), reason)
    for task in tasks[:2]:
        assert queue.task(task).status is TaskStatus.PARKED
        assert queue.task(task).parked.startswith("on desk: ")


def test_a_drained_worker_is_so_when_it_is_started_again(queue: Fleet) -> None:
    worker = queue.worker("--name", "desk")
    queue.until(queue.database.workers)
    queue.call("workers", "drain", "desk")
    queue.end_worker(worker)
    (before,) = queue.database.workers()
    worker = queue.worker("--name", "desk")
    queue.until(lambda: queue.database.workers()[0].silent < before.silent, "it has given a sign of life")
    task = queue.add("a")
    assert "workers drain desk --undo" in queue.end_worker(worker)
    assert [one.draining for one in queue.database.workers()] == [True]
    assert queue.task(task).status is TaskStatus.WAITING


def test_the_same_task_at_the_same_commit_is_one_task(queue: Fleet) -> None:
    first = queue.add("a")
    assert f"{first} is in the queue already" in queue.queue("add", queue.task_file("a"))
    queue.project.git("commit", "--quiet", "--allow-empty", "--message", "Go on")
    assert queue.add("a") != first
