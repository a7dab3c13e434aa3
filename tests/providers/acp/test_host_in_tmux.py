"""The host in a real tmux pane of 80 columns: what a person sees, and that nothing outlives the pane."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quintet import files
from quintet.processes import has_ended
from quintet.providers import editor
from quintet.providers.acp.host_settings import DOORBELL, FILE, RECORD, HostSettings
from quintet.providers.acp.process_tree import descendants
from quintet.providers.turn_events import read_events
from tests.eventually import eventually
from tests.providers.acp.rig import FAKE

TURN: list[dict[str, Any]] = [
    {"think": "I look at the tests first."},
    {"say": "The tests need a function.\n"},
    {"tool": {"kind": "read", "title": "Read", "rawInput": {"file_path": "src/operations.py"}}},
    {"tool": {"kind": "execute", "title": "t", "rawInput": {"command": "make test"}, "end": {
        "status": "failed", "rawOutput": {"exit_code": 2, "output": "E  assert 3 == 4\n1 failed"}}}},
    {"ask": {"call": {"title": "Write tests/test_operations.py"}}},
    {"say": "Fixed: 你好, all tests pass now, and this sentence is long enough to need a second line of the pane."},
    {"end": {"result": {"stopReason": "end_turn", "usage": {"inputTokens": 12000, "outputTokens": 340}}}},
]  # fmt: skip
SCREEN = """\
» Fix the function add.

  Details:
  - one
  … 6 lines, 51 characters, from the server

  · I look at the tests first.

  The tests need a function.
● read src/operations.py
✗ $ make test (exit code 2)
    E assert 3 == 4
    1 failed

The agent asks: edit Write tests/test_operations.py
  1  proceed_once
  2  proceed_always
  3  cancel
  allowed: edit Write tests/test_operations.py (proceed_once)

  answered proceed_onceFixed: 你好, all tests pass now, and this sentence is
  long enough to need a second line of the pane.
  12,000 tokens read, 340 written · 0 s

›
"""


class TmuxRig:
    """One tmux server with one pane, in which a host runs."""

    def __init__(self, folder: Path, turns: list[list[dict[str, Any]]]) -> None:
        self.folder, self.socket = folder, folder / "tmux"
        script = folder / "script.json"
        script.write_text(json.dumps({"log": str(folder / "log"), "turns": turns}), encoding="utf-8")
        settings = HostSettings(
            name="my-agent", role="Programmer", command=(sys.executable, str(FAKE), str(script)), asks=True, mode="yolo"
        )
        files.write(folder / FILE, settings.to_json())
        host = (sys.executable, "-P", "-m", "quintet.providers.acp.host", str(folder))
        self.tmux("new-session", "-d", "-x", "80", "-y", "24", *host)  # without a shell, whose process would count
        self.pid = int(self.tmux("display", "-p", "#{pane_pid}"))

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self.socket), "-f", "/dev/null", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def wait_for(self, state: str) -> None:
        wanted = f"quintet acp {state}"
        eventually(
            lambda: self.tmux("display", "-p", "#{pane_title}").startswith(wanted),
            wanted,
            on_failure=lambda: "\n".join(self.screen),
        )

    def ring(self, prompt: str) -> None:
        editor.leave(self.folder, prompt)
        editor.offer(self.folder)
        self.tmux("send-keys", DOORBELL)

    @property
    def screen(self) -> list[str]:
        return [line.rstrip() for line in self.tmux("capture-pane", "-p").rstrip().split("\n")]


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short path: a socket's name must not be long."""
    return tmp_path_factory.mktemp("h")


def end(rig: TmuxRig) -> None:
    """End the server, where it has not ended with its last pane."""
    subprocess.run(["tmux", "-S", str(rig.socket), "kill-server"], check=False, capture_output=True)
    eventually(lambda: has_ended(rig.pid), "the end of the host")


def test_a_conversation_is_readable_in_80_columns(folder: Path) -> None:
    rig = TmuxRig(folder, [TURN])
    try:
        rig.wait_for("ready")
        rig.ring("Fix the function add.\n\nDetails:\n- one\n- two\n- three")
        rig.wait_for("asks")
        rig.tmux("send-keys", "y")
        rig.wait_for("ready")
        shown = eventually(lambda: rig.screen, "the prompt", wanted=lambda lines: lines[-1] == "›")
        assert [line.partition(" · ")[0] for line in shown] == [
            line.partition(" · ")[0] for line in SCREEN.splitlines()[-24:]
        ]
    finally:
        end(rig)


def test_a_pane_that_is_killed_in_the_middle_of_a_tool_leaves_nothing(folder: Path) -> None:
    pids = folder / "pids"
    rig = TmuxRig(folder, [[{"spawn": {"pids": str(pids), "loose": "yes"}}, {"hold": 1}]])
    try:
        rig.wait_for("ready")
        rig.ring("x")
        eventually(lambda: pids.exists() and pids.read_text(encoding="utf-8").strip(), "the tool")
        below = descendants(rig.pid)
        assert len(below) == 2
        rig.tmux("kill-session")
        eventually(lambda: all(map(has_ended, (rig.pid, *below))))
        assert [event["event"] for event in read_events(folder / RECORD)] == ["session", "begin"]
    finally:
        end(rig)
