"""The record of a run: every change of the state is a fold that is saved, and the project says where the state is."""

from dataclasses import replace
from pathlib import Path

import pytest

from quintet.config import Settings
from quintet.errors import StateError
from quintet.layout import STATE_FILE, STATE_POINTER
from quintet.loop.decide.state import State
from quintet.loop.decide.steps import Ask, Dispatched, Replied, Stopped
from quintet.loop.journal import Event, Noted, ReviewJudged, RunStarted, Warned
from quintet.loop.record.saved_state import load_project_state
from quintet.loop.record.signals import Signals
from quintet.loop.record.state_file import load_state, save_state, state_file_of
from quintet.loop.record.store import RunStore
from quintet.roles import ANALYST, PEER_ANALYST
from tests.stub.fake import HeardStore, store_in

STEP = Ask(ANALYST, 1)


def store_at(wd: Path, path: Path) -> RunStore:
    settings = replace(Settings(), wd=wd, state_file=path)
    return HeardStore(settings, State(run_id="run"))


def test_what_is_folded_is_on_disk(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    assert not store.owns_state_file
    for outcome in (Dispatched(5), Replied("text", sequence=1, tokens=7), Stopped("why")):
        store.fold(STEP, outcome)
        saved = load_state(tmp_path / STATE_FILE)
        assert saved is not None
        assert replace(saved, updated_at="") == store.state
    assert (store.state.sequence, store.state.tokens_used, store.state.last_error) == (1, 7, "why")
    assert store.owns_state_file


def test_an_old_state_is_not_touched_before_the_first_fold(tmp_path: Path) -> None:
    save_state(State(run_id="old"), tmp_path / STATE_FILE)
    store = store_in(tmp_path)
    store.restore_deleted_files()
    saved = load_state(tmp_path / STATE_FILE)
    assert saved is not None
    assert saved.run_id == "old"


def test_what_is_told_before_the_run_begins_follows_the_beginning(tmp_path: Path) -> None:
    heard: list[object] = []
    settings = replace(Settings(), wd=tmp_path, state_file=tmp_path / STATE_FILE)
    early = [Warned(text="early")]
    store = RunStore(settings, Signals(), [lambda event: heard.append(type(event))], State(run_id="run"), early)
    store.note("early too")
    assert heard == []
    store.emit(RunStarted(run_id="run", wd=str(tmp_path), start_agent="analyst"))
    assert heard == [RunStarted, Warned, Noted]


def test_the_project_says_where_the_state_is(tmp_path: Path) -> None:
    wd, elsewhere = tmp_path / "wd", tmp_path / "elsewhere" / "state.json"
    wd.mkdir()
    save_state(State(run_id="older"), wd / STATE_FILE)
    store = store_at(wd, elsewhere)
    store.fold(STEP, Dispatched(1))
    assert state_file_of(wd) == elsewhere
    saved = load_project_state(wd)
    assert saved is not None
    assert saved.run_id == "run", "and not the older one at the usual place"
    (wd / STATE_POINTER).unlink()
    store.restore_deleted_files()
    assert state_file_of(wd) == elsewhere, "an agent may clean the work tree"
    store_at(wd, wd / STATE_FILE).fold(STEP, Dispatched(1))
    assert state_file_of(wd) == wd / STATE_FILE
    assert not (wd / STATE_POINTER).exists()


def test_a_state_that_was_deleted_is_put_back(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.fold(STEP, Dispatched(1))
    (tmp_path / STATE_FILE).unlink()
    store.restore_deleted_files()
    assert load_project_state(tmp_path) is not None


def test_a_state_that_cannot_be_read_is_none_for_those_who_only_look(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).parent.mkdir()
    (tmp_path / STATE_FILE).write_text("{")
    assert load_project_state(tmp_path) is None
    with pytest.raises(StateError):
        load_state(tmp_path / STATE_FILE)


def test_the_state_is_saved_before_anybody_hears_of_the_decision(tmp_path: Path) -> None:
    saved: list[int] = []

    def hear(event: Event) -> None:
        if isinstance(event, ReviewJudged):
            state = load_state(tmp_path / STATE_FILE)
            saved.append(state.sequence if state else 0)

    settings = replace(Settings(), wd=tmp_path, state_file=tmp_path / STATE_FILE)
    store = RunStore(settings, Signals(), [hear], State(run_id="run"))
    store.emit(RunStarted(run_id="run", wd=str(tmp_path), start_agent=ANALYST.name))
    store.fold(Ask(PEER_ANALYST, 1), Replied("REVIEW_RESULT: REVISE\n", sequence=1))
    assert saved == [1]
