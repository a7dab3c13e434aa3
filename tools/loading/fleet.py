"""Projects in a home of their own, with runs of scripted agents in them; what a fleet starts, it ends."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from tests.stub.replies import TASK
from tests.watch.scripted import story
from tools.loading.meter import parent, with_mark

DEADLINE: Final = 600.0
QUINTET: Final = (sys.executable, "-m", "quintet")
PASSED: Final = "PASS in round 2"


class Missed(Exception):  # noqa: N818 - reads as what happened
    """A run that did not end as it should, or something that it left behind."""


@dataclass
class Run:
    """One `quintet run`, as a process."""

    process: "subprocess.Popen[bytes]"
    output: Path
    used: float = 0.0
    """processor seconds of the process and of the commands that it has waited for"""
    highest: int = 0
    """bytes that it held at most, by the kernel's account"""

    @property
    def pid(self) -> int:
        return self.process.pid

    def poll(self) -> bool:
        """Whether it has ended; what it has used is known from then on."""
        if self.process.returncode is None:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid == 0:
                return False
            self.process.returncode = os.waitstatus_to_exitcode(status)
            self.used = usage.ru_utime + usage.ru_stime
            self.highest = usage.ru_maxrss * 1024
        return True

    def check(self) -> None:
        """A run has to end in PASS, in the round that the script has it in."""
        text = self.output.read_text(encoding="utf-8", errors="replace")
        if self.process.returncode or PASSED not in text:
            raise Missed(f"a run ended with exit code {self.process.returncode}:\n{text[-2000:]}")


class Terminals(NamedTuple):
    """The processes behind terminals, by what they are."""

    agents: list[int]
    clients: list[int]
    """a run's connections to its tmux servers"""
    servers: list[int]
    """tmux servers"""


@dataclass
class Fleet:
    """A user's home with projects; all runs share its state directory, as those of one user do."""

    root: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="ql", dir="/tmp")))
    think: float = 1.0
    """seconds that an agent takes for a turn; a run has ten turns"""
    running: list[Run] = field(default_factory=list)
    servers: list[int] = field(default_factory=list)
    """terminal servers beside the runs' own"""

    def __enter__(self) -> Self:
        for folder in (self.state, self.temporary, self.root / "home"):
            folder.mkdir()
        (self.root / "scenario.json").write_text(json.dumps({"roles": story(self.think)}), encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for run in self.running:
            if not run.poll():
                run.process.kill()
                run.process.wait()
        self.stop_terminals()
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def state(self) -> Path:
        """The state directory: sockets and the terminals' folders."""
        return self.root / "x"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def env(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        return kept | {
            "HOME": str(self.root / "home"),
            "XDG_STATE_HOME": str(self.state),
            "TMPDIR": str(self.temporary),
            "LANG": "C.UTF-8",
            "PROVIDER": "scripted",
            "QUINTET_SCENARIO": str(self.root / "scenario.json"),
            "PROMPT": TASK,
            "MIN_REVIEW_CYCLES_BEFORE_APPROVAL": "1",
        }

    def project(self, name: str) -> Path:
        folder = self.root / "p" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def start(self, project: Path, **settings: str) -> Run:
        """Start a run in a project; its lines go into a file."""
        output = self.root / f"{project.name}.out"
        with output.open("wb") as file:
            process = subprocess.Popen(
                [*QUINTET, "run", "--plain"],
                env=self.env | settings,
                cwd=project,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        run = Run(process, output)
        self.running.append(run)
        return run

    def terminals(self) -> "Terminals":
        """The processes behind the terminals of this home, as they are now."""
        found = with_mark(str(self.state))
        agents = [pid for pid, line in found.items() if "scripted.agent" in line and "supervise" not in line]
        tmux = [pid for pid, line in found.items() if "tmux" in line.split(" ", 1)[0]]
        # a server and the client that has started it have the same command line; the client is the run's child
        ours = {os.getpid(), *(run.pid for run in self.running), *self.servers}
        clients = [pid for pid in tmux if parent(pid) in ours]
        return Terminals(agents, clients, [pid for pid in tmux if pid not in clients])

    def stop_terminals(self) -> None:
        """End every terminal of this home, as a user would."""
        command = [*QUINTET, "stop", "--all"]
        subprocess.run(command, env=self.env, cwd=self.root, capture_output=True, check=False, timeout=DEADLINE)

    def left_behind(self) -> list[str]:
        """What there is still of this home's runs: processes, sockets, terminals' folders, temporary files."""
        lines = [f"process {pid}: {line}" for pid, line in with_mark(str(self.root)).items()]
        quintet = self.state / "quintet"
        files = [*quintet.glob("s/*"), *quintet.glob("t/*"), *self.temporary.iterdir()]
        return [*lines, *map(str, files)]
