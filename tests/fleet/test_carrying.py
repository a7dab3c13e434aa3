"""What a slot writes down of the task that it has."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty
from typing import cast

import pytest

from quintet.errors import GitError
from quintet.fleet import carrying as module
from quintet.fleet.carrying import Carrying
from quintet.fleet.checkpoint import Clone
from quintet.fleet.messages import CheckpointMade, Moved, RunHalted, SlotOrder, confirmation, last_confirmed
from quintet.fleet.slot import FAILED_HERE, Slot
from quintet.fleet.tasks import TaskStatus
from tests.fleet.rig import Fleet


def test_what_is_used_after_midnight_counts_for_the_new_day(queue: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    today = "2026-01-01"
    monkeypatch.setattr(module, "_today", lambda: today)
    task, order = queue.add("a"), SlotOrder(url=queue.url, worker="desk", number=1, machine="here", lease=120.0)
    carrying = Carrying(order, queue.database, threading.Event(), task, queue.database.spec(task))
    for tokens, day in ((100, "2026-01-01"), (900, "2026-01-01"), (1000, "2026-01-02"), (1010, "2026-01-02")):
        today = day
        carrying._hear(Moved(run="r", tokens=tokens))
        carrying._spend()
    assert queue.database.spent("2026-01-01")[0] == 800, "100 were used before this slot had the task"
    assert queue.database.spent("2026-01-02")[0] == 110


@dataclass
class Said:
    """What a run says; None where nothing has come for a while."""

    messages: list[object]

    def empty(self) -> bool:
        return self.messages[0] is None

    def get(self, timeout: float) -> object:
        assert timeout
        message = self.messages.pop(0)
        if message is None:
            raise Empty
        return message


@dataclass
class Pushes:
    """A clone that knows only what was pushed, and the remote is away for some of that."""

    away: int
    commits: list[str] = field(default_factory=list)

    def push(self, commit: str) -> None:
        self.commits.append(commit)
        if len(self.commits) <= self.away:
            raise GitError("the remote is away")


ONE, TWO, HALTED = CheckpointMade(commit="one"), CheckpointMade(commit="two"), RunHalted(reason="enough")


@pytest.mark.parametrize(
    ("said", "away", "pushed"),
    [
        pytest.param([ONE, None, TWO, None, HALTED], 0, ["one", "two"], id="every one at once"),
        pytest.param([ONE, TWO, None, HALTED], 0, ["two"], id="not one that a newer one follows"),
        pytest.param([ONE, None, None, TWO, None, HALTED], 1, ["one", "two"], id="one that failed not again at once"),
    ],
)
def test_checkpoints_are_pushed_as_they_come(
    queue: Fleet, monkeypatch: pytest.MonkeyPatch, said: list[object], away: int, pushed: list[str]
) -> None:
    task, order = queue.add("a"), SlotOrder(url=queue.url, worker="desk", number=1, machine="here", lease=120.0)
    carrying = Carrying(order, queue.database, threading.Event(), task, queue.database.spec(task))
    carrying._clone = cast("Clone", pushes := Pushes(away))
    monkeypatch.setattr(module, "messages_of", lambda _: Said(list(said)))
    assert carrying._stay_with(cast("subprocess.Popen[bytes]", None)) == HALTED
    assert pushes.commits == pushed


def test_the_last_whole_confirmation_counts() -> None:
    assert last_confirmed(confirmation(1.5) + confirmation(2.25) + b"3.") == 2.25
    assert last_confirmed(b"3.") == float("-inf")


class Stopped(Exception):  # noqa: N818 - stands for the end of a process
    """What `os._exit` does in a test."""


@contextmanager
def slot_with_task(queue: Fleet, task: str) -> Iterator[Slot]:
    """A slot to which the engine has given a task."""
    order = SlotOrder(url=queue.url, worker="desk", number=1, machine="here", lease=120.0)
    queue.give_to_slot(order)
    queue.note(task, progress={"agent": "tester", "run": "r"})
    slot = Slot(order)
    try:
        yield slot
    finally:
        slot._database.close()


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The exit codes of slots, which end in this process."""
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        raise Stopped

    monkeypatch.setattr("os._exit", end)
    monkeypatch.setattr("quintet.fleet.slot.say", lambda _: None)
    yield codes
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("halted", "ended"),
    [
        pytest.param(RunHalted(reason="no disk\x1b[0m"), ("on desk: no disk", FAILED_HERE), id="failure"),
        pytest.param(RunHalted(reason="usage limit: x", until=4e9), ("usage limit: x", 0), id="limit"),
        pytest.param(RunHalted(reason="waits", gate="approve-spec-0"), ("waits", 0), id="gate"),
    ],
)
def test_a_run_that_cannot_go_on_frees_its_slot(
    queue: Fleet, monkeypatch: pytest.MonkeyPatch, exits: list[int], halted: RunHalted, ended: tuple[str, int]
) -> None:
    task = queue.add("a")
    with slot_with_task(queue, task) as slot:
        monkeypatch.setattr(Carrying, "_run", lambda *_: halted)
        with pytest.raises(Stopped):
            slot.carry_out(task, queue.database.spec(task))
        found = queue.task(task)
        assert (found.status, found.place, found.progress.machine) == (TaskStatus.PARKED, "waiting", "")
        assert (found.parked_until, found.gate) == (halted.until, halted.gate)
        assert [(found.parked, code) for code in exits] == [ended]


@pytest.mark.parametrize("said", [RunHalted(reason="it was stopped", was_told=True), None], ids=["told", "no word"])
def test_a_slot_that_is_told_to_end_gives_its_task_back(
    queue: Fleet, monkeypatch: pytest.MonkeyPatch, exits: list[int], said: RunHalted | None
) -> None:
    task = queue.add("a")
    with slot_with_task(queue, task) as slot:
        slot.stopping.set()
        starts = iter([said])
        monkeypatch.setattr(Carrying, "_run", lambda *_: next(starts))
        with pytest.raises(Stopped):
            slot.carry_out(task, queue.database.spec(task))
        found = queue.task(task)
        assert (found.status, found.place, found.parked, found.takeovers) == (TaskStatus.WAITING, "waiting", "", 0)
        assert exits == [0]


def test_a_run_that_dies_again_and_again_is_parked(
    queue: Fleet, monkeypatch: pytest.MonkeyPatch, exits: list[int]
) -> None:
    task = queue.add("a")
    with slot_with_task(queue, task) as slot:
        monkeypatch.setattr(Carrying, "_run", lambda *_: None)
        with pytest.raises(Stopped):
            slot.carry_out(task, queue.database.spec(task))
        assert queue.task(task).parked.startswith("on desk: the process of its run has died 3 times; see ")
        assert exits == [FAILED_HERE]
