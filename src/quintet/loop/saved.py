"""The saved run in a project: whether to go on with it, and where it is kept when a new one begins."""

import re
import secrets
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from quintet.config import Settings
from quintet.errors import RunError, StateError
from quintet.loop.responses import TMP
from quintet.loop.state import State, Status, load_state, put_aside


class Found(NamedTuple):
    """What the state file holds: a run to go on with, or an old one that a new run archives."""

    resumable: State | None = None
    old: State | None = None


def find_saved(settings: Settings, warn: Callable[[str], None]) -> Found:
    """Decide between going on and a new run; a state that cannot be read is put aside."""
    path, wish = settings.state_file, settings.resume
    try:
        saved = load_state(path, settings.provider)
        reason = "there is no saved run" if saved is None else why_not(saved, settings.wd)
    except StateError as error:
        saved, reason = None, f"{error}; it is kept as {put_aside(path, 'unreadable').name}"
        warn(reason)
    if wish and reason:
        raise RunError(f"cannot resume: {reason}")
    return Found(old=saved) if reason or wish is False else Found(resumable=saved)


def archive_state(settings: Settings, saved: State) -> Path:
    """Keep an old state with its run, also where the archive is on another file system."""
    path = settings.state_file
    folder = settings.wd / TMP / (saved.run_id if is_folder_name(saved.run_id) else "earlier-runs")
    target, number = folder / path.name, 1
    while target.exists():
        number += 1
        target = folder / f"{path.stem}-{number}{path.suffix}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)
    except OSError as error:
        raise StateError(f"{path}: cannot be moved to the archive ({error.strerror})") from None
    return target


def has_all_terminals(saved: State) -> bool:
    """Whether the run had got beyond the creation of its terminals."""
    return all(terminal.id for terminal in saved.terminals.values())


def can_resume(saved: State) -> bool:
    """Whether there is something to go on with: terminals, or work that was delivered before they ended."""
    return has_all_terminals(saved) or saved.sequence > 0


def without_terminals(saved: State) -> State:
    """The same run for new terminals, which know nothing yet: the current step is asked for again."""
    blank = State()
    return replace(
        saved, terminals=blank.terminals, session_name="", full_summary_sent={}, dispatched="", dispatched_at=0
    )


def new_run_id() -> str:
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def is_folder_name(run_id: str) -> bool:
    """Whether a run id from a file names a folder below `.tmp/`, and nothing else."""
    return bool(re.fullmatch(r"\w[\w.-]{0,100}", run_id))


def why_not(saved: State, wd: Path) -> str:
    """Why a saved run cannot be gone on with; nothing where it can."""
    if saved.final_status is not Status.RUNNING:
        return f"the saved run has ended with {saved.final_status}"
    if not can_resume(saved):
        return "the saved run was interrupted before its terminals were there"
    if saved.wd and Path(saved.wd) != wd:
        return f"the saved run belongs to {saved.wd}"
    return ""
