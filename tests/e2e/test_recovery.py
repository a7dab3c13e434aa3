"""Whole runs in which the agents are killed or have reached a limit: they end in PASS."""

import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.acp_agents import AGENTS
from tests.e2e.brains import RoleBrain, response_path
from tests.e2e.exchange import Reply, Request
from tests.e2e.processes import signal_all
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import CODEX, RELEASES, Cast, Rig, rig
from tests.e2e.test_acp_failures import QUICK, with_role
from tests.e2e.test_acp_kills import hosts
from tests.e2e.test_loops import ONE_REVIEW, check_conversation_continued, hanging_programmer

pytestmark = pytest.mark.e2e_all

LIMIT_SECONDS = 20
PROGRAMS = ("codex", "claude", "node")
CASTS = {**RELEASES, **{name: with_role(name, "programmer") for name in AGENTS}}


def agents(run: Rig) -> list[int]:
    """Return the processes of the agents, without the terminals and the hosts in which they run."""
    programs = [pid for pid, line in run.living().items() if Path(line.split(" ")[0]).name in PROGRAMS]
    below = [process.pid for host in hosts(run.home) for process in psutil.Process(host).children(recursive=True)]
    return [*programs, *below]


@pytest.mark.parametrize("cast", CASTS.values(), ids=CASTS)
def test_the_agents_are_killed_in_the_middle_of_a_turn(cast: Cast) -> None:
    """All five at once, when the programmer has its second prompt: its conversation continues."""
    brain = RoleBrain(hanging_programmer())
    with rig(cast, brain) as run:
        process = run.start(CLEANUP_ON_EXIT="1", **ONE_REVIEW)
        run.until(lambda: brain.asked["programmer_summary.md"] >= 2, "the programmer works", process=process)
        signal_all(agents(run), signal.SIGKILL)
        brain.forget_turns()
        code, said = run.finish(process)
        assert code == 0, said
        lost = {event["role"]: event["terminal"] for event in run.events("terminal_lost")}
        assert len(lost) == len(run.state["terminals"])
        created = [event for event in run.events("terminal_created") if event["continues"]]
        assert {event["role"]: event["continues"] for event in created} == lost, said
        check_conversation_continued(run)
        assert run.events("reminded") == []
        assert run.left() == {}


@dataclass
class Limited:
    """A brain whose model refuses all requests for some seconds, from the first prompt for a file on."""

    brain: RoleBrain
    name: str
    ends: float = 0.0

    def __call__(self, request: Request) -> Reply:
        path = response_path(request.prompt)
        if path is not None and path.name == self.name:
            self.ends = self.ends or time.time() + LIMIT_SECONDS
            if (left := self.ends - time.time()) > 0:
                return self.limit(request, left)
        return self.brain(request)

    def limit(self, request: Request, left: float) -> Reply:
        error: dict[str, Any] = {}
        if request.api == "responses":
            times = {"resets_at": int(self.ends), "resets_in_seconds": max(int(left), 1)}
            error = {"type": "usage_limit_reached", "plan_type": "pro", **times}
        text = f"Rate limit reached. Please try again in {left:.0f}s."
        return Reply(status=429, text=text, error=error, headers=QUICK)


def test_a_usage_limit_is_waited_for() -> None:
    with rig(CODEX, Limited(RoleBrain(FAIL_THEN_PASS), "programmer_summary.md")) as run:
        code, said = run.run(CLEANUP_ON_EXIT="1", **ONE_REVIEW)
        assert code == 0, said
        assert [event["role"] for event in run.events("limit_reached")] == ["programmer"], said
        assert run.events("reminded") == []
        assert run.left() == {}


def test_a_limit_of_an_agent_that_ends_such_a_turn_as_if_it_were_a_good_one() -> None:
    with rig(with_role("copilot_cli", "analyst"), Limited(RoleBrain(FAIL_THEN_PASS), "analyst_summary.md")) as run:
        code, said = run.run(CLEANUP_ON_EXIT="1", **ONE_REVIEW)
        assert code == 0, said
        failed = {(event["role"], event["kind"]) for event in run.events("turn_failed")}
        assert failed == {("analyst", "rate_limit")}
        assert run.events("reminded") == []
        assert run.left() == {}
