"""What a model is asked and what it answers, whatever the wire format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

Api = Literal["responses", "messages", "chat", "gemini"]


@dataclass(frozen=True)
class Request:
    """One request of an agent CLI, with its parts picked out of the body."""

    api: Api
    model: str
    conversation: str
    """Tells the threads of the CLIs apart."""
    prompts: tuple[str, ...]
    """What the user typed in this conversation, oldest first, byte for byte."""
    results: tuple[str, ...]
    """Output of the tools that ran since the latest prompt."""
    tools: tuple[str, ...]
    at: float
    """`time.monotonic()` of its arrival."""
    body: dict[str, Any] = field(repr=False)
    is_helper: bool = False
    """A helper of the CLI's own asks, which has the CLI's tools and the conversation so far."""

    @property
    def prompt(self) -> str:
        return self.prompts[-1] if self.prompts else ""

    @property
    def is_aside(self) -> bool:
        """A thread of the CLI's own, such as the one that asks for a title, is given no tools."""
        return not self.tools or self.is_helper


@dataclass(frozen=True)
class Usage:
    input: int = 1200
    cached: int = 0
    output: int = 34


@dataclass(frozen=True)
class Reply:
    """A shell command for the CLI to run, or the final text of the turn."""

    command: str | None = None
    text: str = ""
    delay: float = 0.0
    """Seconds before the first byte."""
    pace: float = 0.0
    """Seconds between two pieces of a streamed text."""
    usage: Usage = Usage()
    status: int = 200
    """Above 399: an HTTP error with `text` as its message."""
    cut: bool = False
    """End the stream in the middle, without its closing events."""
    background: bool = False
    """The command is to go on after the turn, where the CLI's tool can be told so."""
    ask: bool = False
    """The command needs the user's leave, where the CLI lets the model say so."""
    tool: str = ""
    """Another tool of the CLI than its shell."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What that tool is called with."""
    error: Mapping[str, Any] = field(default_factory=dict)
    """More of an HTTP error: its type, when a limit is reset."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """More of an HTTP error's headers."""

    @classmethod
    def run(cls, command: str, *, delay: float = 0.0) -> Self:
        return cls(command=command, delay=delay)

    @classmethod
    def say(cls, text: str, *, delay: float = 0.0) -> Self:
        return cls(text=text, delay=delay)

    @classmethod
    def fail(cls, status: int, message: str) -> Self:
        return cls(status=status, text=message)


Brain = Callable[[Request], Reply]
