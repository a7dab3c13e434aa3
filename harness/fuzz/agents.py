"""Agents of the Agent Client Protocol: hostile lines of JSON-RPC, and streams of updates in a conversation."""

import json
from itertools import count
from typing import Any, Final

from hypothesis import strategies as st

from harness.fuzz.files import FOLDER
from harness.fuzz.hostile import as_bytes, json_object, json_objects, json_values, one_of
from harness.fuzz.properties import holds, one_line
from harness.fuzz.records import LIMITS, bounded, sane
from quintet.providers.acp.conversation import SERVER, Conversation, HostEnds
from quintet.providers.acp.host_settings import HostSettings, UsageRule
from quintet.providers.acp.json_rpc import AgentRequest, LineReader, read_message
from quintet.providers.acp.record_writer import RecordWriter
from quintet.providers.acp.view import HostPane
from quintet.providers.turn_events import read_turn, read_turn_actions

_KEYS: Final = (
    "id", "method", "params", "result", "error", "code", "message", "data", "details", "errorKind", "sessionId",
    "update", "sessionUpdate", "content", "type", "text", "messageId", "_meta", "usage", "inputTokens", "outputTokens",
    "cachedReadTokens", "totalTokens", "thoughtTokens", "toolCallId", "title", "kind", "status", "rawInput",
    "rawOutput",
    "command", "path", "locations", "exit_code", "metadata", "stopReason", "options", "optionId", "name", "toolCall",
    "agentCapabilities", "agentInfo", "sessionCapabilities", "loadSession", "resume", "systemPrompt", "quota",
    "token_count", "input_tokens", "codex", "threadStatus",
)  # fmt: skip
_WORDS: Final = (
    "initialize", "session/update", "session/request_permission", "session/prompt", "s", "agent_message_chunk",
    "agent_thought_chunk", "tool_call", "tool_call_update", "session_info_update", "plan", "t1", "t2", "execute",
    "edit", "read", "pending", "completed", "failed", "end_turn", "cancelled", "refusal", "allow_once", "reject_once",
    "systemError", "Error: 500", "Info: x", "Exit Code: 99999999999", "\x1b]2;quintet acp ready\x07", "\x9b2J", "{",
    "m1", *LIMITS[:6],
)  # fmt: skip
_QUESTION: Final = 7
_values = json_values(_WORDS, _KEYS)
_objects = json_objects(_KEYS, _values)
_update_kinds = st.sampled_from(("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"))
_updates = st.tuples(_update_kinds, st.sampled_from(("t1", "t2", "")), _objects).map(
    lambda told: _with(told[2], f'"sessionUpdate": "{told[0]}", "toolCallId": "{told[1]}", "kind": "execute"')
)
_told = _updates.map(
    lambda update: f'{{"method": "session/update", "params": {{"sessionId": "s", "update": {update}}}}}'
)
_asked = _objects.map(
    lambda params: json_object([("id", str(_QUESTION)), ("method", '"session/request_permission"'), ("params", params)])
)
_answered = st.tuples(st.integers(0, 6), _objects).map(lambda pair: f'{{"id": {pair[0]}, "result": {pair[1]}}}')
_refused = st.tuples(st.integers(0, 6), _values).map(lambda pair: f'{{"id": {pair[0]}, "error": {pair[1]}}}')
_lines = as_bytes(_told | _asked | _answered | _refused | _objects)
_numbers = count()


def _with(text: str, members: str) -> str:
    """An object with a few more members at its beginning."""
    return text.replace("{", f"{{{members}, ", 1).replace(", }", "}")


@holds("JSON-RPC lines", st.tuples(as_bytes(_objects | _told), st.integers(1, 9)))
def a_line_is_a_message_or_nothing(found: Any) -> None:
    data, size = found
    reader = LineReader(longest=200)
    for start in range(0, len(data), size):
        for line in reader.feed(data[start : start + size]):
            assert len(line) <= 200
            read_message(line)
    read_message(data)


def _is_question(line: bytes) -> bool:
    message = read_message(line)
    is_ours = isinstance(message, AgentRequest) and message.id == _QUESTION
    return is_ours and isinstance(message, AgentRequest) and message.method == "session/request_permission"


class _Talk:
    """A conversation in which the examples are the agent's lines."""

    def __init__(self, **settings: Any) -> None:
        self.sent: list[dict[str, Any]] = []
        self.shown: list[bytes] = []
        self.path = FOLDER / f"acp-{next(_numbers)}.jsonl"
        pane = HostPane(self.shown.append, lambda: 80, "role")
        host = HostSettings(name="fuzz", command=("fuzz",), error_prefix="Error: ", note_prefix="Info: ", **settings)
        self.conversation = Conversation(host, "/p", pane, RecordWriter(self.path), lambda: 1_800_000_000.0)
        self.conversation.start(self.send)

    def send(self, line: bytes) -> None:
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        self.sent.append(json.loads(line))

    def take(self, line: bytes) -> None:
        for one in LineReader().feed(line.replace(b"\n", b" ") + b"\n"):
            self.conversation.take_line(one)
        self.conversation.pane.flush()

    def answer(self, result: str) -> None:
        self.take(f'{{"id": {self.sent[-1]["id"]}, "result": {result}}}'.encode("utf-8", "surrogatepass"))

    def check(self) -> None:
        """The record can be read, and nothing has steered the terminal."""
        sane(read_turn(self.path, 0))
        bounded(read_turn_actions(self.path, 0))
        shown = b"".join(self.shown)
        assert b"\x07" not in shown
        assert b"\xc2\x9b" not in shown
        assert shown.count(b"\x1b]2;") == shown.count(b"\x1b\\")
        self.path.unlink(missing_ok=True)


@holds("JSON-RPC lines", st.tuples(st.lists(_lines, max_size=8), one_of(*UsageRule), st.booleans()))
def a_turn_has_an_end_whatever_came_before(found: Any) -> None:
    lines, usage, asks = found
    talk = _Talk(usage=usage, asks=asks)
    talk.answer("{}")
    talk.answer('{"sessionId": "s"}')
    talk.conversation.prompt("go", SERVER)
    prompt = talk.sent[-1]["id"]
    for line in lines:
        talk.take(line)
    talk.conversation.cancel()
    talk.take(f'{{"id": {prompt}, "result": {{"stopReason": "end_turn"}}}}'.encode())
    assert talk.conversation.at_rest
    asked = [one for line in lines for one in LineReader().feed(line.replace(b"\n", b" ") + b"\n") if _is_question(one)]
    assert len([one for one in talk.sent if one.get("id") == _QUESTION and "result" in one]) == len(asked)
    record = read_turn(talk.path, 0)
    assert record is not None
    assert record.ended
    talk.check()


@holds("JSON-RPC lines", st.lists(_answered | _refused | _objects, min_size=1, max_size=8))
def a_conversation_begins_or_one_line_says_why_not(answers: list[str]) -> None:
    talk = _Talk(session="old", mode="m", model="x", instructions="role")
    try:
        for answer in answers:
            if talk.conversation.at_rest:
                break
            talk.answer(answer)
            talk.take(answer.encode("utf-8", "surrogatepass"))
    except HostEnds as end:
        one_line(end)
    talk.check()


def _told_as(update: str) -> str:
    return f'{{"method":"session/update","params":{{"sessionId":"s","update":{update}}}}}'


ACP_SHAPES: Final = (
    _told_as('{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"word %d "}}'),
    _told_as('{"sessionUpdate":"agent_message_chunk","messageId":"%d","content":{"type":"text","text":"x"}}'),
    _told_as('{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm %d"}}'),
    _told_as('{"sessionUpdate":"tool_call","toolCallId":"%d","kind":"execute","title":"make"}'),
    _told_as('{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"content":{"text":"line %d"}}]}'),
    "plain text %d",
    '{"id":%d,"method":"x/y"}',
)
"""a line of each shape that agents could repeat"""


def whole_turn(data: bytes) -> None:
    """A turn in which the agent writes these lines, in small pieces."""
    talk, reader = _Talk(), LineReader()
    talk.answer("{}")
    talk.answer('{"sessionId": "s"}')
    talk.conversation.prompt("go", SERVER)
    for start in range(0, len(data), 1000):
        for line in reader.feed(data[start : start + 1000]):
            talk.conversation.take_line(line)
        talk.conversation.pane.flush()
    talk.conversation.agent_ended("enough")
    talk.path.unlink(missing_ok=True)
