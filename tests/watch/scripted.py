"""A real run of the scripted agents as a process of its own, in a home of its own; what it starts, it ends."""

import atexit
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER
from tests.eventually import eventually, show_journals, show_processes
from tests.stub.preloaded import start
from tests.stub.replies import (
    ANALYST_APPROVED,
    ANALYST_SUMMARY,
    FAIL,
    PASS,
    PROGRAMMER_APPROVED,
    PROGRAMMER_SUMMARY,
    TASK,
)

DEADLINE = 90.0
T = TypeVar("T")
REVISE = "REVIEW_RESULT: REVISE\nREVIEW_NOTES:\n- Handoff: name the file\nRequired changes:\n- name it\n"
LONG_SUMMARY = PROGRAMMER_SUMMARY + "\n## Known limitations\nnone that anybody has found so far\n"


def turns(*replies: str, think: float = 0.0) -> list[list[dict[str, Any]]]:
    """A turn for each reply, in which a command is really run: an approval or a PASS would not count without one."""
    return [[*([{"think": think}] if think else []), {"run": "ls"}, {"reply": reply}] for reply in replies]


def story(think: float = 0.0) -> dict[str, Any]:
    """One REVISE, then a test that fails and one that passes: ten turns in two rounds."""
    return {
        ANALYST.name: turns(ANALYST_SUMMARY, think=think),
        PEER_ANALYST.name: turns(REVISE, ANALYST_APPROVED, think=think),
        PROGRAMMER.name: turns(LONG_SUMMARY, think=think),
        PEER_PROGRAMMER.name: turns(PROGRAMMER_APPROVED, think=think),
        TESTER.name: turns(FAIL, PASS, think=think),
    }


@dataclass
class Scripted:
    """One project with its private home."""

    root: Path
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    @property
    def wd(self) -> Path:
        return self.root / "project"

    @property
    def folder(self) -> Path:
        """The folder of the newest run."""
        return max(self.wd.glob(".tmp/*/journal.jsonl")).parent

    @property
    def journal(self) -> list[dict[str, Any]]:
        lines = (self.folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    @property
    def server(self) -> dict[str, Any]:
        """What the run's own server has left word of."""
        word: dict[str, Any] = json.loads((self.wd / ".tmp" / "server.json").read_text(encoding="utf-8"))
        return word

    @property
    def env(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        return kept | {
            "HOME": str(self.root / "home"),
            "XDG_STATE_HOME": str(self.root / "x"),  # short enough for a socket, and gone with the rest
            "LANG": "C.UTF-8",
            "PROVIDER": "scripted",
            "QUINTET_SCENARIO": str(self.root / "scenario.json"),
            "PROMPT": TASK,
            "POLL_SECONDS": "0.1",
            "MIN_REVIEW_CYCLES_BEFORE_APPROVAL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def start(self, *words: str, prefix: Sequence[str] = (), **settings: str) -> "subprocess.Popen[str]":
        process = start(words, self.env | settings, self.wd, prefix=prefix, with_errors=True)
        self.started.append(process)
        return process

    def call(self, *words: str, **settings: str) -> tuple[int, str]:
        """Run a command to its end."""
        process = self.start(*words, **settings)
        output, _ = process.communicate(timeout=DEADLINE)
        return process.returncode, output

    def script(self, roles: dict[str, Any]) -> None:
        (self.root / "scenario.json").write_text(json.dumps({"roles": roles}), encoding="utf-8")

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.wd, env=self.env, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def until(self, found: Callable[[], T], what: str = "something to be found") -> T:
        """Wait until there is something to be found; files may come and go meanwhile."""

        def look() -> T | None:
            with suppress(OSError):
                return found()
            return None

        value = eventually(look, what, deadline=DEADLINE, on_failure=self.evidence)
        assert value is not None
        return value

    def until_there(self, name: str) -> Path:
        """Wait for a file below `.tmp/`."""
        return self.until(lambda: sorted(self.wd.glob(f".tmp/{name}")), name)[-1]

    def evidence(self) -> str:
        """Return what to look at if a test waits in vain: journals, processes and the agents' screens."""
        return "\n".join([show_journals(self.root), show_processes([str(self.root)]), *self._screens()])

    def _screens(self) -> Iterator[str]:
        for socket in self.root.glob("x/quintet/s/*"):
            tmux = ["tmux", "-S", str(socket)]
            listing = subprocess.run(
                [*tmux, "list-panes", "-a", "-F", "#{pane_id}"], capture_output=True, text=True, check=False
            )
            for pane in listing.stdout.split():
                shown = subprocess.run(
                    [*tmux, "capture-pane", "-p", "-t", pane], capture_output=True, text=True, check=False
                )
                yield f"--- screen of {pane}\n{shown.stdout.rstrip()}"

    def kill_tmux(self) -> None:
        """End the tmux server of every session, without Quintet knowing."""
        for socket in self.root.glob("x/quintet/s/*"):
            command = ["tmux", "-S", str(socket), "kill-server"]
            subprocess.run(command, capture_output=True, check=True, timeout=DEADLINE)

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        if self.started or any(self.root.glob("x/quintet/s/*")):
            start(["stop", "--all"], self.env, self.wd).communicate(timeout=DEADLINE)
        shutil.rmtree(self.root, ignore_errors=True)


@cache
def project_with_commit() -> Path:
    """A repository with one commit, to be copied: git takes ten times as long to make another."""
    kept = tempfile.TemporaryDirectory(prefix="qw", dir="/tmp")
    atexit.register(kept.cleanup)
    project = Scripted(Path(kept.name))
    project.wd.mkdir()
    project.git("init", "--quiet", "--template=")
    project.git("config", "user.name", "T")
    project.git("config", "user.email", "t@localhost")
    (project.wd / "README.md").write_text("A project.\n")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "Begin")
    return project.wd


@contextmanager
def scripted(roles: dict[str, Any], template: Path | None = None) -> Iterator[Scripted]:
    """A copy of a git project, by default one with one commit, and agents that follow a script."""
    project = Scripted(Path(tempfile.mkdtemp(prefix="qw", dir="/tmp")))
    (project.root / "home").mkdir()
    project.wd.mkdir()
    project.script(roles)
    shutil.copytree(template or project_with_commit(), project.wd, symlinks=True, dirs_exist_ok=True)
    try:
        yield project
    finally:
        project.end()
