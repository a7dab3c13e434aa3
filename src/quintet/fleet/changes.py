"""What a user can do to a task in the queue; what changes something returns a line that says what was done."""

import time
from typing import Any

from quintet.errors import QueueError
from quintet.fleet.checkpoint import forget
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
            _change(database, task, WAITING, **_rested(task) | _once_stopped(database, task))
            return f"{task.id} waits again, and goes on where it was"
        case TaskStatus.FAILED:
            database.begin_anew(task.id, attempt=task.attempt + 1, **_rested(task))
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


def _once_stopped(database: Database, task: QueuedTask) -> dict[str, Any]:
    """What is written about a task that has just been cancelled: the machine that has it may still be stopping it."""
    machine, until = task.progress.machine, task.ended + task.progress.lease
    if database.is_file or not machine or until <= time.time():
        return {}
    return {"parked": f"its run is being stopped on {machine}", "parked_until": until}


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
    spec, names = database.spec(task.id), [attempt_name(task.id, one + 1) for one in range(task.attempt)]
    database.delete(task.id)
    removed = f"{task.id} is removed; its branch stays where there is one"
    if spec.is_local or forget(spec.repository, names):
        return removed
    return f"{removed}, and so does refs/quintet/{task.id} in {spec.repository}, which cannot be pushed to"
