"""`quintet demo`, as somebody meets it who has nothing but a checkout: what it says is true and can be typed."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quintet import git
from quintet.cli import demo as module
from quintet.demo import prepare
from quintet.execute import Result
from quintet.loop.decide.state import Status
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

    def interrupt_after(self, words: str, *command: str) -> tuple[int, str]:
        """Start a command and interrupt it once it has said something; its exit code and all that it has said."""
        with subprocess.Popen(
            command, env=self.env, cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            said = ""
            while words not in said:
                line = process.stdout.readline()
                assert line, f"it ended without {words!r}: {said}"
                said += line
            process.send_signal(signal.SIGINT)
            said += process.communicate(timeout=SECONDS)[0]
        return process.returncode, said


@contextmanager
def new_desk() -> Iterator[Desk]:
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


def test_the_demo_warns_of_nothing_and_all_that_it_advises_can_be_typed() -> None:
    with new_desk() as desk:
        done = desk.quintet("demo --keep")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "without a script" not in done.stdout
        assert "warning" not in done.stdout + done.stderr
        story = done.stdout.partition("What happened")[2]
        assert story
        assert not re.search(r"(?m)^ *quintet ", story), "nothing of that name is on PATH"
        assert desk.sh(advised(story, " init$").replace(" init", " --version")).returncode == 0
        assert desk.sh(f"{advised(story, '^cd ')} && {advised(story, '^git ')}").stdout.count("commit ") == 2
        assert "report.html" in desk.sh(f"{advised(story, '^cd ')} && {advised(story, '^ls ')}").stdout
        assert len(desk.quintet("ps").stdout.splitlines()) == 5
        assert desk.sh(advised(done.stdout, " stop ")).returncode == 0
        assert desk.quintet("ps").stdout == "No terminals.\n"
        assert [path.name for path in (desk.root / "t").iterdir()]
        assert desk.sh(advised(story, "^rm ")).returncode == 0
        assert list((desk.root / "t").iterdir()) == []


def test_a_demo_that_was_stopped_goes_on_as_it_says() -> None:
    with new_desk() as desk:
        code, said = desk.interrupt_after("has replied", sys.executable, "-m", "quintet", "demo", "mine")
        assert code == 130, said
        resume = f"{advised(said, '^cd ')} && exec {advised(said, ' run$')} --plain"
        code, said = desk.interrupt_after(" resumes at step ", "sh", "-c", resume)
        assert code == 130, said
        assert "warning" not in said


@pytest.mark.parametrize("keep", [False, True])
def test_the_terminals_end_with_the_demo_unless_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keep: bool
) -> None:
    given: list[dict[str, Any]] = []

    def run(_config: Path, flags: dict[str, Any], **options: Any) -> Result:
        given.append(flags | options)
        return Result(0, Status.PASS, run_id="r1", session="s1")

    monkeypatch.setattr(module, "run", run)
    assert module.demo(tmp_path / "mine", keep=keep) == 0
    (options,) = given
    assert (options["cleanup_on_exit"], options["env"]) == (not keep, {})
    assert (" stop --session s1" in capsys.readouterr().out) is keep


def test_the_users_git_settings_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hooks").mkdir()
    hook = tmp_path / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (tmp_path / "ignored").write_text("*.sh\n*.json\n")
    (tmp_path / "gitconfig").write_text(
        f"[commit]\ngpgSign = true\n[gpg]\nprogram = false\n"
        f"[core]\nhooksPath = {tmp_path}/hooks\nautocrlf = true\nexcludesFile = {tmp_path}/ignored\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    project = prepare(tmp_path / "demo") / "project"
    assert {"check.sh", "quintet.json"} <= {*git.run(project, "ls-files").text.splitlines()}
    assert git.run(project, "status", "--porcelain", "--ignored").text == ""
