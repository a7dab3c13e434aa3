"""Which waiting task a worker takes next, and what each of the others waits for. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from quintet.fleet.tasks import QueuedTask, TaskStatus


class Worker(BaseModel):
    """A machine, or a part of one, that takes tasks."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    host: str = ""
    machine: str = ""
    """the id of the machine's state directory"""
    slots: int = 1
    labels: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    providers: dict[str, str] = {}
    """the versions of the agent CLIs that are installed there, by provider"""
    version: str = ""
    draining: bool = False
    stopped: str = ""
    """why it takes no task at present"""
    silent: float = 0.0
    """seconds since its last heartbeat, by the database's clock"""

    def lacks(self, task: QueuedTask) -> str:
        """What a task needs that this worker has not; empty where it has all."""
        needs = task.needs
        if missing := [one for one in needs.labels if one not in self.labels]:
            return f"label {missing[0]}"
        if missing := [one for one in needs.providers if one not in self.providers]:
            return f"provider {missing[0]}"
        if needs.account and needs.account not in self.accounts:
            return f"account {needs.account}"
        return ""


@dataclass(frozen=True)
class Situation:
    """Everything in the queue that decides who is next."""

    tasks: Sequence[QueuedTask]
    """those that have not ended"""
    others: Mapping[str, TaskStatus] = field(default_factory=dict)
    """how the tasks stand that others come after; one that is not there is gone"""
    now: float = 0.0

    @property
    def busy(self) -> Counter[str]:
        """How many tasks of each account have a slot."""
        return Counter(task.needs.account for task in self.tasks if task.status is TaskStatus.RUNNING or has_slot(task))


def has_slot(task: QueuedTask) -> bool:
    """Whether a waiting task was given to a slot, which will start it at once."""
    return task.place.startswith(SLOT)


SLOT = "slot "
"""the beginning of the names of the engine's queues of which each belongs to a slot"""


def slot_words(name: str) -> str:
    """A slot as people know it, from the name of its queue or the engine's name for it."""
    return name.removeprefix(SLOT).rpartition("@")[0]


def machine_of_slot(name: str) -> str:
    """The id of the machine that a slot is on, from the name of its queue; empty where it is another queue."""
    return name.rpartition("@")[2] if name.startswith(SLOT) else ""


def choose(situation: Situation, worker: Worker) -> QueuedTask | None:
    """The task that a worker takes next."""
    for task in in_order(situation.tasks):
        if not has_slot(task) and not blocker(task, situation) and not worker.lacks(task):
            return task
    return None


def in_order(tasks: Iterable[QueuedTask]) -> list[QueuedTask]:
    """Waiting tasks as they are taken: by priority, then by age."""
    waiting = (task for task in tasks if task.status in (TaskStatus.WAITING, TaskStatus.PARKED))
    return sorted(waiting, key=lambda task: (task.needs.priority, task.added, task.id))


def blocker(task: QueuedTask, situation: Situation) -> str:
    """What keeps a task from being taken by anybody; empty where nothing does."""
    if task.status is TaskStatus.PARKED:
        return parked_words(task)
    for other in task.needs.after:
        status = situation.others.get(other)
        if status is not TaskStatus.PASSED:
            return _waits_for_task(other, status)
    if task.needs.not_before > situation.now:
        return f"waits until {clock(task.needs.not_before)}"
    account, limit = task.needs.account, task.needs.account_limit
    if account and limit and (busy := situation.busy[account]) >= limit:
        return f"waits for account {account} ({busy} of {limit} busy)"
    return ""


def _waits_for_task(other: str, status: TaskStatus | None) -> str:
    if status is None:
        return f"waits for {other}, which is no longer in the queue"
    is_over = status in (TaskStatus.FAILED, TaskStatus.CANCELLED)
    return f"waits for the PASS of {other}{f', which is {status}' if is_over else ''}"


def parked_words(task: QueuedTask) -> str:
    """Why a task is parked, and until when."""
    until = f" until {clock(task.parked_until)}" if task.parked_until else ""
    return f"parked{until}: {task.parked}"


def can_come(task: QueuedTask, situation: Situation) -> bool:
    """Whether a task that waits can be taken now or later without anybody doing something about it."""
    if task.status is TaskStatus.PARKED:
        return bool(task.parked_until)
    over = (None, TaskStatus.FAILED, TaskStatus.CANCELLED)
    return not any(situation.others.get(other) in over for other in task.needs.after)


def waits_for(task: QueuedTask, situation: Situation, workers: Sequence[Worker]) -> str:
    """What a task waits for, in words; empty for one that runs or has ended."""
    if task.status not in (TaskStatus.WAITING, TaskStatus.PARKED):
        return ""
    if has_slot(task):
        return f"starts on {slot_words(task.place)}"
    if found := blocker(task, situation):
        return found
    if not workers:
        return "waits for a worker; none is running"
    lacking = {worker.name: worker.lacks(task) for worker in workers}
    if all(lacking.values()):
        common = sorted(set(lacking.values()), key=lambda word: (-len(word), word))
        return f"waits for a worker with {common[0]}" if len(common) == 1 else f"waits for a worker with {_all(task)}"
    able = [worker for worker in workers if not lacking[worker.name]]
    if all(worker.draining or worker.stopped for worker in able):
        why = next((f": {worker.stopped}" for worker in able if worker.stopped), ", which is drained")
        return f"waits for {', '.join(worker.name for worker in able)}{why}"
    return "waits for a free slot"


def _all(task: QueuedTask) -> str:
    """Everything that a task needs of a worker."""
    needs = task.needs
    words = [f"label {one}" for one in needs.labels] + [f"provider {one}" for one in needs.providers]
    return ", ".join(words + ([f"account {needs.account}"] if needs.account else []))


def clock(moment: float) -> str:
    """A moment as people read it: the time of day, with the date where it is another day. In UTC."""
    when, today = datetime.fromtimestamp(moment, UTC), datetime.now(UTC).date()
    return f"{when:%H:%M}" if when.date() == today else f"{when:%Y-%m-%d %H:%M}"
