"""A line of a journal: the event that it holds, or what a later version may have meant by it."""

import json
from functools import cache
from typing import Any, Final, get_args

from pydantic import TypeAdapter, ValidationError

from quintet.loop.journal import Event, Noted

_LONGEST_VALUE: Final = 300


@cache
def _adapter() -> TypeAdapter[Event]:
    """Reads any event; it takes a while to make, and who only writes needs none."""
    return TypeAdapter(Event)


@cache
def _kinds() -> frozenset[str]:
    return frozenset(kind.model_fields["event"].default for kind in get_args(get_args(Event)[0]))


def schema() -> dict[str, Any]:
    """The JSON schema of a line."""
    return _adapter().json_schema()


def read_line(line: bytes) -> Event | None:
    """The event of a line; None for one that is torn or no event.

    A kind that only a later version knows is not dropped: it is told in the words of its fields.
    """
    try:
        return _adapter().validate_json(line)
    except ValidationError:
        pass
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    kind, at = (found.get("event"), found.get("at")) if isinstance(found, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(at, str) or kind in _kinds():
        return None
    try:
        return Noted(at=at, text=event_in_words(found))
    except (ValidationError, RecursionError):
        return None  # half characters, or values too deep for words


def event_in_words(fields: dict[str, Any]) -> str:
    """An event of whatever kind: its name, and its fields as they stand."""
    name = str(fields.get("event", "")).replace("_", " ")
    told = [
        value if isinstance(value, str) else f"{key.replace('_', ' ')} {value}"
        for key, value in fields.items()
        if key not in ("event", "at") and value not in ("", None, (), [])
    ]
    return f"{name}: {', '.join(text[:_LONGEST_VALUE] for text in told)}" if told else f"{name}."
