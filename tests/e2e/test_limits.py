"""Usage limits of the real agents: which kind of failure, when it ends, and that the terminal goes on afterwards."""

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.e2e.desk import Desk, desk
from tests.e2e.rig import RELEASES, together

pytestmark = pytest.mark.e2e_all

SUBSCRIPTION = {
    "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-made-up-for-tests",
    "ANTHROPIC_API_KEY": "",
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "TZ": "Asia/Kolkata",
}
"""Claude Code tells of its limits only to subscribers; and a time of day is one of the agent's own time zone."""
HOURS, DAYS = 3 * 3600 + 600, 2 * 86400
MINUTE = 60
OFFER = "Stop and wait for limit to reset"


@pytest.fixture(scope="module", params=together(RELEASES))
def agent(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with desk(RELEASES[request.param], SUBSCRIPTION) as opened:
        assert opened.open()["status"] == "idle"
        yield opened


def limit(agent: Desk, reset: int, claim: str) -> dict[str, Any]:
    """What the model server answers when a limit is reached."""
    if agent.provider == "codex":
        return {"status": 429, "error": {"type": "usage_limit_reached", "plan_type": "pro", "resets_at": reset}}
    about = {"status": "rejected", "reset": str(reset), "representative-claim": claim}
    headers = {f"anthropic-ratelimit-unified-{name}": value for name, value in about.items()}
    return {"status": 429, "error": {"type": "rate_limit_error"}, "headers": headers}


def test_a_passing_429_is_a_rate_limit_that_names_no_end(agent: Desk) -> None:
    found = agent.order({"status": 429, "text": "Too many requests", "error": {"type": "rate_limit_error"}}).end
    assert found["status"] == "completed"
    assert (found["failure"]["kind"], found["failure"]["resets_at"]) == ("rate_limit", None), found
    after = agent.order({"text": "It has passed."})
    assert (after.answer, after.end["failure"]) == ("It has passed.", None)


@pytest.mark.parametrize(("seconds", "claim"), [(HOURS, "five_hour"), (DAYS, "seven_day")], ids=["hours", "days"])
def test_a_limit_is_told_with_its_end(agent: Desk, seconds: int, claim: str) -> None:
    reset = int(time.time()) + seconds
    found = agent.order(limit(agent, reset, claim)).end
    assert found["status"] == "completed"
    assert found["reason"].startswith("usage limit: ")
    assert found["failure"]["kind"] == "usage_limit"
    # the agents name the minute, or even the hour where it is a full one
    assert abs(datetime.fromisoformat(found["failure"]["resets_at"]).timestamp() - reset) <= MINUTE
    if agent.provider == "claude_code":
        agent.until(lambda _: OFFER in agent.output())
        assert agent.look()["status"] == "completed", "its offer stands in nobody's way"
    after = agent.order({"text": "It is over."})
    assert (after.answer, after.end["failure"]) == ("It is over.", None)
