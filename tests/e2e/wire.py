"""What all wire formats of the agent CLIs have in common; each has a module of its own, named `wire_...`."""

import itertools
import json
from collections.abc import Iterator
from typing import Any, Protocol

from tests.e2e.exchange import Api, Reply, Request

Json = dict[str, Any]

# The CLIs send notes of their own in the user's name; none of these was typed.
NOT_TYPED = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<system-reminder>",
    "<task-notification>",
    "[Request interrupted by user",
    "<session_context>",
)
PIECE = 40

# Claude Code merges answers that share an id, so none is ever used twice.
_numbers = itertools.count(1)


def new_id(kind: str) -> str:
    return f"{kind}_{next(_numbers):08d}"


class Wire(Protocol):
    api: Api

    def read(self, path: str, body: Json, at: float, /) -> Request: ...

    def events(self, request: Request, reply: Reply) -> Iterator[Json]:
        """The whole stream; a text's pieces come one per event."""
        ...

    def frame(self, event: Json) -> bytes:
        """One event as it is sent."""
        ...

    def whole(self, request: Request, reply: Reply, /) -> Json | None:
        """The answer in one piece, where the request wants no stream."""
        ...

    def error(self, reply: Reply) -> Json: ...


class TypedEvents:
    """A wire format that is always streamed, each event with its type before its data."""

    def frame(self, event: Json) -> bytes:
        return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()

    def whole(self, *_: object) -> Json | None:
        return None


def is_typed(text: str) -> bool:
    return not text.lstrip().startswith(NOT_TYPED)


def texts_of(content: object) -> list[str]:
    """The texts of a message, which comes as a string or as a list of blocks."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [block["text"] for block in content if isinstance(block, dict) and isinstance(block.get("text"), str)]


def pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
