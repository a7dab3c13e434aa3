"""What a client wants to have started in a new terminal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quintet.api.models import Sandbox
from quintet.providers.base import Provider


@dataclass(frozen=True)
class TerminalSpec:
    """A terminal that is to be started."""

    provider: Provider
    profile: str
    instructions: str
    """the profile's text"""
    cwd: Path
    model: str = ""
    args: tuple[str, ...] = ()
    asks: bool = False
    """whether the agent asks before it acts"""
    env: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    initial: str = ""
    """the message to type when the agent is ready"""
    sandbox: Sandbox | None = None
    """what the program can reach; None: all that its user can"""
    continues: str = ""
    """a lost terminal, whose conversation goes on where the program can do that"""
