"""The saved state of a project's run: the run's own copy where there is one, else the state file in the project.

Agents can write to the state file, but have nothing to do in the run's record. The record is written first: whatever
happens between the two, it is the newer one.
"""

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path
from typing import Final, NamedTuple

from quintet import git
from quintet.errors import StateError
from quintet.loop.decide.state import State, Status
from quintet.loop.record.orphans import is_folder_name
from quintet.loop.record.run_record import RunRecord, mark_unfinished, unfinished_run, unmark
from quintet.loop.record.state_file import (
    decode_state,
    encode_state,
    put_aside,
    read_data,
    read_document,
    state_file_of,
    write_state,
)
from quintet.program import program

_COPIED: Final = "copied"
"""the digest of the state file as it was when the run wrote this state to its record"""


class Difference(Enum):
    """How the state file differs from the run's own copy."""

    NONE = auto()
    OLDER = auto()
    """a kill or a full disk came between the two"""
    MISSING = auto()
    CHANGED = auto()


class Saved(NamedTuple):
    """A saved run."""

    state: State | None = None
    own: bytes = b""
    """the run's own copy, where the run is known"""
    difference: Difference = Difference.NONE


def read_saved(state_file: Path, wd: Path, provider: str = "") -> Saved:
    """The saved run that a state file belongs to. StateError where there is something that is no state."""
    found, unreadable = None, None
    try:
        found = read_data(state_file)
    except StateError as error:
        unreadable = error
    record = unfinished_run(state_file, wd) or _named_run(found, state_file, wd)
    if record:
        with contextlib.suppress(StateError):  # without a copy that can be read, the file is all there is
            own = read_data(record.state)
            if own is not None:
                state = decode_state(own, record.state, provider)
                difference = Difference.CHANGED if unreadable else _compare(found, own, record.state)
                if (
                    difference is Difference.OLDER
                ):  # where it was killed in the middle of its last write, it is closed again
                    state = replace(state, final_status=Status.RUNNING)
                return Saved(state, own, difference)
    if _is_committed(state_file, wd):  # whoever can push could say with it what a run has done
        return Saved(None)
    if unreadable:
        raise unreadable
    return Saved(None if found is None else decode_state(found, state_file, provider))


def load_project_state(wd: Path) -> State | None:
    """The saved state of a project's last run; None where there is none that can be read."""
    with contextlib.suppress(StateError):
        return read_saved(state_file_of(wd), wd).state
    return None


def find_state_file(wd: Path) -> Path:
    """Where to read the state of a project's last run: in its record while it is unfinished, else in the project."""
    path = state_file_of(wd)
    record = unfinished_run(path, wd)
    return record.state if record else path


def put_right(saved: Saved, state_file: Path, wd: Path, tell: Callable[[str], None]) -> None:
    """Make the state file a copy of the run's own again, and tell where somebody has changed or removed it."""
    if saved.state is None or saved.difference in (Difference.NONE, Difference.OLDER):
        return  # an older one is written anew with the next step
    run = f"run {saved.state.run_id}"
    if saved.difference is Difference.CHANGED:
        kept = put_aside(state_file, "changed").name
        tell(
            f"{state_file} is not as the {run} has saved it: somebody has changed it. The run goes by its own copy; "
            f"the changed file is kept as {kept}"
        )
    elif saved.difference is Difference.MISSING:
        again = f"{program()} run --no-resume begins a new one"
        tell(f"{state_file} of the unfinished {run} was gone; it is put back from the run's own copy ({again})")
    write_state(saved.own, state_file, wd)


def save(state: State, state_file: Path, record: RunRecord, copied: str) -> str:
    """Write a state to the run's record, then to its state file; the digest of it.

    `copied` is the digest of what the run wrote to the state file before.
    """
    data = encode_state(state, more={_COPIED: copied})
    write_state(data, record.state)
    try:
        if state.final_status is Status.RUNNING:
            mark_unfinished(record, state_file)
        write_state(data, state_file, record.wd, durable=False)
        if state.final_status is not Status.RUNNING:
            unmark(state_file)
    except OSError as error:
        raise StateError(f"{error.filename}: cannot be written ({error.strerror})") from error
    return _digest(data)


def digest_of(state_file: Path) -> str:
    """The digest of what is in a state file; empty where nothing can be read."""
    with contextlib.suppress(StateError):
        return _digest(read_data(state_file) or b"")
    return ""


def _compare(found: bytes | None, own: bytes, path: Path) -> Difference:
    if found == own:
        return Difference.NONE
    if not found:  # of a file that was written just before a power failure, nothing may be left but its name
        return Difference.MISSING
    return Difference.OLDER if _digest(found) == read_document(own, path).get(_COPIED) else Difference.CHANGED


def _named_run(found: bytes | None, state_file: Path, wd: Path) -> RunRecord | None:
    """The run that a state file names, where there is a record of it."""
    with contextlib.suppress(StateError):
        run_id = decode_state(found, state_file).run_id if found else ""
        record = RunRecord(wd, run_id)
        return record if is_folder_name(run_id) and record.is_known and record.state.is_file() else None
    return None


def _is_committed(state_file: Path, wd: Path) -> bool:
    """Whether git tracks a state file, which no run of Quintet commits."""
    return git.answer(wd, "ls-files", "--error-unmatch", "--", f":(literal){state_file}") is not None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
