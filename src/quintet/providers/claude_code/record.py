"""Claude Code's own account of its turns: what its hooks have written, and the usage in its transcript."""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from quintet.api.status import FailureKind
from quintet.providers.base import TurnFailure, TurnRecord, Usage, tokens_in
from quintet.providers.reset_times import LIMITS, reset_time

_SHELLS: Final = frozenset({"shell", "local_bash", "bash"})
"""background work that goes on by itself; anything else will make the agent speak again"""
_LIVE: Final = frozenset({"running", "pending", "in_progress", ""})
_OWN_PROMPT = re.compile(
    r"\s*(?:<system-reminder>[^<]{0,1000})?<(?:task-notification>\s*<[a-z-]+>|(?:teammate|cross-session)-message\s+\w+=)"
)
"""what Claude Code says to itself, for instance when a background command has ended; nobody has typed it.

These are its very tags, with what it always writes behind them: a user's prompt may begin with a tag, too."""
_WORDS: Final = (b'"user"', b'"assistant"', b'"queued_command"', b'"turn_duration"')
_INTERRUPTED: Final = "[Request interrupted by user"
_SENT_BACK: Final = "Stop hook feedback:"
"""what Claude Code tells its agent when a hook of the user's does not let a turn end"""
_KINDS: Final = {
    "rate_limit": FailureKind.RATE_LIMIT,
    "authentication_failed": FailureKind.LOGIN,
    "oauth_org_not_allowed": FailureKind.LOGIN,
    "server_error": FailureKind.SERVER_ERROR,
    "overloaded": FailureKind.SERVER_ERROR,
}

_USAGE = re.compile(
    r"\b(?:usage|hit your|reached your|weekly|session|daily|monthly|5-hour|opus|sonnet)\b[^.]{0,40}\blimits?\b"
    r"|\b(?:hour|day|week)\w* limit\b|\blimit will reset\b|\bout of (?:extra )?usage\b",
    re.IGNORECASE,
)
"""Claude Code calls its usage limits rate limits too, and says in words which of them it is"""
_NOT_USAGE: Final = "not your usage limit"
_CONNECTION = re.compile(r"\b(?:connection|stream|socket|network|ECONN\w*)\b", re.IGNORECASE)
"""Claude Code calls these errors of the server, or does not name them"""


def is_own_prompt(text: str) -> bool:
    """Whether a prompt is one that Claude Code gives to itself."""
    return _OWN_PROMPT.match(text) is not None


@dataclass(frozen=True)
class Hooks:
    """What the hooks tell so far."""

    begun: int = -1
    """where the last turn begins; -1 before the first"""
    previous: int = -1
    """where the turn before that begins"""
    ended: bool = False
    stops: int = 0
    """how often the last prompt's turn has come to its end"""
    message: str | None = None
    failure: TurnFailure | None = None
    session: str = ""
    """Claude Code's id of the conversation"""
    transcript: str = ""
    prompt: str = ""
    """Claude Code's id of the last prompt"""
    behind: bool = False
    """it was typed while another turn was running, and carries that turn's id"""
    passed: bool = False
    """that other turn is over: now comes its own, unless the other has dealt with it"""

    def since(self, position: int, spending: "Spending") -> TurnRecord | None:
        """The last turn, where it began at or after a position."""
        if self.begun < 0 or self.begun < position:
            return None
        usage = spending.usage(self.prompt)
        if not self.ended and self.passed and spending.absorbed:
            return TurnRecord(ended=True, last_message=self.message, usage=usage)
        if not self.ended and spending.interrupted and spending.prompt == self.prompt:
            return TurnRecord(ended=True, failure=TurnFailure(FailureKind.INTERRUPTED, "interrupted"), usage=usage)
        ours = spending.prompt == self.prompt
        if not self.ended or (ours and self.failure is None and 0 < self.stops <= spending.sent_back):
            return TurnRecord(ended=False, usage=usage)
        message = self.message
        if message is None and self.failure is None and ours:
            message = spending.said or None  # older hooks do not tell
        # ours is one of the hooks at the end; another one may take long, and then send the agent back to work
        final = self.failure is not None or (ours and spending.over)
        return TurnRecord(ended=True, last_message=message, failure=self.failure, usage=usage, final=final)


def read_hook(hooks: Hooks, position: int, line: bytes) -> Hooks:
    """Take in one line. What is foreign or torn changes nothing."""
    event = _object(line)
    kind = event.get("hook_event_name")
    if kind == "UserPromptSubmit":
        own = is_own_prompt(_text(event, "prompt"))
        prompt = _text(event, "prompt_id")
        return Hooks(
            begun=hooks.begun if own else position,
            previous=hooks.previous if own else hooks.begun,
            session=_text(event, "session_id"),
            transcript=_text(event, "transcript_path"),
            prompt=prompt,
            behind=not own and bool(prompt) and not hooks.ended and prompt == hooks.prompt,
        )
    if hooks.begun < 0 or not _ours(hooks, event):
        return hooks
    message = _text(event, "last_assistant_message") or None
    if kind == "Stop" and hooks.behind:
        return replace(hooks, behind=False, passed=True, prompt="", message=message)
    if kind == "Stop":
        return replace(hooks, ended=not _works_on(event), stops=hooks.stops + 1, message=message, failure=None)
    if kind == "StopFailure":
        return replace(hooks, ended=True, message=None, failure=_reason(event, message))
    if kind == "SessionEnd" and not hooks.ended:
        return replace(hooks, ended=True, failure=TurnFailure(FailureKind.OTHER, "the session was ended"))
    return hooks


def _ours(hooks: Hooks, event: Mapping[str, Any]) -> bool:
    """Whether an end is that of the last prompt's turn; older releases do not number their prompts."""
    prompt = _text(event, "prompt_id")
    return not prompt or not hooks.prompt or prompt == hooks.prompt


def _works_on(event: Mapping[str, Any]) -> bool:
    """Whether something is under way in the background that the agent itself waits for."""
    tasks = event.get("background_tasks")
    return isinstance(tasks, list) and any(
        isinstance(task, dict) and _text(task, "type") not in _SHELLS and _text(task, "status") in _LIVE
        for task in tasks
    )


def _reason(event: Mapping[str, Any], message: str | None) -> TurnFailure:
    """Why a turn failed; Claude Code's own words name the time of a reset."""
    error = event.get("error")
    kind = _text(error, "type") if isinstance(error, dict) else _text(event, "error")
    text = " ".join((message or _text(event, "error_details") or kind or "the turn has failed").split())
    known = _KINDS.get(kind, FailureKind.OTHER)
    if known in (FailureKind.SERVER_ERROR, FailureKind.OTHER) and _CONNECTION.search(text):
        known = FailureKind.CONNECTION
    if known is FailureKind.RATE_LIMIT and _NOT_USAGE not in text and _USAGE.search(text):
        known = FailureKind.USAGE_LIMIT
    said = f"{text} {_text(event, 'error_details')}"
    return TurnFailure(known, text, reset_time(said, time.time()) if known in LIMITS else None)


@dataclass(frozen=True)
class Spending:
    """What the messages of a turn have cost, by id: Claude Code writes a message once for each of its parts."""

    prompt: str = ""
    """the id of the prompt whose turn is being read"""
    messages: dict[str, Usage] = field(default_factory=dict)
    """of that turn; it grows with the fold, which owns it: a copy for every message would be a turn's worth squared"""
    parts: list[str] = field(default_factory=list)
    """of the text of its last message; they grow in the same way"""
    interrupted: bool = False
    """by the user; no hook tells of it"""
    absorbed: bool = False
    """a prompt that was typed during the turn was made part of it"""
    sent_back: int = 0
    """how often hooks of the user's did not let the turn end; several may do so at one end"""
    answered: bool = False
    """the agent has spoken since"""
    over: bool = False
    """the turn has its time written behind it"""

    @property
    def said(self) -> str:
        """The text of its last message."""
        return "\n".join(self.parts)

    def usage(self, prompt: str) -> Usage | None:
        """The tokens of the turn of a prompt, if it is the last one."""
        # the transcript lags behind the hooks: without numbered prompts the last turn in it may be an older one
        if not self.messages or not prompt or prompt != self.prompt:
            return None
        spent = self.messages.values()
        return Usage(
            sum(usage.input_tokens for usage in spent),
            sum(usage.cached_tokens for usage in spent),
            sum(usage.output_tokens for usage in spent),
        )


def read_transcript(spending: Spending, position: int, line: bytes) -> Spending:  # noqa: ARG001 - a fold's signature
    """Take in one line of a transcript."""
    if not any(word in line for word in _WORDS):
        return spending
    entry = _object(line)
    attachment = entry.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return replace(spending, absorbed=True)
    if entry.get("subtype") == "turn_duration":
        return replace(spending, over=True)
    message = entry.get("message")
    if not isinstance(message, dict):
        return spending
    if entry.get("isMeta") and any(text.startswith(_SENT_BACK) for text in _texts(message)):
        sent_back = spending.sent_back + (spending.answered or not spending.sent_back)
        return replace(spending, sent_back=sent_back, answered=False, over=False)
    if entry.get("type") == "user" and _is_typed(entry, message):
        if any(text.startswith(_INTERRUPTED) for text in _texts(message)):
            return replace(spending, interrupted=True)
        return Spending(prompt=_text(entry, "promptId"))
    usage = message.get("usage")
    if entry.get("type") != "assistant" or entry.get("isSidechain") or not isinstance(usage, dict):
        return spending
    return _spoken(spending, message, _text(message, "id") or _text(entry, "uuid"), _usage(usage))


def _spoken(spending: Spending, message: Mapping[str, Any], name: str, usage: Usage) -> Spending:
    """Take in a message of the agent's."""
    said = [text for text in _texts(message) if text]
    if name in spending.messages:
        spending.parts.extend(said)
    else:
        spending = replace(spending, messages=spending.messages or {}, parts=said)
    if spending.over or not spending.answered:
        spending = replace(spending, answered=True, over=False)
    spending.messages[name] = usage
    return spending


def _is_typed(entry: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    """Whether a turn begins here: tools' results and notes come in the user's name too."""
    if entry.get("isSidechain") or entry.get("isMeta"):
        return False
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return not any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _texts(message: Mapping[str, Any]) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [_text(block, "text") for block in blocks if isinstance(block, dict)]


def _usage(usage: Mapping[str, Any]) -> Usage:
    fresh, written, cached, output = (
        tokens_in(usage.get(name))
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    )
    return Usage(fresh + written + cached, cached, output)


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(source: Mapping[str, Any], name: str) -> str:
    value = source.get(name)
    return value if isinstance(value, str) else ""
