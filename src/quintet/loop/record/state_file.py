"""The state file: where it is, writing it whole or not at all, and reading it whatever it holds."""

import contextlib
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from quintet import files
from quintet.errors import StateError
from quintet.layout import LONGEST_WORD, STATE_FILE, STATE_POINTER
from quintet.loop.decide.state import TURNS, State, TerminalRef
from quintet.roles import ROLES

VERSION: Final = 1
LARGEST: Final = 200_000_000
"""bytes of a file that could be a state: replies of 2 MB each, with every character escaped"""
_MOST: Final = 2**63 - 1
"""of any number here; a time in nanoseconds is the largest"""
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)
T = TypeVar("T")


def encode_state(state: State, now: datetime | None = None, more: Mapping[str, str] = MappingProxyType({})) -> bytes:
    """The state as it is written."""
    document = {"version": VERSION, **vars(state), "updated_at": (now or datetime.now(UTC)).isoformat(), **more}
    document["terminals"] = {name: vars(terminal) for name, terminal in state.terminals.items()}
    # one line a field: indenting all of it takes ten times as long
    lines = ",\n".join(f" {_ENCODER.encode(name)}: {_ENCODER.encode(value)}" for name, value in document.items())
    # a lone surrogate is written as JSON's own escape
    return f"{{\n{lines}\n}}".encode("utf-8", "backslashreplace")


def write_state(data: bytes, path: Path, below: Path | None = None, *, durable: bool = True) -> None:
    """Write a state so that a reader, or a crash at any moment, finds the old one or the new one, whole."""
    try:
        files.write(path, data, below, durable=durable)
    except OSError as error:
        raise StateError(f"state file {path}: cannot be written ({error.strerror})") from error


def save_state(state: State, path: Path, now: datetime | None = None) -> None:
    """Write the state of a run that has no record."""
    write_state(encode_state(state, now), path)


def load_state(path: Path, default_provider: str = "") -> State | None:
    """The saved state, or None where there is none. StateError where there is something that is no state."""
    data = read_data(path)
    return None if data is None else decode_state(data, path, default_provider)


def read_data(path: Path) -> bytes | None:
    """What a state file holds, whatever it is; None where there is none."""
    try:
        return files.read(path, LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"state file {path}: cannot be read ({error.strerror})") from None


def decode_state(data: bytes, path: Path, default_provider: str = "") -> State:
    """The state that was read from a file."""
    return _read(read_document(data, path), default_provider)


def read_document(data: bytes, path: Path) -> dict[str, Any]:
    """The JSON object that a state file holds."""
    try:
        document = json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        raise StateError(f"state file {path}: is not JSON") from None
    if not isinstance(document, dict):
        raise StateError(f"state file {path}: holds no JSON object")
    return document


def state_file_of(wd: Path) -> Path:
    """The state file of a project: the one that its last run has named, else the usual one."""
    try:
        return Path(os.fsdecode(files.read(wd / STATE_POINTER, LONGEST_WORD, wd).removesuffix(b"\n")))
    except OSError:
        return wd / STATE_FILE


def name_state_file(wd: Path, path: Path) -> None:
    """Say in the project where its state file is, for the commands that know no settings of the run."""
    if state_file_of(wd) == path:
        return
    with contextlib.suppress(OSError):  # the state itself is what counts
        if path == wd / STATE_FILE:
            files.remove(wd / STATE_POINTER, wd)
        else:
            files.write(wd / STATE_POINTER, os.fsencode(path) + b"\n", wd)


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
    simple = {name: _value(document.get(name), default) for name, default in vars(blank).items()}
    known = simple["turn"] in TURNS[simple["current_phase"]] and "cycle" in document
    place = {} if known else {"turn": blank.turn, "cycle": blank.cycle, "again": blank.again}
    outputs = _items(document.get("outputs"), str)
    dictionaries = {
        "terminals": _terminals(document.get("terminals"), simple["provider"] or default_provider),
        "outputs": {name: outputs.get(name, default) for name, default in blank.outputs.items()},
        "full_summary_sent": _items(document.get("full_summary_sent"), str),
        "after_pass": _items(document.get("after_pass"), str),
        "checked": {title: code for title, code in _items(document.get("checked"), int).items() if abs(code) <= _MOST},
        "undone": _items(document.get("undone"), str),
        "approved": _items(document.get("approved"), str),
        "notes_sent": _items(document.get("notes_sent"), str),
        "whole_sizes": {name: size for name, size in _items(document.get("whole_sizes"), int).items() if size >= 0},
    }
    return State(**simple | place | dictionaries)


def _value(raw: Any, default: Any) -> Any:
    """A text, a member of the default's enumeration, or a number that is not below the default; else the default."""
    match default:
        case StrEnum():
            kind = type(default)
            return kind(raw) if isinstance(raw, str) and raw in set(kind) else default
        case bool():
            return raw if type(raw) is bool else default
        case int() | float():
            kinds = (int,) if type(default) is int else (int, float)
            return raw if type(raw) in kinds and default <= raw <= _MOST else default
        case _:
            return raw if isinstance(raw, str) else default


def _items(raw: Any, kind: type[T]) -> dict[str, T]:
    """The items of a JSON object that are of a kind."""
    pairs = raw.items() if isinstance(raw, dict) else ()
    return {key: value for key, value in pairs if type(value) is kind}


def _terminals(raw: Any, provider: str) -> dict[str, TerminalRef]:
    """Both formats: the id alone (older), or id and provider."""
    given = raw if isinstance(raw, dict) else {}
    terminals = {}
    for role in ROLES:
        item = given.get(role.name)
        parts = {"id": item} if isinstance(item, str) else _items(item, str)
        terminals[role.name] = TerminalRef(parts.get("id", ""), parts.get("provider") or provider)
    return terminals
