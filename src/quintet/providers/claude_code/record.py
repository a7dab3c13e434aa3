"""Claude Code's own record of its turns: what its hooks have written, and the tokens in its transcript."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from quintet.api.status import FailureKind
from quintet.providers.base import RecordedFailure, TurnRecord
from quintet.providers.json_lines import json_object, text_in
from quintet.providers.reset_times import LIMITS, reset_time
from quintet.tokens import TokenCount, recorded_tokens

_SHELLS: Final = frozenset({"shell", "local_bash", "bash"})
"""background work that goes on by itself; any other kind makes the agent go on later"""
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
    failure: RecordedFailure | None = None
    session: str = ""
    """Claude Code's id of the conversation"""
    transcript: str = ""
    prompt: str = ""
    """Claude Code's id of the last prompt"""
    behind: bool = False
    """it was typed while another turn was running, and carries that turn's id"""
    passed: bool = False
    """that other turn is over: now comes its own, unless the other has dealt with it"""

    def since(self, position: int, turn: "TranscriptTurn") -> TurnRecord | None:
        """The last turn, where it began at or after a position."""
        if self.begun < 0 or self.begun < position:
            return None
        usage = turn.usage(self.prompt)
        if not self.ended and self.passed and turn.absorbed:
            return TurnRecord(ended=True, last_message=self.message, usage=usage)
        if not self.ended and turn.interrupted and turn.prompt == self.prompt:
            return TurnRecord(ended=True, failure=RecordedFailure(FailureKind.INTERRUPTED, "interrupted"), usage=usage)
        ours = turn.prompt == self.prompt
        if not self.ended or (ours and self.failure is None and 0 < self.stops <= turn.sent_back):
            return TurnRecord(ended=False, usage=usage)
        message = self.message
        if message is None and self.failure is None and ours:
            message = turn.said or None  # older hooks do not tell
        # ours is one of the hooks at the end; another one may take long, and then send the agent back to work
        final = self.failure is not None or (ours and turn.over)
        return TurnRecord(ended=True, last_message=message, failure=self.failure, usage=usage, final=final)


def read_hook(hooks: Hooks, position: int, line: bytes) -> Hooks:
    """Take in one line. What is foreign or torn changes nothing."""
    event = json_object(line)
    kind = event.get("hook_event_name")
    if kind == "UserPromptSubmit":
        own = is_own_prompt(text_in(event, "prompt"))
        prompt = text_in(event, "prompt_id")
        return Hooks(
            begun=hooks.begun if own else position,
            previous=hooks.previous if own else hooks.begun,
            session=text_in(event, "session_id"),
            transcript=text_in(event, "transcript_path"),
            prompt=prompt,
            behind=not own and bool(prompt) and not hooks.ended and prompt == hooks.prompt,
        )
    if hooks.begun < 0 or not _ours(hooks, event):
        return hooks
    message = text_in(event, "last_assistant_message") or None
    if kind == "Stop" and hooks.behind:
        return replace(hooks, behind=False, passed=True, prompt="", message=message)
    if kind == "Stop":
        return replace(hooks, ended=not _works_on(event), stops=hooks.stops + 1, message=message, failure=None)
    if kind == "StopFailure":
        return replace(hooks, ended=True, message=None, failure=_reason(event, message))
    if kind == "SessionEnd" and not hooks.ended:
        return replace(hooks, ended=True, failure=RecordedFailure(FailureKind.OTHER, "the session was ended"))
    return hooks


def _ours(hooks: Hooks, event: Mapping[str, Any]) -> bool:
    """Whether an end is that of the last prompt's turn; older releases do not number their prompts."""
    prompt = text_in(event, "prompt_id")
    return not prompt or not hooks.prompt or prompt == hooks.prompt


def _works_on(event: Mapping[str, Any]) -> bool:
    """Whether something is under way in the background that the agent itself waits for."""
    tasks = event.get("background_tasks")
    return isinstance(tasks, list) and any(
        isinstance(task, dict) and text_in(task, "type") not in _SHELLS and text_in(task, "status") in _LIVE
        for task in tasks
    )


def _reason(event: Mapping[str, Any], message: str | None) -> RecordedFailure:
    """Why a turn failed; Claude Code's own words name the time of a reset."""
    error = event.get("error")
    kind = text_in(error, "type") if isinstance(error, dict) else text_in(event, "error")
    text = " ".join((message or text_in(event, "error_details") or kind or "the turn has failed").split())
    known = _KINDS.get(kind, FailureKind.OTHER)
    if known in (FailureKind.SERVER_ERROR, FailureKind.OTHER) and _CONNECTION.search(text):
        known = FailureKind.CONNECTION
    if known is FailureKind.RATE_LIMIT and _NOT_USAGE not in text and _USAGE.search(text):
        known = FailureKind.USAGE_LIMIT
    said = f"{text} {text_in(event, 'error_details')}"
    return RecordedFailure(known, text, reset_time(said, time.time()) if known in LIMITS else None)


@dataclass(frozen=True)
class TranscriptTurn:
    """The last turn in a transcript. Its messages are known by their ids: Claude Code writes one for each part."""

    prompt: str = ""
    """the id of the prompt whose turn is being read"""
    messages: dict[str, TokenCount] = field(default_factory=dict)
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

    def usage(self, prompt: str) -> TokenCount | None:
        """The tokens of the turn of a prompt, if it is the last one."""
        # the transcript lags behind the hooks: without numbered prompts the last turn in it may be an older one
        if not self.messages or not prompt or prompt != self.prompt:
            return None
        return sum(self.messages.values(), TokenCount())


def read_transcript(turn: TranscriptTurn, position: int, line: bytes) -> TranscriptTurn:  # noqa: ARG001 - a fold's signature
    """Take in one line of a transcript."""
    if not any(word in line for word in _WORDS):
        return turn
    entry = json_object(line)
    attachment = entry.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return replace(turn, absorbed=True)
    if entry.get("subtype") == "turn_duration":
        return replace(turn, over=True)
    message = entry.get("message")
    if not isinstance(message, dict):
        return turn
    if entry.get("isMeta") and any(text.startswith(_SENT_BACK) for text in _texts(message)):
        sent_back = turn.sent_back + (turn.answered or not turn.sent_back)
        return replace(turn, sent_back=sent_back, answered=False, over=False)
    if entry.get("type") == "user" and _is_typed(entry, message):
        if any(text.startswith(_INTERRUPTED) for text in _texts(message)):
            return replace(turn, interrupted=True)
        return TranscriptTurn(prompt=text_in(entry, "promptId"))
    usage = message.get("usage")
    if entry.get("type") != "assistant" or entry.get("isSidechain") or not isinstance(usage, dict):
        return turn
    return _spoken(turn, message, text_in(message, "id") or text_in(entry, "uuid"), _usage(usage))


def _spoken(turn: TranscriptTurn, message: Mapping[str, Any], name: str, usage: TokenCount) -> TranscriptTurn:
    """Take in a message of the agent's."""
    said = [text for text in _texts(message) if text]
    if name in turn.messages:
        turn.parts.extend(said)
    else:
        turn = replace(turn, messages=turn.messages or {}, parts=said)
    if turn.over or not turn.answered:
        turn = replace(turn, answered=True, over=False)
    turn.messages[name] = usage
    return turn


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
    return [text_in(block, "text") for block in blocks if isinstance(block, dict)]


def _usage(usage: Mapping[str, Any]) -> TokenCount:
    fresh, written = (recorded_tokens(usage.get(name)) for name in ("input_tokens", "cache_creation_input_tokens"))
    cached = usage.get("cache_read_input_tokens")
    return fresh + written + recorded_tokens(cached, cached, usage.get("output_tokens"))
