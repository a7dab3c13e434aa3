"""Real agents of the Agent Client Protocol whose model fails for ever: the run ends and says why."""

import pytest

from tests.e2e.acp_agents import AGENTS
from tests.e2e.desk import desk
from tests.e2e.exchange import Reply
from tests.e2e.orders import orders
from tests.e2e.rig import CODEX, Cast, rig

QUICK = {"retry-after": "1", "retry-after-ms": "1"}
"""makes an agent try again soon"""
MINUTES = 400.0


def with_role(name: str, role: str) -> Cast:
    """Return a cast in which one role is that agent, and the others are Codex."""
    return Cast(codex=CODEX.codex, acp=(name,), agents={role: {"provider": name}})


@pytest.mark.e2e_all
@pytest.mark.parametrize("name", AGENTS)
def test_a_key_that_is_not_valid_ends_the_run(name: str) -> None:
    refusal = Reply(status=401, text="Incorrect API key provided", headers=QUICK)
    with rig(with_role(name, "analyst"), lambda _: refusal) as run:
        code, said = run.run(CLEANUP_ON_EXIT="1")
        assert code == 1
        assert "attach analyst) or with the CLI by itself, then start again" in said
        stopped = run.journal()[-1]
        assert stopped["event"] == "run_stopped"
        assert "its turn has failed: " in stopped["reason"]
        assert run.events("replied") == []
        assert run.left() == {}


@pytest.mark.e2e_long
def test_a_model_that_fails_for_ever_ends_the_run() -> None:
    """All pauses of a run, and all attempts of the agent that ends such a turn as if it were a good one."""
    with rig(with_role("copilot_cli", "analyst"), lambda _: Reply(status=500, text="it is broken")) as run:
        code, said = run.run(CLEANUP_ON_EXIT="1")
        assert code == 1
        assert "so have 3 repetitions" in said
        assert {event["kind"] for event in run.events("turn_failed")} == {"server_error"}
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
