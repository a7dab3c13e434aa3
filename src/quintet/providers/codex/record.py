"""Codex's own record of its turns: the lines of a rollout file, folded into the last turn."""

import json
import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from quintet.api.status import FailureKind
from quintet.providers.base import RecordedFailure, TurnRecord
from quintet.providers.failure_words import failure_kind
from quintet.providers.json_lines import as_object, json_object, text_in
from quintet.providers.reset_times import LIMITS, reset_time
from quintet.tokens import TokenCount, recorded_tokens

_HEAD: Final = 240
"""bytes of a line in which its kind stands"""
_EVENT: Final = b'"event_msg"'
_BEGIN = frozenset({"task_started", "turn_started"})
_END = frozenset({"task_complete", "turn_complete"})
_SILENT: Final = RecordedFailure(FailureKind.OTHER, "the turn has ended without an answer")
"""some releases do not write down why a turn failed"""


@dataclass(frozen=True)
class Rollout:
    """What a rollout tells so far."""

    begun: int = -1
    """where the last turn begins; -1 before the first"""
    turn: str = ""
    ended: bool = False
    message: str | None = None
    failure: RecordedFailure | None = None
    before: TokenCount = TokenCount()
    """tokens of the conversation when the last turn began"""
    total: TokenCount = TokenCount()
    prompts: tuple[int, int] = (-1, -1)
    """where the last two prompts stand"""
    prompt_kind: str = ""
    """the kind of line that tells of prompts; releases differ, and one that writes both must not count twice"""

    def since(self, position: int) -> TurnRecord | None:
        """The last turn, where it began at or after a position."""
        if self.begun < 0 or self.begun < position:
            return None
        if not self.ended:
            return TurnRecord(ended=False, usage=self._usage(), typed=self.prompts[0] >= position)
        return TurnRecord(
            ended=True,
            last_message=self.message,
            failure=self.failure,
            usage=self._usage(),
            typed=self.prompts[0] >= position,
        )

    def _usage(self) -> TokenCount | None:
        spent = self.total - self.before
        return spent if spent != TokenCount() else None


def read_line(rollout: Rollout, position: int, line: bytes) -> Rollout:
    """Take in one line. What is foreign, torn or of no interest changes nothing."""
    if _EVENT not in line[:_HEAD]:
        return rollout
    payload, said_at = _payload(line)
    kind = text_in(payload, "type")
    if kind in _BEGIN:
        return replace(
            Rollout(
                total=rollout.total, before=rollout.total, prompts=rollout.prompts, prompt_kind=rollout.prompt_kind
            ),
            begun=position,
            turn=text_in(payload, "turn_id"),
        )
    if _is_prompt(kind, payload) and rollout.prompt_kind in ("", kind):
        return replace(rollout, prompts=(rollout.prompts[1], position), prompt_kind=kind)
    if kind == "token_count":
        return replace(rollout, total=_total(payload) or rollout.total)
    if kind == "error":
        return replace(rollout, failure=_reason(payload, said_at))
    if not _ours(rollout, payload):
        return rollout
    if kind in _END:
        message = payload.get("last_agent_message")
        error = payload.get("error")
        return replace(
            rollout,
            ended=True,
            message=message if isinstance(message, str) else None,
            failure=_reason(error, said_at)
            if isinstance(error, dict)
            else (None if message else rollout.failure or _SILENT),
        )
    if kind == "turn_aborted":
        reason = RecordedFailure(FailureKind.INTERRUPTED, text_in(payload, "reason") or "interrupted")
        return replace(rollout, ended=True, message=None, failure=reason)
    return rollout


def _is_prompt(kind: str, payload: dict[str, Any]) -> bool:
    """Whether a line tells of something that was typed: `user_message` (0.149), `item_completed` (0.166)."""
    item = payload.get("item")
    if kind == "item_completed" and isinstance(item, dict):
        return text_in(item, "type") == "UserMessage"
    return kind == "user_message" and text_in(payload, "kind") in ("", "plain")


def _payload(line: bytes) -> tuple[dict[str, Any], float]:
    """What an event says, and when it was said."""
    entry = json_object(line)
    payload = as_object(entry.get("payload")) if entry.get("type") == "event_msg" else {}
    try:
        return payload, datetime.fromisoformat(text_in(entry, "timestamp")).timestamp()
    except (ValueError, OverflowError):
        return payload, time.time()


def _ours(rollout: Rollout, payload: dict[str, Any]) -> bool:
    """Whether an end is that of the last turn: a replaced turn may end after the next one has begun."""
    turn = payload.get("turn_id")
    return not turn or not rollout.turn or turn == rollout.turn


def _total(payload: dict[str, Any]) -> TokenCount | None:
    total = as_object(payload.get("info")).get("total_token_usage")
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    return recorded_tokens(*map(total.get, names)) if isinstance(total, dict) else None


def _reason(error: dict[str, Any], said_at: float) -> RecordedFailure:
    """Why a turn failed; Codex's own words name the time of a reset."""
    text = " ".join((text_in(error, "message") or "the turn has failed").split())
    kind = failure_kind(f"{json.dumps(error.get('codex_error_info'))} {text}")
    return RecordedFailure(kind, text, reset_time(text, said_at) if kind in LIMITS else None)
