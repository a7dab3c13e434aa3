"""The main process of a worker, with slots that are no processes: whom it gives tasks, and when it gives none."""

import signal
import subprocess
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest

from quintet.config import load_settings
from quintet.fleet import worker as module
from quintet.fleet.choosing import Worker
from quintet.fleet.reading import WAITING
from quintet.fleet.slot import FAILED_HERE
from quintet.fleet.tasks import TaskStatus
from quintet.fleet.worker import WorkerProcess, _SlotProcess
from tests.fleet.rig import Fleet


@pytest.fixture(autouse=True)
def slots_without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SlotProcess", FakeSlot)


class FakeSlot(_SlotProcess):
    """A slot that is ready at once, and ends when it is told to or when a test says so."""

    def start(self) -> None:
        self.is_ready, self.process = True, cast("subprocess.Popen[bytes]", SimpleNamespace(returncode=None))

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def look(self) -> list[str]:
        return []

    def send(self, number: signal.Signals) -> None:
        self.end(-number)

    def end(self, code: int) -> None:
        assert self.process
        self.process.returncode = code


class StubbornSlot(FakeSlot):
    """A slot that does not end at the first signal."""

    def send(self, number: signal.Signals) -> None:
        self.number_of_signals = getattr(self, "number_of_signals", 0) + 1
        if self.number_of_signals > 1:
            self.end(-number)


class Desk:
    """A worker named desk, and what it says."""

    def __init__(self, queue: Fleet, **settings: str) -> None:
        self.said: list[str] = []
        env = queue.project.env | queue.settings | settings
        loaded = load_settings(None, env, {"wd": str(queue.project.wd)}, queue.project.wd)
        self.process = WorkerProcess(loaded, Worker(name="desk", providers={"scripted": ""}), self.said.append)
        self.process._beat()

    def turn(self) -> None:
        """Let it do once what it does all the time, with a heartbeat."""
        self.process._next_beat = 0.0
        self.process._turn()

    def end(self) -> None:
        self.process._end()
        self.process._database.close()


def given(queue: Fleet) -> list[str]:
    return [task.id for task in queue.database.tasks() if task.place.startswith("slot desk/1@")]


@pytest.mark.parametrize(
    ("setting", "used_up"),
    [
        ({"QUEUE_MAX_TOKENS": "1000"}, "the tokens of the day are used up (1,234 of 1,000)"),
        ({"QUEUE_MAX_COST": "10"}, "the money of the day is used up (12.50 of 10.00)"),
    ],
)
def test_a_worker_takes_no_task_once_the_budget_of_the_day_is_used_up(
    queue: Fleet, setting: dict[str, str], used_up: str
) -> None:
    queue.database.spend("another", f"{datetime.now(UTC):%Y-%m-%d}", 1234, 12.5)
    task = queue.add("a")
    desk = Desk(queue, **setting)
    desk.turn()
    assert desk.said == [f"It takes no task at present: {used_up}."]
    assert queue.listed()[task]["reason"] == f"waits for desk: {used_up}"
    assert queue.task(task).place == WAITING
    desk.process._database.close()


def test_a_drained_worker_keeps_its_task_and_takes_no_other_even_after_a_restart(queue: Fleet) -> None:
    first = queue.add("a")
    desk = Desk(queue)
    desk.turn()
    assert given(queue) == [first]
    queue.call("workers", "drain", "desk")
    other = queue.add("b")
    desk.turn()
    assert "workers drain desk --undo" in desk.said[-1]
    assert given(queue) == [first]
    assert queue.listed()[other]["reason"] == "waits for desk, which is drained"
    desk.end()
    assert [task.place for task in queue.database.tasks()] == [WAITING] * 2
    again = Desk(queue)
    again.turn()
    assert given(queue) == []
    queue.call("workers", "drain", "desk", "--undo")
    again.turn()
    assert given(queue) == [first]
    again.end()
    assert queue.database.workers() == []


def test_a_worker_on_which_two_tasks_could_not_go_on_leaves_the_others_in_the_queue(queue: Fleet) -> None:
    tasks = [queue.add(name) for name in "abc"]
    desk = Desk(queue)
    for task in tasks[:2]:
        desk.turn()
        assert given(queue) == [task]
        assert queue.database.change(queue.task(task), WAITING, parked="on desk: no compiler")
        cast("FakeSlot", desk.process._slots[0]).end(FAILED_HERE)
    desk.turn()
    reason = "waits for desk: the last 2 tasks could not go on here; it takes the next one at "
    assert queue.listed()[tasks[2]]["reason"].startswith(reason)
    assert given(queue) == []
    desk.process._database.close()


def test_the_second_signal_ends_slots_that_do_not_stop(queue: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SlotProcess", StubbornSlot)
    task = queue.add("a")
    desk = Desk(queue)
    desk.turn()
    desk.process._stops = 2
    desk.end()
    assert given(queue) == [task], "the next process of this slot goes on with it"
    assert queue.task(task).status is TaskStatus.WAITING
