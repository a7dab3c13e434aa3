"""What becomes of a run's worktree: its branch is merged, or it is removed and its archive kept."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from quintet.errors import GitError, RunError, ServerError
from quintet.layout import STATE_FILE
from quintet.loop.record.lock import worker
from quintet.loop.record.responses import make_tmp
from quintet.loop.record.run_record import RunRecord, unmark
from quintet.program import program
from quintet.server.terminal.direct_access import end_session, list_terminals
from quintet.setup.leftovers import Leftover
from quintet.setup.stopping import sessions_of
from quintet.watch.runs.folders import find_run, project_run_folders, read_run, run_folders
from quintet.watch.runs.model import PASS
from quintet.watch.runs.summary import task_title
from quintet.workspace import merging
from quintet.workspace.removing import begin_removal, remove
from quintet.workspace.repository import Repository, repository_of
from quintet.workspace.worktrees import Stage, Worktree, worktree_at, worktrees_of


def merge_run(project: Path, name: str | None, *, squash: bool, force: bool) -> tuple[Worktree, str]:
    """Merge the branch of a run into the current branch of the checkout; the worktree, and the commit there then."""
    folder, worktree = _find(project, name)
    _refuse_at_work(worktree)
    run = read_run(folder)
    if run.status != PASS and not force:
        raise RunError(f"the run {folder.name} has not passed ({run.status}); --force merges what there is")
    repository = repository_of(worktree.project)
    message = f"{task_title(folder, run.id) or folder.name}\n\nQuintet run {folder.name}"
    with repository.locked():
        return worktree, merging.merge(worktree, repository, message, squash=squash)


def discard_run(project: Path, name: str | None, *, force: bool) -> Worktree:
    """Remove the worktree and the branch of a run; its archive is kept with the project.

    A removal that was killed is completed first, and was what the user meant.
    """
    interrupted = [one for one in worktrees_of(project) if one.stage is Stage.REMOVING]
    for one in interrupted:
        _remove_again(one)
    if interrupted and (name is None or worktree_at(find_run(project, name).parents[1]) is None):
        return interrupted[-1]
    _, worktree = _find(project, name)
    _refuse_at_work(worktree)
    repository = repository_of(worktree.project)
    if not force and (lost := _unmerged(worktree, repository)):
        raise RunError(f"{lost} would be lost; keep it first ({program()} merge), or lose it with --force")
    _remove(worktree, repository)
    return worktree


def merged_worktrees(project: Path) -> Iterator[Leftover]:
    """The worktrees of a project that nothing would be lost with, and those whose removal was interrupted."""
    with suppress(RunError):
        repository = repository_of(project)
        for one in worktrees_of(project):
            if not one.has_maker and not worker(one.tree) and (what := _why_unneeded(one, repository)):
                yield Leftover(what, f"{one.tree} ({one.branch})", partial(_remove_again, one))


def _find(project: Path, name: str | None) -> tuple[Path, Worktree]:
    """The run that is meant, by default the newest in a worktree, and that worktree."""
    if name:
        folder = find_run(project, name)
        worktree = worktree_at(folder.parents[1])
        if worktree is None:
            raise RunError(
                f"the run {folder.name} has no worktree: it worked in {folder.parents[1]} itself, or is discarded"
            )
        return folder, worktree
    for folder in project_run_folders(project):
        if worktree := worktree_at(folder.parents[1]):
            return folder, worktree
    raise RunError(f"no run of {project} has a worktree; {program()} run --worktree TASK.md starts one")


def _refuse_at_work(worktree: Worktree) -> None:
    if who := worker(worktree.tree):
        raise RunError(f"a run is at work in {worktree.tree} ({who}); {program()} stop ends it")


def _unmerged(worktree: Worktree, repository: Repository) -> str:
    """What of the work in a worktree is nowhere else; empty where all of it is."""
    if worktree.stage is Stage.REMOVING:  # that was decided when its removal began
        return ""
    try:
        left, submodule = merging.uncommitted_work(worktree), merging.submodule_with_commits(worktree, repository)
    except GitError:
        return f"whatever is in {worktree.tree}, which git cannot read,"
    if left:
        return f"uncommitted work in {worktree.tree} ({left[0]}{' and more' if left[1:] else ''})"
    if submodule:
        return f"the commits in {worktree.top / submodule}, which your checkout does not have (push or fetch them),"
    return f"the work on {worktree.branch}" if merging.has_unmerged_commits(worktree, repository) else ""


def _why_unneeded(worktree: Worktree, repository: Repository) -> str:
    if worktree.stage is not Stage.READY:
        return "a worktree that is half made or half removed"
    if _unmerged(worktree, repository) or _can_go_on(worktree):
        return ""
    is_merged = repository.branch_commit(worktree.branch) != worktree.start
    return "a worktree whose branch is merged" if is_merged else "a worktree without any work in it"


def _can_go_on(worktree: Worktree) -> bool:
    runs = [read_run(folder) for folder in run_folders(worktree.tree)[:1]] if worktree.tree.is_dir() else []
    return any(run.status != PASS and run.resumable for run in runs)


def _remove_again(worktree: Worktree) -> None:
    """Remove it, unless a run has begun in it since."""
    _refuse_at_work(worktree)
    _remove(worktree, repository_of(worktree.project))


def _remove(worktree: Worktree, repository: Repository) -> None:
    worktree = begin_removal(worktree, repository, with_commits=True)
    for name in sessions_of(worktree.tree, list_terminals()):
        with suppress(ServerError):  # it went by itself
            end_session(name)
    make_tmp(worktree.project)
    for folder in run_folders(worktree.tree):
        RunRecord(worktree.tree, folder.name).move_to(worktree.project)
    unmark(worktree.tree / STATE_FILE)
    with repository.locked():
        remove(worktree, repository, with_commits=True)
