"""How long a pane has been silent, by a clock of our own."""

import pytest

from quintet.providers.scripted.provider import ScriptedProvider
from quintet.server.terminal.quiet_timer import QuietTimer
from tests.server.rig import Rig


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_output_ends_it() -> None:
    clock = Clock()
    timer = QuietTimer(clock)
    assert not timer.has_lasted(2.0), "what came before is not known"
    clock.now += 2.0
    assert timer.has_lasted(2.0)
    timer.restart()
    assert not timer.has_lasted(2.0)
    clock.now += 1.9
    assert not timer.has_lasted(2.0)
    clock.now += 0.1
    assert timer.has_lasted(2.0)


def test_without_a_record_a_turn_ends_with_the_timer_of_its_pane(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScriptedProvider, "quiet_seconds", 3600.0)
    terminal = rig.terminal([[{"reply": "one"}]], "--no-record")
    rig.send(terminal, "go")
    rig.until_shown(terminal, "one")
    assert rig.get(terminal)["status"] == "processing"
    assert rig.last(terminal) == ""
    monkeypatch.setattr(ScriptedProvider, "quiet_seconds", 0.0)
    rig.until(terminal, "completed")
    assert rig.last(terminal) == "one"
    monkeypatch.setattr(ScriptedProvider, "quiet_seconds", 3600.0)
    assert rig.status(terminal) == "completed", "what an idle agent draws later is no work"
