"""Runs that have lost their state file: what their journals still tell of them."""

from pathlib import Path

import pytest

from quintet.config import Settings
from quintet.loop.journal import Event, RunFinished, RunStarted, RunStopped, TerminalCreated
from quintet.loop.record.journal_file import Journal
from quintet.loop.record.orphans import MOST, find_orphans
from quintet.loop.run.resume import find_saved

STATE = "quintet-state.json"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(wd=tmp_path, state_file=tmp_path / ".tmp" / STATE)


def run(settings: Settings, name: str, *events: Event) -> Path:
    """A run with a journal; the first line says its session."""
    folder = settings.wd / ".tmp" / name
    journal = Journal(folder / "journal.jsonl")
    journal.write(RunStarted(run_id=name, wd=str(settings.wd), start_agent="analyst", session=f"{name}-ab12"))
    for event in events:
        journal.write(event)
    return folder


def created(role: str, terminal: str, session: str) -> TerminalCreated:
    return TerminalCreated(role=role, terminal=terminal, provider="codex", seconds=0.1, session=session)


def test_a_run_without_a_state_is_known_by_its_journal(settings: Settings) -> None:
    run(settings, "r1", created("tester", "00000005", "cao-r1-ab12"))
    (found,) = find_orphans(settings)
    assert (found.run_id, found.session_name) == ("r1", "cao-r1-ab12")
    assert found.terminals["tester"].id == "00000005"
    assert found.terminals["analyst"].id == ""


def test_a_session_is_known_before_its_first_terminal(settings: Settings) -> None:
    run(settings, "r1")
    assert [state.session_name for state in find_orphans(settings)] == ["r1-ab12"]


def test_what_has_ended_or_was_left_behind_on_purpose_is_no_orphan(settings: Settings) -> None:
    """After a PASS the terminals stay for the user to look at, and so do those of a run that RESUME=0 turned from."""
    run(settings, "r1", RunFinished(status="PASS", round=1))
    (run(settings, "r2") / STATE).write_text("{}")
    assert find_orphans(settings) == []


def test_only_the_newest_are_looked_at(settings: Settings) -> None:
    for number in range(MOST + 3):
        run(settings, f"r{number:02}")
    assert [state.run_id for state in find_orphans(settings)] == [f"r{number:02}" for number in range(MOST + 2, 2, -1)]


def test_a_start_that_never_became_a_run_is_no_orphan(settings: Settings) -> None:
    Journal(settings.wd / ".tmp" / "r1" / "journal.jsonl").write(RunStopped(reason="no server", resumable=False))
    assert find_orphans(settings) == []


@pytest.mark.parametrize("name", ["../elsewhere", "-t", ""])
def test_a_name_that_is_none_is_passed_over(settings: Settings, name: str) -> None:
    run(settings, "r1", created("tester", "00000005", name))
    assert [state.session_name for state in find_orphans(settings)] == ["r1-ab12"]


def test_they_matter_only_where_there_is_no_state(settings: Settings) -> None:
    run(settings, "r1")
    assert find_saved(settings, lambda _: None).orphans
    settings.state_file.write_text('{"version": 1, "final_status": "PASS"}')
    assert not find_saved(settings, lambda _: None).orphans
    settings.state_file.write_text('{"version": 1, "final_st')
    warnings: list[str] = []
    found = find_saved(settings, warnings.append)
    assert [state.run_id for state in found.orphans] == ["r1"]
    assert found.earlier == found.orphans
    assert "unreadable-1" in warnings[0]
