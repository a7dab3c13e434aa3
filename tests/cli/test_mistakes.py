"""What a user may get wrong outside of a run: one line each, and nothing is lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stub.preloaded import run


def quintet(*words: str, cwd: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    kept = {"PATH": os.environ["PATH"], "HOME": str(cwd), "XDG_STATE_HOME": str(cwd), "LANG": "C.UTF-8"}
    return run(words, kept | env, cwd)


@pytest.mark.parametrize("words", [("demo", "file"), ("demo", "file/sub")])
def test_a_file_where_a_folder_belongs(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("mine")
    done = quintet(*words, cwd=tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "file" in done.stderr
    assert (tmp_path / "file").read_text() == "mine"


def test_the_demo_without_git(tmp_path: Path) -> None:
    done = quintet("demo", cwd=tmp_path, PATH=str(tmp_path), TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "quintet: git is not installed: the demo's project is a git repository\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("init",), ("doctor",), ("status",), ("run", "task.md")])
def test_a_directory_that_is_gone(tmp_path: Path, words: tuple[str, ...]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    steps = [
        f"import os, sys; os.rmdir({str(gone)!r}); sys.argv[1:] = {list(words)!r}",
        "from quintet.cli.main import main; main()",
    ]
    script = "; ".join(steps)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=gone, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr == "quintet: the current directory: No such file or directory\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [("no json", "is no JSON"), ('{"roles": {"tester": [[{"dance": 1}]]}}', "an action has exactly one of")],
)
def test_a_script_that_makes_no_sense(tmp_path: Path, script: str, said: str) -> None:
    (tmp_path / "scenario.json").write_text(script)
    env = {"QUINTET_SCENARIO": str(tmp_path / "scenario.json"), "PROVIDER": "scripted"}
    assert said in quintet("doctor", cwd=tmp_path, **env).stdout
