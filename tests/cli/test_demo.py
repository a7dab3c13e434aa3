"""`quintet demo`, as somebody meets it who has nothing but a checkout: what it says is true and can be typed."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.stub.preloaded import start

SECONDS = 120


@dataclass(frozen=True)
class Desk:
    """A user with a home of its own, where the program is not on PATH."""

    root: Path

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": os.defpath,
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "t"),
            "XDG_STATE_HOME": str(self.root / "x"),  # short enough for a socket, and gone with the rest
            "LANG": "C.UTF-8",
        }

    def sh(self, words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["sh", "-c", words],
            env=self.env,
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )

    def quintet(self, words: str) -> "subprocess.CompletedProcess[str]":
        process = start(words.split(), self.env, self.root)
        out, err = process.communicate(timeout=SECONDS)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def desk() -> Iterator[Desk]:
    found = Desk(Path(tempfile.mkdtemp(prefix="qd", dir="/tmp")))
    for name in ("home", "t"):
        (found.root / name).mkdir()
    try:
        yield found
    finally:
        found.quintet("stop --all")
        shutil.rmtree(found.root, ignore_errors=True)


def advised(output: str, words: str) -> str:
    """The whole command that was named and has these words."""
    lines = (line.partition(" #")[0].strip() for line in output.splitlines())
    return next(line for line in lines if re.search(words, line))


def test_the_demo_warns_of_nothing_and_leaves_nothing_running(desk: Desk) -> None:
    done = desk.quintet("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "without a script" not in done.stdout
    assert "warning" not in done.stdout + done.stderr
    assert desk.quintet("ps").stdout == "No terminals.\n"
    story = done.stdout.partition("What happened")[2]
    assert story
    assert not re.search(r"(?m)^ *quintet ", story), "nothing of that name is on PATH"
    assert desk.sh(advised(story, " init$").replace(" init", " --version")).returncode == 0
    assert desk.sh(f"{advised(story, '^cd ')} && {advised(story, '^git ')}").stdout.count("commit ") == 2
    assert "report.html" in desk.sh(f"{advised(story, '^cd ')} && {advised(story, '^ls ')}").stdout
    assert [path.name for path in (desk.root / "t").iterdir()]
    assert desk.sh(advised(story, "^rm ")).returncode == 0
    assert list((desk.root / "t").iterdir()) == []


def test_a_demo_that_was_stopped_goes_on_as_it_says(desk: Desk) -> None:
    command = [sys.executable, "-m", "quintet", "demo", "mine"]
    process = subprocess.Popen(
        command, env=desk.env, cwd=desk.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    said = ""
    while "has replied" not in said:
        said += process.stdout.readline()
        assert process.poll() is None, said
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=SECONDS)[0]
    assert process.returncode == 130, said
    done = desk.sh(f"{advised(said, '^cd ')} && {advised(said, ' run$')} --plain")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " resumes at step " in done.stdout
    assert "warning" not in done.stdout + done.stderr


def test_the_terminals_can_be_kept_and_are_ended_as_it_says(desk: Desk) -> None:
    done = desk.quintet("demo --keep mine")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(desk.quintet("ps").stdout.splitlines()) == 5
    assert desk.sh(advised(done.stdout, " stop ")).returncode == 0
    assert desk.quintet("ps").stdout == "No terminals.\n"
