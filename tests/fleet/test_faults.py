"""What goes wrong with a queue on one machine: told in one line, and nothing is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quintet.fleet.tasks import Needs, TaskSpec, TaskStatus, attributes_of
from quintet.roles import ANALYST, PEER_ANALYST
from tests.fleet.rig import Fleet, children_in, fleet
from tests.watch.scripted import DEADLINE
from tests.workspace.worktree_runs import building_story


@pytest.fixture
def queue() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def test_a_worker_that_ends_while_a_task_starts_gives_it_back(queue: Fleet) -> None:
    task = queue.add("a")
    worker = queue.worker("--name", "desk")
    queue.until(lambda: children_in(queue.project.root, "run_task"))
    queue.end_worker(worker)
    given_back = queue.task(task)
    assert (given_back.status, given_back.parked, given_back.takeovers) == (TaskStatus.WAITING, "", 0)
    assert children_in(queue.project.root) == []


def test_a_second_signal_ends_a_worker_at_once_and_the_next_goes_on(queue: Fleet) -> None:
    queue.project.script(building_story(think=1.0))
    task = queue.add("a")
    worker = queue.worker("--name", "desk")
    run = queue.until(lambda: (found := queue.task(task).progress).agent == PEER_ANALYST.name and found.run)
    for pid in children_in(queue.project.root, "run_task"):
        os.kill(pid, signal.SIGSTOP)  # a run that does not stop
    worker.send_signal(signal.SIGTERM)
    assert worker.stdout
    stdout = worker.stdout
    queue.until(lambda: "It ends" in stdout.readline())
    assert "is running on desk; cancel it first" in queue.refused("queue", "remove", task)
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=DEADLINE)
    assert children_in(queue.project.root, "slot") == []
    for pid in children_in(queue.project.root, "run_task"):
        os.kill(pid, signal.SIGCONT)
    queue.until(lambda: not children_in(queue.project.root), "the run has stopped without its slot")
    queue.worker("--name", "desk")
    ended = queue.until_status(task, TaskStatus.PASSED)
    assert ended.outcome
    assert ended.outcome.run == run


def test_two_who_add_the_same_task_at_once_add_one(queue: Fleet) -> None:
    path, env = queue.task_file("a"), queue.project.env | queue.settings
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "quintet", "queue", "add", path, "--json"],
            cwd=queue.project.wd,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(4)
    ]
    said = [process.communicate(timeout=DEADLINE)[0] for process in started]
    assert [process.returncode for process in started] == [0] * 4, said
    assert sorted(json.loads(one)[0]["new"] for one in said) == [False, False, False, True]
    assert len(queue.database.tasks()) == 1


def test_a_drained_worker_finishes_what_it_has() -> None:
    with fleet(lease=8.0) as queue:
        queue.project.script(building_story(think=0.5))
        tasks = [queue.add("a"), queue.add("b")]
        worker = queue.worker("--name", "desk")
        queue.until(lambda: queue.task(tasks[0]).progress.agent)
        queue.call("workers", "drain", "desk")
        queue.until_status(tasks[0], TaskStatus.PASSED)
        queue.until(lambda: queue.database.workers()[0].draining)
        assert queue.listed()[tasks[1]]["reason"] == "waits for desk, which is drained"
        assert "It is drained" in queue.end_worker(worker)


def test_a_worker_with_a_state_directory_with_blanks_and_in_no_repository(queue: Fleet, tmp_path: Path) -> None:
    task = queue.add("a")
    process = subprocess.Popen(
        [sys.executable, "-m", "quintet", "worker", "--name", "desk", "--until-empty"],
        cwd=tmp_path,
        env=queue.project.env | queue.settings | {"XDG_STATE_HOME": str(queue.project.root / "a b")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    queue.workers.append(process)
    queue.until_status(task, TaskStatus.PASSED)
    output, _ = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, output


def test_a_usage_limit_frees_the_slot_and_the_task_goes_on_at_its_time(queue: Fleet) -> None:
    queue.project.script(building_story() | {ANALYST.name: [[{"fail": "usage_limit", "seconds": 3600}]]})
    task = queue.add("a")
    queue.worker("--name", "desk")
    parked = queue.until_status(task, TaskStatus.PARKED)
    assert parked.parked.startswith("usage limit: ")
    queue.project.script(building_story())
    other = queue.add("b")
    queue.until_status(other, TaskStatus.PASSED)
    assert queue.task(task).status is TaskStatus.PARKED
    assert queue.database.change(queue.task(task), parked_until=time.time() - 1)  # its time has come
    queue.until_status(task, TaskStatus.PASSED)


def test_a_worker_takes_no_more_tasks_when_the_money_of_the_day_is_used_up() -> None:
    with fleet(lease=8.0) as queue:
        queue.database.spend("another", f"{datetime.now(UTC):%Y-%m-%d}", 0, 12.5)
        task = queue.add("a")
        queue.worker("--name", "desk", QUEUE_MAX_COST="10")
        reason = "waits for desk: the money of the day is used up (12.50 of 10.00)"
        queue.until(lambda: queue.listed()[task]["reason"] == reason, reason)


def test_a_task_that_nobody_has_added_with_quintet_fails_with_its_reason(queue: Fleet) -> None:
    spec = TaskSpec.model_construct(repository="--upload-pack=x", is_local=False, base="c1", text="t", settings={})
    queue.database.add({"forged-1": (spec, attributes_of("Forged", "r", Needs()))})
    queue.worker("--name", "desk")
    queue.until_status("forged-1", TaskStatus.FAILED)
    reason = "the task forged-1 was not added by Quintet: its repository begins with -, as an option does"
    assert queue.listed()["forged-1"]["reason"] == reason
