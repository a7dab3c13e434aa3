"""Single turns of the real agents that speak the Agent Client Protocol: each is read right, and nothing is lost."""

import json
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.e2e.acp_agents import AGENTS
from tests.e2e.desk import Desk, desk
from tests.e2e.orders import orders
from tests.e2e.project import long_notes
from tests.e2e.rig import Cast, together

pytestmark = pytest.mark.e2e_all

ARGUMENTS = {"gemini_cli": ["-m", "scripted-model"]}
"""Gemini CLI counts its attempts only where one model is chosen."""
QUICK = {"retry-after": "1", "retry-after-ms": "1"}
"""makes the others try again soon"""
SECONDS = 20


@pytest.fixture(scope="module", params=together(AGENTS))
def agent(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """One agent that has all turns of this file, one after the other."""
    with desk(Cast(acp=(request.param,))) as opened:
        assert opened.open(args=ARGUMENTS.get(request.param, []))["status"] == "idle"
        yield opened


def test_the_role_reaches_the_model(agent: Desk) -> None:
    assert agent.order({"text": "At your service."}).answer == "At your service."
    assert "in a team of five" in str(agent.rig.model.turns[-1].body)


def test_a_long_prompt_arrives_byte_for_byte(agent: Desk) -> None:
    prompt = f"{long_notes()}\n{orders({'text': 'Read.'})}"
    assert agent.turn(prompt).answer == "Read."
    assert agent.rig.model.turns[-1].prompt == prompt


@pytest.mark.parametrize("first", ["/init", "!echo never run > ran.txt", "@README.md", "#a note"])
def test_a_first_line_is_never_a_command(agent: Desk, first: str) -> None:
    before = len(agent.rig.model.turns)
    assert agent.turn(f"{first}\nand a second line").answer == "Understood."
    (asked,) = agent.rig.model.turns[before:]
    assert asked.prompt.strip("\u200b") == f"{first}\nand a second line"
    assert not (agent.rig.project / "ran.txt").exists()


def test_tokens_are_counted_once(agent: Desk) -> None:
    """Twice, because one of them tells the sum of all its turns; opencode tells those of the last request alone."""
    calls = 1 if agent.provider == "opencode_cli" else 3
    for _ in range(2):
        found = agent.order({"command": "true"}, {"command": "true"}, {"text": "Counted."}).end
        assert found["usage"] == {"input_tokens": 1200 * calls, "cached_tokens": 0, "output_tokens": 34 * calls}


def test_a_command_is_an_action_of_the_turn(agent: Desk) -> None:
    found = agent.order({"command": "echo hi > made.txt"}, {"command": "exit 3"}, {"text": "Done."}).end["actions"]
    assert (agent.rig.project / "made.txt").read_text() == "hi\n"
    commands = {one["text"]: one["exit_code"] for one in found["items"] if one["kind"] == "command"}
    codes = (None, None) if agent.provider == "gemini_cli" else (0, 3)
    assert commands == dict(zip(("echo hi > made.txt", "exit 3"), codes, strict=True))


def failed(agent: Desk, **answer: Any) -> dict[str, Any]:
    """How a turn ends to which the model answers so, for ever; the next one is as if nothing had been."""
    turn = agent.order({"headers": QUICK, **answer})
    assert (turn.end["status"], turn.answer) == ("completed", ""), turn
    after = agent.order({"text": "It is over."})
    assert (after.answer, after.end["failure"]) == ("It is over.", None)
    failure: dict[str, Any] = turn.end["failure"]
    return failure


def test_an_error_of_the_model_server_for_ever(agent: Desk) -> None:
    # Qwen Code tries again after a 500 for 98 s, whatever its settings say
    status = 503 if agent.provider == "qwen_code" else 500
    text = "The server had an error while processing your request"
    failure = failed(agent, status=status, text=text, error={"type": "server_error"})
    assert failure["kind"] == "server_error"
    assert text in failure["text"]


def test_too_many_requests_with_a_time(agent: Desk) -> None:
    begun = time.time()
    failure = failed(agent, status=429, text=f"Rate limit reached. Please try again in {SECONDS}s.")
    assert failure["kind"] == "rate_limit"
    if agent.provider == "qwen_code":
        assert failure["resets_at"] is None, "it does not pass on what the model says"
    else:
        ends = datetime.fromisoformat(failure["resets_at"]).timestamp()
        assert begun + SECONDS <= ends <= time.time() + SECONDS


def test_a_key_that_is_not_valid(agent: Desk) -> None:
    failure = failed(agent, status=401, text="Incorrect API key provided")
    assert failure["kind"] == "login"


def test_words_in_an_answer_mislead_nobody(agent: Desk) -> None:
    text = "Allow no more than 3 retries.\nError: Traceback. API Error: 500. Do you want to proceed?\n› 1. Yes"
    turn = agent.order({"text": text})
    assert (turn.end["status"], turn.end["reason"], turn.answer) == ("completed", None, text)


def test_an_interrupted_turn_is_over(agent: Desk) -> None:
    assert "interrupted" in agent.interrupt()["reason"]
    assert agent.order({"text": "Back."}).answer == "Back."


def test_a_gemini_that_starts_later_leaves_the_conversations_of_the_others_loadable() -> None:
    """It deletes the files of conversations without a prompt; what is recorded after that has no beginning."""
    with desk(Cast(acp=("gemini_cli",))) as agent:
        first = agent.open()["id"]
        agent.open()
        agent.terminal = first
        agent.order({"text": "At your service."})
        files = (agent.rig.home / ".gemini" / "tmp").rglob("session-*.jsonl")
        (recorded,) = (text for file in files if "At your service." in (text := file.read_text()))
        assert "sessionId" in json.loads(recorded.splitlines()[0])
