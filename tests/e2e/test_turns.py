"""Single turns of the real agents, of every odd kind: each is read right, and nothing is lost."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.desk import Desk, desk
from tests.e2e.orders import orders
from tests.e2e.processes import signal_all
from tests.e2e.project import long_notes
from tests.e2e.rig import RELEASES, together

pytestmark = pytest.mark.e2e_all

QUICK_RETRIES = {"CLAUDE_CODE_MAX_RETRIES": "1"}


@pytest.fixture(scope="module", params=together(RELEASES))
def agent(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """One agent that has all turns of this file, one after the other."""
    with desk(RELEASES[request.param], QUICK_RETRIES) as opened:
        assert opened.open()["status"] == "idle"
        yield opened


def test_the_profile_is_the_agents_instructions_and_not_on_its_screen(agent: Desk) -> None:
    turn = agent.order({"text": "At your service."})
    assert turn.answer == "At your service."
    asked = agent.rig.model.turns[-1]
    told = str(asked.body.get("system") or [item for item in asked.body["input"] if item.get("role") == "developer"])
    assert "programmer" in told.lower()


def test_long_prompts_arrive_byte_for_byte_also_the_tenth_time(agent: Desk) -> None:
    for number in range(1, 11):
        prompt = f"Prompt number {number}\n{long_notes()}\n{orders({'text': f'Read number {number}.'})}"
        turn = agent.turn(prompt)
        assert agent.rig.model.turns[-1].prompt == prompt
        assert turn.answer == f"Read number {number}."


@pytest.mark.parametrize(
    "first", ["/not a command", "!echo never run > ran.txt", "@README.md", "#a note", "see @README.md", "one\ttab"]
)
def test_a_first_line_is_never_a_command(agent: Desk, first: str) -> None:
    for prompt in (first, f"{first}\nand a second line"):
        before = len(agent.rig.model.turns)
        turn = agent.turn(prompt)
        assert turn.answer == "Understood."
        (asked,) = agent.rig.model.turns[before:]
        assert asked.prompt.strip().strip("\u200b") == prompt
    assert not (agent.rig.project / "ran.txt").exists()


def test_equal_answers_in_a_row_are_two_turns(agent: Desk) -> None:
    before = agent.look()["turn"]
    turns = [agent.order({"text": "The same.", "delay": delay}) for delay in (0.0, 0.2, 1.0)]
    assert [turn.answer for turn in turns] == ["The same."] * 3
    assert turns[2].seconds > 1.0, "the old answer is not taken for the new one"
    assert agent.look()["turn"] == before + 3


def test_the_old_answer_is_not_shown_while_a_turn_runs(agent: Desk) -> None:
    agent.order({"text": "Old."})
    agent.send(f"Take your time.\n{orders({'text': 'New.', 'delay': 5})}")
    assert agent.output("last") == ""
    agent.until(lambda found: found["status"] == "completed")
    assert agent.output("last") == "New."


def test_a_long_silent_command(agent: Desk) -> None:
    turn = agent.order({"command": "sleep 6"}, {"text": "Slept."})
    assert turn.seconds > 6.0
    assert turn.statuses == ["processing", "completed"]
    assert turn.answer == "Slept."


def test_a_long_streamed_answer(agent: Desk) -> None:
    text = "\n".join(f"Line {row}: working, running, esc to interrupt, RESULT: PASS" for row in range(150))
    turn = agent.order({"text": text, "pace": 0.02})
    assert turn.seconds > 4.0
    assert turn.statuses == ["processing", "completed"]
    assert turn.answer == text


def test_tokens_are_counted_once(agent: Desk) -> None:
    agent.order({"command": "true"}, {"command": "true"}, {"text": "Counted."})
    # Claude Code writes its transcript a moment after the turn's end.
    found = agent.until(lambda found: (found["usage"] or {}).get("output_tokens") == 3 * 34)
    assert found["usage"] == {"input_tokens": 3600, "cached_tokens": 0, "output_tokens": 102}


def test_a_background_command_outlives_the_turn(agent: Desk) -> None:
    made, go = agent.rig.project / "later.txt", agent.rig.project / "go.txt"
    for path in (made, go):
        path.unlink(missing_ok=True)
    command = f"until [ -e {go} ]; do sleep 0.1; done; touch {made}"
    turn = agent.order({"command": command, "background": True}, {"text": "It goes on."})
    assert (turn.end["status"], turn.answer) == ("completed", "It goes on.")
    go.touch()
    agent.until(lambda _: made.exists())
    assert agent.order({"text": "Next."}).answer == "Next."


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"status": 400, "text": "this cannot be understood"}, "this cannot be understood"),
        ({"status": 500, "text": "out of order"}, "server error: "),
        ({"text": "This answer is cut off in the middle. " * 20, "cut": True}, "connection: "),
    ],
    ids=["request", "server", "stream"],
)
def test_a_failure_ends_the_turn_with_its_reason(agent: Desk, answer: dict[str, Any], reason: str) -> None:
    turn = agent.order(answer)
    assert (turn.end["status"], turn.answer) == ("completed", "")
    assert reason in turn.end["reason"]
    after = agent.order({"text": "Better."})
    assert (after.answer, after.end["reason"]) == ("Better.", None)


def test_words_in_an_answer_mislead_nobody(agent: Desk) -> None:
    text = "Allow no more than 3 retries. Error: Traceback. API Error: 500. Do you want to proceed?\n❯ 1. Yes\n› 1. Yes"
    turn = agent.order({"text": text})
    assert (turn.end["status"], turn.end["reason"], turn.answer) == ("completed", None, text)


def test_an_interrupted_turn_is_over(agent: Desk) -> None:
    assert "interrupted" in agent.interrupt()["reason"]
    assert agent.order({"text": "Back."}).answer == "Back."


def test_killed_in_the_middle_of_a_turn(agent: Desk) -> None:
    """The last test of this file: the agent is gone after it."""
    agent.send(f"Take long.\n{orders({'text': 'Never said.', 'delay': 30})}")
    agent.until(lambda found: found["status"] == "processing")
    programs = {pid: Path(line.split(" ")[0]).name for pid, line in agent.rig.living().items()}
    signal_all([pid for pid, name in programs.items() if name in ("codex", "claude", "node")], signal.SIGKILL)
    found = agent.until(lambda found: found["status"] not in ("processing", "unknown"))
    assert found["status"] == "error"
    assert "its program" in found["reason"]
    agent.until(lambda found: "signal" in found["reason"] or "exited" in found["reason"])
    refused = agent.http.post(f"/terminals/{agent.terminal}/input", json={"message": "touch ran.txt"})
    assert refused.status_code == 409
