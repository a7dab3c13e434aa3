"""What a user can do to a task in the queue; what changes something returns a line that says what was done."""

from quintet.errors import QueueError
from quintet.fleet.checkpoint import forget
from quintet.fleet.database import Database
from quintet.fleet.tasks import QueuedTask, TaskStatus, attempt_name
from quintet.prose import plural


def find_task_id(database: Database, given: str) -> str:
    """The id of the task that the user means: the whole id, or a beginning or end that only one task has."""
    ids = [task.id for task in database.tasks()]
    if given in ids:
        return given
    found = [one for one in ids if one.startswith(given) or one.endswith(given)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise QueueError(f"there is no task {given} in the queue")
    raise QueueError(f"{given} means {plural(len(found), 'task')}: {', '.join(found[:5])}; write more of one")


def cancel_task(database: Database, task_id: str) -> str:
    """Cancel a task that has not ended."""
    task = _task(database, task_id)
    if task.status in (TaskStatus.PASSED, TaskStatus.FAILED, TaskStatus.CANCELLED):
        raise QueueError(f"{task_id} has ended already: {task.status}")
    database.cancel(task_id)
    where = f"; {task.progress.machine} stops it within seconds" if task.status is TaskStatus.RUNNING else ""
    return f"{task_id} is cancelled{where}"


def retry_task(database: Database, task_id: str) -> str:
    """Let a parked or cancelled task go on, or begin a failed one anew."""
    task = _task(database, task_id)
    match task.status:
        case TaskStatus.PARKED:
            database.note(task_id, parked="", parked_until=0, takeovers=0)
            return f"{task_id} waits again"
        case TaskStatus.CANCELLED:
            _rest(database, task)
            database.move(task_id)
            return f"{task_id} waits again, and goes on where it was"
        case TaskStatus.FAILED:
            _rest(database, task, attempt=task.attempt + 1)
            database.rewind(task_id)
            return f"{task_id} waits again, and begins anew (attempt {task.attempt + 1})"
        case _:
            raise QueueError(f"{task_id} is {task.status}; there is nothing to retry")


def _rest(database: Database, task: QueuedTask, **more: object) -> None:
    progress = task.progress.model_copy(update={"since": 0.0, "machine": "", "slot": 0, "agent": ""})
    database.note(task.id, parked="", parked_until=0, takeovers=0, progress=progress.model_dump(mode="json"), **more)


def move_task(database: Database, task_id: str, priority: int) -> str:
    """Give a task that waits another priority."""
    task = _task(database, task_id)
    if task.status not in (TaskStatus.WAITING, TaskStatus.PARKED):
        raise QueueError(f"{task_id} is {task.status}; only a task that waits can be moved")
    needs = task.needs.model_copy(update={"priority": priority})
    database.note(task_id, needs=needs.model_dump(mode="json"))
    return f"{task_id} has priority {priority} now"


def remove_task(database: Database, task_id: str) -> str:
    """Remove a task that does not run."""
    task = _task(database, task_id)
    if task.status is TaskStatus.RUNNING:
        raise QueueError(f"{task_id} is running on {task.progress.machine}; cancel it first")
    spec, name = database.spec(task_id), attempt_name(task_id, task.attempt)
    database.delete(task_id)
    removed = f"{task_id} is removed; its branch stays where there is one"
    if spec.is_local or forget(spec.repository, name):
        return removed
    return f"{removed}, and so does refs/quintet/{name} in {spec.repository}, which cannot be pushed to"


def _task(database: Database, task_id: str) -> QueuedTask:
    task = database.task(task_id)
    if task is None:
        raise QueueError(f"there is no task {task_id} in the queue")
    return task
