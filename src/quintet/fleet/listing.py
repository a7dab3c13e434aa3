"""The queue as people and programs look at it: each task with what it does or waits for, and the workers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from quintet.fleet.choosing import Situation, Worker, clock, parked_words, waits_for
from quintet.fleet.tasks import QueuedTask, TaskStatus
from quintet.prose import plural
from quintet.roles import in_words
from quintet.watch.runs.formatting import duration

_ORDER: Final = (TaskStatus.RUNNING, TaskStatus.WAITING, TaskStatus.PARKED)


def reason_of(task: QueuedTask, situation: Situation, workers: Sequence[Worker]) -> str:
    """Why a task is not done: what it waits for, why it is parked, or why it has failed."""
    if task.status is TaskStatus.PARKED:
        return parked_words(task)
    if task.status is TaskStatus.WAITING:
        return waits_for(task, situation, workers)
    return task.outcome.reason if task.outcome else ""


def task_json(task: QueuedTask, situation: Situation, workers: Sequence[Worker]) -> dict[str, Any]:
    """A task as a JSON object."""
    outcome, progress, is_running = task.outcome, task.progress, task.status is TaskStatus.RUNNING
    return {
        "id": task.id,
        "title": task.title,
        "status": str(task.status),
        "verdict": outcome.verdict if outcome else "",
        "machine": progress.machine if is_running or outcome else "",
        "slot": progress.slot if is_running else 0,
        "branch": outcome.branch if outcome else task.branch,
        "commit": outcome.commit if outcome else "",
        "reason": reason_of(task, situation, workers),
        "repository": task.repository,
        "run": outcome.run if outcome else progress.run,
        "round": progress.round,
        "phase": progress.phase,
        "agent": progress.agent if is_running else "",
        "tokens": outcome.tokens if outcome else progress.tokens,
        "cost": outcome.cost if outcome else progress.cost,
        "priority": task.needs.priority,
        "labels": list(task.needs.labels),
        "providers": list(task.needs.providers),
        "account": task.needs.account,
        "after": list(task.needs.after),
        "attempt": task.attempt,
        "takeovers": task.takeovers,
        "added": task.added,
        "since": progress.since if is_running else 0.0,
        "ended": task.ended,
    }


def task_lines(task: QueuedTask, situation: Situation, workers: Sequence[Worker]) -> tuple[str, str]:
    """A task in two lines: how it stands with its name, and what there is to say of it."""
    return f"{task.status:<9} {task.id}", _said_of(task, situation, workers)


def _said_of(task: QueuedTask, situation: Situation, workers: Sequence[Worker]) -> str:
    progress = task.progress
    if task.status is TaskStatus.RUNNING:
        words = [f"on {progress.machine}/{progress.slot} for {duration(situation.now - progress.since)}"]
        if progress.agent:
            words += [f"round {progress.round}", in_words(progress.agent)]
        return ", ".join(words + ([f"{progress.tokens:,} tokens"] if progress.tokens else []))
    reason = reason_of(task, situation, workers)
    outcome = task.outcome
    if outcome is None:
        return reason or task.title
    place = f"branch {outcome.branch}" if outcome.branch else "its work was not pushed"
    words = [place if outcome.commit else "", reason, f"{clock(task.ended)} UTC" if task.ended else ""]
    return ", ".join(word for word in words if word)


def in_listing_order(tasks: Sequence[QueuedTask]) -> list[QueuedTask]:
    """Running tasks, then those that wait in the order in which they are taken, then the ended ones, newest first."""
    living = [task for task in tasks if task.status in _ORDER]
    living.sort(key=lambda task: (_ORDER.index(task.status), task.needs.priority, task.added, task.id))
    return living + sorted((task for task in tasks if task.status not in _ORDER), key=lambda task: -task.ended)


def count(living: Sequence[QueuedTask], ended: Mapping[str, int]) -> dict[str, int]:
    """How many tasks stand how; of those that have ended the numbers are given."""
    return {status: sum(task.status is status for task in living) + ended.get(status, 0) for status in TaskStatus}


def headline(living: Sequence[QueuedTask], ended: Mapping[str, int]) -> str:
    """How many tasks stand how, in words."""
    counts = count(living, ended)
    return ", ".join(f"{number} {status}" for status, number in counts.items() if number) or "The queue is empty."


def living_workers(workers: Sequence[Worker], lease: float) -> list[Worker]:
    """The workers that have given a sign of life within the lease."""
    return [worker for worker in workers if worker.silent <= lease]


def worker_lines(worker: Worker, tasks: Sequence[QueuedTask], lease: float) -> tuple[str, str]:
    """A worker in two lines."""
    running = [task.id for task in tasks if task.status is TaskStatus.RUNNING and task.progress.machine == worker.name]
    state = "silent" if worker.silent > lease else "drained" if worker.draining else "alive"
    words = [f"{len(running)} of {plural(worker.slots, 'slot')} busy", f"seen {duration(worker.silent)} ago"]
    words += [f"label {label}" for label in worker.labels] + [f"account {account}" for account in worker.accounts]
    words += [f"{name} {version}".strip() for name, version in worker.providers.items()]
    words += [worker.stopped] if worker.stopped else []
    return f"{state:<9} {worker.name}", ", ".join(words + running)


def worker_json(worker: Worker, tasks: Sequence[QueuedTask], lease: float) -> dict[str, Any]:
    """A worker as a JSON object."""
    running = [task.id for task in tasks if task.status is TaskStatus.RUNNING and task.progress.machine == worker.name]
    return worker.model_dump(mode="json") | {"alive": worker.silent <= lease, "tasks": running}
