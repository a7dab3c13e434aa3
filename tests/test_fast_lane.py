"""What `make unit` takes, and what it forbids."""

import subprocess
import sys

import pytest

from tests.fast_lane import TESTS, in_fast_lane


@pytest.mark.parametrize("module", ["loop/decide/test_flow.py", "watch/test_report.py", "test_prose.py"])
def test_modules_that_import_nothing_that_waits_are_taken(module: str) -> None:
    assert (TESTS / module).is_file()
    assert in_fast_lane(TESTS / module)


@pytest.mark.parametrize(
    "module", ["test_fast_lane.py", "loop/record/test_signals.py", "server/test_status.py", "test_load.py"]
)
def test_modules_that_wait_by_themselves_or_through_helper_conftest_or_tool_are_left_out(module: str) -> None:
    assert not in_fast_lane(TESTS / module)


@pytest.mark.parametrize("call", ["subprocess.run(['true'])", "socket.create_connection(('127.0.0.1', 9))"])
def test_whatever_starts_a_process_or_connects_fails_there(call: str) -> None:
    lines = f"import socket, subprocess, tests.fast_lane as lane; lane.forbid_processes_and_sockets(); {call}"
    ended = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, cwd=TESTS.parent, check=False)
    assert "in the fast lane: mark the test with pytest.mark.slow" in ended.stderr
