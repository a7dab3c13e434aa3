"""The host's processes where there is no /proc and no prctl: a machine with macOS or a BSD."""

import subprocess
import sys

HOST = """
import os, subprocess, sys
from pathlib import Path
from types import SimpleNamespace

from quintet.providers.acp import agent_process, process_tree

process_tree._PROC = Path("/no-such-folder")
process_tree.sys = agent_process.sys = SimpleNamespace(platform="darwin")
started = "import subprocess, sys; subprocess.Popen(['sleep', '60']); print('ready', flush=True); sys.stdin.read()"
agent = agent_process.AgentProcess([sys.executable, "-c", started])
os.set_blocking(agent.stdout, True)
os.read(agent.stdout, 100)
found = process_tree.descendants(os.getpid())
told = subprocess.run(["ps", "-o", "args=", "-p", ",".join(map(str, found))], capture_output=True, text=True)
agent.end()
left = set(process_tree.descendants(os.getpid())) & set(found)
print("sleep 60" in told.stdout, agent.exit_code is not None, left)
"""


def test_an_agent_and_what_it_has_started_are_found_and_ended() -> None:
    """In a process of its own, as a host ends everything that its process has started."""
    done = subprocess.run([sys.executable, "-c", HOST], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("True True set()\n", "")
