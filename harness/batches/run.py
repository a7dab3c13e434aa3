"""Carry out one batch: start the workers, break and mend things, end the workers, judge what is left."""

import shutil
import signal
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import sqlalchemy.exc

from harness.batches import plan as kinds
from harness.batches.faults import Mend, strike
from harness.batches.judge import SECONDS_TO_END, judge
from harness.batches.plan import Batch, Fault
from harness.batches.scene import Scene, scene_of
from harness.chaos.outcome import Outcome

STUCK_LEASES: Final = 15
"""leases without any sign of work after which a batch is given up"""
TIDY_LEASES: Final = 5
"""leases that workers have to remove what is left of tasks that have ended elsewhere"""
LOOK_SECONDS: Final = 1.0
LOG_LINES: Final = 40


@dataclass
class BatchOutcome(Outcome):
    """A batch, carried out."""

    seconds: float = 0.0
    not_tried: list[Fault] = field(default_factory=list)
    """faults that found nothing to break before all tasks had ended"""


class _FaultsUnderWay:
    """What is broken at present, and who mends it when."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.waiting: list[Fault] = list(scene.plan.faults)
        self._broken: list[tuple[float, Fault, Mend]] = []

    def prepare(self) -> list[Fault]:
        """Give small disks to those machines whose disk will be full; the faults that cannot be tried here."""
        impossible = []
        for fault in [fault for fault in self.waiting if fault.kind == kinds.DISK_FULL]:
            if not self._scene.mount(self._scene.machines[fault.machine].home):
                self.waiting.remove(fault)
                impossible.append(fault)
        return impossible

    @property
    def is_over(self) -> bool:
        return not self._broken

    def is_broken(self, *some: str) -> bool:
        return any(fault.kind in some for _, fault, _ in self._broken)

    def keeps_users_away(self) -> bool:
        """Whether a command on the queue may have to wait: a frozen process can hold the lock of the file."""
        is_file = self._scene.server is None
        return self.is_broken(*_DATABASE) or (is_file and self.is_broken(kinds.MACHINE_FROZEN, kinds.SLOT_FROZEN))

    def is_at_work_on(self, machine: int) -> bool:
        return any(fault.machine == machine for _, fault, _ in self._broken if fault.kind in kinds.ON_A_MACHINE)

    def turn(self, steps: int) -> None:
        """Break what is due, and mend what has been broken for long enough."""
        now = time.monotonic()
        for entry in [entry for entry in self._broken if now >= entry[0]]:
            must_wait = entry[1].kind == kinds.CANCELLED and self.keeps_users_away()
            if not must_wait and entry[2]():
                self._broken.remove(entry)
        for fault in [fault for fault in self.waiting if fault.step <= steps]:
            if not self._is_free(fault):
                continue
            self._scene.say(f"[{fault}]")
            if (mend := strike(self._scene, fault)) is not None:
                self.waiting.remove(fault)
                is_own_clock = fault.kind == kinds.SAME_NAME_LATE
                self._broken.append((now + (0 if is_own_clock else fault.length), fault, mend))
            else:
                self._scene.said.pop()

    def mend_all(self) -> None:
        """Let a batch that has gone wrong be judged with everything in its place."""
        for _, _, mend in self._broken:
            with suppress(AssertionError):
                mend()

    def _is_free(self, fault: Fault) -> bool:
        """Whether nothing else is broken in the same place."""
        if fault.kind in kinds.ON_A_MACHINE:
            return not self.is_at_work_on(fault.machine)
        if fault.kind == kinds.CANCELLED and self.keeps_users_away():
            return False
        return not self.is_broken(*(_DATABASE if fault.kind in _DATABASE else (fault.kind,)))


_DATABASE: Final = (kinds.DATABASE_SHORT, kinds.DATABASE_LONG)


def carry_out(plan: Batch, keep: Path | None = None) -> BatchOutcome:
    """Run a batch to its end, and judge it."""
    outcome, begun = BatchOutcome(plan.seed, plan.database, str(plan)), time.monotonic()
    with scene_of(plan) as scene:
        run(scene, outcome)
        if outcome.violations:
            _keep(scene, outcome, keep)
    outcome.seconds = time.monotonic() - begun
    return outcome


def run(scene: Scene, outcome: BatchOutcome) -> None:
    """Let the workers carry out the tasks while things break, end them, and judge what is there then."""
    try:
        _break_and_mend(scene, outcome)
    except AssertionError as error:
        outcome.violations.append(str(error))
    outcome.violations += _end_workers(scene)
    outcome.violations += judge(scene)
    outcome.steps = len(scene.lines("work"))
    outcome.said = scene.said


def _break_and_mend(scene: Scene, outcome: BatchOutcome) -> None:
    """Carry the batch to the end of its last task."""
    under, steps, moved = _FaultsUnderWay(scene), -1, time.monotonic()
    impossible = under.prepare()
    scene.watch()
    scene.add_tasks()
    for machine in scene.machines:
        machine.start()
    next_look, ended = 0.0, False
    try:
        while not ended or not under.is_over:
            if (now_steps := len(scene.lines("work"))) != steps:
                steps, moved = now_steps, time.monotonic()
            under.turn(steps)
            if time.monotonic() >= next_look and not under.keeps_users_away():
                next_look = time.monotonic() + LOOK_SECONDS
                ended = _look(scene, may_retry=not under.is_broken(kinds.DISK_FULL))
                _restart(scene, under)
            if time.monotonic() - moved > STUCK_LEASES * scene.plan.lease:
                raise AssertionError(f"nothing has moved for {STUCK_LEASES * scene.plan.lease:.0f} s")
            time.sleep(0.05)
    finally:
        under.mend_all()
    _restart(scene, under)  # one that has ended just now has clones to remove
    outcome.not_tried = impossible + under.waiting


def _restart(scene: Scene, under: _FaultsUnderWay) -> None:
    """Do what systemd does: start a worker again that has failed, because the database was away when it started."""
    for number, machine in enumerate(scene.machines[: len(scene.plan.machines)]):
        if not machine.is_alive and not under.is_at_work_on(number):
            scene.say(f"{machine.name} has failed, and is started again")
            machine.start()


def _look(scene: Scene, *, may_retry: bool) -> bool:
    """Do what a user does who looks at the queue: retry what has failed or is parked; whether all has ended."""
    try:
        rows = scene.statuses()
    except sqlalchemy.exc.OperationalError:  # it is not quite back yet
        return False
    for task, (status, attributes, outcome) in rows.items():
        parked = attributes.get("parked") and not attributes.get("parked_until")
        is_parked = status == "ENQUEUED" and parked and may_retry
        if is_parked:
            scene.say(f"{task} is parked: {attributes['parked']}")
            scene.parked.append((task, attributes["parked"]))
        if is_parked or (status == "SUCCESS" and outcome.get("verdict") == "FAIL"):
            scene.say(scene.command("retry", task))
    return all(status == "SUCCESS" and outcome.get("verdict") == "PASS" for status, _, outcome in rows.values())


def _end_workers(scene: Scene) -> list[str]:
    """Ask all workers to end, as an operator does; complaints about those that do not."""
    tidied = time.monotonic() + TIDY_LEASES * scene.plan.lease
    while any(machine.trees() for machine in scene.machines if machine.is_alive) and time.monotonic() < tidied:
        time.sleep(0.1)
    living = [machine for machine in scene.machines if machine.is_alive]
    for machine in living:
        machine.send(signal.SIGCONT, machine.processes())
        machine.send(signal.SIGTERM, [machine.started[-1].pid])
    deadline, complaints = time.monotonic() + SECONDS_TO_END, []
    for machine in living:
        with suppress(Exception):
            machine.started[-1].wait(max(0.1, deadline - time.monotonic()))
        if (code := machine.started[-1].poll()) not in (0, 143, -15):  # it may have been told while it was starting
            complaints.append(f"the worker {machine.name} has not ended well: {code}")
    return complaints


def _keep(scene: Scene, outcome: Outcome, keep: Path | None) -> None:
    """Keep what helps to understand a batch that went wrong."""
    for machine in scene.machines:
        text = machine.log.read_text(encoding="utf-8", errors="replace") if machine.log.exists() else ""
        outcome.said += [f"{machine.name}: {line}" for line in text.splitlines()[-LOG_LINES:]]
    with suppress(sqlalchemy.exc.SQLAlchemyError):
        turns = scene.rows("SELECT task, old, new, executor FROM turns ORDER BY number")
        outcome.said += [" ".join(map(str, turn)) for turn in turns]
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=f"batch-{outcome.seed}-", dir=keep))
        with suppress(shutil.Error):
            shutil.copytree(scene.root, place, symlinks=True, dirs_exist_ok=True)
        outcome.said.append(f"kept in {place}")
