"""Who is next, and what each task waits for: decided without a database."""

import time
from typing import Any

import pytest

from quintet.fleet.choosing import Situation, Worker, can_come, choose, clock, waits_for
from quintet.fleet.tasks import Needs, QueuedTask, TaskStatus

NOW = time.time()
DESK = Worker(name="desk", providers={"codex": "1.0.0"})
GPU = Worker(name="gpu", providers={"codex": "1.0.0"}, labels=("gpu",), accounts=("claude-1",))


def task(name: str, status: TaskStatus = TaskStatus.WAITING, place: str = "waiting", **more: Any) -> QueuedTask:
    needs = {"providers": ("codex",)} | {key: more.pop(key) for key in list(more) if key in Needs.model_fields}
    fields = {"title": name, "repository": "r", "added": 1.0, **more}
    return QueuedTask(id=name, status=status, place=place, needs=Needs(**needs), **fields)


def situation(*tasks: QueuedTask, **others: TaskStatus) -> Situation:
    return Situation(tasks, {one.id: one.status for one in tasks} | others, NOW)


def next_of(*tasks: QueuedTask, worker: Worker = DESK, **others: TaskStatus) -> str:
    found = choose(situation(*tasks, **others), worker)
    return found.id if found else ""


def reason(first: QueuedTask, *rest: QueuedTask, workers: tuple[Worker, ...] = (DESK,), **others: TaskStatus) -> str:
    return waits_for(first, situation(first, *rest, **others), workers)


def test_a_small_priority_comes_first_then_the_oldest() -> None:
    tasks = (
        task("new", added=3.0),
        task("old", added=2.0),
        task("late", priority=7),
        task("first", priority=1, added=9.0),
    )
    order = []
    left = list(tasks)
    while found := next_of(*left):
        order.append(found)
        left = [one for one in left if one.id != found]
    assert order == ["first", "old", "new", "late"]


def test_a_worker_takes_only_what_it_can_carry_out() -> None:
    labelled, other, account = task("l", labels=("gpu",)), task("p", providers=("grok",)), task("a", account="claude-1")
    for one in (labelled, other, account):
        assert next_of(one) == ""
    assert next_of(labelled, worker=GPU) == "l"
    assert next_of(account, worker=GPU) == "a"
    assert reason(labelled) == "waits for a worker with label gpu"
    assert reason(other, workers=(DESK, GPU)) == "waits for a worker with provider grok"
    assert reason(task("b", labels=("gpu",), providers=("grok",)), workers=(DESK, GPU)) == (
        "waits for a worker with label gpu, provider grok"
    )


def test_an_account_has_so_many_tasks_at_once_over_all_workers() -> None:
    first, second, third = (task(name, account="claude-1", account_limit=2) for name in "abc")
    running = first.model_copy(update={"status": TaskStatus.RUNNING})
    given = second.model_copy(update={"place": "slot gpu/1"})
    assert next_of(running, second, worker=GPU) == "b"
    assert next_of(running, given, third, worker=GPU) == ""
    assert reason(third, running, given, workers=(GPU,)) == "waits for account claude-1 (2 of 2 busy)"
    assert next_of(task("d", account="", account_limit=1), running, given, worker=GPU) == "d"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (TaskStatus.RUNNING, "waits for the PASS of other"),
        (TaskStatus.PARKED, "waits for the PASS of other"),
        (TaskStatus.FAILED, "waits for the PASS of other, which is failed"),
        (TaskStatus.CANCELLED, "waits for the PASS of other, which is cancelled"),
    ],
)
def test_a_task_waits_for_the_pass_of_another(status: TaskStatus, words: str) -> None:
    later = task("later", after=("other",))
    assert next_of(later, other=status) == ""
    assert reason(later, other=status) == words
    assert next_of(later, other=TaskStatus.PASSED) == "later"
    assert reason(later) == "waits for other, which is no longer in the queue"


def test_a_delayed_task_waits_for_its_time() -> None:
    later = task("later", not_before=NOW + 3600)
    assert next_of(later) == ""
    assert reason(later) == f"waits until {clock(NOW + 3600)}"
    assert next_of(task("due", not_before=NOW - 1)) == "due"


def test_a_parked_task_says_why_and_until_when() -> None:
    limit = task("limit", TaskStatus.PARKED, parked="usage limit", parked_until=NOW + 60)
    assert next_of(limit) == ""
    assert reason(limit) == f"parked until {clock(NOW + 60)}: usage limit"
    assert reason(task("error", TaskStatus.PARKED, parked="no login")) == "parked: no login"


def test_a_task_that_nothing_keeps_waits_for_a_slot_or_a_worker() -> None:
    assert reason(task("a"), workers=()) == "waits for a worker; none is running"
    assert reason(task("a")) == "waits for a free slot"
    assert reason(task("a", place="slot desk/2@1f")) == "starts on desk/2"
    drained, empty = (
        DESK.model_copy(update={"draining": True}),
        DESK.model_copy(update={"stopped": "the tokens are used up"}),
    )
    assert reason(task("a"), workers=(drained,)) == "waits for desk, which is drained"
    assert reason(task("a"), workers=(empty,)) == "waits for desk: the tokens are used up"
    assert reason(task("a", TaskStatus.RUNNING)) == ""


@pytest.mark.parametrize(
    ("waiting", "comes"),
    [
        (task("a"), True),
        (task("a", not_before=NOW + 60), True),
        (task("a", after=("passed", "running")), True),
        (task("a", after=("failed",)), False),
        (task("a", after=("gone",)), False),
        (task("a", TaskStatus.PARKED, parked="usage limit", parked_until=NOW + 60), True),
        (task("a", TaskStatus.PARKED, parked="no agent"), False),
    ],
)
def test_whether_a_task_will_come_without_anybody_doing_something(waiting: QueuedTask, comes: bool) -> None:
    others = {str(one): one for one in (TaskStatus.PASSED, TaskStatus.RUNNING, TaskStatus.FAILED)}
    assert can_come(waiting, situation(waiting, **others)) is comes


def test_a_task_that_has_a_slot_is_not_given_twice() -> None:
    assert next_of(task("a", place="slot desk/1"), task("b", TaskStatus.RUNNING)) == ""
