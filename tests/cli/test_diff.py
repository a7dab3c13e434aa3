"""`quintet diff` for a program, in a real terminal, and what a user may get wrong."""

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quintet.loop import journal
from quintet.watch.runs.diff import diff_now, save_diff
from quintet.watch.runs.folders import read_run
from tests.stub.preloaded import start
from tests.watch.events import at, finished, started, write

RUN = "20260102-030405-abcdef"
OLD, NEW = b"one\ntwo\nthree\n", b"one\n2 \x1b]0;title\x07\x1b[2J\nthree\n"
DEADLINE = 60.0


class Project:
    """A repository in which a run has changed two files, and the home of its user."""

    def __init__(self, root: Path) -> None:
        self.wd, self.home = root / "project", root / "home"
        for folder in (self.wd, self.home):
            folder.mkdir()
        self.git("init", "--quiet")
        (self.wd / "a.txt").write_bytes(OLD)
        self.git("add", "--all")
        self.git("-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "--quiet", "--message", "Begin")
        self.start = self.git("rev-parse", "HEAD").strip()
        first = journal.RunStarted(run_id=RUN, wd=str(self.wd), start_agent="analyst", start_commit=self.start)
        self.folder = write(self.wd / ".tmp" / RUN, [at(0, first), *started()[1:], finished(9, "PASS")])
        (self.wd / "a.txt").write_bytes(NEW)
        (self.wd / "new file").write_text("x\n")

    @property
    def env(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "XDG_STATE_HOME")}
        return kept | {"HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "xterm-256color", "GIT_CONFIG_NOSYSTEM": "1"}

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.wd, env=self.env, capture_output=True, text=True, check=True)
        return done.stdout

    def save(self) -> None:
        """What the end of a run does."""
        save_diff(self.folder, diff_now(self.wd, read_run(self.folder)))

    def call(self, *words: str, **env: str) -> "subprocess.CompletedProcess[bytes]":
        process = start(["diff", *words], self.env | env, self.wd)
        out, err = process.communicate(timeout=DEADLINE)
        return subprocess.CompletedProcess(process.args, process.returncode, out.encode(), err.encode())

    def in_terminal(self, *words: str, **env: str) -> tuple[int, bytes]:
        """The exit code, and what a terminal is sent."""
        with Terminal(self, *words, **env) as terminal:
            return terminal.end()


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, project: Project, *words: str, **env: str) -> None:
        self.shown = b""
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "quintet", "diff", *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=project.wd,
            env=project.env | env,
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def read(self) -> bool:
        """Take what has come; whether more may come."""
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.shown += data
        return bool(data)

    def until(self, text: bytes) -> None:
        while text not in self.shown:
            assert self.read(), self.shown

    def end(self) -> tuple[int, bytes]:
        while self.read():
            pass
        return self.process.wait(DEADLINE), self.shown.replace(b"\r\n", b"\n")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_program_gets_a_patch_that_git_applies(project: Project) -> None:
    done = project.call()
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"+2 \x1b]0;title\x07" in done.stdout, "byte for byte"
    (project.wd / "new file").unlink()
    (project.wd / "a.txt").write_bytes(OLD)
    subprocess.run(["git", "apply"], input=done.stdout, cwd=project.wd, env=project.env, check=True)
    assert (project.wd / "a.txt").read_bytes() == NEW
    assert (project.wd / "new file").read_bytes() == b"x\n"


def test_a_run_that_is_over_shows_what_was_there_at_its_end(project: Project) -> None:
    project.save()
    before = project.call(RUN[:10]).stdout
    (project.wd / "a.txt").write_text("the user has gone on\n")
    assert project.call().stdout == before
    assert b"two" in before


def test_the_list_of_files(project: Project) -> None:
    done = project.call("--stat")
    assert done.stdout.decode() == "+1 -1  a.txt\n+1 -0  new file  (new)\n2 files changed, +2 -1\n"
    code, shown = project.in_terminal("--stat", PAGER="cat")
    assert (code, re.sub(rb"\x1b\[\d*m", b"", shown)) == (0, done.stdout)


def test_a_terminal_gets_gits_colours_and_nothing_that_steers_it(project: Project) -> None:
    code, shown = project.in_terminal(PAGER="cat")
    assert code == 0
    lines = shown.decode().split("\n")
    assert "\x1b[1mdiff --git a/a.txt b/a.txt\x1b[m" in lines
    assert "\x1b[36m@@ -1,3 +1,3 @@\x1b[m" in lines
    assert " one" in lines
    assert "\x1b[31m-two\x1b[m" in lines
    assert "\x1b[32m+2 �]0;title��[2J\x1b[m" in lines


def test_the_colours_of_the_user(project: Project) -> None:
    project.git("config", "--global", "color.diff.new", "blue")
    assert b"\x1b[34m+x\x1b[m\n" in project.in_terminal(PAGER="cat")[1]
    assert b"\x1b" not in project.in_terminal(PAGER="cat", NO_COLOR="1")[1]
    project.git("config", "--global", "color.ui", "false")
    assert b"\x1b" not in project.in_terminal(PAGER="cat")[1]


@pytest.mark.parametrize("name", ["PAGER", "GIT_PAGER", "core.pager", "pager.diff"])
def test_the_pager_of_the_user(project: Project, name: str) -> None:
    pager = project.home / "pager"
    pager.write_text(f'#!/bin/sh\necho "called with LESS=$LESS"\ncat > "{project.home}/paged"\n')
    pager.chmod(0o755)
    if name.isupper():
        code, shown = project.in_terminal(**{name: str(pager)})
    else:
        project.git("config", "--global", name, str(pager))
        code, shown = project.in_terminal(PAGER="false")
    assert (code, shown) == (0, b"called with LESS=FRX\n")
    assert b"\x1b[32m+x\x1b[m\n" in (project.home / "paged").read_bytes()


def test_no_pager_and_one_that_is_not_there(project: Project) -> None:
    project.git("config", "--global", "pager.diff", "false")
    assert b"+x" in project.in_terminal(PAGER="false")[1]
    project.git("config", "--global", "pager.diff", "true")
    code, shown = project.in_terminal(PAGER="no-such-pager")
    assert code == 0
    assert b"+x" in shown


def test_a_pager_that_is_left_early_and_one_that_gets_ctrl_c(project: Project) -> None:
    (project.wd / "long").write_text("a line\n" * 100_000)
    assert project.in_terminal(PAGER="true") == (0, b"")
    # the pager says when it is there, hears Ctrl-C itself, and has the last word
    wait = "trap 'echo heard; exit' INT; echo ready; while :; do sleep 0.05; done"
    with Terminal(project, PAGER=wait) as terminal:
        terminal.until(b"ready")
        os.killpg(terminal.process.pid, signal.SIGINT)
        code, shown = terminal.end()
    assert (code, shown) == (0, b"ready\nheard\n")


def test_a_reader_that_goes_away(project: Project) -> None:
    (project.wd / "long").write_text("a line\n" * 100_000)
    command = f"{shlex.quote(sys.executable)} -m quintet diff | head -n 1"
    done = subprocess.run(
        ["sh", "-c", command], cwd=project.wd, env=project.env, capture_output=True, check=True, timeout=DEADLINE
    )
    assert (done.stdout, done.stderr) == (b"diff --git a/a.txt b/a.txt\n", b"")


def test_nothing_changed_and_what_a_user_may_get_wrong(project: Project, tmp_path: Path) -> None:
    done = project.call("2027")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == f"quintet: there is no run 2027; there are {RUN}\n".encode()
    (project.wd / "new file").unlink()
    (project.wd / "a.txt").write_bytes(OLD)
    done = project.call()
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", f"The run {RUN} has changed nothing.\n".encode())
    write(tmp_path / "home" / ".tmp" / RUN, [*started(), finished(1, "PASS")])
    done = project.call("--wd", str(tmp_path / "home"))
    assert done.returncode == 1
    assert done.stderr.startswith(b"quintet: The project was not in a git repository")
    assert len(done.stderr.splitlines()) == 1
    assert project.call("--wd", str(tmp_path)).stderr.endswith(b" run starts one\n")
