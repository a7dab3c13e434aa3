"""The judge of a batch: what the remote, the database and the list of processes say, not what the product says."""

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from harness.batches.plan import DISK_FULL
from harness.batches.scene import Scene
from harness.chaos.real.leftovers import processes_of, sockets_in

NOBODY: Final = "0"
"""the slot of a push whose slot was killed while it went on"""
_TASK: Final = re.compile(r"quintet/(?:failed/)?([^/]+-[0-9a-f]{8}(?:-try\d+)?)(?:/state|/archive)?$")
SECONDS_TO_END: Final = 60.0


def judge(scene: Scene) -> Iterator[str]:
    """What is not as it should be after all workers have ended."""
    yield from _ends(scene)
    yield from _parked(scene)
    yield from _branches(scene)
    is_local = scene.server is None  # there a frozen run is ended before another goes on
    frozen = [] if is_local else [(one.mark, *window) for one in scene.machines for window in one.frozen]
    yield from overlaps(scene.lines("work"), frozen, scene.plan.lease)
    yield from late_pushes(scene.lines("pushed"))
    yield from _left(scene)


def _attempts(scene: Scene, task: str) -> int:
    return 2 if scene.plan.fails_first(scene.numbers[task]) else 1


def _branch(task: str, attempt: int) -> str:
    return f"quintet/{task}" if attempt == 1 else f"quintet/{task}-try{attempt}"


def _ends(scene: Scene) -> Iterator[str]:
    """Each task has ended once for each attempt, with a PASS in the end."""
    turns: dict[str, list[str]] = defaultdict(list)
    for task, new in scene.rows("SELECT task, new FROM turns ORDER BY number"):
        turns[task].append(new)
    rows = scene.statuses()
    if rows.keys() != scene.numbers.keys():
        yield f"{len(rows)} tasks in the database, {len(scene.numbers)} were added"
    for task in scene.numbers:
        status, _, outcome = rows.get(task, ("gone", {}, {}))
        if (status, outcome.get("verdict")) != ("SUCCESS", "PASS"):
            yield f"{task} is {status} with {outcome.get('verdict')}: {outcome.get('reason')}"
        wanted = _attempts(scene, task)
        if turns[task].count("SUCCESS") != wanted or turns[task].count("ERROR"):
            yield f"{task} has not ended {wanted} times but: {' '.join(turns[task])}"
        if turns[task].count("CANCELLED") != scene.cancelled.get(task, 0):
            yield f"{task} was cancelled {scene.cancelled.get(task, 0)} times by its user: {' '.join(turns[task])}"


def _parked(scene: Scene) -> Iterator[str]:
    """A task waits for its user only where a disk was full or where it was taken over too often."""
    if not any(fault.kind == DISK_FULL for fault in scene.plan.faults):
        yield from (f"{task} was parked: {why}" for task, why in scene.parked if "has died or was lost" not in why)


def _branches(scene: Scene) -> Iterator[str]:
    """Each task has its branch with exactly what it should have, and nothing else is there."""
    git = scene.queue.project.git if scene.server is None else scene.queue.remote
    rows = scene.statuses()
    wanted = {_branch(task, _attempts(scene, task)): task for task in scene.numbers}
    failed = {_branch(task, 1) for task in scene.numbers if _attempts(scene, task) > 1}
    found = set(git("for-each-ref", "--format=%(refname:short)", "refs/heads/quintet").split())
    if extra := found - wanted.keys() - (failed if scene.server is None else set()):
        yield f"branches that nobody asked for: {', '.join(sorted(extra))}"
    for branch, task in wanted.items():
        if branch not in found:
            yield f"the branch {branch} is not there"
            continue
        number = scene.numbers[task]
        first, second = f"The first part of {number}.", f"The second part of {number}."
        changes = git("diff", "--name-status", f"main...{branch}").split()
        if changes != ["A", "first.txt", "A", "second.txt"]:
            yield f"{branch} has changed: {changes}"
        elif (git("show", f"{branch}:first.txt"), git("show", f"{branch}:second.txt")) != (first, f"{first}\n{second}"):
            yield f"{branch} has another content"
        if git("rev-parse", branch) != rows[task][2].get("commit"):
            yield f"{branch} is not at the commit of the result"
    if scene.server is not None:
        refs = set(git("for-each-ref", "--format=%(refname)", "refs/quintet").split())
        archives = {f"refs/{name}/archive" for name in wanted.keys() | failed}
        if refs != archives:
            yield f"refs in the remote: too many {sorted(refs - archives)}, too few {sorted(archives - refs)}"


def overlaps(
    worked: Iterable[Sequence[str]], frozen: Sequence[tuple[str, float, float]], patience: float
) -> Iterator[str]:
    """Complaints about agents that have worked on a task while another did.

    One of both may have been frozen; it has `patience` seconds afterwards to see that it has lost its task.
    """
    for how, now, branch, role, machine, pid, *holder in worked:
        who, moment = {machine, *holder[:1]}, float(now)
        was_frozen = any(mark in who and begin <= moment <= end + patience for mark, begin, end in frozen)
        if how != "alone" and not was_frozen:
            yield f"{branch}: {role} {pid} of {machine} has worked beside {' '.join(holder)}"


def late_pushes(pushed: Iterable[Sequence[str]]) -> Iterator[str]:
    """Complaints about slots that have pushed for a task after another slot had taken it over."""
    pushers: dict[str, list[str]] = defaultdict(list)
    for _, slot, machine, _, _, ref in pushed:
        found = _TASK.search(ref)
        name = f"{slot} of {machine}"
        if found and slot != NOBODY and pushers[found[1]][-1:] != [name]:
            pushers[found[1]].append(name)
    for task, names in pushers.items():
        if len(names) != len(set(names)):
            yield f"a slot has pushed for {task} after another had taken it over: {', '.join(names)}"


def _left(scene: Scene) -> Iterator[str]:
    """Nothing runs any more, and no clone is left."""
    deadline = time.monotonic() + SECONDS_TO_END
    while (left := processes_of(scene.root)) and time.monotonic() < deadline:
        time.sleep(0.1)
    yield from (f"still running: {pid} {command}" for pid, command in left.items())
    if sockets := [name for name in sockets_in(scene.root) if not left]:
        yield f"sockets are left: {', '.join(sockets)}"
    for machine in scene.machines[: len(scene.plan.machines)]:
        if trees := machine.trees():
            yield f"clones are left on {machine.name}: {', '.join(trees)}"
