"""Reading lines of JSON that another program writes: what is torn or foreign is nothing."""

import json
from collections.abc import Mapping
from typing import Any


def json_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object in a text; an empty one where there is none."""
    try:
        return as_object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def as_object(value: Any) -> dict[str, Any]:
    """The value where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def text_in(source: Mapping[str, Any], name: str) -> str:
    """The text under a name; empty where there is none."""
    value = source.get(name)
    return value if isinstance(value, str) else ""
