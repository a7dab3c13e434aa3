"""What a user can do to a task in the queue; what changes something returns a line that says what was done."""

import time
from typing import Any

from quintet.errors import QueueError
from quintet.fleet.checkpoint import forget
from quintet.fleet.choosing import clock
from quintet.fleet.database import Database
from quintet.fleet.reading import WAITING
from quintet.fleet.tasks import Approval, QueuedTask, TaskStatus, attempt_name
from quintet.loop.decide.state import GATES
from quintet.program import program


def cancel_task(database: Database, task: QueuedTask) -> str:
    """Cancel a task that has not ended."""
    if task.status in (TaskStatus.PASSED, TaskStatus.FAILED, TaskStatus.CANCELLED):
        raise QueueError(f"{task.id} has ended already: {task.status}")
    database.cancel(task.id)
    where = f"; {task.progress.machine} stops it within seconds" if task.status is TaskStatus.RUNNING else ""
    return f"{task.id} is cancelled{where}"


def retry_task(database: Database, task: QueuedTask) -> str:
    """Let a parked or cancelled task go on, or begin a failed one anew."""
    match task.status:
        case TaskStatus.PARKED:
            _change(database, task, parked="", parked_until=0, takeovers=0)
            return f"{task.id} waits again"
        case TaskStatus.CANCELLED:
            until = stopped_by(database, task)
            needs = task.needs.model_copy(update={"not_before": max(task.needs.not_before, until)})
            _change(database, task, WAITING, needs=needs.model_dump(mode="json"), **_rested(task))
            later = f", at {clock(until)} UTC: {task.progress.machine} stops it until then" if until else ""
            return f"{task.id} waits again, and goes on where it was{later}"
        case TaskStatus.FAILED:
            # what was said of the failed attempt says nothing of the next one
            rest = _rested(task) | {"approval": None, "gate": "", "checkpoint": "", "result": None}
            database.begin_anew(task.id, attempt=task.attempt + 1, **rest)
            return f"{task.id} waits again, and begins anew (attempt {task.attempt + 1})"
        case _:
            raise QueueError(f"{task.id} is {task.status}; there is nothing to retry")


def answer_task(database: Database, task: QueuedTask, approval: Approval) -> str:
    """Approve what a task waits with, or send it back; its `step` is that of the task."""
    _change(database, task, approval=approval.model_dump(mode="json"), parked="", parked_until=0, gate="")
    what = GATES.get(approval.step.split("-")[1], "work")
    return (
        f"The {what} of {task.id} is {'approved' if approval.approved else 'sent back'}; it goes on when a slot is free"
    )


def waiting_step(task: QueuedTask) -> str:
    """The step at which a task waits for a person; QueueError where it does not."""
    if not task.gate:
        raise QueueError(f"{task.id} does not wait for anybody; {program()} queue show {task.id} says how it stands")
    return task.gate


def _rested(task: QueuedTask) -> dict[str, Any]:
    """What is written about a task that nobody carries out."""
    progress = task.progress.model_copy(update={"since": 0.0, "machine": "", "slot": 0, "agent": ""})
    return {"parked": "", "parked_until": 0, "takeovers": 0, "progress": progress.model_dump(mode="json")}


def stopped_by(database: Database, task: QueuedTask) -> float:
    """When the machine of a task that has just been cancelled must have stopped its run; 0 where it has."""
    until = task.ended + task.progress.lease
    is_known = database.is_file or not task.progress.machine or task.status is not TaskStatus.CANCELLED
    return 0.0 if is_known or until <= time.time() else until


def _change(database: Database, task: QueuedTask, queue: str = "", **attributes: Any) -> None:
    if not database.change(task, queue, **attributes):
        raise QueueError(f"{task.id} has changed in the meantime; look at it again: {program()} queue")


def move_task(database: Database, task: QueuedTask, priority: int) -> str:
    """Give a task that waits another priority."""
    if task.status not in (TaskStatus.WAITING, TaskStatus.PARKED):
        raise QueueError(f"{task.id} is {task.status}; only a task that waits can be moved")
    needs = task.needs.model_copy(update={"priority": priority})
    _change(database, task, needs=needs.model_dump(mode="json"))
    return f"{task.id} has priority {priority} now"


def remove_task(database: Database, task: QueuedTask) -> str:
    """Remove a task that does not run."""
    if task.status is TaskStatus.RUNNING:
        raise QueueError(f"{task.id} is running on {task.progress.machine}; cancel it first")
    if until := stopped_by(database, task):
        raise QueueError(f"{task.id} can be removed at {clock(until)} UTC: {task.progress.machine} stops it until then")
    spec, names = database.spec(task.id), [attempt_name(task.id, one + 1) for one in range(task.attempt)]
    database.delete(task.id)
    removed = f"{task.id} is removed; its branch stays where there is one"
    if spec.is_local or forget(spec.repository, names):
        return removed
    return f"{removed}, and so does refs/quintet/{task.id} in {spec.repository}, which cannot be pushed to"
