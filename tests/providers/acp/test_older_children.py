"""What a host does not end with its agent: the way to the network that its sandbox has given it."""

import subprocess
import sys

_CODE = """
import subprocess
from quintet.providers.acp.process_tree import become_subreaper, end_descendants
older = subprocess.Popen(["sleep", "600"])
for _ in range(2):
    become_subreaper()
    agent = subprocess.Popen(["sleep", "600"])
    ended = [pid for pid, _ in end_descendants()]
    assert ended == [agent.pid], ended
assert older.poll() is None
older.kill()
"""


def test_a_child_from_before_the_agent_outlives_it() -> None:
    done = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
