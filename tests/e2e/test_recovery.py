"""Whole runs with real agents in which a CLI is killed, or has reached its usage limit: they end in PASS."""

import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.brains import Answer, RoleBrain, response_path
from tests.e2e.exchange import Reply, Request
from tests.e2e.processes import signal_all
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import RUN_SECONDS, Cast, Rig, rig, texts

pytestmark = pytest.mark.e2e

CODEX = Cast(codex="0.166.0")
CLAUDE = Cast(claude="2.1.325")
SECONDS = 60.0
LIMIT_SECONDS = 20
PROGRAMS = ("codex", "claude", "node")


def until(run: Rig, process: subprocess.Popen[str], condition: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Wait for something to happen in a run that goes on."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, [event["event"] for event in run.journal()]
        time.sleep(0.02)
    return found


def agents(run: Rig) -> dict[int, str]:
    return {pid: line for pid, line in run.living().items() if Path(line.split(" ")[0]).name in PROGRAMS}


@pytest.mark.parametrize("cast", [CODEX, Cast(codex="0.149.0"), CLAUDE], ids=["codex", "older-codex", "claude"])
def test_the_clis_are_killed_in_the_middle_of_a_turn(cast: Cast) -> None:
    """All five at once, when the programmer has its second prompt: its conversation goes on."""
    script = {name: list(answers) for name, answers in FAIL_THEN_PASS.items()}
    wrong, _, right = script["programmer_summary.md"]
    script["programmer_summary.md"] = [wrong, Answer(right.text, right.before, delay=SECONDS), right]
    brain = RoleBrain(script)
    with rig(cast, brain) as run:
        process = run.start(CLEANUP_ON_EXIT="1", MIN_REVIEW_CYCLES_BEFORE_APPROVAL="1")
        until(run, process, lambda: brain.asked["programmer_summary.md"] >= 2, RUN_SECONDS)
        signal_all(agents(run), signal.SIGKILL)
        brain.forget_turns()
        said, _ = process.communicate(timeout=240)
        assert process.returncode == 0, said
        events = run.journal()
        lost = {event["role"]: event["terminal"] for event in events if event["event"] == "terminal_lost"}
        assert len(lost) == len(run.state["terminals"])
        created = [event for event in events if event["event"] == "terminal_created" and event["continues"]]
        assert {event["role"]: event["continues"] for event in created} == lost, said
        asked = [request for request in run.model.turns if "programmer_summary.md" in request.prompt]
        last = asked[-1]
        assert len(last.prompts) >= 3, "what the killed programmer knew, the new one knows"
        sent = max((run.archive / "prompts").glob("*-programmer.md")).read_text()
        assert texts([last.prompt]) == texts([sent]), "and it gets the whole prompt"
        assert "refer to your conversation history" not in sent
        assert "reminded" not in [event["event"] for event in events]
        assert run.left() == {}


@dataclass
class Limited:
    """A brain whose account has used up its limit, for some seconds from the programmer's first prompt on."""

    brain: RoleBrain
    ends: float = 0.0
    refused: int = 0

    def __call__(self, request: Request) -> Reply:
        path = response_path(request.prompt)
        if path is not None and path.name == "programmer_summary.md":
            self.ends = self.ends or time.time() + LIMIT_SECONDS
            if time.time() < self.ends:
                self.refused += 1
                return self.limit(request)
        return self.brain(request)

    def limit(self, request: Request) -> Reply:
        if request.api == "responses":
            error: dict[str, Any] = {
                "type": "usage_limit_reached",
                "plan_type": "pro",
                "resets_at": int(self.ends),
                "resets_in_seconds": max(int(self.ends - time.time()), 1),
            }
        else:
            error = {"type": "rate_limit_error"}
        return Reply(status=429, text="You have hit your usage limit", error=error)


def test_a_usage_limit_is_waited_for() -> None:
    brain = Limited(RoleBrain(FAIL_THEN_PASS))
    with rig(CODEX, brain) as run:
        code, said = run.run(CLEANUP_ON_EXIT="1", MIN_REVIEW_CYCLES_BEFORE_APPROVAL="1")
        assert code == 0, said
        events = run.journal()
        assert brain.refused >= 1
        told = [event for event in events if event["event"] == "limit_reached"]
        assert [event["role"] for event in told] == ["programmer"], said
        assert "reminded" not in [event["event"] for event in events]
        assert run.left() == {}
