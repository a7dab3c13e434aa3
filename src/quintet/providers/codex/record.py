"""Codex's own account of its turns: the lines of a rollout file, folded into the last turn."""

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from quintet.providers.base import TurnRecord, Usage

_HEAD: Final = 240
"""bytes of a line in which its kind stands"""
_EVENT: Final = b'"event_msg"'
_BEGIN = frozenset({"task_started", "turn_started"})
_END = frozenset({"task_complete", "turn_complete"})
_SILENT: Final = "the turn has ended without an answer"
"""some releases do not write down why a turn failed"""
_KINDS: Final = (
    (("usage_limit", "quota", "insufficient"), "usage limit"),
    (("unauthorized", "status 401", "refresh token", "sign in", "log in"), "login"),
    (("server_error", "overloaded", "status 5", "high demand"), "server error"),
    (("stream", "connection", "retry limit", "too_many_failed"), "connection"),
)


@dataclass(frozen=True)
class Rollout:
    """What a rollout tells so far."""

    begun: int = -1
    """where the last turn begins; -1 before the first"""
    turn: str = ""
    ended: bool = False
    message: str | None = None
    error: str | None = None
    before: Usage = Usage()
    """tokens of the conversation when the last turn began"""
    total: Usage = Usage()

    def since(self, position: int) -> TurnRecord | None:
        """The last turn, where it began at or after a position."""
        if self.begun < 0 or self.begun < position:
            return None
        if not self.ended:
            return TurnRecord(ended=False, usage=self._usage())
        return TurnRecord(ended=True, last_message=self.message, error=self.error, usage=self._usage())

    def _usage(self) -> Usage | None:
        spent = Usage(
            self.total.input_tokens - self.before.input_tokens,
            self.total.cached_tokens - self.before.cached_tokens,
            self.total.output_tokens - self.before.output_tokens,
        )
        return spent if spent != Usage() else None


def read_line(rollout: Rollout, position: int, line: bytes) -> Rollout:
    """Take in one line. What is foreign, torn or of no interest changes nothing."""
    if _EVENT not in line[:_HEAD]:
        return rollout
    payload = _payload(line)
    kind = payload.get("type")
    if kind in _BEGIN:
        return replace(
            Rollout(total=rollout.total, before=rollout.total), begun=position, turn=str(payload.get("turn_id") or "")
        )
    if kind == "token_count":
        return replace(rollout, total=_total(payload) or rollout.total)
    if kind == "error":
        return replace(rollout, error=_reason(payload))
    if not _ours(rollout, payload):
        return rollout
    if kind in _END:
        message = payload.get("last_agent_message")
        error = payload.get("error")
        return replace(
            rollout,
            ended=True,
            message=message if isinstance(message, str) else None,
            error=_reason(error) if isinstance(error, dict) else (None if message else rollout.error or _SILENT),
        )
    if kind == "turn_aborted":
        return replace(rollout, ended=True, message=None, error=str(payload.get("reason") or "interrupted"))
    return rollout


def _payload(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    payload = entry.get("payload") if isinstance(entry, dict) and entry.get("type") == "event_msg" else None
    return payload if isinstance(payload, dict) else {}


def _ours(rollout: Rollout, payload: dict[str, Any]) -> bool:
    """Whether an end is that of the last turn: a replaced turn may end after the next one has begun."""
    turn = payload.get("turn_id")
    return not turn or not rollout.turn or turn == rollout.turn


def _total(payload: dict[str, Any]) -> Usage | None:
    info = payload.get("info")
    total = info.get("total_token_usage") if isinstance(info, dict) else None
    if not isinstance(total, dict):
        return None
    numbers = [total.get(name) for name in ("input_tokens", "cached_input_tokens", "output_tokens")]
    return Usage(*(number if isinstance(number, int) else 0 for number in numbers))


def _reason(error: dict[str, Any]) -> str:
    """Why a turn failed, with the kind of failure before Codex's own words (these name the time of a reset)."""
    text = " ".join(str(error.get("message") or "the turn has failed").split())
    hints = f"{json.dumps(error.get('codex_error_info'))} {text}".lower()
    kind = next((name for words, name in _KINDS if any(word in hints for word in words)), "")
    return f"{kind}: {text}" if kind else text
