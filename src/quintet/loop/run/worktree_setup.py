"""What a new run does first in a worktree of its own: say what is not in it, and run the user's setup command."""

from typing import Final

from quintet import command
from quintet.config import Settings
from quintet.errors import RunError
from quintet.layout import checks_folder, private_git_folder
from quintet.loop.record.store import RunStore
from quintet.loop.run.confined import ConfinedCommands
from quintet.loop.run.refused_hosts import RefusedHosts
from quintet.loop.run.work_tree import run_git
from quintet.prose import plural

_SHOWN: Final = 5
_SETUP_FILE: Final = "000-setup.md"


def set_up_worktree(settings: Settings, store: RunStore) -> None:
    """Prepare the worktree of a new run; RunError with the last lines of a setup command that fails."""
    workspace = settings.workspace
    if not workspace.is_worktree:
        return
    store.note(f"the agents work in {workspace.tree}, on the branch {workspace.branch}")
    copied = (f":(exclude,literal){path}" for path in workspace.included)
    form = ("status", "--porcelain", "--untracked-files=normal", "--", ":/")
    status = run_git(workspace.project, *form, *copied)
    left = [] if status.exit_code else status.output.splitlines()
    if left and not settings.workspace_with_changes:
        number = plural(len(left), "uncommitted change")
        store.note(f"it is without {number} in {workspace.project}; --with-changes takes such along")
    if (workspace.tree / ".gitmodules").exists():
        store.note("submodules are not checked out in it; WORKSPACE_SETUP='git submodule update --init' does that")
    if settings.workspace_setup:
        _run_setup(settings, store)


def _run_setup(settings: Settings, store: RunStore) -> None:
    line, deferred, run_id = settings.workspace_setup, store.signals.deferred, store.state.run_id
    store.note(f"the worktree is set up with: {line}")
    commands = ConfinedCommands(settings, settings.workspace.tree, checks_folder(run_id), private_git_folder(run_id))
    ended = commands.run(line, settings.response_timeout, deferred)
    RefusedHosts(store, settings).report("", commands.refused, is_final=True)
    with deferred():
        store.responses.keep_output(_SETUP_FILE, line, ended.exit_code, ended.output)
    if ended.exit_code:
        raise setup_failure(line, ended)


def setup_failure(line: str, ended: command.Outcome) -> RunError:
    """That a setup command has failed, with its last lines."""
    last = " / ".join(ended.output.strip().splitlines()[-_SHOWN:])
    return RunError(f"the setup command failed (exit code {ended.exit_code}): {line}: {last}")
