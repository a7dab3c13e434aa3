"""A conversation with a passed-in clock: silence, waiting for a minute, and an agent that never answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from quintet.providers.acp.conversation import PERSON, SERVER, START_SECONDS, Conversation, HostEnds
from quintet.providers.acp.host_settings import RECORD, HostSettings
from quintet.providers.acp.launch import find_conversation
from quintet.providers.acp.record_writer import RecordWriter
from quintet.providers.acp.view import HostPane
from quintet.providers.turn_events import read_events, read_turn

NOON = 1_800_000_000.0  # the first second of a minute


class Talk:
    """A conversation whose agent is the test."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.now = settings.pop("now", NOON)
        self.sent: list[dict[str, Any]] = []
        self.shown: list[bytes] = []
        self.path = folder / RECORD
        pane = HostPane(self.shown.append, lambda: 80, "Programmer")
        self.conversation = Conversation(
            HostSettings(name="fake", command=("fake",), **settings),
            "/p",
            pane,
            RecordWriter(self.path),
            lambda: self.now,
        )
        self.conversation.start(lambda line: self.sent.append(json.loads(line)))

    def answer(self, **result: Any) -> None:
        """Answer the last request."""
        self.say({"id": self.sent[-1]["id"], "result": result})

    def fail(self, code: int = -32603, message: str = "no") -> None:
        self.say({"id": self.sent[-1]["id"], "error": {"code": code, "message": message}})

    def say(self, message: dict[str, Any]) -> None:
        self.conversation.take_line(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def update(self, kind: str, /, **more: Any) -> None:
        self.say({"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": kind, **more}}})

    def open(self) -> "Talk":
        self.answer(protocolVersion=1, agentCapabilities={"loadSession": True})
        self.answer(sessionId="s")
        assert self.conversation.at_rest
        return self

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.conversation.tick()

    @property
    def methods(self) -> list[str]:
        return [one.get("method", "") for one in self.sent]

    @property
    def notes(self) -> list[str]:
        return [event["text"] for event in read_events(self.path) if event["event"] == "note"]


def test_an_agent_that_retries_in_silence_gets_a_note_after_a_minute_and_loses_it_with_its_next_message(
    tmp_path: Path,
) -> None:
    talk = Talk(tmp_path).open()
    talk.conversation.prompt("x", SERVER)
    talk.wait(59.0)
    assert talk.notes == []
    talk.wait(1.0)
    assert talk.notes == ["no message from the agent for 60 s: it may be retrying"]
    record = read_turn(talk.path, 0)
    assert record is not None
    assert not record.ended
    assert record.note.endswith("it may be retrying")
    talk.wait(600.0)
    assert len(talk.notes) == 1
    talk.update("agent_thought_chunk", content={"type": "text", "text": "at last"})
    assert talk.notes[1:] == [""]
    talk.wait(60.0)
    assert len(talk.notes) == 3


def test_a_silence_in_which_a_tool_runs_says_so(tmp_path: Path) -> None:
    talk = Talk(tmp_path).open()
    talk.conversation.prompt("x", SERVER)
    talk.update("tool_call", toolCallId="t", kind="execute", title="make", rawInput={"command": "make test"})
    talk.wait(61.0)
    assert talk.notes == ["no message from the agent for 60 s: $ make test is running"]


def test_waiting_for_a_persons_answer_is_no_silence(tmp_path: Path) -> None:
    talk = Talk(tmp_path, asks=True).open()
    talk.conversation.prompt("x", SERVER)
    options = [{"optionId": "a", "kind": "allow_once", "name": "Allow"}]
    params = {"sessionId": "s", "toolCall": {"toolCallId": "t", "title": "write"}, "options": options}
    talk.say({"id": 7, "method": "session/request_permission", "params": params})
    assert talk.conversation.deadline is None
    talk.wait(3600.0)
    assert talk.notes == []
    talk.conversation.answer_by_key("y")
    talk.wait(59.0)
    assert talk.notes == []


def test_an_agent_that_never_answers_initialize_is_one_line(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.wait(START_SECONDS - 1)
    with pytest.raises(HostEnds, match="fake has not answered initialize within 60 seconds") as ended:
        talk.wait(1.0)
    assert ended.value.code == 1


def test_gemini_is_asked_to_load_only_after_the_minute_in_which_the_conversation_began(tmp_path: Path) -> None:
    talk = Talk(tmp_path, now=NOON + 20.0, session="old", session_opened=NOON + 10.0, load_in_next_minute=True)
    talk.answer(protocolVersion=1, agentCapabilities={"loadSession": True})
    assert talk.methods == ["initialize"]
    assert talk.conversation.deadline == NOON + 61.0
    talk.wait(40.0)
    assert talk.methods == ["initialize"]
    talk.wait(1.0)
    assert talk.methods == ["initialize", "session/load"]
    talk.answer()
    assert talk.conversation.at_rest


def test_gemini_begins_its_conversation_again_with_the_first_prompt(tmp_path: Path) -> None:
    talk = Talk(tmp_path, begins_at_prompt=True).open()
    talk.wait(10.0)
    talk.conversation.prompt("x", SERVER)
    talk.conversation.prompt("typed meanwhile", PERSON)
    assert talk.methods[2:] == ["session/new"]
    talk.answer(sessionId="t")
    assert talk.methods[3:] == ["session/prompt"]
    assert talk.sent[-1]["params"]["sessionId"] == "t"
    assert find_conversation(talk.path) == ("t", NOON + 10.0)
    talk.answer(stopReason="end_turn")
    assert talk.methods[3:] == ["session/prompt"] * 2, "from the second prompt on there is nothing to begin"


def test_a_conversation_that_was_loaded_does_not_begin_again(tmp_path: Path) -> None:
    talk = Talk(tmp_path, session="old", begins_at_prompt=True)
    talk.answer(protocolVersion=1, agentCapabilities={"loadSession": True})
    talk.answer()
    talk.conversation.prompt("x", SERVER)
    assert talk.methods[1:] == ["session/load", "session/prompt"]


def test_a_load_in_a_later_minute_waits_for_nothing(tmp_path: Path) -> None:
    talk = Talk(tmp_path, now=NOON + 61.0, session="old", session_opened=NOON + 10.0, load_in_next_minute=True)
    talk.answer(protocolVersion=1, agentCapabilities={"loadSession": True})
    assert talk.methods == ["initialize", "session/load"]


def test_a_permission_with_no_option_that_allows_is_rejected_and_one_without_options_cancelled(tmp_path: Path) -> None:
    talk = Talk(tmp_path).open()
    talk.conversation.prompt("x", SERVER)
    for options in ([{"optionId": "no", "kind": "reject_always"}, {"optionId": "?", "kind": "new"}], [], "junk"):
        params = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": options}
        talk.say({"id": 7, "method": "session/request_permission", "params": params})
    outcomes = [one["result"]["outcome"] for one in talk.sent if "result" in one]
    assert outcomes == [{"outcome": "selected", "optionId": "no"}, *[{"outcome": "cancelled"}] * 2]


def test_a_turn_that_was_cancelled_is_interrupted_whatever_the_agent_calls_that(tmp_path: Path) -> None:
    talk = Talk(tmp_path).open()
    for result in ({"stopReason": "end_turn"}, {"stopReason": "tired"}, {"stopReason": "cancelled"}):
        talk.conversation.prompt("x", SERVER)
        prompt = talk.sent[-1]["id"]
        talk.update("agent_message_chunk", content={"type": "text", "text": "half"})
        talk.conversation.cancel()
        talk.say({"id": prompt, "result": result})
    ends = [event for event in read_events(talk.path) if event["event"] == "end"]
    assert [(end["stop"], end["failed"]["kind"]) for end in ends] == [("cancelled", "interrupted")] * 3


def test_a_second_answer_to_the_first_prompt_does_not_end_the_second_turn(tmp_path: Path) -> None:
    talk = Talk(tmp_path).open()
    talk.conversation.prompt("one", SERVER)
    first = talk.sent[-1]["id"]
    for _ in range(2):
        talk.update("agent_message_chunk", content={"type": "text", "text": "ok"})
        talk.say({"id": first, "result": {"stopReason": "end_turn"}})
        if talk.conversation.at_rest:
            talk.conversation.prompt("two", SERVER)
    assert talk.conversation.turn is not None
    assert len([event for event in read_events(talk.path) if event["event"] == "end"]) == 1


def test_a_permission_that_comes_after_the_cancel_is_cancelled(tmp_path: Path) -> None:
    talk = Talk(tmp_path).open()
    talk.conversation.prompt("x", SERVER)
    prompt = talk.sent[-1]["id"]
    talk.conversation.cancel()
    talk.conversation.cancel()
    assert talk.methods.count("session/cancel") == 1
    talk.say({"id": 7, "method": "session/request_permission", "params": {"sessionId": "s", "options": []}})
    assert talk.sent[-1]["result"] == {"outcome": {"outcome": "cancelled"}}
    talk.say({"id": prompt, "error": {"code": -32603, "message": "aborted"}})
    (end,) = [event for event in read_events(talk.path) if event["event"] == "end"]
    assert end["stop"] == "cancelled"
    assert end["failed"]["kind"] == "interrupted"


def test_the_role_is_told_again_after_a_turn_that_failed(tmp_path: Path) -> None:
    talk = Talk(tmp_path, instructions="You test.").open()
    talk.conversation.prompt("one", SERVER)
    talk.fail()
    talk.conversation.prompt("two", SERVER)
    assert [block["text"] for block in talk.sent[-1]["params"]["prompt"]] == ["You test.", "two"]
    talk.update("agent_message_chunk", content={"type": "text", "text": "ok"})
    talk.answer(stopReason="end_turn")
    talk.conversation.prompt("three", SERVER)
    assert [block["text"] for block in talk.sent[-1]["params"]["prompt"]] == ["three"]


def test_a_program_that_ends_while_the_host_waits_for_the_next_minute_is_started_anew(tmp_path: Path) -> None:
    talk = Talk(tmp_path, now=NOON + 20.0, session="old", session_opened=NOON + 10.0, load_in_next_minute=True)
    talk.answer(protocolVersion=1, agentCapabilities={"loadSession": True})
    talk.now = NOON + 60.5
    talk.conversation.start(lambda line: talk.sent.append(json.loads(line)))
    talk.wait(1.0)
    assert talk.methods == ["initialize", "initialize"]
    talk.answer(protocolVersion=1, agentCapabilities={"loadSession": True})
    talk.wait(0.0)
    assert talk.methods[2:] == ["session/load"]


@pytest.mark.parametrize("prompt", ["/init", "  /init", "\n\t/init"])
def test_a_slash_behind_blanks_is_no_command_either(prompt: str, tmp_path: Path) -> None:
    talk = Talk(tmp_path).open()
    talk.conversation.prompt(prompt, SERVER)
    assert [block["text"] for block in talk.sent[-1]["params"]["prompt"]] == ["\u200b" + prompt]
