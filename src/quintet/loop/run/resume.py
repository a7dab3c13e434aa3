"""The saved run of a project: whether to go on with it, and what becomes of it when a new one begins."""

import os
import secrets
import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from quintet import files
from quintet.api.backend import Backend
from quintet.config import Settings
from quintet.errors import RunError, StateError
from quintet.layout import TMP
from quintet.loop.decide.state import State, Status, has_all_terminals
from quintet.loop.decide.task import title_of
from quintet.loop.record.orphans import find_orphans, is_folder_name
from quintet.loop.record.run_record import unmark
from quintet.loop.record.saved_state import put_right, read_saved
from quintet.loop.record.state_file import put_aside
from quintet.loop.record.store import RunStore
from quintet.loop.run.terminals import end_session, end_terminals_of, is_there
from quintet.loop.run.work_tree import head_commit
from quintet.program import program


class Found(NamedTuple):
    """What the state file holds: a run to go on with, or an old one that a new run archives."""

    resumable: State | None = None
    old: State | None = None
    orphans: Sequence[State] = ()
    """runs whose state nobody can read any more, as far as their journals tell of them"""

    @property
    def earlier(self) -> list[State]:
        """What there was before a new run."""
        return [*self.orphans, *([self.old] if self.old else [])]


def find_saved(settings: Settings, warn: Callable[[str], None]) -> Found:
    """Decide between going on and a new run; a state that cannot be read is put aside."""
    path, wish = settings.state_file, settings.resume
    try:
        kept = read_saved(path, settings.workspace.tree, settings.provider)
        put_right(kept, path, settings.workspace.tree, warn)
        saved = kept.state
        reason = not_resumable_reason(saved, settings.workspace.tree)
    except StateError as error:
        saved, reason = None, f"{error}; it is kept as {put_aside(path, 'unreadable').name}"
        warn(reason)
    if wish and reason:
        raise RunError(f"cannot resume: {reason}")
    if saved is None:
        return Found(orphans=find_orphans(settings))
    return Found(old=saved) if reason or wish is False else Found(resumable=saved)


def archive_state(settings: Settings, saved: State) -> Path:
    """Keep an old state with its run, also where the archive is on another file system."""
    path = settings.state_file
    folder = settings.workspace.tree / TMP / (saved.run_id if is_folder_name(saved.run_id) else "earlier-runs")
    target, number = folder / path.name, 1
    while target.exists():
        number += 1
        target = folder / f"{path.stem}-{number}{path.suffix}"
    try:
        unmark(path)
        files.move(path, target, settings.workspace.tree)
    except OSError as error:
        raise StateError(f"{path}: cannot be moved to the archive ({error.strerror})") from None
    return target


def archive_previous(found: Found, store: RunStore, backend: Backend) -> None:
    """Archive an old state and end its terminals: agents that nobody waits for may go on changing the project."""
    for orphan in found.orphans:
        end_session(backend, orphan)
    old = found.old
    if old is None:
        return
    target = archive_state(store.settings, old)
    ended = ""
    if old.api == store.settings.api:
        living = any(is_there(backend, terminal.id) for terminal in old.terminals.values())
        ended = "its terminals are ended" if end_terminals_of(backend, old) and living else ""
    if old.final_status is not Status.RUNNING and ended:
        store.note(f"the earlier run {old.run_id} is over ({old.final_status}); {ended}")
    elif old.final_status is Status.RUNNING and has_all_terminals(old):
        told = "is left behind" + (f", and {ended}" if ended else "")
        store.warn(f"the unfinished run {old.run_id} {told}; its state is {target}")


def can_resume(saved: State) -> bool:
    """Whether there is something to go on with: terminals, or work that was delivered before they ended."""
    return has_all_terminals(saved) or saved.sequence > 0


def new_run_id() -> str:
    """A name for a new run that begins with its time."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def check_task(saved: State, settings: Settings, named: str) -> None:
    """Refuse to go on with a run where the command line names another task; `named` is how it does that."""
    if not named or not saved.prompt.strip() or settings.prompt.strip() == saved.prompt.strip():
        return
    run = f"{program()} run"
    raise RunError(
        f'the unfinished run {saved.run_id} here has another task, "{title_of(saved.prompt)}". '
        f"Go on with it: {run}. Drop it: {run} --no-resume {named}. "
        f"Start this one beside it: {_beside(settings.workspace.project, run, named)}"
    )


def _beside(wd: Path, run: str, named: str) -> str:
    """The shell line that runs a task beside an unfinished run: in a worktree, or in a copy of the project."""
    if (wd / ".git").exists() and head_commit(wd):
        return f"{run} --worktree {named}"
    number = 2
    while (other := wd.with_name(f"{wd.name}-{number}")).exists():
        number += 1
    there = shlex.quote(os.path.relpath(other, wd))
    return f"cp -R . {there} && rm -rf {there}/{TMP} && cd {there} && {run} {named}"


def unfinished_state(state_file: Path, tree: Path) -> State | None:
    """The saved run that a start would go on with, as far as can be told without the lock; the driver decides."""
    try:
        saved = read_saved(state_file, tree).state
    except StateError:
        return None
    return None if not_resumable_reason(saved, tree) else saved


def not_resumable_reason(saved: State | None, wd: Path) -> str:
    """Why a saved run cannot be resumed; empty where it can."""
    if saved is None:
        return "there is no saved run"
    if saved.final_status is not Status.RUNNING:
        return f"the saved run has ended with {saved.final_status}"
    if not can_resume(saved):
        return "the saved run was interrupted before its terminals were there"
    if saved.wd and Path(saved.wd) != wd:
        return f"the saved run belongs to {saved.wd}"
    return ""
