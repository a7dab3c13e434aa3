"""Runs with real agents of the Agent Client Protocol whose model fails: they end, or go on, as with the others."""

import time
from dataclasses import dataclass

import pytest

from tests.e2e.acp_agents import AGENTS
from tests.e2e.brains import RoleBrain, response_path
from tests.e2e.desk import desk
from tests.e2e.exchange import Reply, Request
from tests.e2e.orders import orders
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, rig
from tests.e2e.test_loops import CODEX

QUICK = {"retry-after": "1", "retry-after-ms": "1"}
MINUTES = 400.0
LIMIT = 25.0
"""seconds, more than an agent waits by itself"""


def with_analyst(name: str) -> Cast:
    return Cast(codex=CODEX, acp=(name,), agents={"analyst": {"provider": name}})


@pytest.mark.e2e
@pytest.mark.parametrize("name", AGENTS)
def test_a_key_that_is_not_valid_ends_the_run(name: str) -> None:
    refusal = Reply(status=401, text="Incorrect API key provided", headers=QUICK)
    with rig(with_analyst(name), lambda _: refusal) as run:
        code, said = run.run(CLEANUP_ON_EXIT="1")
        assert code == 1
        assert "attach analyst) or with the CLI by itself, then start again" in said
        stopped = run.journal()[-1]
        assert stopped["event"] == "run_stopped"
        assert "its turn has failed: " in stopped["reason"]
        assert "replied" not in {event["event"] for event in run.journal()}
        assert run.left() == {}


@dataclass
class Limited:
    """A brain whose model takes no more requests for some seconds, from the analyst's first prompt on."""

    brain: RoleBrain
    ends: float = 0.0

    def __call__(self, request: Request) -> Reply:
        path = response_path(request.prompt)
        if path is not None and path.name == "analyst_summary.md":
            self.ends = self.ends or time.time() + LIMIT
            if (left := self.ends - time.time()) > 0:
                return Reply(status=429, text=f"Rate limit reached. Please try again in {left:.0f}s.", headers=QUICK)
        return self.brain(request)


@pytest.mark.e2e
def test_a_limit_with_a_time_is_waited_for() -> None:
    """With the agent that ends such a turn as if it were a good one."""
    brain = Limited(RoleBrain(FAIL_THEN_PASS))
    with rig(with_analyst("copilot_cli"), brain) as run:
        code, said = run.run(CLEANUP_ON_EXIT="1", MIN_REVIEW_CYCLES_BEFORE_APPROVAL="1")
        assert code == 0, said
        failed = [event for event in run.journal() if event["event"] == "turn_failed"]
        assert {(event["role"], event["kind"]) for event in failed} == {("analyst", "rate_limit")}
        assert "reminded" not in [event["event"] for event in run.journal()]
        assert run.left() == {}


@pytest.mark.e2e_long
def test_a_model_that_fails_for_ever_ends_the_run() -> None:
    """All pauses of a run, and all attempts of the agent that ends such a turn as if it were a good one."""
    with rig(with_analyst("copilot_cli"), lambda _: Reply(status=500, text="it is broken")) as run:
        code, said = run.run(CLEANUP_ON_EXIT="1")
        assert code == 1
        assert "so have 3 repetitions" in said
        assert {event["kind"] for event in run.journal() if event["event"] == "turn_failed"} == {"server_error"}
        assert run.left() == {}


@pytest.mark.e2e_long
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_that_tries_again_for_minutes_is_at_work_and_says_so(name: str) -> None:
    """As their users have them: with a model that fails, and no setting that shortens it."""
    with desk(Cast(acp=(name,))) as agent:
        agent.open()
        agent.send(f"Please work.\n{orders({'status': 500, 'text': 'it is broken'})}")
        silence = agent.until(lambda found: found["status"] != "processing" or found["reason"], seconds=MINUTES)
        if name != "copilot_cli":  # it tells of each attempt, and ends in less than a minute
            assert "it may be retrying" in silence["reason"]
        found = agent.until(lambda found: found["status"] != "processing", seconds=MINUTES)
        assert (found["status"], agent.output("last")) == ("completed", "")
        assert found["failure"]["kind"] in ("server_error", "other")
        assert "it is broken" in found["failure"]["text"]
