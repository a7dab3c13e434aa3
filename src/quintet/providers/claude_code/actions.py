"""What Claude Code did in its last turn, sub-agents included: the tool calls in its transcripts, and how they ended."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from quintet.actions import Action, ActionKind, ActionLog, TurnActions, action, bounded
from quintet.providers.claude_code.record import is_own_prompt
from quintet.providers.file_follower import Follower
from quintet.providers.json_lines import json_object, text_in

_SHELLS: Final = frozenset({"Bash", "PowerShell"})
_READERS: Final = ("file_path", "notebook_path", "path", "pattern")
"""where a reading tool names its file, or what it searches for"""
_READS: Final = frozenset({"Read", "NotebookRead", "Grep", "Glob", "LS"})
_CHANGES: Final = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_NO_WORK: Final = frozenset(
    {
        *("TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "TaskStop", "TaskOutput", "BashOutput"),
        *("KillShell", "KillBash", "AgentOutputTool", "ExitPlanMode", "EnterPlanMode", "AskUserQuestion", "ToolSearch"),
        *("Skill", "SlashCommand", "SendMessage", "ListAgents", "ScheduleWakeup", "CronCreate", "CronDelete"),
        *("CronList", "ReportFindings", "EnterWorktree", "ExitWorktree", "StructuredOutput", "SendUserMessage"),
    }
)
"""tools that neither read nor run anything"""
_EXIT = re.compile(r"(?:Error: )?Exit code (-?\d{1,9})(?:\n|$)")
_REFUSED = re.compile(
    r"<tool_use_error>|The user doesn't want to|Permission to use|Claude requested permissions|.{0,200}hook error"
    r"|.{0,200}operation blocked by hook",
    re.IGNORECASE,
)
_WORDS: Final = (b'"tool_use"', b'"tool_result"', b'"promptId"')
_MOST_HELPERS: Final = 50
"""sub-agents of a turn whose transcripts are read"""
_MOST_FILES: Final = 2000
"""that are looked at for them"""
_LARGEST: Final = 8_000_000


@dataclass
class TranscriptCalls:
    """The calls of the last turn in one transcript; it grows with the fold, which owns it."""

    prompts: set[str] = field(default_factory=set)
    """Claude Code's ids of the prompt and of what it has told itself since"""
    log: ActionLog = field(default_factory=ActionLog)


def read_call(calls: TranscriptCalls, position: int, line: bytes) -> TranscriptCalls:  # noqa: ARG001 - a fold's signature
    """Take in one line of a transcript. What is foreign, torn or of no interest changes nothing."""
    if len(line) > _LARGEST or not any(word in line for word in _WORDS):
        return calls
    entry = json_object(line)
    message = entry.get("message")
    if not isinstance(message, dict) or entry.get("type") not in ("user", "assistant"):
        return calls
    blocks = _blocks(message)
    if entry["type"] == "assistant":
        for block in blocks if calls.prompts else ():
            _take_use(calls, block)
        return calls
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if not results:
        return _prompted(calls, entry, message)
    for block in results:
        _take_result(calls, block, entry.get("toolUseResult"))
    return calls


def _prompted(calls: TranscriptCalls, entry: Mapping[str, Any], message: Mapping[str, Any]) -> TranscriptCalls:
    """A prompt begins another turn, unless Claude Code says it to itself or to a sub-agent in the same turn."""
    prompt = text_in(entry, "promptId")
    texts = [text_in(block, "text") for block in _blocks(message)]
    if prompt in calls.prompts or entry.get("isMeta"):
        return calls
    if any(map(is_own_prompt, texts)):
        calls.prompts.add(prompt)
        return calls
    same = entry.get("isSidechain") and not prompt
    return calls if same else TranscriptCalls(prompts={prompt})


def _take_use(calls: TranscriptCalls, block: Mapping[str, Any]) -> None:
    if block.get("type") != "tool_use" or (call := text_in(block, "id")) in calls.log:
        return
    given = block.get("input")
    found = list(_actions(text_in(block, "name"), given if isinstance(given, dict) else {}))
    if found:
        calls.log.add(call, *found)


def _actions(name: str, given: Mapping[str, Any]) -> Iterator[Action]:
    named = next((text for key in _READERS if (text := text_in(given, key))), "")
    if name in _SHELLS:
        yield action(ActionKind.COMMAND, text_in(given, "command"))
    elif name in _READS:
        yield action(ActionKind.READ, named)
    elif name in _CHANGES:
        yield action(ActionKind.CHANGE, named)
    elif name and name not in _NO_WORK:
        yield action(ActionKind.TOOL, name)


def _take_result(calls: TranscriptCalls, block: Mapping[str, Any], told: Any) -> None:
    call = text_in(block, "tool_use_id")
    content = block.get("content")
    text = content if isinstance(content, str) else "\n".join(text_in(part, "text") for part in _blocks(block))
    if not block.get("is_error"):
        goes_on = isinstance(told, dict) and bool(told.get("backgroundTaskId") or told.get("interrupted"))
        calls.log.ended(call, None if goes_on else 0)
    elif found := _EXIT.match(text):
        calls.log.ended(call, int(found[1]))
    elif _REFUSED.match(text) or not calls.log.is_command(call):
        calls.log.refused(call)


class Transcripts:
    """The transcript of a terminal, and those of its sub-agents, which stand in a folder of the same name."""

    def __init__(self, path: Path, below: Path | None) -> None:
        self.path, self._below = path, below
        self._main = Follower(path, TranscriptCalls(), read_call, below=below)
        self._helpers: dict[Path, Follower[TranscriptCalls]] = {}

    def actions(self, prompt: str) -> TurnActions | None:
        """What was done in the turn of a prompt; None where there is no transcript."""
        if not self.path.is_file():
            return None
        calls = self._main.read()
        if prompt and any(calls.prompts) and prompt not in calls.prompts:
            return TurnActions()  # the transcript lags behind the hooks
        helpers = [follower.read() for follower in self._followers()]
        found = [calls.log.actions, *(one.log.actions for one in helpers if one.prompts & calls.prompts)]
        return bounded((one for part in found for one in part.items), sum(part.left_out for part in found))

    def _followers(self) -> Iterator[Follower[TranscriptCalls]]:
        found = islice(self.path.with_suffix("").glob("subagents/agent-*.jsonl"), _MOST_FILES)
        paths = sorted(found, key=_changed_at)[-_MOST_HELPERS:]
        self._helpers = {
            path: self._helpers.get(path) or Follower(path, TranscriptCalls(), read_call, below=self._below)
            for path in sorted(paths)
        }
        yield from self._helpers.values()


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parts of a message; a bare text is one of them."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
