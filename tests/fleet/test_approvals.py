"""Gates in the queue: a task that waits for a person keeps no slot, and goes on after the word."""

import time
from collections.abc import Iterator

import pytest

from quintet.fleet.choosing import clock
from quintet.fleet.tasks import QueuedTask, TaskStatus
from quintet.server.terminal.strays import MARK
from tests.fleet.rig import Fleet, children_in, fleet


@pytest.fixture
def queue() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def until_asked(queue: Fleet, task: str, gate: str) -> QueuedTask:
    queue.until(lambda: (found := queue.task(task)).status is TaskStatus.PARKED and found.gate == gate, gate)
    return queue.task(task)


def test_a_task_waits_without_a_slot_and_goes_on_after_each_word(queue: Fleet) -> None:
    task, other = queue.add("a", APPROVE="spec,result"), queue.add("b")
    assert queue.refused("queue", "approve", task).startswith(f"{task} does not wait for anybody; ")
    queue.worker("--name", "desk")
    run = until_asked(queue, task, "approve-spec-0").progress.run
    queue.until_status(other, TaskStatus.PASSED)
    assert queue.listed()[task]["reason"] == (
        f"parked: waits for approval of the specification: quintet queue approve {task}"
    )
    assert children_in(queue.project.root, "run_task") == []
    assert "waits again" in queue.queue("retry", task)
    until_asked(queue, task, "approve-spec-0")
    assert "agent's terminal" in queue.refused("queue", "approve", task, **{MARK: "1"})
    said = queue.queue("reject", task, "Name the file.", QUINTET_PERSON="anna")
    assert said.strip() == f"The specification of {task} is sent back; it goes on when a slot is free"
    until_asked(queue, task, "approve-spec-1")
    assert "is approved; it goes on when a slot is free" in queue.queue("approve", task, QUINTET_PERSON="bert")
    until_asked(queue, task, "approve-result-1")
    assert queue.project.git("for-each-ref", f"refs/heads/quintet/{task}")
    queue.queue("approve", task)
    ended = queue.until_status(task, TaskStatus.PASSED)
    assert ended.outcome
    assert ended.outcome.run == run
    journal = queue.queue("logs", task)
    assert journal.count("anna") == 1
    assert journal.count("bert") == 1
    assert queue.refused("queue", "reject", task, "Too late.").startswith(f"{task} does not wait for anybody; ")


def test_a_task_that_nobody_approves_goes_on_at_its_time(queue: Fleet) -> None:
    task = queue.add("a", APPROVE="spec", APPROVE_TIMEOUT="3600", APPROVE_DEFAULT="approve")
    queue.worker("--name", "desk")
    parked = until_asked(queue, task, "approve-spec-0")
    assert parked.parked_until == pytest.approx(time.time() + 3600, abs=300)
    assert queue.listed()[task]["reason"].startswith(f"parked until {clock(parked.parked_until)}: waits for approval ")


def test_what_was_approved_of_a_failed_attempt_is_asked_again_of_the_next(queue: Fleet) -> None:
    task = queue.add("a", APPROVE="spec", VERIFY_CMD="exit 1", MAX_ROUNDS="1", RED_FIRST="off")
    queue.worker("--name", "desk")
    until_asked(queue, task, "approve-spec-0")
    queue.queue("approve", task)
    failed = queue.until_status(task, TaskStatus.FAILED)
    assert failed.outcome
    assert failed.outcome.reason == "its last round (1) has failed"
    said = queue.queue("add", queue.task_file("a"))
    assert f"{task} is in the queue already" in said
    assert f": failed; quintet queue retry {task} " in said
    assert "begins anew (attempt 2)" in queue.queue("retry", task)
    assert until_asked(queue, task, "approve-spec-0").progress.run != failed.outcome.run
