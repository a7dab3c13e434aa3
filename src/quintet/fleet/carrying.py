"""A task in its slot: its run is started, watched and stopped, and its checkpoints and its result are pushed."""

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from quintet import files
from quintet.ansi import plain
from quintet.errors import DatabaseAway, GitError, QueueError, QuintetError
from quintet.fleet.checkpoint import Clone, Fenced, PushRefused, make_checkpoint, work_commit
from quintet.fleet.database import Database
from quintet.fleet.machine import environment_without_secrets
from quintet.fleet.messages import CheckpointMade, Moved, Order, RunEnded, RunHalted, SlotOrder, confirmation
from quintet.fleet.reading import WAITING
from quintet.fleet.run_process import CHILD_SECONDS, end_process, messages_of, send
from quintet.fleet.tasks import MOST_TAKEOVERS, QueuedTask, TaskOutcome, TaskProgress, TaskSpec, TaskStatus
from quintet.layout import fleet_folder

T = TypeVar("T")
_LOOK_SECONDS: Final = 3.0
_TICK_SECONDS: Final = 0.1
_JOIN_SECONDS: Final = 5.0
_LONGEST_REASON: Final = 500
_MOST_DEATHS: Final = 3
"""how often the process of a run may die without a word before the task is parked"""


class Leave(Exception):  # noqa: N818 - no error
    """The slot has given its task away, or has lost it, and ends."""


class Carrying:
    """A task that this slot has."""

    def __init__(
        self, order: SlotOrder, database: Database, stopping: threading.Event, task_id: str, spec: TaskSpec
    ) -> None:
        self._order, self._database, self._stopping = order, database, stopping
        self._id, self._spec = task_id, spec
        self._progress = TaskProgress(
            machine=order.worker, slot=order.number, home=order.machine, since=time.time(), lease=order.lease
        )
        self._held: QueuedTask | None = None
        """the task as it was when this slot got it"""
        self._child: subprocess.Popen[bytes] | None = None
        """the process of the run"""
        self._news = threading.Event()
        """there is something to write down before the next heartbeat is due"""
        self._over = threading.Event()
        """no more heartbeats"""
        self.has_failed_here = False
        """whether the task was parked before any agent had worked, for a reason that may be this machine's"""
        self._clone: Clone | None = None
        self._ignored = ""
        """what the remote had of this task that no worker has recorded"""
        self._unpushed = ""
        """a checkpoint that the remote does not have yet"""
        self._next_push = 0.0
        """when a push that failed is tried again, by the monotonic clock"""
        self._away_since = 0.0
        """since when the remote is away, by the monotonic clock"""
        self._spending = threading.Lock()
        self._day = _today()
        self._spent_before = (0, 0.0)
        """by the day's count, before this slot got the task"""
        self._used_before = self._used = (0, 0.0)
        """what the run had used by then, and what it has used by now"""

    def close(self) -> None:
        """Let the clone be removed that it may have left."""
        if self._clone:
            self._clone.close()

    def to_the_end(self) -> TaskOutcome:
        """Carry the task to a verdict; heartbeats are written all the while, whatever git or the run wait for."""
        task = self._patiently(lambda: self._database.task(self._id))
        if task is None or not self._is_mine(task):
            raise Leave
        self._held = task
        beating = threading.Thread(target=self._keep_beating, daemon=True)
        try:
            return self._carry_out(task, beating)
        finally:
            self._over.set()
            self._news.set()
            if beating.is_alive():
                beating.join(_JOIN_SECONDS)  # the database may not answer

    def _carry_out(self, task: QueuedTask, beating: threading.Thread) -> TaskOutcome:
        """Prepare the task, and let its run go on until there is a verdict."""
        if task.result:  # the worker that has pushed it could not end the task
            return task.result
        takeovers = task.takeovers + (1 if task.progress.since else 0)
        if takeovers > MOST_TAKEOVERS:
            self.park(f"its worker has died or was lost {takeovers} times; {task.progress.machine} was the last")
        self._progress = self._progress.model_copy(update={"home": task.progress.home})
        self._patiently(lambda: self._note(takeovers=takeovers, parked="", parked_until=0))
        beating.start()
        if not self._spec.is_local:
            self._clone = self._open_clone(task)
        self._progress = self._progress.model_copy(update={"home": self._order.machine})
        self._patiently(self._note)
        self._spent_before = self._patiently(lambda: self._database.spent(self._day, self._id))
        deaths = 0
        while (ended := self._run_until_stopped(task)) is None:
            deaths += 1
            if deaths == _MOST_DEATHS:
                self.park_here(f"the process of its run has died {deaths} times; see {self._log}")
        return self._publish(ended, task)

    def _run_until_stopped(self, task: QueuedTask) -> RunEnded | None:
        """Let the run go on until it ends; None where its process died without a word."""
        while True:
            ended = self._run(task)
            if isinstance(ended, RunEnded):
                return ended
            if ended and not ended.was_told:
                self._push_last()
                if not ended.until and not ended.gate:
                    self.park_here(ended.reason)
                self.park(ended.reason, ended.until, gate=ended.gate)
            self._patiently(self._note)  # it may have stopped because the database took nothing for long
            if self._stopping.is_set():  # told to stop before it could say anything, the process has just ended
                self._give_back()
            if ended is None:
                return None

    def _open_clone(self, task: QueuedTask) -> Clone:
        clone = Clone(self._spec, self._id, task.attempt, self._still_mine)
        try:
            self._ignored = clone.open(task.checkpoint, keep=task.progress.home == self._order.machine)
        except Fenced:
            raise Leave from None
        except QuintetError as error:
            self._wait_for_remote(error)
        if self._ignored:
            print(f"{self._id}: {self._ignored}", file=sys.stderr, flush=True)
        return clone

    # -- the process of the run

    @property
    def _log(self) -> Path:
        return fleet_folder() / "tasks" / self._id / "run.log"

    def _run(self, task: QueuedTask) -> RunEnded | RunHalted | None:
        """Start the process of the run, and stay with it until it ends; None where it died without a word."""
        files.make_folder(self._log.parent)
        clone = self._clone
        order = Order(
            task=self._id,
            attempt=task.attempt,
            title=task.title,
            spec=self._spec,
            patience=self._order.patience,
            providers=self._order.providers,
            sandbox=self._order.sandbox,
            tree=str(clone.top) if clone else "",
            records=str(clone.records) if clone and clone.records.is_dir() else "",
            makes_checkpoints=self._makes_checkpoints,
            approval=task.approval,
        )
        handle = files.open_to_keep(self._log)
        os.lseek(handle, 0, os.SEEK_END)
        with os.fdopen(handle, "rb") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "quintet.fleet.run_task"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment_without_secrets(),
                start_new_session=True,
            )
        try:
            send(child, order.model_dump_json().encode() + b"\n")
            self._child = child
            return self._stay_with(child)
        finally:
            end_process(child)
            self._child = None

    def _stay_with(self, child: "subprocess.Popen[bytes]") -> RunEnded | RunHalted | None:
        """Hear what the run says, push its checkpoints, and stop it where the slot is to end."""
        messages = messages_of(child)
        told_to_stop = 0.0
        while True:
            if self._stopping.is_set() and not told_to_stop:
                told_to_stop = time.monotonic()
                child.terminate()
            if told_to_stop and time.monotonic() - told_to_stop > CHILD_SECONDS:
                child.kill()
            is_newest = messages.empty()  # a push may take longer than a turn, and only the last checkpoint counts
            if self._unpushed and is_newest and not told_to_stop and time.monotonic() >= self._next_push:
                self._push_checkpoint()
            with suppress(queue.Empty):
                message = messages.get(timeout=_TICK_SECONDS)
                if message is None or isinstance(message, RunEnded | RunHalted):
                    return message
                self._hear(message)

    def _hear(self, message: Moved | CheckpointMade) -> None:
        if isinstance(message, CheckpointMade):
            self._unpushed, self._next_push = message.commit, 0.0
            return
        if not self._progress.run:
            self._used_before = (message.tokens, message.cost)
        self._progress = self._progress.model_copy(update=message.model_dump(exclude={"kind"}))
        self._news.set()

    # -- heartbeats, in a thread of their own

    def _keep_beating(self) -> None:
        """Write heartbeats; end this process, and the run first, where the task is another's or was cancelled."""
        next_beat = 0.0
        while not self._over.is_set():
            began = time.monotonic()
            has_news = self._news.is_set()
            self._news.clear()
            try:
                if has_news or began >= next_beat:
                    self._note()
                    next_beat = began + self._order.beat
                    if child := self._child:
                        send(child, confirmation(began))
                    self._spend()
                else:
                    self._leave_unless_mine()
            except Leave:
                self._end_as_lost()
            except QueueError:
                self._news.clear()  # nothing is known while the database is away; the run stops by itself
                next_beat = 0.0
            self._news.wait(min(_LOOK_SECONDS, self._order.beat))

    def _end_as_lost(self) -> None:
        """End the run, and this process, which may be waiting for git."""
        if self._over.is_set():
            return
        if child := self._child:
            end_process(child)
        os._exit(0)

    # -- the row of the task

    def _is_mine(self, task: QueuedTask | None) -> bool:
        if task is None or task.status is not TaskStatus.RUNNING or task.owner != self._order.name:
            return False
        return self._held is None or task.token == self._held.token

    def _still_mine(self) -> bool:
        """Whether the database says so, however long it takes to answer."""
        return self._is_mine(self._patiently(lambda: self._database.task(self._id)))

    def _leave_unless_mine(self) -> None:
        if not self._is_mine(self._database.task(self._id)):
            raise Leave

    def _note(self, queue: str = "", **more: object) -> None:
        """Record how far the task has come and what was pushed of it, and move it to a queue if one is named.

        Leave if the task is lost. A commit in the remote counts for nothing until it is recorded here.
        """
        more["progress"] = self._progress.model_dump(mode="json")
        if self._clone and self._clone.pushed:
            more["checkpoint"] = self._clone.pushed
        if self._held is None or not self._database.change(self._held, queue, **more):
            raise Leave

    def _spend(self) -> None:
        """Write down what the task has used today; what it used before this start is there already."""
        with self._spending:
            if (day := _today()) != self._day:
                self._day, self._spent_before, self._used_before = day, (0, 0.0), self._used
            self._used = used = (self._progress.tokens, self._progress.cost)
            tokens, cost = used[0] - self._used_before[0], used[1] - self._used_before[1]
            if tokens or cost:
                self._database.spend(self._id, day, self._spent_before[0] + tokens, self._spent_before[1] + cost)

    def park(self, reason: str, until: float = 0.0, *, gate: str = "") -> NoReturn:
        """Let the task wait for a time or for somebody, and end."""
        said = " ".join(plain(reason).split())[:_LONGEST_REASON]  # it may end with the output of a command
        self._leave(parked=said, parked_until=until, gate=gate)

    def park_here(self, reason: str, until: float = 0.0) -> NoReturn:
        """Let the task wait, as it cannot go on, perhaps for a reason that is this machine's."""
        self.has_failed_here = (self._progress.tokens, self._progress.cost) == self._used_before
        self.park(f"on {self._order.worker}: {reason}", until)

    def _give_back(self) -> NoReturn:
        """Let the task go on elsewhere or later, and end."""
        self._push_last()
        self._leave()

    def _leave(self, **more: object) -> NoReturn:
        if child := self._child:  # nobody else may have the task before its run has stopped
            end_process(child)
        self._over.set()
        self._progress = self._progress.model_copy(update={"since": 0.0, "agent": "", "machine": "", "slot": 0})
        self._patiently(lambda: self._note(WAITING, **more, takeovers=0))
        raise Leave

    def _patiently(self, call: Callable[[], T]) -> T:
        """Repeat a call while the database is away, unless this process is to end."""
        while True:
            try:
                return call()
            except DatabaseAway:
                if self._stopping.wait(1.0):
                    raise Leave from None

    # -- the remote

    @property
    def _makes_checkpoints(self) -> bool:
        return self._clone is not None and self._spec.settings.get("queue", {}).get("checkpoints", True) is not False

    def _push_checkpoint(self) -> None:
        """Push the last checkpoint; where the remote is away for longer than the lease, give the task up."""
        if self._clone is None:
            return
        try:
            self._clone.push(self._unpushed)
        except Fenced:
            raise Leave from None
        except GitError as error:
            now = time.monotonic()
            self._next_push = now + self._order.beat
            self._away_since = self._away_since or now
            if isinstance(error, PushRefused) or now - self._away_since > self._order.lease:
                self._wait_for_remote(error)
        else:
            self._unpushed, self._away_since = "", 0.0
            self._news.set()  # the next heartbeat, which is due now, records it

    def _wait_for_remote(self, error: QuintetError) -> NoReturn:
        """Park the task for a while, or until somebody has seen to it that the remote refuses no more."""
        if isinstance(error, PushRefused):
            self.park(str(error))
        self.park_here(str(error), time.time() + self._order.lease)

    def _push_last(self) -> None:
        """Make and push a checkpoint of how the run was left."""
        if self._clone and self._progress.run and self._makes_checkpoints:
            try:
                self._clone.push(make_checkpoint(self._clone.top, self._progress.run))
            except Fenced:
                raise Leave from None
            except GitError:
                return  # the remote has an earlier one

    def _publish(self, ended: RunEnded, task: QueuedTask) -> TaskOutcome:
        """Push the result, as long as it takes, and say what came of the task."""
        outcome = ended.outcome
        self._progress = self._progress.model_copy(update={"tokens": outcome.tokens, "cost": outcome.cost})
        self._patiently(self._spend)
        clone = self._clone
        if clone is None:
            return outcome
        sealed = make_checkpoint(clone.top, outcome.run) if self._makes_checkpoints else ""
        branch = clone.branch if outcome.verdict == "PASS" else f"quintet/failed/{clone.name}"
        if outcome.verdict != "PASS" and not self._spec.settings.get("queue", {}).get("push_failed", False):
            branch = ""
        commit, left_out = work_commit(clone.top, f"Quintet: {task.title[:72]}")
        missing = f"not all of its work is in the branch: {left_out}" if left_out else ""
        reason = "; ".join(filter(None, (outcome.reason, missing, self._ignored)))
        outcome = outcome.model_copy(update={"branch": branch, "commit": commit, "reason": reason})
        self._push_result(clone, outcome, branch, sealed)
        self._patiently(lambda: self._note(result=outcome.model_dump(mode="json")))
        outcome = self._hand_over(outcome, clone, task)
        clone.remove()
        return outcome

    def _hand_over(self, outcome: TaskOutcome, clone: Clone, task: QueuedTask) -> TaskOutcome:
        """Open the pull request of a PASS where the task asks for one; what fails is told in the outcome."""
        wish = self._spec.settings.get("post_processing", {}).get("pull_request", "off")
        if outcome.verdict != "PASS" or wish == "off":
            return outcome
        from quintet.fleet.pull_request import open_for  # noqa: PLC0415 - a slot needs little else of the loop

        try:
            problem = open_for(task, clone)
        except (QuintetError, OSError) as error:
            problem = f"no pull request: {error}"
        return outcome.model_copy(update={"reason": "; ".join(filter(None, (outcome.reason, problem)))})

    def _push_result(self, clone: Clone, outcome: TaskOutcome, branch: str, sealed: str) -> None:
        deadline = time.monotonic() + self._order.lease
        while True:
            try:
                return clone.publish(outcome, branch, sealed)
            except Fenced:
                raise Leave from None
            except GitError as error:
                if isinstance(error, PushRefused) or time.monotonic() > deadline or self._stopping.is_set():
                    self._wait_for_remote(error)
                self._stopping.wait(min(2.0, self._order.beat))


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"
