"""Why a turn failed: by the error that answered its prompt, or by how it ended."""

import re
from typing import Any, Final

from quintet.api.status import FailureKind
from quintet.providers.acp.json_rpc import NOT_LOGGED_IN, RpcError
from quintet.providers.failure_words import failure_kind
from quintet.providers.json_lines import as_object, json_object, text_in
from quintet.providers.reset_times import LIMITS, reset_time

NO_ANSWER: Final = "the turn has ended without an answer"
_ERROR_KINDS: Final = {
    "rate_limit": FailureKind.RATE_LIMIT,
    "authentication_failed": FailureKind.LOGIN,
    "oauth_org_not_allowed": FailureKind.LOGIN,
    "server_error": FailureKind.SERVER_ERROR,
    "overloaded": FailureKind.SERVER_ERROR,
}
"""by `data.errorKind`"""
_STOPS: Final = {
    "refusal": "the model has refused to go on",
    "max_tokens": "the answer has become too long for the model",
    "max_turn_requests": "the turn has had too many requests to the model",
}
_STATUS = re.compile(r"(?:^|\b(?:status|error|code|http)\b[\s:=(\"']*(?:code\b[\s:=\"']*)?)([45]\d\d)\b", re.IGNORECASE)
_LOGIN_WORDS: Final = ("authentication", "not authenticated", "api key", "credentials", "/login", "not logged in")
_LONGEST: Final = 2000
_DEEPEST: Final = 4


def failure(kind: FailureKind, text: str, at: float) -> dict[str, Any]:
    """A failure as the record has it."""
    text = " ".join(text.split())[:_LONGEST] or "the turn has failed"
    return {"kind": kind.value, "text": text, "resets_at": reset_time(text, at) if kind in LIMITS else None}


def error_failure(error: RpcError, at: float) -> dict[str, Any]:
    """Why a prompt was answered with an error."""
    text = error_text(error)
    told = text_in(error.data, "errorKind")
    if told in _ERROR_KINDS:
        return failure(_ERROR_KINDS[told], text, at)
    kind = _kind(text, error.code if error.code > 0 else None, at)
    if kind is FailureKind.OTHER and error.code == NOT_LOGGED_IN:
        kind = FailureKind.LOGIN
    return failure(kind, text, at)


def text_failure(text: str, at: float) -> dict[str, Any]:
    """Why a turn failed whose error is a message like an answer's."""
    return failure(_kind(text, None, at), text, at)


def stop_failure(stop: str, at: float) -> dict[str, Any] | None:
    """Why a turn that ended for this reason has no answer; None for one that ended as it should."""
    if stop == "end_turn":
        return None
    if stop == "cancelled":
        return failure(FailureKind.INTERRUPTED, "interrupted", at)
    known = _STOPS.get(stop, "the agent has ended the turn for a reason that is not known")
    return failure(FailureKind.OTHER, f"{known} ({stop[:100] or 'no reason'})", at)


def error_text(error: RpcError) -> str:
    """What an error says: some agents pass on the JSON of the model's server as its text."""
    details = error.data.get("details")
    said = details if isinstance(details, str) and details else text_in(as_object(error.data.get("error")), "message")
    return _innermost(said or error.message) or f"error {error.code}"


def _innermost(text: str) -> str:
    for _ in range(_DEEPEST):
        source = json_object(text[text.find("{") :]) if "{" in text else {}
        inner = text_in(as_object(source.get("error")), "message") or text_in(source, "message")
        if not inner:
            break
        text = inner
    return text


def _kind(text: str, code: int | None, at: float) -> FailureKind:
    """By the words, then by a status of HTTP: a limit that names its end is one that ends."""
    kind = failure_kind(text)
    status = code or (int(found[1]) if (found := _STATUS.search(text[:_LONGEST])) else 0)
    if kind is FailureKind.OTHER and any(word in text.lower() for word in _LOGIN_WORDS):
        kind = FailureKind.LOGIN
    if status in (401, 403) and kind is not FailureKind.MODEL:
        return FailureKind.LOGIN
    if status == 429:  # noqa: PLR2004 - as HTTP has it
        empty = "quota" in text.lower() and reset_time(text, at) is None
        return (
            kind if kind is FailureKind.USAGE_LIMIT or (kind is FailureKind.OTHER and empty) else FailureKind.RATE_LIMIT
        )
    if kind is FailureKind.OTHER and 500 <= status < 600:  # noqa: PLR2004
        return FailureKind.SERVER_ERROR
    return kind
