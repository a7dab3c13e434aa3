"""The host's processes where there is no /proc and no prctl: a machine with macOS or a BSD."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from quintet.providers.acp import agent_process, process_tree
from quintet.providers.acp.agent_process import AgentProcess

TREE = "import subprocess, sys; subprocess.Popen(['sleep', '60']); print('ready', flush=True); sys.stdin.read()"


@pytest.fixture(autouse=True)
def no_linux(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    elsewhere = SimpleNamespace(platform="darwin")
    monkeypatch.setattr(process_tree, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(process_tree, "sys", elsewhere)
    monkeypatch.setattr(agent_process, "sys", elsewhere)


def test_an_agent_and_what_it_has_started_are_found_and_ended() -> None:
    agent = AgentProcess([sys.executable, "-c", TREE])
    try:
        os.set_blocking(agent.stdout, True)
        # An interpreter that does not buffer writes the end of the line by itself: only the word is waited for.
        assert os.read(agent.stdout, 100).startswith(b"ready")
        found = process_tree.descendants(os.getpid())
        told = subprocess.run(
            ["ps", "-o", "args=", "-p", ",".join(map(str, found))], capture_output=True, text=True, check=True
        )
        assert "sleep 60" in told.stdout
    finally:
        agent.end()
    assert agent.exit_code is not None
    assert not set(process_tree.descendants(os.getpid())) & set(found)
