"""The recordings: packed small, and without a trace of the machine where they were made."""

import json
import lzma
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tools import screens
from tools.recording.privacy import hide
from tools.screens import PATHS_OF_SOMEBODY, Recording, load, pack, read_folder

A = Recording("codex", "0.9.0", 80, 24, "idle", "fresh_start", "› x", "proj", "node", False)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(screens, "STORE", tmp_path / "store")
    return tmp_path


def test_what_is_packed_is_loaded_in_the_order_of_releases(store: Path) -> None:
    newer = replace(A, version="0.10.0")
    lines = [*(asdict(each) | {"screen_ansi": "left out"} for each in (newer, A)), asdict(A)]
    (store / "x.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    pack(read_folder(store))
    assert load("codex") == [A, newer]


def test_a_release_that_is_packed_again_is_replaced(store: Path) -> None:
    other, wider, again = replace(A, version="0.10.0"), replace(A, cols=120), replace(A, screen="› y")
    pack([A, wider, other])
    pack([again])
    assert load("codex") == [wider, again, other]
    assert store.exists()


def test_a_path_of_somebody_is_refused(store: Path) -> None:
    with pytest.raises(SystemExit, match="/home/jane/secret"):
        pack([replace(A, screen="› x\n  ~ /home/jane/secret")])
    assert not list(store.glob("store/*"))


@pytest.mark.parametrize("cli", ["codex", "claude"])
def test_the_recordings_in_the_repository_are_small_and_name_nobody(cli: str) -> None:
    file = screens.STORE / f"{cli}.jsonl.xz"
    assert file.stat().st_size < 600_000
    assert not PATHS_OF_SOMEBODY.search(lzma.decompress(file.read_bytes()).decode())


@pytest.mark.parametrize("cli", ["codex", "claude"])
def test_names_are_unique(cli: str) -> None:
    names = [recording.name for recording in load(cli)]
    assert len(set(names)) == len(names)


def test_hiding_a_path_moves_nothing() -> None:
    home = "/somewhere/deep/in/a/home"
    text = f"│ trust {home}/proj? │\n  or /somewhere/deep\n  /in/a/home/proj"
    hidden = hide(text, home)
    assert [len(row) for row in hidden.split("\n")] == [len(row) for row in text.split("\n")]
    assert "somewhere" not in hidden
    assert "deep" not in hidden
    assert hidden.startswith("│ trust /home/dev/")
