"""A worker: it keeps a process for each slot, gives them tasks, and takes over those of workers that are gone."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import FrameType
from typing import Final

from quintet import __version__
from quintet.config.load import Loaded, settings_to_keep
from quintet.errors import QueueError
from quintet.fleet.checkpoint import stale_trees
from quintet.fleet.choosing import SLOT, Worker, can_come, choose, clock, slot_words
from quintet.fleet.database import Database
from quintet.fleet.machine import environment_without_secrets, machine_id, only_one
from quintet.fleet.messages import SlotOrder
from quintet.fleet.reading import WAITING
from quintet.fleet.slot import BUSY, DONE, FAILED_HERE
from quintet.fleet.task_settings import sandbox_settings
from quintet.fleet.tasks import QueuedTask, TaskStatus
from quintet.program import program

_POLL_SECONDS: Final = 0.5
_BEAT_SECONDS: Final = 15.0
_RESTART_SECONDS: Final = 2.0
"""between two starts of a slot"""
_STOP_SECONDS: Final = 60.0
_IDLE_LEASES: Final = 3
"""how many leases a task may be in the queue of a slot that does not take it"""
_MOST_DOUBLINGS: Final = 3
"""of the time that a worker waits on which tasks could not go on"""
Tell = Callable[[str], None]


@dataclass
class _SlotProcess:
    """The process of a slot, and whether it takes tasks."""

    order: SlotOrder
    process: "subprocess.Popen[bytes] | None" = None
    started: float = float("-inf")
    is_ready: bool = False
    """whether it takes tasks; it takes none while it has one"""

    def start(self) -> None:
        """Start the process; its order goes through a pipe, because the database's address may hold a password."""
        self.started, self.is_ready = time.monotonic(), False
        self.process = subprocess.Popen(
            [sys.executable, "-m", "quintet.fleet.slot"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment_without_secrets(),
            start_new_session=True,
        )
        if self.process.stdin and self.process.stdout:
            os.set_blocking(self.process.stdout.fileno(), False)
            with suppress(BrokenPipeError):
                self.process.stdin.write(self.order.model_dump_json().encode() + b"\n")
                self.process.stdin.flush()

    @property
    def place(self) -> str:
        """Its queue."""
        return f"{SLOT}{self.order.name}"

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def look(self) -> list[str]:
        """Hear how it stands; what it has said."""
        said: list[str] = []
        if self.process and self.process.stdout:
            with suppress(BlockingIOError):
                said = os.read(self.process.stdout.fileno(), 4096).decode().split()
        for word in said:
            self.is_ready = word != BUSY
        return said

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self.process and self.is_alive:
            self.process.send_signal(number)


@dataclass
class Watch:
    """Which rows have not changed for how long, by this machine's own clock; no clocks are compared."""

    gap: float
    """seconds between two looks after which it begins anew: the database, or this machine, stood still"""
    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, tuple[object, float]] = field(default_factory=dict)
    _looked: float = float("-inf")

    def unchanged(self, tasks: list[QueuedTask]) -> dict[str, float]:
        """The seconds for which the row of each task has been the same."""
        now = self.clock()
        before, self._seen = self._seen if now - self._looked <= self.gap else {}, {}
        self._looked = now
        for task in tasks:
            mark = (task.owner, task.place, task.mark)
            old = before.get(task.id)
            self._seen[task.id] = old if old and old[0] == mark else (mark, now)
        return {name: now - since for name, (_, since) in self._seen.items()}

    def forget(self) -> None:
        """Begin anew: while the database was away, nobody could write a heartbeat."""
        self._seen = {}


@dataclass
class Rest:
    """How long a worker waits after tasks in a row that could not go on where it is.

    A machine with a full disk would else let task after task be parked, while others could carry them out.
    """

    first: float
    """seconds to wait after the second one"""
    clock: Callable[[], float] = time.time
    failures: int = 0
    until: float = 0.0

    def worked(self) -> None:
        """A task has come to a verdict here."""
        self.failures, self.until = 0, 0.0

    def failed(self) -> None:
        """A task could not go on here: after the second one, wait for longer each time."""
        self.failures += 1
        if self.failures > 1:
            self.until = self.clock() + self.first * 2 ** min(self.failures - 2, _MOST_DOUBLINGS)

    def gave(self) -> None:
        """A task was given to a slot: where the last ones have failed, see first what comes of it."""
        if self.failures > 1:
            self.until = self.clock() + self.first

    @property
    def reason(self) -> str:
        """Why no task is taken; empty where one is."""
        if self.clock() >= self.until:
            return ""
        return f"the last {self.failures} tasks could not go on here; it takes the next one at {clock(self.until)} UTC"


class WorkerProcess:
    """The main process of a worker."""

    def __init__(self, loaded: Loaded, worker: Worker, tell: Tell, *, until_empty: bool = False) -> None:
        """`until_empty`: end when nothing is left that this worker could do."""
        self._until_empty = until_empty
        self._settings, self._tell = (settings := loaded.settings), tell
        self._database = Database(settings.queue_url)
        self._worker = worker.model_copy(
            update={"machine": machine_id(), "host": socket.gethostname(), "version": __version__}
        )
        orders = (
            SlotOrder(
                url=settings.queue_url,
                worker=worker.name,
                number=number,
                machine=self._worker.machine,
                lease=settings.queue_lease,
                sandbox=sandbox_settings(settings),
                providers={name: dict(parts) for name, parts in settings_to_keep(loaded).providers.items()},
            )
            for number in range(1, worker.slots + 1)
        )
        self._slots = [_SlotProcess(order) for order in orders]
        self._watch = Watch(settings.queue_lease / 2)
        self._rest = Rest(settings.queue_lease / 2)
        self._stops, self._code = 0, 0
        self._next_beat = 0.0
        self._is_away = False
        self._tidying: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Take tasks until a signal comes; the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        with only_one(self._worker.name):
            if taken := self._namesake():
                raise QueueError(f"{taken}; give this one another: --name")
            for slot in self._slots:
                self._database.open_slot(slot.order.name)
            self._say(f"The worker {self._worker.name} takes tasks from {self._database.name}.")
            self._beat()
            while not self._stops and not (self._until_empty and self._is_empty()):
                self._turn()
                self._pause(_POLL_SECONDS)
            return self._end()

    def _namesake(self) -> str:
        """That a worker of the same name is running on another machine, in words; empty where none is."""
        for other in self._database.workers():
            is_other = other.name == self._worker.name and other.machine != self._worker.machine
            if is_other and other.silent < self._settings.queue_lease:
                return f"a worker with the name {other.name} is running on {other.host}"
        return ""

    def _turn(self) -> None:
        """Do once what has to be done again and again. While the database is away, only the slots are looked after."""
        self._look_after_slots()
        try:
            if time.monotonic() >= self._next_beat:
                if taken := self._namesake():  # this one was silent for longer than the lease
                    self._say(f"{taken}.")
                    self._stops, self._code = self._stops + 1, 1
                    return
                self._beat()
                self._take_over()
                self._tidy()
            self._give_tasks()
        except QueueError as error:
            self._watch.forget()
            if not self._is_away:
                self._say(f"{error}; tasks go on, and it is tried again")
            self._is_away = True
            self._pause(_RESTART_SECONDS)
        else:
            if self._is_away:
                self._say(f"The queue at {self._database.name} is back.")
            self._is_away = False

    def _look_after_slots(self) -> None:
        """Hear how the slots stand, and start those again that have ended."""
        for slot in self._slots:
            if DONE in slot.look() and self._rest.failures:
                self._rest.worked()
                self._next_beat = 0.0
            if not slot.is_alive and not self._is_away and time.monotonic() - slot.started > _RESTART_SECONDS:
                if slot.process and slot.process.returncode == FAILED_HERE:
                    self._rest.failed()
                    self._next_beat = 0.0
                slot.start()

    # -- what goes to the database

    def _beat(self) -> None:
        """Write down that this worker is there; hear whether it is to be drained."""
        stopped = self._over_budget() or self._rest.reason
        if stopped and stopped != self._worker.stopped:
            self._say(f"It takes no task at present: {stopped}.")
        self._worker = self._worker.model_copy(update={"stopped": stopped})
        draining = self._database.beat(self._worker)
        if draining and not self._worker.draining:
            undo = f"{program()} workers drain {self._worker.name} --undo"
            self._say(f"It is drained: it takes no more tasks, until somebody says: {undo}")
        self._worker = self._worker.model_copy(update={"draining": draining})
        beat = min(_BEAT_SECONDS, self._settings.queue_lease / 8)
        self._next_beat = time.monotonic() + beat * random.uniform(0.9, 1.0)  # noqa: S311 - spreads the load

    def _over_budget(self) -> str:
        """Why no more tasks are taken today; empty where they are."""
        settings = self._settings
        if not settings.queue_max_tokens and not settings.queue_max_cost:
            return ""
        tokens, cost = self._database.spent(f"{datetime.now(UTC):%Y-%m-%d}")
        if settings.queue_max_tokens and tokens >= settings.queue_max_tokens:
            return f"the tokens of the day are used up ({tokens:,} of {settings.queue_max_tokens:,})"
        if settings.queue_max_cost and cost >= settings.queue_max_cost:
            return f"the money of the day is used up ({cost:.2f} of {settings.queue_max_cost:.2f})"
        return ""

    def _give_tasks(self) -> None:
        """Give a waiting task to each free slot."""
        ready = [slot for slot in self._slots if slot.is_ready and slot.is_alive]
        if self._worker.draining or self._worker.stopped or not ready or not self._database.is_waiting():
            return
        now = self._database.situation()
        busy = {task.place for task in now.tasks}
        free = [slot for slot in ready if slot.place not in busy]
        if not free or not choose(now, self._worker):
            return
        with self._database.alone() as alone:
            for slot in free if alone else ():
                task = None if self._rest.reason else choose(self._database.situation(), self._worker)
                if task and self._database.move(task, slot.place):
                    self._rest.gave()
                    self._say(f"{task.id} starts in slot {slot.order.number}.")

    def _take_over(self) -> None:
        """Let the tasks of slots that have been silent for longer than the lease wait for another worker."""
        held = [task for task in self._database.living() if task.place != WAITING]
        silent = self._watch.unchanged(held)
        lease = self._settings.queue_lease
        for task in held:
            own = max(lease, task.progress.lease)  # machines may have different settings
            is_lost = silent[task.id] > (own if task.status is TaskStatus.RUNNING else _IDLE_LEASES * own)
            if not is_lost:
                continue
            if self._database.move(task, WAITING):
                lost = slot_words(task.owner or task.place)
                self._say(f"{task.id} waits again: {lost} has been silent for {own:.0f} s.")

    def _is_empty(self) -> bool:
        """Whether no slot has a task, and none waits that this worker could take now or later."""
        own = {slot.place for slot in self._slots}
        try:
            now = self._database.situation()
        except QueueError:
            return False
        takes = not self._worker.draining
        return not any(
            task.place in own or (takes and can_come(task, now) and not self._worker.lacks(task)) for task in now.tasks
        )

    def _tidy(self) -> None:
        """Let another process end and remove what tasks have left here that this machine has no more."""
        if self._database.is_file or (self._tidying and self._tidying.poll() is None):
            return
        stale = stale_trees(self._database.living(), self._worker.machine)
        if stale:
            self._tidying = subprocess.Popen(
                [sys.executable, "-m", "quintet.fleet.leftovers"],
                stdin=subprocess.PIPE,
                env=environment_without_secrets(),
                start_new_session=True,
            )
            if self._tidying.stdin:
                with suppress(BrokenPipeError), self._tidying.stdin as names:
                    names.write("".join(f"{tree}\n" for tree in stale).encode())

    # -- the end

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stops += 1

    def _end(self) -> int:
        """Ask the slots to end, which give their tasks back; a second signal ends them at once."""
        self._say("It ends; its tasks go on elsewhere or later.")
        for slot in self._slots:
            slot.send(signal.SIGTERM)
        deadline, hurried = time.monotonic() + _STOP_SECONDS, False
        while any(slot.is_alive for slot in self._slots):
            if (self._stops > 1 or time.monotonic() > deadline) and not hurried:
                hurried = True
                for slot in self._slots:
                    slot.send(signal.SIGTERM)
            self._pause(0.05)
        if not hurried:
            with suppress(QueueError):
                self._leave_nothing()
        return self._code

    def _leave_nothing(self) -> None:
        own = {slot.place for slot in self._slots}
        with self._database.alone() as alone:
            for task in self._database.living() if alone else ():
                if task.place in own:
                    self._database.change(task, WAITING)
        if not self._namesake():
            self._database.forget_worker(self._worker.name, unless_drained=True)

    def _pause(self, seconds: float) -> None:
        """Sleep, but not for long once a signal has come."""
        end = time.monotonic() + seconds
        before = self._stops
        while self._stops == before and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))

    def _say(self, text: str) -> None:
        self._tell(text)
