"""What turns leave running is found by its mark and ended; an agent's program and its helpers are left alone."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from quintet.processes import children_of, has_ended, now_of_starts, started_at
from quintet.server.terminal.launch_script import pane_environment
from quintet.server.terminal.strays import MARK, Owner, end_strays
from tests.eventually import eventually

CLI = """
import subprocess, sys
helper = subprocess.Popen(["sh", "-c", "sleep 1000; true"])
print("ready", flush=True)
for line in sys.stdin:
    subprocess.Popen(line, shell=True, start_new_session=True)
    print("started", flush=True)
"""
"""an agent's program: what it starts at once is its helper, then a command for each line"""
LOOSE = "sleep 2001 </dev/null >/dev/null 2>&1 & true"
STILL_THERE = "sleep 2002; true"
STUBBORN = "(trap '' TERM; sleep 2003; sleep 2003) </dev/null >/dev/null 2>&1 & true"


@contextmanager
def program(terminal: str) -> Iterator[tuple["subprocess.Popen[str]", Callable[[str], None]]]:
    """A terminal's program, and a way to let it start a command; whatever is left of it is ended."""
    pipe = subprocess.PIPE
    environment = {**os.environ, MARK: terminal}
    with subprocess.Popen([sys.executable, "-c", CLI], stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

        def start(command: str) -> None:
            print(command, file=process.stdin, flush=True)
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"

        try:
            yield process, start
        finally:
            helpers = children_of(process.pid)
            process.kill()
            process.wait()
            end_strays({terminal: Owner(process.pid, 0.0)})
            assert all(map(has_ended, helpers))


def later(moment: float) -> bool:
    return now_of_starts() > moment + 0.05


def test_commands_of_a_turn_end_and_the_program_and_its_helpers_stay() -> None:
    with program("aa000001") as (process, start), program("aa000002") as (_, start_other):
        helpers = children_of(process.pid)
        begun = now_of_starts()
        eventually(lambda: later(begun), "a moment that the kernel can tell from the one before")
        for command in (LOOSE, STILL_THERE, STUBBORN):
            start(command)
        start_other(LOOSE)
        eventually(lambda: len(children_of(process.pid)) >= 2, "the commands")
        ended = end_strays({"aa000001": Owner(process.pid, begun)})
        told = " ".join(ended.pop("aa000001"))
        assert ended == {}, "nothing of another terminal"
        assert all(number in told for number in ("2001", "2002", "2003"))
        assert not has_ended(process.pid)
        assert not any(map(has_ended, helpers))
        assert end_strays({"aa000001": Owner(process.pid, begun)}) == {}


def test_before_the_first_prompt_only_what_is_loose_counts() -> None:
    with program("aa000003") as (process, start):
        start(STILL_THERE)
        start(LOOSE)
        eventually(lambda: end_strays({"aa000003": Owner(process.pid, 0.0)}), "the loose one")
        assert len([pid for pid in children_of(process.pid) if not has_ended(pid)]) == 2


def test_a_start_and_the_present_are_told_by_one_clock() -> None:
    before = now_of_starts()
    with subprocess.Popen(["sleep", "0"]) as process:
        started = started_at(process.pid)
    assert before - 0.02 <= started <= now_of_starts()
    assert started_at(2**30) == 0


def test_a_terminal_in_a_terminal_has_a_mark_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "outer")
    assert (pane_environment({}) | {MARK: "inner"})[MARK] == "inner"
