"""A new user's first hour: the built wheel, an empty environment, a clean home, and scripted agents."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.watch.scripted import story
from tests.wheel.package import fill_in

pytestmark = pytest.mark.wheel

SECONDS = 120


@dataclass(frozen=True)
class User:
    """A machine with nothing of ours on it but the wheel."""

    root: Path
    command: Path

    @property
    def wd(self) -> Path:
        return self.root / "project"

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": f"{self.command.parent}:{os.environ['PATH']}",
            "HOME": str(self.root / "home"),
            "XDG_STATE_HOME": str(self.root / "x"),  # short enough for a socket
            "LANG": "C.UTF-8",
            "QUINTET_SCENARIO": str(self.root / "scenario.json"),
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def do(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [str(self.command), *words],
            cwd=self.wd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, f"quintet {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture
def user(command: Path) -> Iterator[User]:
    made = User(Path(tempfile.mkdtemp(prefix="qh", dir="/tmp")), command)
    (made.root / "home").mkdir()
    made.wd.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=made.wd, check=True)
    (made.root / "scenario.json").write_text(json.dumps({"roles": story()}))
    try:
        yield made
    finally:
        subprocess.run([str(command), "stop", "--all"], cwd=made.wd, env=made.env, capture_output=True, check=False)
        shutil.rmtree(made.root, ignore_errors=True)


def test_from_nothing_to_a_passed_test(user: User) -> None:
    assert "written        quintet.json" in user.do("init", "--provider", "scripted", "--yes")
    assert "Nothing was changed." in user.do("init", "--provider", "scripted", "--yes")
    user.do("new", "Write the answer down")
    task = "tasks/write-the-answer-down.md"
    assert "error: a blank of the template is left" in user.do("lint", task, code=1)
    assert "a blank of the template is left" in user.do("run", task, code=1)
    fill_in(user.wd / task, "P1: answer.txt holds 42 and nothing else.", "Run: cat answer.txt\nExpected: 42")
    assert user.do("lint", task) == f"{task}: nothing is missing\n"
    assert "A run can start." in user.do("doctor", "--prompt-file", task)
    before = sorted(user.wd.rglob("*"))
    assert "new, begins at analyst" in user.do("run", task, "--dry-run")
    assert sorted(user.wd.rglob("*")) == before
    said = user.do("run", task, "--min-review-cycles-before-approval", "1", "--poll-seconds", "0.1")
    assert "PASS in round 2" in said
    assert "PASS" in user.do("runs")
    checked = user.do("doctor")
    assert "ended with PASS" in checked
    assert "ended run are still open" in checked
    for name in ("report.html", "report.md"):
        assert list(user.wd.glob(f".tmp/*/{name}"))
    assert "terminals of a run that ended with PASS" in user.do("clean", "--terminals", "--dry-run")
    user.do("clean", "--terminals", "--runs", "--keep", "0", "--yes")
    assert user.do("ps") == "No terminals.\n"
    assert user.do("runs") == "No runs yet.\n"


def test_the_demo_runs_from_the_wheel(user: User) -> None:
    assert "PASS in round 2" in user.do("demo", str(user.root / "demo"))
