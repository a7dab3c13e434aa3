"""Which workspace a run works in: that of the unfinished run which goes on, a new worktree, or the project itself."""

from dataclasses import replace

from quintet.config import Settings
from quintet.config.table import WORKTREE
from quintet.errors import RunError
from quintet.layout import STATE_FILE, Workspace
from quintet.loop.decide.task import given_task, title_of
from quintet.loop.record.lock import is_locked
from quintet.loop.record.run_record import recorded_runs
from quintet.loop.record.saved_state import load_project_state
from quintet.loop.run.plan import check_settings
from quintet.loop.run.resume import not_resumable_reason, unfinished_state
from quintet.program import program
from quintet.workspace.creating import create, renew, task_digest
from quintet.workspace.worktrees import Stage, Worktree, worktree_at, worktrees_of


def choose(settings: Settings, *, names_task: bool) -> Workspace | None:
    """The workspace that is there already for the run; None where a new worktree has to be made.

    `names_task`: an option or a variable says which task. Where none does, an unfinished run goes on, whatever its
    task is.
    """
    here = worktree_at(settings.wd)
    if here:
        return here.workspace
    own = Workspace(settings.wd, settings.wd)
    otherwise = None if settings.workspace_mode == WORKTREE else own
    if settings.resume is False:
        return otherwise
    task = task_digest(settings.prompt)
    unfinished = [one for one in _ready(settings) if _is_unfinished(one)]
    same = [one for one in unfinished if one.task == task]
    if same:
        return max(same, key=_newest_run).workspace
    saved = unfinished_state(settings.state_file, settings.wd)
    if saved and (otherwise or not names_task or task_digest(saved.prompt) == task):
        return own
    if unfinished and not names_task:
        return _only(unfinished).workspace
    return otherwise


def in_workspace(settings: Settings, workspace: Workspace | None) -> Settings:
    """The settings of a run in a workspace: its state file is in the tree."""
    if workspace is None or not workspace.is_worktree:
        return replace(settings, chosen=workspace)
    return replace(settings, chosen=workspace, state_file=workspace.tree / STATE_FILE)


def open_workspace(settings: Settings) -> Settings:
    """Make the worktree of a run that needs one and has none yet, or take one in which no run has done anything."""
    if not settings.needs_worktree:
        return settings
    check_settings(settings)
    given_task(settings)  # its errors come before anything is made
    unused = [one for one in _ready(settings) if one.task == task_digest(settings.prompt) and _is_unused(one)]
    made = renew(max(unused, key=_newest_run), settings) if unused and settings.resume is not False else None
    return in_workspace(settings, (made or create(settings, title_of(settings.prompt))).workspace)


def _newest_run(one: Worktree) -> str:
    """By what the newest of several worktrees is found: the names of runs begin with their time."""
    return max(recorded_runs(one.tree), default="")


def _ready(settings: Settings) -> list[Worktree]:
    return [one for one in worktrees_of(settings.wd) if one.stage is Stage.READY and one.tree.is_dir()]


def _only(unfinished: list[Worktree]) -> Worktree:
    if len(unfinished) == 1:
        return unfinished[0]
    states = {one.branch: load_project_state(one.tree) for one in unfinished}
    names = "; ".join(f'"{title_of(state.prompt)}"' if state else branch for branch, state in states.items())
    raise RunError(f"several runs are unfinished here: {names}; name the task: {program()} run TASK.md")


def _is_unfinished(one: Worktree) -> bool:
    """Whether a run can go on there, or is at work."""
    return is_locked(one.tree) or unfinished_state(one.tree / STATE_FILE, one.tree) is not None


def _is_unused(one: Worktree) -> bool:
    """Whether no run has done anything there yet: the one that it was made for did not get to its first reply."""
    state = load_project_state(one.tree)
    return state is None or (not state.sequence and bool(not_resumable_reason(state, one.tree)))
