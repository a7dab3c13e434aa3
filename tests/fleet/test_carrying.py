"""What a slot writes down of the task that it has."""

import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Queue
from typing import cast

import pytest

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
class Pushes:
    """A clone that only knows what was pushed."""

    commits: list[str] = field(default_factory=list)

    def push(self, commit: str) -> None:
        self.commits.append(commit)


def test_every_checkpoint_is_pushed_at_once(queue: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    task, order = queue.add("a"), SlotOrder(url=queue.url, worker="desk", number=1, machine="here", lease=120.0)
    carrying = Carrying(order, queue.database, threading.Event(), task, queue.database.spec(task))
    carrying._clone = cast("Clone", pushes := Pushes())
    said = [CheckpointMade(commit="one"), CheckpointMade(commit="two"), RunHalted(reason="enough")]
    messages: Queue[object] = Queue()
    for message in said:
        messages.put(message)
    monkeypatch.setattr(module, "messages_of", lambda _: messages)
    assert carrying._stay_with(cast("subprocess.Popen[bytes]", None)) == said[-1]
    assert pushes.commits == ["one", "two"]


def test_the_last_whole_confirmation_counts() -> None:
    assert last_confirmed(confirmation(1.5) + confirmation(2.25) + b"3.") == 2.25
    assert last_confirmed(b"3.") == float("-inf")
