"""What is known about a terminal beyond its screen: stored in tmux, as one JSON value in an option of the pane."""

import json
from dataclasses import asdict, dataclass
from typing import Final

from pydantic import TypeAdapter

OPTION: Final = "@quintet"
REMEMBERED: Final = 16
"""dispatch ids that are recognised when they come again"""


@dataclass(frozen=True)
class Facts:
    """One terminal. No prompt text and nothing secret: whoever may attach can read it."""

    id: str
    session: str
    name: str
    """of the tmux window"""
    provider: str
    profile: str
    cwd: str
    folder: str
    launched: float
    """seconds since the epoch"""
    model: str = ""
    ready: bool = False
    """whether the agent has been at its prompt once"""
    turn: int = 0
    """prompts that were typed so far"""
    since: int = 0
    """where the agent's record ended when the last turn was typed"""
    dispatches: tuple[str, ...] = ()
    """the ids of the last inputs, newest last"""
    pasted: bool = False
    """the last input is in the composer and was not submitted, as far as is known"""
    begun: float = 0.0
    """when the first input with an id was typed, by the clock of processes' starts; what its program has started
    before belongs to it"""
    typed: float = 0.0
    """when the last input was taken"""
    exiting: bool = False
    """a client has asked for its end"""
    server: int = 0
    """the process number of the server that has started it, or has typed into it last"""
    rested: bool = False
    """the agent was at rest when the last input was pasted"""
    continues: str = ""
    """the lost terminal whose conversation goes on here"""
    sandbox: str = ""
    """the folder that its program has as `.tmp`; empty where it is in no sandbox"""
    network: str = ""
    """what its sandbox leaves of the network"""
    description: str = ""
    initial: str = ""
    """the state of the message that came with its creation: pending, delivered or failed"""

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> "Facts | None":
        """The facts in a pane option; None where it holds none of ours."""
        try:
            return _ADAPTER.validate_json(text)
        except ValueError:
            return None


_ADAPTER: Final = TypeAdapter(Facts)
