"""The saved run in a project: whether to go on with it, and where it is kept when a new one begins."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from quintet import files
from quintet.api.client import ApiClient
from quintet.config import Settings
from quintet.errors import RunError, StateError
from quintet.loop.responses import TMP
from quintet.loop.state import State, Status, load_state, put_aside
from quintet.loop.strays import find_strays, is_folder_name
from quintet.loop.terminals import end_session


class Found(NamedTuple):
    """What the state file holds: a run to go on with, or an old one that a new run archives."""

    resumable: State | None = None
    old: State | None = None
    strays: Sequence[State] = ()
    """runs whose state nobody can read any more, as far as their journals tell of them"""

    @property
    def earlier(self) -> list[State]:
        """What there was before a new run."""
        return [*self.strays, *([self.old] if self.old else [])]


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
    if saved is None:
        return Found(strays=find_strays(settings))
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
        files.move(path, target, settings.wd)
    except OSError as error:
        raise StateError(f"{path}: cannot be moved to the archive ({error.strerror})") from None
    return target


def leave_behind(found: Found, settings: Settings, api: ApiClient, warn: Callable[[str], None]) -> None:
    """Archive an old state; of runs that never came to their terminals, or lost their state, end what they had."""
    for stray in found.strays:
        end_session(api, stray)
    old = found.old
    if old is None:
        return
    target = archive_state(settings, old)
    if old.final_status is not Status.RUNNING:
        return
    if has_all_terminals(old):
        warn(f"the unfinished run {old.run_id} is left behind; its state is {target}")
    elif old.api == settings.api:
        end_session(api, old)


def has_all_terminals(saved: State) -> bool:
    """Whether the run had got beyond the creation of its terminals."""
    return all(terminal.id for terminal in saved.terminals.values())


def can_resume(saved: State) -> bool:
    """Whether there is something to go on with: terminals, or work that was delivered before they ended."""
    return has_all_terminals(saved) or saved.sequence > 0


def without_terminals(saved: State) -> State:
    """The same run for new terminals, which know nothing yet: the current step is asked for again."""
    blank = State()
    return replace(saved, terminals=blank.terminals, full_summary_sent={}, dispatched="", dispatched_at=0)


def new_run_id() -> str:
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def why_not(saved: State, wd: Path) -> str:
    """Why a saved run cannot be gone on with; nothing where it can."""
    if saved.final_status is not Status.RUNNING:
        return f"the saved run has ended with {saved.final_status}"
    if not can_resume(saved):
        return "the saved run was interrupted before its terminals were there"
    if saved.wd and Path(saved.wd) != wd:
        return f"the saved run belongs to {saved.wd}"
    return ""
