"""The forked command is the command: the tests of runs rely on it."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import psutil
import pytest

from tests.eventually import eventually
from tests.stub.preloaded import COMMAND, ROOT, start


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "WD": str(tmp_path),
        "TZ": "Asia/Tokyo",
    }


@pytest.mark.parametrize("words", [("run",), ("config",), ("ps", "more")])
def test_it_does_what_the_program_does(words: tuple[str, ...], env: dict[str, str], tmp_path: Path) -> None:
    real = subprocess.run([*COMMAND, *words], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    forked = start(words, env, tmp_path)
    assert forked.communicate(timeout=60) == (real.stdout, real.stderr)
    assert forked.returncode == real.returncode


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143)])
def test_it_can_be_ended(number: signal.Signals, code: int, env: dict[str, str], tmp_path: Path) -> None:
    server = start(["serve", "--port", "0"], env, tmp_path, with_errors=True)
    assert server.stdout is not None
    with server:
        assert server.stdout.readline().startswith("Terminal server at ")
        assert server.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            server.wait(0.001)
        server.send_signal(number)
        assert server.wait(60) == code
        server.kill()  # of a process that has ended: nothing


HARNESS = """
import os, sys
from pathlib import Path
import httpx
from tests.stub.preloaded import start
server = start(["serve", "--port", "0"], dict(os.environ), Path.cwd(), with_errors=True)
address = server.stdout.readline().split()[3]
httpx.get(address)  # it has said all that it says at its start
print(server.pid, flush=True)
sys.stdin.read()
"""


def test_it_ends_with_tests_that_are_killed(env: dict[str, str], tmp_path: Path) -> None:
    search = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS], env=env | search, cwd=tmp_path, stdin=PIPE, stdout=PIPE, text=True
    )
    with harness:
        assert harness.stdout is not None
        server = int(harness.stdout.readline())
        assert psutil.pid_exists(server)
        harness.kill()
    eventually(lambda: not psutil.pid_exists(server), "the end of the server")
