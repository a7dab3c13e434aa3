"""Screen and record at odds: noticed when it lasts, told once, and the safe reading stands."""

import json

import pytest

from quintet.api.status import TerminalStatus as Is
from quintet.providers.base import TurnRecord
from quintet.providers.scripted.provider import ScriptedProvider
from quintet.server.terminal import disagreement
from quintet.server.terminal.disagreement import LONG_SECONDS, DisagreementTimer
from tests.server.rig import Rig

RUNNING, OVER = TurnRecord(ended=False), TurnRecord(ended=True)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("shown", "record", "words"),
    [
        (Is.PROCESSING, OVER, "has ended"),
        (Is.IDLE, RUNNING, "is running"),
        (Is.COMPLETED, RUNNING, "is running"),
        (Is.COMPLETED, OVER, None),
        (Is.PROCESSING, RUNNING, None),
        (Is.WAITING_USER_ANSWER, OVER, None),
        (Is.UNKNOWN, RUNNING, None),
        (Is.PROCESSING, None, None),
    ],
)
def test_what_is_a_disagreement(shown: Is, record: TurnRecord | None, words: str | None) -> None:
    clock = Clock()
    witness = DisagreementTimer(clock)
    assert witness.disagreement(1, shown, record) is None, "not at once"
    clock.now += LONG_SECONDS
    found = witness.disagreement(1, shown, record)
    assert (found is None) if words is None else (found is not None and words in found)


def test_only_what_lasts_counts() -> None:
    clock = Clock()
    witness = DisagreementTimer(clock)
    for turn, shown in ((1, Is.IDLE), (1, Is.PROCESSING), (1, Is.IDLE), (2, Is.IDLE)):
        assert witness.disagreement(turn, shown, RUNNING) is None, "agreement and a new turn begin it anew"
        clock.now += LONG_SECONDS - 1
    clock.now += 1
    assert witness.disagreement(2, Is.COMPLETED, RUNNING)


def test_a_lasting_disagreement_is_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disagreement, "LONG_SECONDS", 0.2)
    terminal = rig.terminal()
    rig.ask(terminal, "go")
    assert rig.get(terminal)["doubt"] is None
    (record,) = rig.state_folder.root.rglob("record.jsonl")
    with record.open("a") as file:
        file.write(json.dumps({"event": "begin"}) + "\n")
    found = rig.eventually(lambda: rig.get(terminal), "a doubt", lambda seen: seen["doubt"] is not None)
    assert "is running" in found["doubt"]
    assert found["status"] == "processing", "a running turn is never called done"
    with record.open("a") as file:
        file.write(json.dumps({"event": "end", "reply": "after all"}) + "\n")
    found = rig.until(terminal, "completed")
    assert found["doubt"] is None
    assert rig.last(terminal) == "after all"


def test_work_that_is_not_sure_does_not_count_against_the_record(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = rig.terminal()
    rig.ask(terminal, "go")
    monkeypatch.setattr(disagreement, "LONG_SECONDS", 0.0)
    monkeypatch.setattr(ScriptedProvider, "read_screen", lambda *_: Is.PROCESSING)
    for sure, status in ((False, "completed"), (True, "processing")):
        monkeypatch.setattr(ScriptedProvider, "screen_overrides_record", lambda *_, sure=sure: sure)
        assert rig.status(terminal) == status
