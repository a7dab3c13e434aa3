"""Processes that outlive a turn, and response files that nobody has asked for, in real runs."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from quintet.processes import has_ended
from quintet.roles import PEER_PROGRAMMER, PROGRAMMER, TESTER, Role
from tests.stub.replies import FAIL, PASS, PROGRAMMER_APPROVED
from tests.watch.scripted import LONG_SUMMARY, Scripted, scripted, story, turns

OVERWRITE = f"""\
response=.tmp/agent-responses/{TESTER.response_file}
while :; do
  grep -q FAIL $response && printf 'RESULT: PASS\\nEVIDENCE:\\n- it ran\\n' > .tmp/forged && mv .tmp/forged $response
  sleep 0.002
done
"""
"""waits for the tester's FAIL, and makes a PASS of it"""
SETTINGS = {"START_AGENT": PROGRAMMER.name, "MAX_ROUNDS": "1"}


def in_background(line: str) -> dict[str, str]:
    return {"run": f"nohup {line} </dev/null >/dev/null 2>&1 &"}


def warnings(run: Scripted) -> list[str]:
    return [event["text"] for event in run.journal if event["event"] == "warned"]


@pytest.fixture(scope="module")
def run() -> Iterator[Scripted]:
    """A run in which every role leaves something behind."""
    forge = {"run": f"echo forged > .tmp/agent-responses/{TESTER.response_file}"}
    roles: dict[str, Any] = story() | {
        PROGRAMMER.name: [[in_background("sh ../overwrite.sh"), {"reply": LONG_SUMMARY}]],
        PEER_PROGRAMMER.name: [[{"run": "ls"}, forge, {"think": 0.6}, {"reply": PROGRAMMER_APPROVED}]],
        TESTER.name: [[in_background("sleep 2004"), {"reply": FAIL}, {"think": 0.5}]],
    }
    with scripted(roles) as project:
        (project.root / "overwrite.sh").write_text(OVERWRITE)
        code, said = project.call("run", CLEANUP_ON_EXIT="1", **SETTINGS)
        assert code == 1, said
        yield project


def test_a_process_that_the_programmer_left_is_ended_before_anybody_judges(run: Scripted) -> None:
    (told,) = [text for text in warnings(run) if "programmer had left" in text]
    assert "overwrite.sh" in told
    judged = next(
        number
        for number, event in enumerate(run.journal)
        if (event["event"], event.get("role")) == ("prompt_sent", PEER_PROGRAMMER.name)
    )
    assert told in [event.get("text") for event in run.journal[:judged]]


def test_at_the_end_of_a_run_everything_is_ended_with_its_terminals(run: Scripted) -> None:
    (told,) = [text for text in warnings(run) if "tester had left" in text]
    assert "sleep 2004" in told


def test_a_response_that_nobody_has_asked_for_is_told_and_kept(run: Scripted) -> None:
    (told,) = [text for text in warnings(run) if "not at work" in text]
    assert "response file of tester" in told
    (kept,) = run.folder.glob("*-tester-late-1.md")
    assert kept.read_text() == "forged\n"


def test_without_the_setting_nothing_is_ended_by_anybody() -> None:
    leave = {"run": "nohup sleep 2005 </dev/null >/dev/null 2>&1 & echo $! > .tmp/pid"}
    with scripted({TESTER.name: [[leave, {"reply": PASS}]]}) as run:
        code, said = run.call("run", START_AGENT=TESTER.name, END_STRAYS="0")
        pid = int((run.wd / ".tmp/pid").read_text())
        assert not has_ended(pid)
        os.kill(pid, signal.SIGKILL)
        assert code == 0, said
        assert not [text for text in warnings(run) if "running" in text]


LATER = """\
until ls .tmp/2*/*-{output}.md >.tmp/seen 2>&1; do sleep 0.002; done
echo 'exit 0' > check.sh
"""
"""waits until the reply is taken and the changes of the turn were looked at, and makes the check succeed"""


@pytest.mark.parametrize("role", [PROGRAMMER, TESTER], ids=str)
def test_a_process_that_waits_for_the_end_of_its_turn_changes_nothing(role: Role) -> None:
    leave = [in_background("sh ../later.sh"), {"run": "ls"}]
    roles = story() | {PROGRAMMER.name: turns(LONG_SUMMARY), TESTER.name: turns(PASS)}
    roles[role.name] = [[*leave, {"reply": LONG_SUMMARY if role is PROGRAMMER else PASS}]]
    with scripted(roles) as run:
        (run.wd / "check.sh").write_text("exit 1\n")
        run.git("add", "--all")
        run.git("commit", "--quiet", "--message", "a check")
        (run.root / "later.sh").write_text(LATER.format(output=role.output))
        checks = {"VERIFY_CMD": "sh check.sh", "PROTECT": "check.sh", "RED_FIRST": "off"}
        code, said = run.call("run", **SETTINGS, **checks)
        assert (code, (run.wd / "check.sh").read_text()) == (1, "exit 1\n"), said
        (told,) = [text for text in warnings(run) if "running" in text]
        assert told.startswith(f"{role} had left ")  # the script, and perhaps what it is just waiting with
        assert "sh ../later.sh" in told
