"""One terminal of one release: what is sent there, and the frames that are taken with their labels."""

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.exchange import Reply
from tests.e2e.install import STORE
from tests.e2e.model import ScriptedModel
from tests.e2e.processes import end_all_in, living_in
from tools.recording.cli import Cli
from tools.recording.pane import Pane
from tools.recording.privacy import hide
from tools.recording.script import Exchange, Script

Frame = dict[str, Any]
LASTING = 1.8
"""Seconds after the beginning of a state that lasts: the program may still be painting."""


class Recorder:
    """One terminal of one release, and the frames taken of it."""

    def __init__(self, cli: Cli, pane: Pane, script: Script, home: Path) -> None:
        self.cli, self.pane, self.script, self.home = cli, pane, script, home
        self.frames: list[Frame] = []

    def take(self, label: str, scenario: str, is_true: Callable[[], bool] = lambda: True) -> None:
        """Keeps a frame whose label is true before and after."""
        before = is_true()
        frame = self.pane.capture()
        if not (before and is_true()):
            return
        for field in ("screen", "screen_ansi", "pane_title"):
            frame[field] = hide(hide(frame[field], str(self.home)), str(STORE.parent))
        if frame["pane_title"] == socket.gethostname():
            frame["pane_title"] = "vm"
        facts = {"cli": self.cli.name, "version": self.cli.version, "state_label": label, "scenario": scenario}
        self.frames.append(facts | frame)

    def working(self, scenario: str, exchange: Exchange, seconds: float) -> None:
        """A frame while the model has not ended its answer, so many seconds after its request came."""
        sleep_until(exchange.arrived + seconds)
        self.take("processing", scenario, lambda: time.monotonic() < exchange.last_byte - 0.1)

    def ended(self, scenario: str, exchange: Exchange, label: str = "completed", seconds: float = LASTING) -> None:
        sleep_until(exchange.last_byte + seconds)
        count = len(self.script.requests(exchange.key))
        self.take(label, scenario, lambda: len(self.script.requests(exchange.key)) == count)

    def take_model_dialog(self) -> None:
        """Some releases offer a newer model before anything else."""
        self.take("waiting_user_answer", "model_dialog")

    def ask(self, prompt: str, *replies: Reply) -> Exchange:
        self.script.plan(prompt, *replies)
        self.pane.send(prompt)
        return self.script.wait_for(prompt)


def sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


@contextmanager
def terminal(cli: Cli, cols: int, rows: int) -> Iterator[Recorder]:
    script = Script()
    with ScriptedModel(script) as model:
        home = cli.make_home(model.url)
        project = home / "proj"
        (project / "parser.py").write_text("import os\n")
        make_repository(project)
        try:
            with Pane(cols, rows, project, cli.environment(home, model.url)) as pane:
                yield Recorder(cli, pane, script, home)
        finally:
            end_all_in(home)
            shutil.rmtree(home, ignore_errors=True)


def make_repository(folder: Path) -> None:
    # Otherwise the program takes the repository around it for the project.
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)


def programs(recorder: Recorder) -> list[int]:
    """The processes of the CLI itself, not those of tmux and the shell."""
    name = recorder.cli.name
    words = ("tmux", "bash --norc")
    return [pid for pid, line in living_in(recorder.home).items() if name in line and not line.startswith(words)]
