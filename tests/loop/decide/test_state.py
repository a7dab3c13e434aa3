"""The state file: what is written is read, and nothing that is there breaks the reading."""

import json
import os
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet import files
from quintet.errors import StateError
from quintet.loop.decide import state as state_module
from quintet.loop.decide.flow import next_step
from quintet.loop.decide.prompts import Prompts
from quintet.loop.decide.state import TURNS, Again, State, Status, TerminalRef, Turn
from quintet.loop.decide.steps import Ask, Finished
from quintet.loop.record.state_file import LARGEST, load_state, put_aside, save_state
from quintet.roles import ANALYST, ROLES, Phase
from tests.loop.runs import TASK, settings
from tests.loop.texts import readable_texts, strange_text

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEEDED = {
    "version", "updated_at", "api", "provider", "wd", "prompt", "current_round", "current_phase", "final_status",
    "session_name", "terminals", "feedback", "analyst_feedback", "programmer_feedback", "outputs",
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def written(path: Path, document: Any) -> State:
    path.write_text(json.dumps(document), encoding="utf-8")
    state = load_state(path)
    assert state is not None
    return state


def full_state() -> State:
    """A state in which every field differs from its default, also one that somebody adds later."""
    plain: dict[str, Any] = {
        name: f"ü {name}\n" if type(default) is str else default + 2
        for name, default in vars(State()).items()
        if type(default) in {str, int, float}
    }
    return replace(
        State(**plain),
        updated_at=NOW.isoformat(),
        current_phase=Phase.TESTER,
        final_status=Status.FAIL,
        turn=Turn.VERIFY,
        check_first=True,
        checked={"verify block 1": 0},
        again=Again.ACTIONS,
        worked=True,
        undone={"tester": "- changed a.py"},
        terminals={role.name: TerminalRef(f"id-{role}", f"cli-{role}") for role in ROLES},
        outputs={role.output: f"out {role}\n" for role in ROLES},
        full_summary_sent={"id-analyst": "1-1-analyst"},
        whole_sizes={"tester": 5},
        approved={"spec": "Ada"},
        notes_sent={"n1": "1-1-analyst"},
        after_pass={"commit": "done"},
    )


@pytest.mark.scenario("001", "State roundtrip")
@pytest.mark.scenario("004", "State roundtrip with per-agent providers")
def test_every_field_survives(path: Path) -> None:
    state = full_state()
    blank = State()
    assert all(getattr(state, item.name) != getattr(blank, item.name) for item in fields(State))
    save_state(state, path, NOW)
    assert load_state(path) == state


def test_the_document_has_the_fields_of_the_seeds(path: Path) -> None:
    save_state(full_state(), path, NOW)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["version"] == 1
    assert document.keys() >= SEEDED
    assert document["terminals"][ANALYST.name] == {"id": "id-analyst", "provider": "cli-analyst"}
    assert document["outputs"].keys() == {role.output for role in ROLES}


@given(readable_texts, strange_text.filter(lambda text: not any("\ud800" <= char < "\udc00" for char in text)))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, reply: str, wd: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any-text.json"
    state = replace(State(), wd=wd, outputs=State().outputs | {ANALYST.output: reply}, updated_at=NOW.isoformat())
    with patch("os.fsync"):
        save_state(state, path, NOW)
    assert load_state(path) == state


def test_there_is_no_state_where_there_is_no_file(path: Path) -> None:
    assert load_state(path) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"current_round": 2',
        b"[]",
        b"null",
        b"3",
        b'"text"',
        b"\xff\xfe{\0}\0",
        b"\0" * 100,
        b"[" * 100_000,
    ],
    ids=lambda content: repr(content[:12]),
)
def test_what_is_no_state_is_an_error_that_names_the_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StateError, match=r"state\.json[^\n]*$"):
        load_state(path)
    assert path.read_bytes() == content


def test_a_folder_in_its_place_is_an_error(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StateError, match=r"state\.json: cannot be read \(it is no regular file\)"):
        load_state(path)
    with pytest.raises(StateError, match=r"state\.json: cannot be written"):
        save_state(State(), path)
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_is_too_large_for_a_state_is_an_error(path: Path) -> None:
    path.touch()
    os.truncate(path, LARGEST + 1)
    with pytest.raises(StateError, match=r"state\.json: cannot be read \(it is too large\)"):
        load_state(path)


def test_an_unreadable_file_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> bytes:
        raise PermissionError(13, "Permission denied")

    path.write_text("{}")
    monkeypatch.setattr(files, "read", refuse)
    with pytest.raises(StateError, match=r"state\.json: cannot be read \(Permission denied\)"):
        load_state(path)


def test_links_in_a_circle_are_an_error(path: Path) -> None:
    path.symlink_to(path)
    with pytest.raises(StateError):
        load_state(path)
    with pytest.raises(StateError):
        save_state(State(), path / "below")


@pytest.mark.scenario("001", "Invalid round in state file defaults to 1")
@pytest.mark.scenario("004", "Invalid round in state file defaults to 1")
@pytest.mark.parametrize("raw", [-3, 0, True, False, "3", "x", None, 2.5, 1e400, [], {}, float("nan")])
def test_a_bad_round_falls_back_to_the_first(path: Path, raw: Any) -> None:
    assert written(path, {"current_round": raw}).current_round == 1


def test_a_round_beyond_the_limit_ends_the_run(path: Path) -> None:
    assert next_step(written(path, {"current_round": 99}), settings()) == Finished(Status.FAIL)


@pytest.mark.scenario("001", "Invalid phase in state file defaults to analyst")
@pytest.mark.scenario("004", "Invalid phase in state file defaults to analyst")
@pytest.mark.parametrize("raw", ["", "Analyst", "review", "peer_analyst", None, 3, [], {}])
def test_a_bad_phase_falls_back_to_the_analyst(path: Path, raw: Any) -> None:
    assert written(path, {"current_phase": raw}).current_phase is Phase.ANALYST


@pytest.mark.parametrize("raw", [None, "x", 3, [], {}, {"nobody": "x"}, {"analyst": 3}, {"analyst": None}])
def test_bad_outputs_fall_back_to_empty_ones(path: Path, raw: Any) -> None:
    assert written(path, {"outputs": raw}).outputs == State().outputs


@pytest.mark.parametrize("raw", [None, "x", 3, [], {}, {"analyst": None}, {"analyst": 3}, {"analyst": {"id": 3}}])
def test_bad_terminals_fall_back_to_empty_ones(path: Path, raw: Any) -> None:
    assert written(path, {"terminals": raw}).terminals == State().terminals


@pytest.mark.scenario("004", "Loading old-format state file")
def test_the_older_format_of_terminals_is_read(path: Path) -> None:
    state = written(path, {"provider": "claude_code", "terminals": {"analyst": "da33cf00", "tester": {"id": "x"}}})
    assert state.terminals["analyst"] == TerminalRef("da33cf00", "claude_code")
    assert state.terminals["tester"] == TerminalRef("x", "claude_code")
    path.write_text('{"terminals": {"analyst": "da33cf00"}}')
    loaded = load_state(path, "codex")
    assert loaded is not None
    assert loaded.terminals["analyst"] == TerminalRef("da33cf00", "codex")


def test_a_state_of_another_tool_restarts_its_phase(path: Path) -> None:
    state = written(path, {"current_phase": "programmer", "current_round": 2, "turn": "review"})
    assert (state.current_round, state.current_phase, state.cycle, state.turn) == (2, Phase.PROGRAMMER, 1, Turn.WORK)


@pytest.mark.parametrize(("phase", "turn"), [("analyst", "verify"), ("tester", "review"), ("programmer", "verify")])
def test_a_turn_that_its_phase_does_not_have_restarts_it(path: Path, phase: str, turn: str) -> None:
    state = written(path, {"current_phase": phase, "turn": turn, "cycle": 3})
    assert (state.cycle, state.turn) == (1, Turn.WORK)


def test_a_byte_order_mark_is_ignored(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + b'{"feedback": "f"}')
    loaded = load_state(path)
    assert loaded is not None
    assert loaded.feedback == "f"


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["analyst", "work"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from([item.name for item in fields(State)])
role_names = st.sampled_from([role.name for role in ROLES] + [role.output for role in ROLES])
damaged = st.dictionaries(
    names | st.text(max_size=5), junk | st.dictionaries(role_names, junk, max_size=5) | st.sampled_from(
        [*Phase, *Turn, *Status, 1, 2, 3, 7, 10**30, "\ud800", " \n"]
    ), max_size=12,
)  # fmt: skip


@given(damaged, st.integers(1, 9), st.integers(1, 4))
def test_damaged_states_never_crash_the_flow_or_the_prompts(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any], rounds: int, cycles: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    config = settings(max_rounds=rounds, max_review_cycles=cycles, verify_cmd="true")
    state = written(path, document)
    assert state.turn in TURNS[state.current_phase]
    assert state.current_round >= 1
    assert state.cycle >= 1
    step = next_step(state, config)
    if isinstance(step, Ask):
        assert step.cycle <= cycles
        assert step.round <= rounds
        prompt = Prompts(config, TASK, state).build(step)
        assert "RESPONSE FILE INSTRUCTION" in prompt


def test_a_write_that_fails_leaves_the_old_state(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_state(State(feedback="old"), path, NOW)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StateError, match="No space left on device"):
        save_state(State(feedback="new"), path, NOW)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_state_is_never_seen_half_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever dies before the rename, the file holds the old state; so the rename comes after the sync."""
    order: list[str] = []
    rename, sync = os.replace, os.fsync

    def noted_rename(source: str, target: str, **folders: int) -> None:
        order.append("rename")
        rename(source, target, **folders)

    def noted_sync(descriptor: int) -> None:
        order.append("sync")
        sync(descriptor)

    monkeypatch.setattr("os.replace", noted_rename)
    monkeypatch.setattr("os.fsync", noted_sync)
    save_state(State(), path)
    assert order[:2] == ["sync", "rename"]


def test_the_folder_is_made_and_a_link_is_followed(tmp_path: Path) -> None:
    real = tmp_path / "far" / "away.json"
    link = tmp_path / "link.json"
    link.symlink_to(real)
    save_state(State(feedback="x"), link)
    assert link.is_symlink()
    assert real.exists()


def test_an_update_is_stamped(path: Path) -> None:
    save_state(State(), path, NOW)
    assert json.loads(path.read_text())["updated_at"] == "2026-01-02T03:04:05+00:00"


def test_a_file_is_put_aside_under_a_free_name(path: Path) -> None:
    kept = []
    for content in ("a", "b", "c"):
        path.write_text(content)
        kept.append(put_aside(path, "damaged"))
    assert not path.exists()
    assert [other.read_text() for other in kept] == ["a", "b", "c"]
    assert all(other.parent == path.parent for other in kept)


def test_a_folder_and_a_dangling_link_are_put_aside_too(path: Path) -> None:
    path.mkdir()
    assert put_aside(path, "damaged").is_dir()
    path.symlink_to("nowhere")
    assert put_aside(path, "damaged").is_symlink()
    with pytest.raises(StateError, match="cannot be put aside"):
        put_aside(path, "damaged")


@pytest.mark.parametrize("name", ["current_round", "cycle", "sequence", "tokens_used", "dispatched_at", "attempt"])
def test_a_number_out_of_all_range_falls_back_to_its_default(path: Path, name: str) -> None:
    state = written(path, {"cycle": 1, name: 10**400})
    assert getattr(state, name) == getattr(State(), name)


def test_a_state_with_other_values_is_what_dataclasses_make_of_it() -> None:
    state = State(run_id="run-1", checked={"tests": 0})
    changes: dict[str, Any] = {"sequence": 3, "outputs": {"programmer": "done"}, "turn": Turn.REVIEW}
    unknown: dict[str, Any] = {"tuning": "A", "rounds": 1}
    assert state_module.replace(state, **changes) == replace(state, **changes)
    assert state == State(run_id="run-1", checked={"tests": 0}), "the old state stays as it is"
    with pytest.raises(TypeError, match="has no rounds, tuning"):
        state_module.replace(state, **changes, **unknown)
