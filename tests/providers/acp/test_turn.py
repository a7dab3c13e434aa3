"""Updates folded into a turn: what was said and done, and how it ended."""

from typing import Any

import pytest

from quintet.api.status import FailureKind
from quintet.providers.acp.failures import error_failure, text_failure
from quintet.providers.acp.host_settings import UsageRule
from quintet.providers.acp.json_rpc import Response, RpcError
from quintet.providers.acp.tools import Done, ToolCall
from quintet.providers.acp.turn import MessageEnded, RunningTurn, ToolEnded, TurnEnd, TurnRules
from quintet.providers.acp.usage import Tokens, read_tokens

AT = 1_800_000_000.0
RULES = TurnRules(note_prefix="Info: ", error_prefix="Error: ")


def chunk(text: str, name: str = "") -> dict[str, Any]:
    named = {"messageId": name} if name else {}
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **named}


def call(name: str = "t", **more: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call", "toolCallId": name, **more}


def ended(*updates: dict[str, Any], rules: TurnRules | None = None, **result: Any) -> TurnEnd:
    """How a turn with these updates ends."""
    turn = RunningTurn(rules)
    for update in updates:
        list(turn.take(update))
    list(turn.finish())
    return turn.end(Response(1, {"stopReason": "end_turn", **result}), AT)


def test_the_answer_is_what_was_said_after_the_last_tool() -> None:
    assert ended(chunk("first"), call(status="completed"), chunk("All "), chunk("done")).reply == "All done"


def test_where_nothing_was_said_after_the_last_tool_the_answer_is_what_was_said_before() -> None:
    assert ended(chunk("the answer"), call("a"), call("b")).reply == "the answer"


def test_messages_of_different_ids_are_paragraphs() -> None:
    assert ended(chunk("one", "a"), chunk("two", "b")).reply == "one\n\ntwo"


def test_a_model_that_begins_its_answer_with_a_note_of_its_own_has_said_it() -> None:
    assert ended(chunk("Info: all is well"), rules=RULES).reply == "Info: all is well"


def test_an_error_that_was_overcome_is_no_failure() -> None:
    end = ended(chunk("Error: 500"), chunk("Here you are."), rules=RULES)
    assert end.failed is None
    assert end.reply == "Here you are."


def test_a_note_behind_an_error_does_not_hide_it() -> None:
    failed = ended(chunk("Error: 500 Internal Server Error"), chunk("Info: Request ID: 1"), rules=RULES).failed
    assert failed is not None
    assert (failed["kind"], failed["text"]) == ("server_error", "500 Internal Server Error")


def test_a_thread_that_recovered_is_no_failure() -> None:
    def status(kind: str) -> dict[str, Any]:
        return {"sessionUpdate": "session_info_update", "_meta": {"codex": {"threadStatus": {"type": kind}}}}

    assert ended(status("systemError"), status("idle"), chunk("ok", "m")).failed is None


def test_a_turn_of_tools_alone_has_an_end() -> None:
    assert ended(call(kind="edit", status="completed")).failed is None


def test_messages_are_whole_and_tools_end_once() -> None:
    turn = RunningTurn()
    updates = [
        chunk("a"),
        chunk("b"),
        call(status="in_progress"),
        call(status="completed"),
        call(status="failed"),
        chunk("c"),
    ]
    events = [event for update in updates for event in turn.take(update)] + list(turn.finish())
    assert [event.text for event in events if isinstance(event, MessageEnded)] == ["ab", "c"]
    assert len([event for event in events if isinstance(event, ToolEnded)]) == 1


def test_an_update_without_a_call_before_it_is_a_call() -> None:
    turn = RunningTurn()
    events = list(turn.take({"sessionUpdate": "tool_call_update", "toolCallId": "x", "status": "completed"}))
    assert isinstance(events[-1], ToolEnded)


def test_a_call_of_which_only_its_permission_told_is_no_action() -> None:
    turn = RunningTurn()
    list(turn.ask({"toolCallId": "shell-permission", "kind": "execute", "title": "make"}))
    (end,) = [event for event in turn.finish() if isinstance(event, ToolEnded)]
    assert list(end.call.done()) == []


@pytest.mark.parametrize(
    ("told", "done"),
    [
        ({"kind": "execute", "title": "t", "rawInput": {"command": "make"}}, Done("command", "make", None)),
        ({"kind": "execute", "rawInput": {"command": ["sh", "-c", "a b"]}}, Done("command", "sh -c 'a b'", None)),
        ({"kind": "execute", "title": "make", "rawOutput": {"metadata": {"exit": 2}}}, Done("command", "make", 2)),
        (
            {"kind": "execute", "title": "x", "rawOutput": {"contents": [{"type": "shell_exit", "exitCode": 3}]}},
            Done("command", "x", 3),
        ),
        (
            {"kind": "execute", "title": "x", "content": [{"content": {"text": "out\nExit Code: 3\n"}}]},
            Done("command", "x", 3),
        ),
        (
            {"kind": "execute", "title": "x", "rawOutput": {"contents": [{"type": "text"}, {"exitCode": 4}]}},
            Done("command", "x", 4),
        ),
        ({"kind": "execute", "title": "first\nsecond"}, Done("command", "first\nsecond", None)),
        ({"kind": "read", "title": "Read", "rawInput": {"file_path": "/a"}}, Done("read", "/a", None)),
        ({"kind": "search", "title": "Grep", "rawInput": {"pattern": "x"}}, Done("read", "x", None)),
        ({"kind": "edit", "content": [{"type": "diff", "path": "/d"}]}, Done("change", "/d", None)),
        ({"kind": "edit", "title": "Write", "rawInput": {"filePath": "/f"}}, Done("change", "/f", None)),
        ({"kind": "other", "title": "Ask Bob\nabout it"}, Done("tool", "Ask Bob", None)),
        ({"kind": "fetch", "title": "GET /"}, Done("tool", "GET /", None)),
    ],
)
def test_what_a_call_did(told: dict[str, Any], done: Done) -> None:
    one = ToolCall("t")
    one.take({"status": "completed", **told})
    assert list(one.done()) == [done]


def test_a_change_that_failed_or_was_refused_is_no_action() -> None:
    failed, refused = ToolCall("a"), ToolCall("b", refused=True)
    failed.take({"kind": "edit", "status": "failed", "locations": [{"path": "/a"}]})
    refused.take({"kind": "execute", "status": "failed", "title": "make"})
    assert [*failed.done(), *refused.done()] == []


@pytest.mark.parametrize(
    ("raw", "rule", "wanted"),
    [
        ({"inputTokens": 6, "outputTokens": 5, "totalTokens": 15, "cachedReadTokens": 4}, "turn", (10, 4, 5)),
        ({"inputTokens": 6, "outputTokens": 5, "totalTokens": 15, "cachedReadTokens": 4}, "process", (10, 4, 5)),
        ({"inputTokens": 600, "outputTokens": 50, "totalTokens": 650, "cachedReadTokens": 400}, "turn", (600, 400, 50)),
        ({"inputTokens": 600, "outputTokens": 50, "cachedReadTokens": 400}, "turn", (1000, 400, 50)),
        ({"inputTokens": 600, "outputTokens": 50, "cachedReadTokens": 400}, "process", (600, 400, 50)),
        ({"inputTokens": 10, "outputTokens": 5, "thoughtTokens": 3, "totalTokens": 18}, "chunks", (10, 0, 8)),
        ({"inputTokens": -1, "outputTokens": True, "cachedReadTokens": 1e9}, "turn", (0, 0, 0)),
        (None, "turn", (0, 0, 0)),
    ],
)
def test_cached_tokens_are_part_of_the_input(raw: Any, rule: str, wanted: tuple[int, ...]) -> None:
    assert read_tokens(raw, UsageRule(rule)) == Tokens(*wanted)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (RpcError(500, '{"error":{"message":"{\\"error\\":{\\"message\\":\\"deep\\"}}"}}'), "server_error", "deep"),
        (RpcError(-32603, "Internal error", {"details": "500 boom"}), "server_error", "500 boom"),
        (RpcError(-32603, "x", {"errorKind": "rate_limit"}), "rate_limit", "x"),
        (RpcError(-32603, "x", {"errorKind": "authentication_failed"}), "login", "x"),
        (RpcError(-32603, "Internal error: Unauthorized", {"errorName": "APIError"}), "login", None),
        (RpcError(403, "no"), "login", "no"),
        (RpcError(429, "You exceeded your current quota"), "other", None),
        (RpcError(429, "You exceeded your current quota, retry in 30s"), "rate_limit", None),
        (RpcError(-32000, "Something"), "login", "Something"),
        (RpcError(-32000, "overloaded"), "server_error", "overloaded"),
        (RpcError(-32603, "fetch failed: connection refused"), "connection", None),
        (RpcError(-32603, "x", {"details": "404 The model `m` does not exist or is closed"}), "model", None),
        (RpcError(404, '{"error":{"message":"models/m-2.5 is not found for API version v1"}}'), "model", None),
        (RpcError(403, "model_not_found: no access"), "model", None),
        (RpcError(-32602, "Unknown model: m"), "model", None),
        (RpcError(404, "The file for your model. Page not found"), "other", None),
        (RpcError(503, "The model m is overloaded: no replica was found"), "server_error", None),
        (RpcError(-32602, ""), "other", "error -32602"),
        (RpcError(-32603, "at line 500 of the file"), "other", None),
    ],
)
def test_the_kind_of_an_error(error: RpcError, kind: str, text: str | None) -> None:
    found = error_failure(error, AT)
    assert found["kind"] == FailureKind(kind)
    assert text is None or found["text"] == text


def test_the_end_of_a_limit_is_told() -> None:
    assert text_failure("429 rate limit, try again in 3 hours", AT)["resets_at"] == AT + 3 * 3600
