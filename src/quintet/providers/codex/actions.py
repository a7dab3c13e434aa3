"""What Codex did in its last turn: the tool calls in a rollout, and how they ended."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quintet.actions import Action, ActionKind, ActionLog, action
from quintet.providers.json_lines import as_object, json_object, text_in

_WORDS: Final = (b"_call", b'"item_completed"', b'"task_started"', b'"turn_started"')
_BEGIN: Final = frozenset({"task_started", "turn_started"})
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_SHELLS: Final = frozenset({"exec_command", "shell_command", "shell", "local_shell", "container.exec"})
_PATCH: Final = "apply_patch"
_NO_WORK: Final = frozenset(
    {
        *("update_plan", "request_user_input", "get_goal", "create_goal", "update_goal", "write_stdin", "wait"),
        *("list_mcp_resources", "list_mcp_resource_templates", "tool_search", "request_permissions"),
        *("wait_agent", "close_agent", "send_input", "resume_agent"),
    }
)
"""tools that neither read nor run anything"""
_REFUSED = re.compile(
    r"unsupported (?:custom tool )?call|failed to parse|(?:exec_command|write_stdin|apply_patch\w*) (?:verification )?"
    r"failed|patch rejected|unable to process image|(?:exec )?(?:command|patch|tool call) (?:was )?(?:rejected|denied)"
    r"|rejected by user|missing field|invalid type",
    re.IGNORECASE,
)
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d{1,9})$", re.MULTILINE)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,1000})$", re.MULTILINE)
_HEAD: Final = 2000
_LARGEST: Final = 4_000_000
"""bytes of a line that is read; a larger one holds an image"""


@dataclass
class RolloutCalls:
    """The calls of the last turn; it grows with the fold, which owns it."""

    turn: str = ""
    begun: bool = False
    log: ActionLog = field(default_factory=ActionLog)
    sessions: dict[str, str] = field(default_factory=dict)
    """calls whose commands go on, by the number that Codex gave them"""


def read_call(calls: RolloutCalls, position: int, line: bytes) -> RolloutCalls:  # noqa: ARG001 - a fold's signature
    """Take in one line of a rollout. What is foreign, torn or of no interest changes nothing."""
    if len(line) > _LARGEST or not any(word in line for word in _WORDS):
        return calls
    entry = json_object(line)
    payload = as_object(entry.get("payload"))
    kind = text_in(payload, "type")
    if entry.get("type") == "event_msg":
        if kind in _BEGIN:
            return RolloutCalls(turn=text_in(payload, "turn_id"), begun=True)
        if kind == "item_completed" and calls.begun:
            _take_item(calls, payload)
    elif entry.get("type") != "response_item" or not calls.begun:
        return calls
    elif kind in _CALLS:
        _take_call(calls, payload)
    elif kind.endswith("_call_output"):
        _take_output(calls, text_in(payload, "call_id"), payload.get("output"))
    return calls


def _take_call(calls: RolloutCalls, payload: Mapping[str, Any]) -> None:
    name, call = text_in(payload, "name"), text_in(payload, "call_id")
    given = _object(payload.get("arguments"))
    if text_in(payload, "type") == "local_shell_call":
        name, given = "local_shell", _object(payload.get("action"))
    elif text_in(payload, "type") == "web_search_call":
        name = "web_search"
    if name == "write_stdin" and (known := calls.sessions.get(str(given.get("session_id")))):
        calls.sessions[f"call {call}"] = known
    elif found := list(_actions(name, given, text_in(payload, "input"))):
        calls.log.add(call, *found)


def _actions(name: str, given: Mapping[str, Any], text: str) -> Iterator[Action]:
    if name in _SHELLS:
        command = _command(given.get("cmd", given.get("command")))
        patch = command.lstrip().startswith(_PATCH)
        yield from _patched(command) if patch else [action(ActionKind.COMMAND, command)]
    elif name == _PATCH:
        yield from _patched(text or text_in(given, "input"))
    elif name == "view_image":
        yield action(ActionKind.READ, text_in(given, "path"))
    elif name and name not in _NO_WORK:
        yield action(ActionKind.TOOL, name)


def _patched(patch: str) -> list[Action]:
    return [action(ActionKind.CHANGE, path.strip()) for path in _PATCHED.findall(patch)]


def _take_output(calls: RolloutCalls, call: str, output: Any) -> None:
    """What a tool has answered: whether it ran at all, and how its command ended."""
    told = _object(output)
    text = output if isinstance(output, str) else text_in(told, "output")
    if call in calls.log and _REFUSED.match(text[:_HEAD]):
        calls.log.refused(call)
        return
    call = calls.sessions.get(f"call {call}", call)
    head = text[:_HEAD].partition("\nOutput:")[0]
    if running := _RUNNING.search(head):
        calls.sessions[running[1]] = call
    code = _object(told.get("metadata")).get("exit_code")
    if found := _EXIT.search(head):
        code = int(found[1])
    calls.log.ended(call, code if type(code) is int else None)


def _take_item(calls: RolloutCalls, payload: Mapping[str, Any]) -> None:
    """A finished item: newer releases tell in it of every command and every changed file, whoever asked for it."""
    item, turn = _object(payload.get("item")), text_in(payload, "turn_id")
    call, kind = text_in(item, "id"), text_in(item, "type")
    code = item.get("exit_code")
    if kind == "CommandExecution":
        ours = not turn or not calls.turn or turn == calls.turn
        if call not in calls.log and ours and text_in(item, "source") != "user_shell":
            calls.log.add(call, action(ActionKind.COMMAND, _command(item.get("command"))))
        calls.log.ended(call, code if type(code) is int else None)
    elif kind == "FileChange" and text_in(item, "status") == "completed":
        changed = [action(ActionKind.CHANGE, path) for path in _object(item.get("changes"))]
        if changed:
            calls.log.add(call, *changed)


def _command(raw: Any) -> str:
    """A command line; what is given to a shell as its script stands for itself."""
    if not isinstance(raw, list):
        return raw if isinstance(raw, str) else ""
    words = [word for word in raw if isinstance(word, str)]
    if len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and words[1] in ("-c", "-lc"):  # noqa: PLR2004
        return words[2]
    return shlex.join(words)


def _object(raw: Any) -> dict[str, Any]:
    """An object, or the one that a text spells."""
    return json_object(raw) if isinstance(raw, str) and raw.startswith("{") else as_object(raw)
