"""The words for how a terminal stands, shared by the server, the providers and the client."""

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
