"""The state file: written whole or not at all, read with doubt."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from quintet import files
from quintet.errors import StateError
from quintet.loop.decide.state import TURNS, State, Status, Terminal, Turn
from quintet.roles import ROLES, Phase

VERSION: Final = 1
LARGEST: Final = 200_000_000
"""bytes of a file that could be a state: replies of 2 MB each, with every character escaped"""
_MOST: Final = 2**63 - 1
"""of any number here; a time in nanoseconds is the largest"""
T = TypeVar("T", bound=StrEnum)


def save_state(state: State, path: Path, now: datetime | None = None, *, below: Path | None = None) -> None:
    """Write the state so that a reader, or a crash at any moment, finds the old one or the new one, whole."""
    document = {"version": VERSION, **asdict(state), "updated_at": (now or datetime.now(UTC)).isoformat()}
    text = json.dumps(document, ensure_ascii=False, indent=1)
    try:
        # a lone surrogate is written as JSON's own escape
        files.write(path, text.encode("utf-8", "backslashreplace"), below, durable=True)
    except OSError as error:
        raise StateError(f"state file {path}: cannot be written ({error.strerror})") from error


def load_state(path: Path, default_provider: str = "") -> State | None:
    """The saved state, or None where there is none. StateError where there is something that is no state."""
    try:
        text = files.read(path, LARGEST).decode("utf-8-sig", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"state file {path}: cannot be read ({error.strerror})") from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise StateError(f"state file {path}: is not JSON") from None
    if not isinstance(document, dict):
        raise StateError(f"state file {path}: holds no JSON object")
    return _read(document, default_provider)


def put_aside(path: Path, word: str) -> Path:
    """Give a file (or whatever is at the path) another name, so that nothing overwrites it."""
    number = 1
    try:
        while (other := path.with_name(f"{path.name}.{word}-{number}")).exists() or other.is_symlink():
            number += 1
        files.move(path, other, path.parent)
    except OSError as error:
        raise StateError(f"{path}: cannot be put aside ({error.strerror}); move it away by hand") from None
    return other


def _read(document: dict[str, Any], default_provider: str) -> State:
    """Take each field that is what it should be, and the default of each that is not."""
    blank = State()
    plain = {
        name: document[name]
        for name, default in vars(blank).items()
        if type(default) is str and isinstance(document.get(name), str)
    }
    phase = _member(Phase, document.get("current_phase"), blank.current_phase)
    turn = _member(Turn, document.get("turn"), blank.turn)
    known = turn in TURNS[phase] and "cycle" in document
    return State(
        **plain,
        current_round=_number(document.get("current_round"), 1),
        current_phase=phase,
        final_status=_member(Status, document.get("final_status"), blank.final_status),
        terminals=_terminals(document.get("terminals"), str(plain.get("provider") or default_provider)),
        outputs=blank.outputs | _texts(document.get("outputs"), set(blank.outputs)),
        cycle=_number(document.get("cycle"), 1) if known else 1,
        turn=turn if known else blank.turn,
        dispatched_at=_number(document.get("dispatched_at"), 0),
        attempt=_number(document.get("attempt"), 0),
        full_summary_sent=_texts(document.get("full_summary_sent"), None),
        whole_sizes=_sizes(document.get("whole_sizes")),
        sequence=_number(document.get("sequence"), 0),
        tokens_used=_number(document.get("tokens_used"), 0),
    )


def _number(raw: Any, least: int) -> int:
    return raw if type(raw) is int and least <= raw <= _MOST else least


def _member(kind: type[T], raw: Any, default: T) -> T:
    return kind(raw) if isinstance(raw, str) and raw in set(kind) else default


def _texts(raw: Any, keys: set[str] | None) -> dict[str, str]:
    pairs = raw.items() if isinstance(raw, dict) else ()
    return {key: text for key, text in pairs if isinstance(text, str) and (keys is None or key in keys)}


def _sizes(raw: Any) -> dict[str, int]:
    pairs = raw.items() if isinstance(raw, dict) else ()
    return {key: size for key, size in pairs if type(size) is int and size >= 0}


def _terminals(raw: Any, provider: str) -> dict[str, Terminal]:
    """Both formats: the id alone (older), or id and provider."""
    given = raw if isinstance(raw, dict) else {}
    terminals = {}
    for role in ROLES:
        item = given.get(role.name)
        parts = {"id": item} if isinstance(item, str) else _texts(item, {"id", "provider"})
        terminals[role.name] = Terminal(parts.get("id", ""), parts.get("provider") or provider)
    return terminals
