"""The faults of a batch: how each strikes, and how it is mended."""

import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from harness.batches import plan as kinds
from harness.batches.plan import Fault
from harness.batches.scene import NAMESAKE, PAGE, Machine, Scene, uptime

T = TypeVar("T")
Mend = Callable[[], bool]
"""makes it good again; whether that is done, else it is tried again"""


def strike(scene: Scene, fault: Fault) -> Mend | None:
    """Break something; how it is mended. None where nothing is there to be broken yet."""
    if fault.kind in kinds.ON_A_MACHINE:
        machine = scene.machines[fault.machine]
        return _ON_MACHINES[fault.kind](scene, fault, machine) if machine.is_alive else None
    return _GLOBAL[fault.kind](scene, fault)


def _one(found: Sequence[T], pick: float) -> T:
    return found[int(pick * len(found))]


def _nothing() -> bool:
    return True


def _kill_one(scene: Scene, fault: Fault, machine: Machine) -> Mend | None:
    found = machine.processes("slot" if fault.kind == kinds.SLOT_KILLED else "run_task")
    if not found:
        return None
    pid = _one(found, fault.pick)
    scene.say(f"{machine.name}: kill -9 {pid}, {fault.kind}")
    machine.send(signal.SIGKILL, [pid])
    return _nothing


def _kill_worker(scene: Scene, fault: Fault, machine: Machine) -> Mend:
    """The worker's own process, or everything that its machine has, as if it were switched off."""
    machine.send(signal.SIGKILL, [machine.started[-1].pid])
    while fault.kind == kinds.MACHINE_KILLED and (left := machine.processes()):
        machine.send(signal.SIGKILL, left)
    return _started_again(scene, machine)


def _started_again(scene: Scene, machine: Machine, *, other: bool = False) -> Mend:
    def start() -> bool:
        if machine.is_alive:
            return False
        scene.say(f"{machine.name} is started again{' with another version' if other else ''}")
        machine.start(scene.other_version() if other else None)
        return True

    return start


def _end_worker(scene: Scene, fault: Fault, machine: Machine) -> Mend:
    machine.send(signal.SIGTERM, [machine.started[-1].pid])
    return _started_again(scene, machine, other=fault.kind == kinds.OTHER_VERSION)


def _freeze(scene: Scene, fault: Fault, machine: Machine) -> Mend | None:
    """Everything on a machine, or one slot."""
    if fault.kind == kinds.SLOT_FROZEN:
        slots = machine.processes("slot")
        pids = [_one(slots, fault.pick)] if slots else []
    else:
        pids = machine.processes()
    if not pids:
        return None
    begun = uptime()
    machine.send(signal.SIGSTOP, pids)
    if fault.kind != kinds.SLOT_FROZEN:
        while new := [pid for pid in machine.processes() if pid not in pids]:
            machine.send(signal.SIGSTOP, new)
            pids += new
        machine.frozen.append((begun, math.inf))

    def thaw() -> bool:
        scene.say(f"{machine.name} goes on")
        machine.send(signal.SIGCONT, pids)
        if fault.kind != kinds.SLOT_FROZEN:
            machine.frozen[-1] = (begun, uptime())
        return True

    return thaw


def _namesake(scene: Scene, machine: Machine) -> Machine:
    home = scene.root / (machine.home.name if scene.server is None else NAMESAKE)
    second = Machine(scene, machine.name, 1, home)
    scene.machines.append(second)
    scene.say(f"a second {machine.name} is started")
    second.start()
    return second


def _same_name(scene: Scene, _fault: Fault, machine: Machine) -> Mend:
    """Start a second worker with the name of one that is alive: it has to refuse."""
    second = _namesake(scene, machine)
    deadline = time.monotonic() + 60

    def refused() -> bool:
        if second.is_alive and time.monotonic() < deadline:
            return False
        assert second.started[-1].poll() == 1, f"a second worker with the name {machine.name} was not refused"
        scene.say(f"a second {machine.name} was refused")
        return True

    return refused


def _same_name_late(scene: Scene, fault: Fault, machine: Machine) -> Mend | None:
    """Start a second worker while the first is frozen and silent; then the first wakes up, and the second ends."""
    thaw = _freeze(scene, fault, machine)
    if thaw is None:
        return None
    begun, lease, seconds = time.monotonic(), scene.plan.lease, list[Machine]()
    todo: list[tuple[float, Callable[[], object]]] = [
        (1.2 * lease, lambda: seconds.append(_namesake(scene, machine))),
        (fault.length, thaw),
        (fault.length + lease, lambda: seconds[0].send(signal.SIGTERM, [seconds[0].started[0].pid])),
    ]

    def go_on() -> bool:
        while todo and time.monotonic() - begun >= todo[0][0]:
            todo.pop(0)[1]()
        return not todo and not seconds[0].is_alive

    return go_on


def _fill_disk(scene: Scene, fault: Fault, machine: Machine) -> Mend:
    filler, size = machine.home / "filler", 0
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            size += file.write(b"\0" * PAGE)
    os.truncate(filler, max(0, size - int(fault.pick * 3) * 4096))

    def free() -> bool:
        filler.unlink()
        scene.say(f"the disk of {machine.name} has room again")
        return True

    return free


def _stop_database(scene: Scene, _fault: Fault) -> Mend:
    server = scene.server
    assert server is not None
    server.stop()

    def start() -> bool:
        server.start()
        scene.say("the database is back")
        return True

    return start


def _hide_remote(scene: Scene, _fault: Fault) -> Mend:
    away = scene.root / "away.git"
    scene.remote.rename(away)

    def bring_back() -> bool:
        away.rename(scene.remote)
        scene.say("the remote is back")
        return True

    return bring_back


def _cancel(scene: Scene, fault: Fault) -> Mend | None:
    """Cancel a task that runs; retry it, perhaps before its slot has noticed."""
    running = sorted(task for task, (status, _, _) in scene.statuses().items() if status == "PENDING")
    if not running:
        return None
    task = _one(running, fault.pick)
    said = scene.command("cancel", task)
    scene.say(said)
    if " is cancelled" not in said:
        return None
    scene.cancelled[task] = scene.cancelled.get(task, 0) + 1

    def retry() -> bool:
        said = scene.command("retry", task)
        scene.say(said)
        return not said.startswith("refused") or "nothing to retry" in said

    return retry


_ON_MACHINES: Final[dict[str, Callable[[Scene, Fault, Machine], Mend | None]]] = {
    kinds.SLOT_KILLED: _kill_one,
    kinds.RUN_KILLED: _kill_one,
    kinds.WORKER_KILLED: _kill_worker,
    kinds.MACHINE_KILLED: _kill_worker,
    kinds.WORKER_ENDED: _end_worker,
    kinds.OTHER_VERSION: _end_worker,
    kinds.MACHINE_FROZEN: _freeze,
    kinds.SLOT_FROZEN: _freeze,
    kinds.SAME_NAME: _same_name,
    kinds.SAME_NAME_LATE: _same_name_late,
    kinds.DISK_FULL: _fill_disk,
}
_GLOBAL: Final[dict[str, Callable[[Scene, Fault], Mend | None]]] = {
    kinds.CANCELLED: _cancel,
    kinds.DATABASE_SHORT: _stop_database,
    kinds.DATABASE_LONG: _stop_database,
    kinds.REMOTE_AWAY: _hide_remote,
}
