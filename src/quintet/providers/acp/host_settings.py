"""What the host program is told at its start: a JSON file in the terminal's folder, written by the launch.

The host loads this module, so that it imports nothing but the standard library.
"""

import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

FILE: Final = "acp.json"
"""the file's name in the terminal's folder"""
RECORD: Final = "own/record.jsonl"
"""the host's record of the conversation, in the part of the folder that it can write to"""
DOORBELL: Final = "C-]"
"""the tmux key that tells the host that a prompt lies in the terminal's folder (`providers.editor.INPUT`)"""


class UsageRule(StrEnum):
    """Where an agent tells its tokens, and what they mean."""

    TURN = "turn"
    """`result.usage` is the sum of the turn"""
    LAST_CALL = "last call"
    """`result.usage` is that of the last request to the model only"""
    PROCESS = "process"
    """`result.usage` is the sum since the program was started"""
    QUOTA = "quota"
    """`result._meta.quota.token_count` is the sum of the turn"""
    CHUNKS = "chunks"
    """`_meta.usage` of message chunks, one for each request to the model"""


class InstructionsBy(StrEnum):
    """How the role's text reaches the agent."""

    FIRST_PROMPT = "first prompt"
    """before the first prompt of the conversation, as a text block of its own"""
    SYSTEM_PROMPT = "system prompt"
    """as `systemPrompt` of `session/new`, where the agent declares that; else before the first prompt"""
    PROGRAM = "program"
    """the program was started with it: by a file, a variable or an argument"""


class ModelBy(StrEnum):
    """How the model is chosen."""

    PROGRAM = "program"
    """the program was started with it"""
    PROTOCOL = "protocol"
    """by `session/set_model`, or as a config option where the agent does not know that"""


@dataclass(frozen=True)
class HostSettings:
    """One agent, and the conversation that it begins or goes on with."""

    name: str
    """what the settings call the agent"""
    command: tuple[str, ...]
    """its program and arguments"""
    role: str = ""
    instructions: str = ""
    instructions_by: InstructionsBy = InstructionsBy.FIRST_PROMPT
    mode: str = ""
    """the session mode to set, after every `session/new` and `session/load`"""
    model: str = ""
    model_by: ModelBy = ModelBy.PROTOCOL
    asks: bool = False
    """whether a person answers permissions; else the host allows what is asked for"""
    usage: UsageRule = UsageRule.TURN
    error_prefix: str = ""
    """how a message begins that is no answer but the error of a failed turn"""
    note_prefix: str = ""
    """how a message begins that is a note of the program's, not the model's"""
    begins_at_prompt: bool = False
    """a conversation begins anew with its first prompt: until then another such agent that starts would delete it"""
    load_in_next_minute: bool = False
    """a conversation cannot be loaded in the clock minute in which it was opened; the try would destroy it"""
    session: str = ""
    """the conversation to go on with; empty for a new one"""
    session_opened: float = 0.0
    """when it was begun, or loaded last, in seconds since the epoch"""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def read(folder: Path) -> "HostSettings":
        """The settings in a terminal's folder, as `launch.py` has written them."""
        raw: dict[str, Any] = dict(json.loads((folder / FILE).read_text(encoding="utf-8")))
        known = {one.name for one in fields(HostSettings)}
        values = {name: value for name, value in raw.items() if name in known}
        values["command"] = tuple(values["command"])
        for name, kind in (("usage", UsageRule), ("instructions_by", InstructionsBy), ("model_by", ModelBy)):
            if name in values:
                values[name] = kind(values[name])
        return HostSettings(**values)
