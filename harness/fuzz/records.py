"""The agents' own accounts: Codex's rollouts, Claude Code's hooks and transcripts, the scripted agent's record."""

import math
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from hypothesis import strategies as st

from harness.fuzz.files import written
from harness.fuzz.hostile import as_bytes, json_object, json_objects, json_values, texts
from harness.fuzz.properties import holds
from quintet.actions import LONGEST, MOST, TurnActions
from quintet.api import models
from quintet.providers.base import Provider, TurnRecord
from quintet.providers.claude_code import actions as claude_actions
from quintet.providers.claude_code.record import Hooks, TranscriptTurn, read_hook, read_transcript
from quintet.providers.codex import actions as codex_actions
from quintet.providers.codex.launch import NOTES, Notes
from quintet.providers.codex.record import Rollout, read_line
from quintet.providers.codex.rollouts import conversation_id, is_marked
from quintet.providers.registry import find_provider
from quintet.providers.reset_times import reset_time
from quintet.providers.scripted.provider import RECORD

NOW: Final = 1_800_000_000.0
LIMITS: Final = (
    "You've hit your usage limit.", "try again in", "in 3 days", "4 hours", "5 minutes", "and", "20 s",
    "9999999999 days",
    "try again at", "3:05 PM", "25:99", "13 pm", "resets", "Nov 16, 3pm", "Feb 30", "Feb 29, 2027", "(UTC)",
    "(Etc/../x)",
    "(Europe/Berlin)", "(/etc/passwd)", "reached|1763300000", "|9999999999", "until", "usage_limit", "rate_limit", ",",
    "Jan 1, 0000, 1am", "Dec 31, 9999, 11:59 PM", "resets at 12am (America/New_York)", "0 am", "٣ hours", "1e9 s",
)  # fmt: skip


def sane(record: TurnRecord | None) -> None:
    """What a record says can be told over HTTP, added up and shown as a time."""
    if record is None:
        return
    if record.usage is not None:
        numbers = record.usage.model_dump().values()
        assert all(0 <= number < 10**16 for number in numbers), numbers
        record.usage.model_dump_json()
    if record.failure is not None:
        models.Failure(**asdict(record.failure)).model_dump_json()
    assert record.last_message is None or isinstance(record.last_message, str)


def bounded(actions: TurnActions | None) -> None:
    """What was done can be told over HTTP, and is neither long nor much."""
    if actions is not None:
        actions.model_dump_json()
        assert len(actions.items) <= MOST
        assert all(len(one.text) <= LONGEST + 3 for one in actions.items)


@holds("usage-limit texts", st.tuples(texts(LIMITS, size=6), st.sampled_from((0.0, NOW, -1.0, 253402300799.0, 1e18))))
def a_reset_is_a_time_or_none(found: Any) -> None:
    text, said_at = found
    moment = reset_time(text, said_at)
    if moment is not None:
        assert math.isfinite(moment)
        datetime.fromtimestamp(moment, UTC)
        models.Failure.model_validate({"resets_at": moment})


_codex_keys: Final = (
    "type", "payload", "timestamp", "turn_id", "last_agent_message", "error", "message", "codex_error_info", "info",
    "total_token_usage", "input_tokens", "cached_input_tokens", "output_tokens", "reason", "id", "source", "role",
)  # fmt: skip
_codex_words: Final = (
    "event_msg", "task_started", "task_complete", "turn_started", "turn_complete", "turn_aborted", "token_count",
    "error", "t1", "usage_limit_exceeded", "cli", "developer", "2026-11-15T11:00:00Z", "0001-01-01", *LIMITS[:9],
)  # fmt: skip
_codex_values = json_values(_codex_words, _codex_keys)
_call_keys: Final = ("name", "call_id", "arguments", "input", "output", "action", "turn_id", "item", "source")
_call_words: Final = (
    "exec_command", "shell", "apply_patch", "view_image", "write_stdin", "c1", '{"cmd": "make"}', '{"command": [1]}',
    "Process exited with code 99999999999", "Exit code: 3", '{"metadata": {"exit_code": 1e400}}',
    "*** Update File: x", "unsupported call", '{"session_id": 7}', "Process running with session ID 7",
)  # fmt: skip
_call_kinds = st.sampled_from(("function_call", "function_call_output", "custom_tool_call", "local_shell_call"))
_call = st.tuples(_call_kinds, json_objects(_call_keys, json_values(_call_words, _call_keys))).map(
    lambda pair: pair[1].replace("{", f'{{"type": "{pair[0]}", "call_id": "c1", ', 1).replace(", }", "}")
)
_items = json_objects(("type", "id", "command", "exit_code", "changes", "status"), _codex_values).map(
    lambda item: f'{{"type": "item_completed", "item": {item}}}'
)
_calls = _call.map(lambda payload: json_object([("type", '"response_item"'), ("payload", payload)])) | _items.map(
    lambda payload: json_object([("type", '"event_msg"'), ("payload", payload)])
)
_usage = json_objects(("input_tokens", "cached_input_tokens", "output_tokens"), _codex_values)
_payload = json_objects(_codex_keys, _codex_values) | _usage.map(
    lambda usage: f'{{"type": "token_count", "info": {{"total_token_usage": {usage}}}}}'
)
_events = _payload.map(lambda payload: json_object([("type", '"event_msg"'), ("payload", payload)]))


@holds("rollout lines", st.lists(as_bytes(_events | json_objects(_codex_keys, _codex_values)), max_size=5))
def a_rollout_tells_of_turns_or_of_nothing(lines: list[bytes]) -> None:
    rollout = Rollout()
    for position, line in enumerate(lines):
        rollout = read_line(rollout, position, line)
        sane(rollout.since(0))
    head = b"\n".join(lines)
    is_marked(head, "developer")
    assert len(conversation_id(written(head, "rollout.jsonl"))) in (0, 36)


@holds("rollout lines", st.lists(as_bytes(_calls), max_size=5))
def calls_of_a_rollout_are_actions_or_nothing(lines: list[bytes]) -> None:
    calls = codex_actions.RolloutCalls(begun=True)
    for line in lines:
        calls = codex_actions.read_call(calls, 0, line)
        bounded(calls.log.actions)


@holds("rollout lines", as_bytes(json_objects(("home", "mark", "launched"), _codex_values)))
def notes_of_a_launch_are_read_or_none(data: bytes) -> None:
    folder = written(data, f"notes/{NOTES}").parent
    notes = Notes.read(folder)
    assert notes is None or isinstance(notes.home, str)


_hook_keys: Final = (
    "hook_event_name", "prompt", "prompt_id", "session_id", "transcript_path", "last_assistant_message",
    "background_tasks", "type", "status", "error", "error_details", "message", "usage", "content", "attachment",
    "isSidechain", "isMeta", "promptId", "uuid", "id", "text", "input_tokens", "cache_creation_input_tokens",
    "cache_read_input_tokens", "output_tokens",
)  # fmt: skip
_hook_words: Final = (
    "UserPromptSubmit", "Stop", "StopFailure", "SessionEnd", "p1", "running", "shell", "rate_limit", "user",
    "assistant",
    "tool_result", "queued_command", "[Request interrupted by user", "<task-notification>", *LIMITS[:9],
)  # fmt: skip
_hook_values = json_values(_hook_words, _hook_keys)
_kinds = st.sampled_from([f'"{word}"' for word in _hook_words[:4]])
_hooks = st.tuples(_kinds, json_objects(_hook_keys, _hook_values)).map(
    lambda pair: pair[1].replace("{", f'{{"hook_event_name": {pair[0]}, "prompt_id": "p1", ', 1).replace(", }", "}")
)
_assistant = json_objects(("usage", "content", "id"), _hook_values).map(
    lambda message: json_object([("type", '"assistant"'), ("message", message)])
)
_spent = json_objects(_hook_keys[-4:], _hook_values).map(
    lambda usage: json_object([("type", '"assistant"'), ("message", json_object([("usage", usage)]))])
)
_lines = as_bytes(_hooks | _assistant | _spent | json_objects(_hook_keys, _hook_values))


@holds("hook and transcript lines", st.lists(_lines, max_size=5))
def hooks_tell_of_turns_or_of_nothing(lines: list[bytes]) -> None:
    hooks, spending = Hooks(), TranscriptTurn(prompt="p1")
    for position, line in enumerate(lines):
        hooks = read_hook(hooks, position, line)
        spending = read_transcript(spending, position, line)
        sane(hooks.since(0, spending))
        sane(Hooks(begun=0, prompt="p1", ended=True).since(0, spending))


_use_keys: Final = ("type", "id", "name", "input", "tool_use_id", "content", "is_error", "command", "file_path", "text")
_use_words: Final = ("tool_use", "tool_result", "Bash", "Read", "Edit", "mcp__x", "u1", "Exit code 3", "Exit code 1e9")
_blocks = st.lists(json_objects(_use_keys, json_values(_use_words, _use_keys)), max_size=3).map(", ".join)
_said = st.tuples(st.sampled_from(("user", "assistant")), _blocks).map(
    lambda pair: f'{{"type": "{pair[0]}", "promptId": "p1", "message": {{"content": [{pair[1]}]}}}}'
)


@holds("hook and transcript lines", st.lists(as_bytes(_said), max_size=5))
def calls_of_a_transcript_are_actions_or_nothing(lines: list[bytes]) -> None:
    calls = claude_actions.TranscriptCalls(prompts={"p1"})
    for line in lines:
        calls = claude_actions.read_call(calls, 0, line)
        bounded(calls.log.actions)


_scripted = json_values(
    ("begin", "end", "action", "command", "usage_limit"), ("event", "turn", "failed", "kind", "text")
)
_turns = json_objects(("event", "turn", "reply", "usage", "failed", "kind", "text", "exit_code"), _scripted)


@holds("hook and transcript lines", as_bytes(st.lists(_turns | _scripted, max_size=4).map("\n".join)))
def the_scripted_record_tells_of_turns_or_of_nothing(data: bytes) -> None:
    folder = written(data + b"\n", f"scripted/{RECORD}").parent
    provider = find_provider("scripted")
    assert isinstance(provider, Provider)
    sane(provider.read_record(folder, 0))
    bounded(provider.read_actions(folder, 0))
