"""The words for how a terminal stands and how a turn ended, shared by the server, the providers and the client."""

from enum import StrEnum


class TerminalStatus(StrEnum):
    """What the agent in a terminal is doing."""

    UNKNOWN = "unknown"
    IDLE = "idle"
    """at its prompt, and nothing was asked yet"""
    PROCESSING = "processing"
    COMPLETED = "completed"
    """at its prompt, the last turn has ended"""
    WAITING_USER_ANSWER = "waiting_user_answer"
    ERROR = "error"
    """the agent is gone"""


AT_REST = frozenset({TerminalStatus.IDLE, TerminalStatus.COMPLETED})


class FailureKind(StrEnum):
    """What kept a turn from its answer."""

    USAGE_LIMIT = "usage_limit"
    """the account has used up what it may use in some hours or days"""
    RATE_LIMIT = "rate_limit"
    """too many requests for the moment (HTTP 429)"""
    LOGIN = "login"
    MODEL = "model"
    """there is no such model, or not for this account"""
    SERVER_ERROR = "server_error"
    CONNECTION = "connection"
    INTERRUPTED = "interrupted"
    OTHER = "other"
