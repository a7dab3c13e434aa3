"""What a slot writes down of the task that it has."""

import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Empty
from typing import cast

import pytest

from quintet.errors import GitError
from quintet.fleet import carrying as module
from quintet.fleet.carrying import Carrying
from quintet.fleet.checkpoint import Clone
from quintet.fleet.messages import CheckpointMade, Moved, RunHalted, SlotOrder, confirmation, last_confirmed
from tests.fleet.rig import Fleet, fleet


@pytest.fixture
def queue() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


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
