"""What goes wrong with a queue on one machine: told in one line, and nothing is lost."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.fleet.tasks import TaskStatus
from quintet.roles import PEER_ANALYST
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
