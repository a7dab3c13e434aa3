"""The scripted agent's ways to spoil a response file, and what it tells of them."""

import json
from pathlib import Path

import pytest

from quintet.providers.scripted.agent import ScriptedAgent
from quintet.providers.scripted.response_file import NOT_UTF8, write_response
from quintet.providers.scripted.scenario import RoleScript


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "reply.md"


@pytest.mark.parametrize("manner", ["file", "pieces", "late", "twice", "huge", "not_utf8"])
def test_what_is_complete_is_what_the_file_holds(path: Path, manner: str) -> None:
    assert write_response(path, "text", manner, 0.0) == path.read_bytes()
    assert path.read_bytes().startswith(b"text\n")


@pytest.mark.parametrize("manner", ["say_only", "empty", "symlink", "directory"])
def test_what_is_no_response_is_not_called_one(path: Path, manner: str) -> None:
    assert write_response(path, "text", manner, 0.0) is None


def test_each_thing_is_what_its_name_says(tmp_path: Path) -> None:
    for manner in ("empty", "symlink", "directory", "not_utf8", "huge"):
        write_response(tmp_path / manner, "text", manner, 0.0)
    assert (tmp_path / "empty").read_bytes() == b""
    assert (tmp_path / "symlink").is_symlink()
    assert (tmp_path / "symlink").read_text() == "text\n"
    assert (tmp_path / "directory").is_dir()
    assert (tmp_path / "not_utf8").read_bytes().endswith(NOT_UTF8)
    assert (tmp_path / "huge").stat().st_size > 1_000_000


def test_only_what_was_written_is_logged(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.get_terminal_size", lambda: type("Size", (), {"columns": 80}))
    agent = ScriptedAgent(RoleScript(log=str(tmp_path / "log")), "tester", None)
    path.mkdir(parents=True)
    agent.write_response(path, "in the way of itself", "file", 0.0)
    assert "Is a directory" in " ".join(capfd.readouterr().out.split())
    agent.write_response(path / "reply.md", "good", "file", 0.0)
    (line,) = (tmp_path / "log").read_text().splitlines()
    event = json.loads(line)
    assert (event["event"], event["role"], event["text"]) == ("written", "tester", "good\n")
