"""The judge of a batch: what the remote, the database and the list of processes say, not what the product says."""

import re
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from tests.chaos.real.leftovers import processes_of, sockets_in
from tests.fleet.batches_scene import Scene

AFTER_THAW: Final = 1.0
"""in leases: how long a machine that was frozen may take to see that it has lost its task"""
SECONDS_TO_END: Final = 60.0


def judge(scene: Scene) -> Iterator[str]:
    """What is not as it should be after all workers have ended."""
    yield from _ends(scene)
    yield from _branches(scene)
    yield from _overlaps(scene)
    yield from _late_pushes(scene)
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


def _overlaps(scene: Scene) -> Iterator[str]:
    """No agent has worked on a task while another did, unless one of both was on a machine that was frozen."""
    lease = scene.plan.lease
    frozen = [(machine.mark, begin, end) for machine in scene.machines for begin, end in machine.frozen]
    for how, now, branch, role, machine, pid, *holder in scene.lines("work"):
        if how == "alone":
            continue
        who = {machine, holder[0] if holder else ""}
        moment = float(now)
        is_explained = scene.server is not None and any(
            mark in who and begin <= moment <= end + AFTER_THAW * lease for mark, begin, end in frozen
        )
        if not is_explained:
            yield f"{branch}: {role} {pid} of {machine} has worked beside {' '.join(holder)}"


def _late_pushes(scene: Scene) -> Iterator[str]:
    """Once a slot has pushed for a task, no slot that had it before can push for it any more."""
    pushers: dict[str, list[str]] = defaultdict(list)
    for _, slot, machine, _, _, ref in scene.lines("pushed"):
        found = re.search(r"(\S+-[0-9a-f]{8}(-try\d+)?)(/state|/archive)?$", ref)
        if found and slot != "0":
            who = pushers[found[1].rpartition("quintet/")[2]]
            name = f"{slot} of {machine}"
            if not who or who[-1] != name:
                who.append(name)
    for task, who in pushers.items():
        if len(who) != len(set(who)):
            yield f"a slot has pushed for {task} after another had taken it over: {', '.join(who)}"


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
